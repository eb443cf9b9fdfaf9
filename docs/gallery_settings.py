"""
How sphinx-gallery orders, draws and runs the scripts of `examples`;
`conf.py` names what is in here.
"""

import re
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"
# Figure and output of the examples that are shown and not run, as `gallery_figures.py`
# has written them.
KEPT = Path(__file__).parent / "static" / "gallery"

SECTIONS = {
    "basics": ("linear_regression", "classification", "neural_network", "nesterov_and_penalty"),
    "comparisons": (
        "sklearn_regression",
        "sklearn_classification",
        "numpy_network",
        "torch_network",
        "pieces_of_a_step",
    ),
    "objectives": (
        "losses",
        "penalties",
        "quantile_bands",
        "quantiles_and_variance",
        "custom_loss",
        "own_penalties",
    ),
    "training": (
        "learning_rates",
        "schedule_clock",
        "early_stopping",
        "fine_tuning",
        "lora",
        "class_weights",
    ),
    "data": (
        "columns",
        "mixed_search",
        "embeddings",
        "transformer_block",
        "text",
        "sparse",
        "streaming",
    ),
    "scale_and_files": (
        "export_and_serve",
        "train_without_skort",
        "train_in_browser",
        "train_in_javascript",
        "on_device",
        "dask_groups",
    ),
    "pieces": (
        "own_loop",
        "training_session",
        "training_graph",
        "forward_backward",
        "network_in_pieces",
        "classification_in_pieces",
        "numpy_loop",
        "torch_pipeline",
        "torch_embedding",
        "torch_to_skort",
        "jax_layer",
    ),
}
# They need torch, JAX or Node.js.
SHOWN = tuple(
    name
    for names in SECTIONS.values()
    for name in names
    if name.startswith(("torch_", "jax_", "train_in_javascript"))
)
# The right panel of their figure says more than the left one.
RIGHT_PANEL = (
    *("linear_regression", "classification", "nesterov_and_penalty"),
    *(
        "torch_network",
        "custom_loss",
        "schedule_clock",
        "train_in_browser",
        "training_session",
        "forward_backward",
    ),
    *("network_in_pieces", "jax_layer", "torch_embedding"),
)


def section_order(folder):
    """Return the place of a section."""
    return list(SECTIONS).index(Path(folder).name)


def order(file):
    """Return the place of an example in its section."""
    name = Path(file).stem
    return next((names.index(name) for names in SECTIONS.values() if name in names), 0)


def style(gallery_conf, file):
    """Draw all figures alike."""
    import matplotlib
    from cycler import cycler
    from figures.drawing import COLORS, STYLE

    own = {
        "axes.prop_cycle": cycler(color=[*COLORS, "#000000"]),
        "figure.figsize": (6.4, 4.0),
        "image.cmap": "cividis",
    }
    matplotlib.rcParams.update(STYLE | own)


def add_kept(app, page, source):
    """Put the kept output and figure into the page of an example that is not run."""
    name = page.rpartition("/")[2]
    if name not in SHOWN or not page.startswith("gallery/"):
        return
    parts = [
        (
            "This page shows what the script printed and drew with `python "
            f"docs/gallery_figures.py {name}`.\n"
        )
    ]
    if (KEPT / f"{name}.txt").read_text():
        parts.append(f".. literalinclude:: /static/gallery/{name}.txt\n    :language: none\n")
    parts.append(
        f".. image:: /static/gallery/{name}.png\n"
        f"    :alt: figure of {name}\n"
        "    :class: sphx-glr-single-img\n"
    )
    before, mark, after = source[0].partition(".. _sphx_glr_download_")
    source[0] = f"{before}\n\n{chr(10).join(parts)}\n\n{mark}{after}"


def crop_thumbnails(app):
    """Show one panel of a wide figure on the card of its example."""
    from PIL import Image

    pages = Path(app.srcdir, app.config.sphinx_gallery_conf["gallery_dirs"])
    for thumbnail in pages.glob("*/images/thumb/sphx_glr_*_thumb.png"):
        name = thumbnail.stem.removeprefix("sphx_glr_").removesuffix("_thumb")
        source = (pages / thumbnail.parents[2].name / f"{name}.py").read_text()
        number = re.search(r"^# sphinx_gallery_thumbnail_number = (\d+)", source, re.MULTILINE)
        drawn = thumbnail.parents[1] / f"sphx_glr_{name}_{int(number[1]) if number else 1:03}.png"
        image = KEPT / f"{name}.png" if name in SHOWN else drawn
        if not image.exists():
            # The example failed: sphinx-gallery says why at the end of the build.
            continue
        with Image.open(image) as whole:
            figure = whole.convert("RGB")
        if figure.width < 2 * figure.height:
            continue
        left, right = panels(figure)
        size = tuple(app.config.sphinx_gallery_conf["thumbnail_size"])
        panel = figure.crop(right if name in RIGHT_PANEL else left)
        panel.thumbnail(size)
        card = Image.new("RGB", size, "white")
        card.paste(panel, ((size[0] - panel.width) // 2, (size[1] - panel.height) // 2))
        card.save(thumbnail)


def panels(figure):
    """Return the boxes of the first panel and of the rest: white columns lie between them."""
    import numpy as np

    is_white = (np.asarray(figure) > 250).all(axis=(0, 2))
    begin, end = figure.width // 4, 3 * figure.width // 4
    # The first and the last column of each run of white ones.
    steps = np.diff(is_white[begin:end].astype(int), prepend=0, append=0)
    runs = list(
        zip(begin + np.flatnonzero(steps == 1), begin + np.flatnonzero(steps == -1), strict=True)
    )
    widest = max((last - first for first, last in runs), default=0)
    cut = next(
        (int(first + last) // 2 for first, last in runs if last - first >= 0.3 * widest),
        figure.width // 2,
    )
    return (0, 0, cut, figure.height), (cut, 0, figure.width, figure.height)
