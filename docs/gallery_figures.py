"""Run examples that need torch, JAX or Node.js, and keep what they print and draw for the pages.

`python docs/gallery_figures.py torch_network` writes
`docs/static/gallery/torch_network.txt` and `.png`.
"""

import contextlib
import io
import runpy
import sys

import matplotlib
from gallery_settings import EXAMPLES, KEPT, SHOWN, style


def keep(name):
    """Run one example."""
    import matplotlib.pyplot as plt

    style(None, name)
    plt.close("all")
    (path,) = EXAMPLES.rglob(f"{name}.py")
    with contextlib.redirect_stdout(io.StringIO()) as output:
        runpy.run_path(str(path), run_name="__main__")
    (KEPT / f"{name}.txt").write_text(output.getvalue())
    plt.savefig(KEPT / f"{name}.png", dpi=150)


if __name__ == "__main__":
    matplotlib.use("agg")
    KEPT.mkdir(exist_ok=True)
    for name in sys.argv[1:] or SHOWN:
        keep(name)
