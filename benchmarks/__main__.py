"""
Run all benchmarks: `python -m benchmarks`, or a quick look at them: `python -m benchmarks --quick`.

JAX is run by the Python that the environment variable JAX_PYTHON names, if it is not installed
next to skort.
"""

import argparse
import importlib.util
import sys
import warnings
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning

from benchmarks.cases import all_races
from benchmarks.figures import all_figures, growth
from benchmarks.goals import goals
from benchmarks.machine import machine
from benchmarks.races import ALL_CORES, ONE_THREAD, run
from benchmarks.report import (
    compilation_table,
    figures_table,
    growth_table,
    page,
    profile_table,
    race_table,
)
from benchmarks.results import Results, load, save
from benchmarks.step_profile import step_profiles
from benchmarks.timing import threads

HERE = Path(__file__).parent


def _say(lines):
    print("\n".join([*lines, ""]), flush=True)


def measure(*, quick=False, only="", repeats=5):
    """
    Return the results; tables are printed.

    Parameters
    ----------
    quick : bool, default=False
        Whether with fewer rows.
    only : str, default=""
        Races whose names contain it; if it is given, figures of skort alone are left out.
    repeats : int, default=5
    """
    races = []
    for name, n_jobs in ((ONE_THREAD, None), (ALL_CORES, -1)):
        with threads(n_jobs):
            _say([f"## {name}"])
            for race in all_races(quick=quick, n_jobs=n_jobs, only=only):
                races.append(run(race, repeats, name))
                _say(race_table(races[-1]))
    with threads():
        profiles = step_profiles(quick=quick, only=only, repeats=repeats)
        figures, growing = [], None
        if not only:
            figures, growing = (
                all_figures(quick=quick, n_processes=1 if quick else repeats),
                growth(quick=quick),
            )
    _say(compilation_table(races))
    _say(profile_table(profiles))
    if growing:
        _say(figures_table(figures))
        _say(growth_table(growing))
    _say(machine())
    return Results(machine(), repeats, races, profiles, figures, growing)


def write(results, folder):
    """Write the page and, with matplotlib, its plots."""
    (folder / "RESULTS.md").write_text(page(results))
    if importlib.util.find_spec("matplotlib"):
        from benchmarks.plots import plot_growth, plot_ratios

        plot_ratios(results, folder / "speed.png")
        if results.growth is not None:
            plot_growth(results.growth, folder / "growth.png")


def missed(results):
    """Print the goals; return whether one is missed."""
    reached = True
    for goal, is_reached in goals(results):
        print(f"goal {'reached' if is_reached else 'MISSED'}: {goal}")
        reached &= is_reached
    return not reached


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.strip().splitlines()[0]
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer rows, three minutes; writes nothing by default"
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="races whose names contain it; writes nothing"
    )
    parser.add_argument(
        "--growth", action="store_true", help="print the growth with the number of rows only"
    )
    parser.add_argument("--goals", action="store_true", help="end with 1 where a goal is missed")
    parser.add_argument(
        "--repeats", type=int, help="measured runs of each contender; default: 5, quick: 2"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="folder of results.json, the page and plots; default: benchmarks/",
    )
    parser.add_argument(
        "--measured",
        type=Path,
        metavar="FILE",
        help="take the results from a file; measure nothing",
    )
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.growth:
        with threads():
            _say(growth_table(growth(quick=options.quick)))
        return 0
    is_part = options.quick or options.only
    output = options.output or (None if is_part else HERE)
    if output is not None:
        # A measurement takes long: a folder that cannot be made fails before it.
        output.mkdir(parents=True, exist_ok=True)
    if options.measured:
        results = load(options.measured)
    else:
        repeats = options.repeats or (2 if options.quick else 5)
        results = measure(quick=options.quick, only=options.only, repeats=repeats)
    if output is not None:
        save(results, output / "results.json")
        write(results, output)
    return int(options.goals and missed(results))


if __name__ == "__main__":
    sys.exit(main())
