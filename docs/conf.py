"""Sphinx: `nox -s docs` builds these pages and walks them in a browser."""

import importlib
import importlib.util
import inspect
import re
import runpy
import sys
import zlib
from pathlib import Path

from skort import __version__
from skort.common.component import project_address

sys.path.insert(0, str(Path(__file__).parent))

import gallery_settings  # beside this file

HERE = Path(__file__).parent

project = "skort"
author = "the skort developers"
project_copyright = f"2026, {author}"
release = version = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    # [source] beside each class and function.
    "sphinx.ext.viewcode",
    # benchmarks/RESULTS.md
    "myst_parser",
    # MathJax from the pages themselves: they can be read without a network.
    "sphinx-mathjax-offline",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    # Examples that import matplotlib are shown with their plot.
    "matplotlib.sphinxext.plot_directive",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "inventories", "templates"]
templates_path = ["templates"]
# Quotes around names of values stay those of the code.
smartquotes = False
# The page that includes benchmarks/RESULTS.md has a title of its own.
suppress_warnings = ["myst.header"]
default_role = "code"

html_theme = "pydata_sphinx_theme"
html_title = f"skort {release}"
html_static_path = ["static"]
html_css_files = ["skort.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "skort"},
    "header_links_before_dropdown": 5,
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    # Not before there is one: see pyproject.toml.
    "icon_links": [
        {"name": name, "url": address, "icon": "fa-brands fa-github"}
        for name, address in [("Repository", project_address("Repository"))]
        if address and "OWNER" not in address
    ],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"**": ["sidebar-nav-bs"], "index": []}
# That of the reader's system, until they choose.
html_context = {"default_mode": "auto"}
html_logo = html_favicon = "static/logo.svg"

autodoc_typehints = "none"
# "fit()" beside the page of its class, not the name of the class again.
toc_object_entries_show_parents = "hide"
# skort.torch is documented without torch, too.
autodoc_mock_imports = [name for name in ("torch",) if not importlib.util.find_spec(name)]
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False
numpydoc_use_plots = True
# Types of parameters link to what they name.
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {
    "DataFrame": "pandas.DataFrame",
    "FrozenEstimator": "sklearn.frozen.FrozenEstimator",
    "InferenceSession": "onnxruntime.InferenceSession",
    "ModelProto": "onnx.ModelProto",
    "Pipeline": "sklearn.pipeline.Pipeline",
    "RandomState": "numpy.random.RandomState",
    "TensorProto": "onnx.TensorProto",
    "bool": "bool",
    "boolean": "bool",
    "callable": "callable",
    "ndarray": "numpy.ndarray",
    "onnx.ModelProto": "onnx.ModelProto",
    "path-like": "os.PathLike",
    **{name: f"skort.callbacks.{name}" for name in ("Callback", "History", "Training")},
    **{name: f"skort.objective.{name}" for name in ("ElasticPenalty", "Loss", "Penalty")},
    **{name: f"skort.optimizers.{name}" for name in ("OnnxOptimizer", "Optimizer")},
    **{
        name: f"skort.gradients.{name}"
        for name in ("ForwardBackward", "GradientGraphs", "Gradients", "Saved")
    },
    **{name: f"skort.{name}" for name in ("OrtSGDClassifier", "OrtSGDRegressor", "Step")},
}
plot_include_source = True
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 150)]

# The button copies what one types: neither prompts nor what the machine answers.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# What pages name of other packages links to these.
_manuals = {
    "dask": "https://docs.dask.org/en/stable/",
    "matplotlib": "https://matplotlib.org/stable/",
    "numpy": "https://numpy.org/doc/stable/",
    "onnx": "https://onnx.ai/onnx/",
    "onnxruntime": "https://onnxruntime.ai/docs/api/python/",
    "pandas": "https://pandas.pydata.org/docs/",
    "python": "https://docs.python.org/3/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "sklearn": "https://scikit-learn.org/stable/",
    "skorch": "https://skorch.readthedocs.io/en/stable/",
    "torch": "https://docs.pytorch.org/docs/stable/",
}
intersphinx_mapping = {
    name: (address, str(HERE / "_build" / "inventories" / f"{name}.inv"))
    for name, address in _manuals.items()
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": rf"[\\/](?!(?:{'|'.join(gallery_settings.SHOWN)})\.py$)\w+\.py$",
    "subsection_order": "gallery_settings.section_order",
    "within_subsection_order": "gallery_settings.order",
    "reset_modules": ("matplotlib", "gallery_settings.style"),
    # "Examples" of an object: links to those that use it.
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("skort",),
    # What a cell prints is shown, not what its last line returns.
    "capture_repr": (),
    "remove_config_comments": True,
    "image_srcset": ["2x"],
    "thumbnail_size": (400, 280),
    "nested_sections": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
}


def write_inventories():
    """
    Compress `inventories/*.txt`, lines of a name, its role and its page,
    into what intersphinx reads.
    """
    for name, (_, path) in intersphinx_mapping.items():
        lines = (HERE / "inventories" / f"{name}.txt").read_text().splitlines()
        # 1 is the priority in a search, "-" the name itself as text of a link.
        rows = (f"{item} {role} 1 {page} -\n" for item, role, page in map(str.split, lines))
        header = (
            "# Sphinx inventory version 2\n"
            f"# Project: {name}\n"
            "# Version: \n"
            "# compressed using zlib\n"
        )
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(header.encode() + zlib.compress("".join(rows).encode()))


def written_in(app, module, name):
    """
    Return the module in which an object is written:
    some say that they are where users import them from.
    """
    outer = name.partition(".")[0]
    value = getattr(importlib.import_module(module), outer)
    modules = [
        m
        for path, m in sys.modules.items()
        if path.startswith("skort.") and vars(m).get(outer) is value
    ]
    written = re.compile(rf"^(class|def) {outer}\b", re.MULTILINE)
    return next((m.__name__ for m in modules if written.search(inspect.getsource(m))), None)


def setup(app):
    pages = ("models_table.py", "messages_page.py", "parameters_page.py", "rules_page.py")
    for name in (*pages, "optimizers_table.py", "browser_files.py", "licenses.py"):
        runpy.run_path(str(Path(app.srcdir, name)), run_name="__main__")
    write_inventories()
    app.connect("source-read", gallery_settings.add_kept)
    app.connect("viewcode-follow-imported", written_in)
    # Behind sphinx-gallery, which writes them at the priority 500.
    app.connect("builder-inited", gallery_settings.crop_thumbnails, priority=900)
