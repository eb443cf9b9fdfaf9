"""What is to be reached: `python -m benchmarks --goals` ends with 1 where a goal is missed."""

import statistics

from benchmarks.contenders import FLOOR
from benchmarks.jax_process import COMPILED, COUNTED
from benchmarks.races import ALL_CORES, ONE_THREAD

__all__ = ["goals", "race_goals"]


def _by_solver(session, agent, graph):
    return {"session": session, "agent": agent, "graph": graph}


_FLOORS = {FLOOR: {solver: 1 / limit for solver, limit in _by_solver(1.3, 1.3, 1.15).items()}}
_SMALL_BATCHES = {"scikit-learn": _by_solver(5, 3, 6)}
_PREDICT = {"predict of MLP 100-100-1, 100,000 rows": {"scikit-learn": {"skort": 1.2}}}
_WIDE = {
    "MLP 784-100-10, 70,000 rows, batches of 200, 1 epoch": {
        "scikit-learn": _by_solver(1.4, 1.3, 1.5),
        "torch": _by_solver(1.2, 1.1, 1.3),
    }
    | _FLOORS
}

#: Threads -> race -> peer -> contender of skort -> the smallest ratio: the peer's
#: time over skort's.
RATIOS = {
    ONE_THREAD: {
        "MLP 10-20-1, batches of 10": {
            "scikit-learn": _by_solver(6, 4, 8),
            "torch": _by_solver(9, 6, 12),
            "skorch": _by_solver(20, 13, 25),
            COMPILED: {"graph": 1 / 2},
        },
        "MLP 100-100-1, batches of 100": {
            "scikit-learn": _by_solver(5, 3.5, 6),
            "torch": _by_solver(3.5, 2.5, 4),
            "skorch": _by_solver(15, 10, 18),
            COMPILED: {"graph": 1},
        },
        "MLP 100-100-1, batches of 1000": {
            "scikit-learn": _by_solver(2.5, 2.2, 4),
            "torch": _by_solver(2, 1.8, 3),
            "skorch": _by_solver(10, 8, 15),
            COMPILED: {"graph": 1},
        }
        | _FLOORS,
        "MLP 100-50-10-1, batches of 15": _SMALL_BATCHES,
        "MLP 100-50-10-1, classification, Nesterov, batches of 15": _SMALL_BATCHES,
        "Linear regression, 100,000 x 100, batches of 500": _FLOORS,
        "Logistic regression, 100,000 x 100, batches of 500": _FLOORS,
        "All defaults, logistic regression, 100,000 x 100": {"scikit-learn": {"skort": 3}},
        "predict of MLP 100-100-1, 1 row": {"scikit-learn": {"skort": 1.5}},
        "GridSearchCV, linear, 46 fits of 5 epochs on 1,000 x 20": {
            "scikit-learn": {"skort": 1 / 1.5}
        },
        "GridSearchCV, linear, 46 fits of 50 epochs on 1,000 x 20": {"scikit-learn": {"skort": 1}},
        "GridSearchCV, MLP (20,), 46 fits of 5 epochs on 1,000 x 20": {
            "scikit-learn": {"skort": 3}
        },
    }
    | _WIDE
    | _PREDICT,
    ALL_CORES: _WIDE | _PREDICT,
}

#: Race on one thread -> contender of skort -> the longest time of a unit in milliseconds.
MILLISECONDS = {"fit of 100 x 5, linear, one epoch": _by_solver(2.5, 2.5, 1.2)}

#: Race on one thread -> contender of skort -> the longest time of a step in microseconds.
MICROSECONDS = {"Logistic regression, 5,000 x 20, batches of 1": {"graph": 3}}

#: A fit of so many steps is not to take longer than one of JAX that compiles first.
N_STEPS = 20_000


def goals(results):
    """
    Yield what is to be reached, and whether it is.

    Parameters
    ----------
    results : Results

    Yields
    ------
    goal : str
    is_reached : bool
    """
    for outcome in results.races:
        yield from race_goals(outcome)
    for figure in (figure for figure in results.figures if figure.limit is not None):
        value = statistics.median(figure.values)
        text = f"{figure.name} {figure.solver}: {value:.3g} {figure.unit}, at most {figure.limit:g}"
        yield text, value <= figure.limit
    if results.growth is not None:
        for solver, values in results.growth.nanoseconds.items():
            ratio, limit = max(values) / min(values), results.growth.limit
            yield (
                f"growth, {solver}: longest over shortest {ratio:.2f}, at most {limit:g}",
                ratio <= limit,
            )


def race_goals(outcome):
    """
    Yield the goals of a race, and whether they are reached:
    a time at a worse loss reaches none.
    """
    for peer, ratios in RATIOS[outcome.threads].get(outcome.name, {}).items():
        for ours, least in ratios.items():
            if {peer, ours} <= outcome.milliseconds.keys():
                ratio, counts = outcome.ratio(peer, ours), outcome.counts(peer, ours)
                worse = "" if counts else ", at a worse loss"
                text = (
                    f"{outcome.name}, {ours}: {ratio:.2f} times as fast as {peer}{worse}, at "
                    f"least {least:.2f}"
                )
                yield text, ratio >= least and counts
    if outcome.threads == ONE_THREAD:
        yield from _times(outcome)


def _times(outcome):
    for ours, most in MILLISECONDS.get(outcome.name, {}).items():
        if ours in outcome.milliseconds:
            value = outcome.median(ours)
            yield f"{outcome.name}, {ours}: {value:.2f} ms, at most {most:g}", value <= most
    for ours, most in MICROSECONDS.get(outcome.name, {}).items():
        if ours in outcome.milliseconds:
            value = outcome.microseconds(ours)
            yield f"{outcome.name}, {ours}: {value:.1f} us / step, at most {most:g}", value <= most
    if outcome.n_steps is not None and {"graph", COMPILED, COUNTED} <= outcome.milliseconds.keys():
        ours = 1e-3 * N_STEPS * outcome.microseconds("graph")
        theirs = outcome.compilation + 1e-3 * N_STEPS * outcome.microseconds(COMPILED)
        text = (
            f"{outcome.name}, graph: {N_STEPS} steps in {ours:.0f} ms, at most JAX's "
            f"{theirs:.0f}, compiling"
        )
        yield text, ours <= theirs
