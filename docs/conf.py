"""Sphinx: `sphinx-build -W docs docs/_build` writes the pages."""

import importlib.util
import runpy
from pathlib import Path

from skort import __version__

project = "skort"
author = "the skort developers"
project_copyright = f"2026, {author}"
release = __version__

extensions = [
    "sphinx.ext.autodoc",
    # benchmarks/RESULTS.md
    "myst_parser",
    # MathJax from the pages themselves: they can be read without a network.
    "sphinx-mathjax-offline",
    "numpydoc",
    # Examples that import matplotlib are shown with their plot.
    "matplotlib.sphinxext.plot_directive",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
# The page that includes benchmarks/RESULTS.md has a title of its own.
suppress_warnings = ["myst.header"]
html_theme = "furo"
html_static_path = ["static"]
html_title = f"skort {release}"

default_role = "code"
autodoc_typehints = "none"
# skort.torch is documented without torch, too.
autodoc_mock_imports = [name for name in ("torch",) if not importlib.util.find_spec(name)]
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False
numpydoc_use_plots = True
plot_include_source = True
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = ["png"]

# This one needs Node.js; others need packages that need not be here. They are shown, and not run.
_shown = ["train_in_javascript", *(f"{name}_" for name in ("torch", "jax") if not importlib.util.find_spec(name))]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": rf"examples.(?!{'|'.join(_shown)})\w+\.py$",
    "within_subsection_order": "FileNameSortKey",
    # What a cell prints is shown, not what its last line returns.
    "capture_repr": (),
    "show_memory": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
}


def setup(app):
    for name in ("models_table.py", "browser_files.py"):
        runpy.run_path(str(Path(app.srcdir, name)), run_name="__main__")
