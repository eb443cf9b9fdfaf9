"""Run all benchmarks: `python -m benchmarks`, or a quick look at them: `python -m benchmarks --quick`."""

import argparse
import dataclasses
import importlib.util
import warnings
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning

from benchmarks.cases import all_races
from benchmarks.figures import all_figures, growth
from benchmarks.report import (
    LOSS_TOLERANCE,
    Outcome,
    figures_table,
    growth_table,
    machine,
    plot_growth,
    plot_races,
    profile_table,
    race_table,
)
from benchmarks.step_profile import step_profiles
from benchmarks.timing import in_turn, threads

HERE = Path(__file__).parent

PAGE = """\
# Speed

Written by `python -m benchmarks`; `python -m benchmarks --quick` is a quick look at smaller sizes.

{machine}

All contenders of a table ran in one process, in turn, {repeats} times after a first run that was not measured: medians
and ranges of a whole `fit`, divided by its epochs. All start from the same weights and make the same updates in float32
on the same batches (scikit-learn's neural networks draw another order from the second epoch on, its linear models stop
by themselves). `numpy` is a loop by hand over BLAS, in place: the floor. A column `/ graph` is the time of that
contender over the time of `solver="graph"`, and the goal; where the floor has a goal, the other way round. A time does
not count where the loss at the end is worse by more than {tolerance:.0%}.

{tables}

## Where the time of a step goes

One thread, solver "graph": the step inside a whole `fit` (with the check of X, the gathering of rows and, in the last
case, all that a fit costs once), the run of its graph as `training_graphs` gives it, which takes the vector of weights
apart first, and the matrix products of the graph alone. The last column is how many times as long as those products a
step of scikit-learn takes: with the matrix products of ONNX Runtime, no solver can be faster than that.

{profiles}

## Fixed costs and memory

{figures}

## Growth

Nanoseconds per row and epoch of a linear model with 20 features, batches of 200; more than 1,000,000 rows are read from
a memory map.

{growth}
"""


def run(race, repeats):
    """Return what a race ends with; its lines are printed."""
    times, results = in_turn(race.contenders, repeats)
    milliseconds = {name: [1e3 * t / race.n_units for t in values] for name, values in times.items()}
    losses = {name: race.loss(result) for name, result in results.items()}
    outcome = Outcome(dataclasses.replace(race, contenders={}, loss=None), milliseconds, losses)
    print("\n".join([*race_table(outcome), ""]), flush=True)
    return outcome


def main(*, quick, output):
    repeats = 3 if quick else 5
    tables, outcomes = [], []
    for n_jobs in (None, -1):
        with threads(n_jobs):
            raced = [run(race, repeats) for race in all_races(quick=quick, n_jobs=n_jobs)]
        tables.append("## One thread" if n_jobs is None else "## All cores")
        tables += ["\n".join(race_table(outcome)) for outcome in raced]
        outcomes.append(raced)
    with threads():
        figures, growing = all_figures(quick=quick), growth(quick=quick)
        profiles = step_profiles(quick=quick)
    lines = {
        "machine": machine(),
        "profiles": profile_table(profiles),
        "figures": figures_table(figures),
        "growth": growth_table(growing),
    }
    print("\n".join([*lines["profiles"], "", *lines["figures"], "", *lines["growth"], "", *lines["machine"]]))
    if output is not None:
        texts = {name: "\n".join(value) for name, value in lines.items()}
        page = PAGE.format(tables="\n\n".join(tables), repeats=repeats, tolerance=LOSS_TOLERANCE, **texts)
        (output / "RESULTS.md").write_text(page)
        if importlib.util.find_spec("matplotlib"):
            plot_races(outcomes[0], output / "speed.png")
            plot_growth(growing, output / "growth.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, two minutes; writes nothing by default")
    parser.add_argument("--growth", action="store_true", help="print the growth with the number of rows only")
    parser.add_argument("--output", type=Path, help="folder of RESULTS.md and its plots; default: benchmarks/")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if arguments.growth:
        with threads():
            print("\n".join(growth_table(growth(quick=arguments.quick))))
        parser.exit()
    main(quick=arguments.quick, output=arguments.output or (None if arguments.quick else HERE))
