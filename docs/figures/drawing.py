"""
How the pictures of the pages look:
on white, in colours that colour-blind readers can tell apart.
"""

import matplotlib.pyplot as plt
from cycler import cycler

# The colours of Okabe and Ito.
COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
#: Of the pictures of the gallery, too.
STYLE = {
    "axes.prop_cycle": cycler(color=COLORS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


def panels(*titles, height=2.6, **options):
    """Return one row of axes with these titles."""
    with plt.rc_context(STYLE):
        _, axes = plt.subplots(
            1, len(titles), figsize=(max(3.5 * len(titles), 7), height), squeeze=False, **options
        )
        for axis, title in zip(axes[0], titles, strict=True):
            axis.set_title(title, fontsize="medium")
    return axes[0]
