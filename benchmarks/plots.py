"""From results to plots."""

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.contenders import FLOOR
from benchmarks.jax_process import COMPILED, COUNTED
from benchmarks.report import main_contender, summarised

__all__ = ["plot_growth", "plot_ratios"]

_MARKS = {
    "scikit-learn": ("o", "C1"),
    "torch": ("s", "C3"),
    "skorch": ("D", "C4"),
    FLOOR: ("|", "0.3"),
    COMPILED: ("^", "C2"),
    COUNTED: ("v", "C2"),
}


def plot_ratios(results, path):
    """Draw how many times as long as skort others take, a line a race."""
    chosen = summarised(results.races)
    figure, axes = plt.subplots(figsize=(8, 0.9 + 0.55 * len(chosen)), layout="constrained")
    for peer, (marker, color) in _MARKS.items():
        points = [
            (outcome.ratio(peer, main_contender(outcome)), i)
            for i, (_, outcome) in enumerate(chosen)
            if peer in outcome.milliseconds
        ]
        if points:
            axes.scatter(*zip(*points, strict=True), s=60, marker=marker, color=color, label=peer, zorder=3)
    axes.axvline(1, color="C0", zorder=2)
    axes.annotate("skort", (1, -0.65), color="C0", ha="center", va="bottom", annotation_clip=False)
    axes.set_yticks(range(len(chosen)), [short for short, _ in chosen])
    axes.set_ylim(len(chosen) - 0.5, -0.6)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="both", color="0.9")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("times as long as skort, one thread")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def plot_growth(growth, path):
    """Draw the time per row and epoch."""
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for solver, values in growth.nanoseconds.items():
        axes.semilogx(growth.n_rows, values, "o-", label=solver)
    axes.set_ylim(0)
    axes.set_xlabel("rows of 20 features")
    axes.set_ylabel("nanoseconds per row and epoch")
    axes.legend()
    figure.savefig(path, dpi=100)
    plt.close(figure)
