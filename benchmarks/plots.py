"""From results to plots, each for light and for dark pages."""

import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks.contenders import FLOOR, SCIKIT_LEARN
from benchmarks.jax_process import COMPILED, COUNTED
from benchmarks.report import main_contender, summarised
from benchmarks.small_fits import EXACT

__all__ = ["SKORT", "plot_growth", "plot_ratios", "plt", "save"]

_MARKS = {
    SCIKIT_LEARN: ("o", "tab:orange"),
    EXACT: ("X", "tab:brown"),
    "torch": ("s", "tab:red"),
    "skorch": ("D", "tab:purple"),
    FLOOR: ("P", "tab:gray"),
    COMPILED: ("^", "tab:green"),
    COUNTED: ("v", "tab:olive"),
}
SKORT = "#2585d8"


def save(draw, path):
    """
    Save what `draw` returns on a light page as `path`,
    and for a dark page as `NAME_dark.png`.
    """
    for style, name in (
        ("default", path.name),
        ("dark_background", f"{path.stem}_dark{path.suffix}"),
    ):
        with plt.style.context(style):
            figure = draw()
            figure.savefig(path.with_name(name), dpi=160, transparent=True)
            plt.close(figure)


def plot_ratios(results, path):
    """Draw how many times as long as skort others take, a line a race."""
    chosen = summarised(results.races)

    def draw():
        figure, axes = plt.subplots(figsize=(6.4, 1.4 + 0.5 * len(chosen)), layout="constrained")
        for peer, (marker, color) in _MARKS.items():
            points = [
                (outcome.ratio(peer, main_contender(outcome)), i)
                for i, (_, outcome) in enumerate(chosen)
                if peer in outcome.milliseconds
            ]
            if points:
                # The first ones are seen where marks meet.
                style = {
                    "marker": marker,
                    "color": color,
                    "s": 60,
                    "zorder": 4 - 0.1 * len(axes.collections),
                }
                axes.scatter(*zip(*points, strict=True), label=peer, **style)
        last = axes.get_xlim()[1]
        axes.set_xscale("log")
        axes.set_xlim(0.06, 1.25 * last)
        axes.set_ylim(len(chosen) - 0.5, -0.5)
        axes.axvspan(1, 1.25 * last, color=SKORT, alpha=0.08, linewidth=0)
        axes.axvline(1, color=SKORT, linewidth=2, zorder=2)
        above = axes.get_xaxis_transform()
        axes.text(0.93, 1.02, "others are faster", transform=above, ha="right", va="bottom")
        axes.text(
            1.08, 1.02, "skort is faster", transform=above, color=SKORT, weight="bold", va="bottom"
        )
        axes.set_yticks(range(len(chosen)), [short.replace(", ", "\n", 1) for short, _ in chosen])
        axes.xaxis.set_major_locator(FixedLocator([0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 40]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} x"))
        axes.grid(axis="both", color="tab:gray", alpha=0.25)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        axes.set_xlabel("time, where skort takes 1 x; one thread")
        figure.legend(
            loc="outside lower center", ncols=4, frameon=False, handletextpad=0, columnspacing=0.7
        )
        return figure

    save(draw, path)


def plot_growth(growth, path):
    """Draw the time per row and epoch."""

    def draw():
        figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
        for solver, values in growth.nanoseconds.items():
            axes.semilogx(growth.n_rows, values, "o-", label=f'solver="{solver}"')
        axes.set_ylim(0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel("rows of 20 features")
        axes.set_ylabel("nanoseconds per row and epoch")
        axes.legend(frameon=False)
        return figure

    save(draw, path)
