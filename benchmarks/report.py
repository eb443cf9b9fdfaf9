"""From measurements to a Markdown page and plots."""

import importlib.metadata
import os
import platform
import statistics
import textwrap
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cases import OURS, Race
from benchmarks.contenders import FLOOR, missing_peers
from benchmarks.step_profile import profile_cells

__all__ = [
    "LOSS_TOLERANCE",
    "Outcome",
    "figures_table",
    "growth_table",
    "machine",
    "plot_growth",
    "plot_races",
    "profile_table",
    "race_table",
]

#: A time counts if the loss at the end is worse by at most this part.
LOSS_TOLERANCE = 0.02

_PACKAGES = ("scikit-learn", "numpy", "onnx", "onnxruntime-training", "onnxruntime-training-cpu", "onnxruntime")
_PEER_PACKAGES = ("torch", "skorch")


@dataclass(frozen=True)
class Outcome:
    """
    The result of a race.

    Parameters
    ----------
    race : Race
        The race without its contenders, which hold the data.
    milliseconds : dict of str to list of float
        Contender -> times per unit.
    losses : dict of str to float
        Contender -> its loss at the end.
    """

    race: Race
    milliseconds: dict[str, list[float]]
    losses: dict[str, float]

    @property
    def ours(self):
        """The names of skort's contenders."""
        return [name for name in self.milliseconds if name in OURS]

    def ratio(self, peer, ours):
        """Return the median time of a peer over that of a contender of skort."""
        return statistics.median(self.milliseconds[peer]) / statistics.median(self.milliseconds[ours])

    def counts(self, peer, ours):
        """Return whether the loss of a contender of skort is no worse than that of a peer."""
        return self.losses[ours] <= self.losses[peer] * (1 + LOSS_TOLERANCE)


def race_table(outcome):
    """Return the table of a race as lines."""
    header = ["contender", f"ms / {outcome.race.unit}", "range", "loss", *(f"/ {ours}" for ours in outcome.ours)]
    rows = []
    for name, values in outcome.milliseconds.items():
        cells = [] if name in outcome.ours else [_ratio_cell(outcome, name, ours) for ours in outcome.ours]
        rows.append([name, *_median_and_range(values), f"{outcome.losses[name]:.5f}", *cells])
    return [f"### {outcome.race.name}", "", *_table(header, rows)]


def _ratio_cell(outcome, peer, ours):
    ratio, goal = outcome.ratio(peer, ours), outcome.race.goals.get(peer, {}).get(ours)
    if not outcome.counts(peer, ours):
        return f"{ratio:.2f}, at a worse loss"
    if peer == FLOOR and ours in outcome.race.floors:
        return _compared(1 / ratio, outcome.race.floors[ours], at_most=True, unit=" x floor")
    return f"{ratio:.2f}" if goal is None else _compared(ratio, goal)


def _compared(value, goal, *, at_most=False, unit=""):
    reached = value <= goal if at_most else value >= goal
    return f"{value:.2f}{unit} ({'<=' if at_most else '>='} {goal:g}: {'reached' if reached else 'MISSED'})"


def figures_table(figures):
    """Return the table of figures as lines."""
    rows = []
    for figure in figures:
        middle, span = _median_and_range(figure.values)
        reached = "reached" if statistics.median(figure.values) <= figure.limit else "MISSED"
        rows.append([figure.name, figure.solver, f"{middle} {figure.unit}", span, f"<= {figure.limit:g}: {reached}"])
    return _table(["figure", "solver", "median", "range", "limit"], rows)


def profile_table(profiles):
    """Return the table of step profiles as lines."""
    return _table(*profile_cells(profiles))


def growth_table(growth):
    """Return the table of the times per row and epoch as lines."""
    rows = [
        [
            solver,
            *(f"{value:.0f}" for value in values),
            _compared(max(values) / min(values), growth.limit, at_most=True),
        ]
        for solver, values in growth.nanoseconds.items()
    ]
    return _table(["solver", *(f"{n:,} rows" for n in growth.n_rows), "longest / shortest"], rows)


def _median_and_range(values):
    low, middle, high = (f"{value:.3g}" for value in (min(values), statistics.median(values), max(values)))
    return middle, f"{low} to {high}"


def _table(header, rows):
    """Return a Markdown table with aligned columns, which can be read as text."""
    rows = [row + [""] * (len(header) - len(row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    return [f"| {' | '.join(c.ljust(w) for c, w in zip(line, widths, strict=True))} |" for line in lines]


def machine():
    """Return a description of the machine as lines."""
    versions = [f"{package} {version}" for package in _PACKAGES + _PEER_PACKAGES if (version := _version(package))]
    lines = [
        f"- {_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}; "
        f"load average {os.getloadavg()[0]:.1f} at the end",
        f"- Python {platform.python_version()}, {', '.join(versions)}",
    ]
    return [*lines, *(f"- Left out, as it is not installed: {peer}" for peer in missing_peers())]


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor():
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


def plot_races(outcomes, path):
    """Draw the times of all contenders in one panel per race, skort's in another colour."""
    import matplotlib.pyplot as plt

    n_rows = -(-len(outcomes) // 2)
    figure, axes = plt.subplots(n_rows, 2, figsize=(10, 2.2 * n_rows), layout="constrained", squeeze=False)
    for panel, outcome in zip(axes.flat, outcomes, strict=False):
        names = list(outcome.milliseconds)
        medians = [statistics.median(values) for values in outcome.milliseconds.values()]
        bars = panel.barh(names, medians, color=["C0" if name in outcome.ours else "C7" for name in names])
        panel.bar_label(bars, fmt=lambda value: f"{value:,.0f}" if value >= 100 else f"{value:.3g}", padding=2)
        panel.margins(x=0.2)
        panel.invert_yaxis()
        panel.set_title(textwrap.fill(f"{outcome.race.name}: ms / {outcome.race.unit}", 52), fontsize="medium")
    figure.savefig(path, dpi=100)


def plot_growth(growth, path):
    """Draw the time per row and epoch."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for solver, values in growth.nanoseconds.items():
        axes.semilogx(growth.n_rows, values, "o-", label=solver)
    axes.set_ylim(0)
    axes.set_xlabel("rows of 20 features")
    axes.set_ylabel("nanoseconds per row and epoch")
    axes.legend()
    figure.savefig(path, dpi=100)
