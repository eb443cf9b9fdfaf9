"""Which optimizer makes the updates, and how its learning rate changes."""

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from skort.common.component import resolved, validated
from skort.estimators.planning.decision import Decision, rule, yours
from skort.estimators.planning.rate import GIVEN_RATE, RateChoice
from skort.objective.penalties import WeightPenalty
from skort.optim.optimizers import LBFGS, OPTIMIZERS, SGD, Adam
from skort.optim.schedules import SCHEDULES, Adaptive, Constant, Cosine, rate

# Chosen by `python -m benchmarks.defaults --networks`: the part of a weight that an update at the
# first rate takes, and the least and the largest sum of these parts over all updates.
_DECAY = 0.027
_LEAST_SUM = 6.0
_MOST_SUM = 9.0
# The largest part. It limits fits of fewer than 120 updates. No benchmark chose it.
_MOST_DECAY = 0.05
# An update that takes more than a whole weight changes its sign. No planned rate takes more than
# this part.
_MOST_OF_A_WEIGHT = 0.5
# `python -m benchmarks.rules --only wide` measures it: from two to eight weights a row, the decay
# grows in proportion, up to four times. From eight to 32, the rate falls with their root.
_WEIGHTS_PER_ROW = 2.0
_MANY_WEIGHTS_PER_ROW = 8.0
_MOST_TIMES = 4.0
# `python -m benchmarks.rules --only "few epochs"` measures it: with less than this part of the planned
# epochs, a classifier learns too little at a smaller rate. A regression does not.
_SHORT = 0.5
# `python -m benchmarks.rules --only noise` measures it: so many times the noise of y is the factor
# of the decay, between the two limits.
_OF_NOISE = 2.5
_OF_LITTLE_NOISE, _OF_MUCH_NOISE = 0.4, 2.5

#: The parameters by which the user decides on the steps, with the values that leave them to skort.
DECIDE_ON_STEPS: dict[str, Any] = {
    "optimizer": "auto",
    "learning_rate": "auto",
    "eta0": "auto",
    "batch_size": "auto",
    "max_grad_norm": None,
    "average": False,
}
# The parameters that only steps use, with the values at which they ask for nothing.
_OF_STEPS = {
    "batch_size": "auto",
    "learning_rate": "auto",
    "eta0": "auto",
    "average": False,
    "max_grad_norm": None,
    "early_stopping": False,
    "n_iter_no_change": "auto",
    "shuffle": True,
}
# The values that an optimizer over all rows needs of some parameters, and why.
_NEEDED = {
    "learning_rate": ("auto", "a line search finds the length of each step"),
    "eta0": ("auto", "a line search finds the length of each step"),
    "max_grad_norm": (None, "a line search needs the gradient as it is"),
    "average": (False, "its last weights are the best ones"),
    "early_stopping": (
        False,
        "it makes few iterations. fit(X, y, X_val=..., y_val=...) records the score after each",
    ),
}


@rule("optimizer")
def linear_optimizer(obstacle: str | None) -> Decision:
    """
    L-BFGS trains a linear model to its optimum if the objective is smooth, the rows are dense and
    in memory, and no parameter asks for steps; otherwise SGD trains it.
    """
    if obstacle is not None:
        return Decision(SGD(), obstacle, "optimizer")
    because = "the objective is smooth, and the rows are dense and in memory"
    return Decision(LBFGS(), because, "optimizer")


def asks_for_steps(given: Mapping[str, Any]) -> str | None:
    """Return a sentence that names a parameter that asks for steps, or None."""
    name = first_set(given, _OF_STEPS)
    if name is not None:
        return f"{name} asks for steps"
    if given["solver"] not in ("auto", "graph"):
        return f'solver="{given["solver"]}" asks for steps'

    return None


def full_obstacle(given: Mapping[str, Any]) -> str | None:
    """
    Return a message about the first parameter that an optimizer over all rows cannot follow, or
    None.
    """
    name = first_set(given, {name: value for name, (value, _) in _NEEDED.items()})
    if name is None:
        return None

    value, why = _NEEDED[name]
    return (
        f'optimizer="lbfgs" needs {name}={value!r}, got {given[name]!r}: {why}. Leave {name} '
        'out, or use another optimizer, such as "adam".'
    )


def check_full(given: Mapping[str, Any]) -> None:
    """Raise an error for a parameter that an optimizer over all rows cannot follow."""
    if (obstacle := full_obstacle(given)) is not None:
        raise ValueError(obstacle)


def first_set(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> str | None:
    """Return the first parameter whose value is neither its default nor "auto", or None."""
    for name, default in defaults.items():
        value = given.get(name, default)
        is_auto = isinstance(value, str) and value == "auto"
        if value is not default and not is_auto and value != default:
            return name

    return None


@rule("optimizer")
def network_optimizer(decay: float = 0.0, noise: float | None = None) -> Decision:
    """A network is trained by Adam with weight decay."""
    because = "a network is trained by Adam with decay"
    if noise is not None:
        because += f", for a noise of y of {noise:.2g}"
    return Decision(Adam(weight_decay=decay), because, "optimizer")


@rule("optimizer")
def stream_optimizer() -> Decision:
    """A network in a stream is trained by Adam without decay."""
    return Decision(Adam(), "a network in a stream is trained by Adam", "optimizer")


@rule("optimizer")
def full_optimizer() -> Decision:
    """
    A network whose own solver is "lbfgs" is trained by L-BFGS,
    if its loss is smooth and all rows are in memory.
    """
    return Decision(LBFGS(), 'the solver of the network inside is "lbfgs"', "optimizer")


def network_decay(n_updates: int, weights_per_row: float = 0.0, is_short: bool = False) -> float:
    """Return the decay of a network, before it is known how noisy y is."""
    # A rate of the user does not change the decay: a network with a small rate and a decay made for
    # it would not learn.
    rate = planned_rate(Adam().tags.first_rates[1], weights_per_row, is_short=is_short)
    return decay_growth(weights_per_row) * planned_decay(n_updates, rate)


@rule("optimizer")
def planned_decay(n_updates: int, eta0: float) -> float:
    """
    The decay alone would shrink the weights of a network 20 to 90 times, whether the training makes
    120 updates or many more.
    """
    part = min(max(_DECAY, _LEAST_SUM / n_updates), _MOST_SUM / n_updates, _MOST_DECAY)
    return part / eta0


@rule("optimizer")
def decay_growth(weights_per_row: float) -> float:
    """The decay of a new network grows in proportion to the weights a row, from two to eight of them."""
    return min(max(1.0, weights_per_row / _WEIGHTS_PER_ROW), _MOST_TIMES)


@rule("optimizer")
def counts_weights(*, is_curved: bool) -> bool:
    """
    In a regression by tanh or logistic units, which small weights make linear, the decay and the
    rate do not depend on the weights a row.
    """
    return not is_curved


@rule("optimizer")
def noise_growth(noise: float) -> float:
    """
    The decay of a new network is multiplied by 2.5 times the noise of y, from 0.4 to 2.5: the noise
    is the mean squared difference of y between nearest rows, divided by that between any two rows.
    """
    return min(max(_OF_LITTLE_NOISE, _OF_NOISE * noise), _OF_MUCH_NOISE)


@rule("optimizer")
def largest_decay(eta0: float) -> float:
    """At your `eta0`, an update of a new network loses at most half of each weight to the decay."""
    return _MOST_OF_A_WEIGHT / eta0


def described(optimizer: Any, eta0: float) -> str:
    """
    Return an optimizer as text. If it has a decay, the text says which part of a weight an update
    takes.
    """
    decay = getattr(optimizer, "weight_decay", 0.0)
    if not decay:
        return repr(optimizer)
    name = type(optimizer).__name__
    return f"{name}; an update at the first rate takes {decay * eta0:.2g} of each weight"


@rule("learning rate")
def linear_schedule(eta0: float) -> Decision:
    """
    The rate of a linear model is divided by five whenever the objective no longer falls, at most four
    times; then the training ends.
    """
    because = "the rate falls when the objective does not"
    return Decision(Adaptive(eta0), because, "learning_rate")


@rule("learning rate")
def planned_rate(of_optimizer: float, weights_per_row: float, *, is_short: bool = False) -> float:
    """
    The first rate of a network by Adam is 0.02; from 8 to 32 weights a row, it falls with their
    root, to 0.01, but not in a classifier for which `max_iter` is less than half of the planned
    epochs.
    """
    if is_short:
        return of_optimizer
    times = min(max(1.0, weights_per_row / _MANY_WEIGHTS_PER_ROW), _MOST_TIMES)
    return of_optimizer / times**0.5


def is_short(n_epochs: int, planned_epochs: int, *, is_classifier: bool) -> bool:
    """Return whether a classifier has too few epochs for a rate that many weights a row lower."""
    return is_classifier and n_epochs < _SHORT * planned_epochs


@rule("learning rate")
def network_schedule(n_updates: int, eta0: float) -> Decision:
    """The rate of a network falls along a cosine, and comes to zero with the last update."""
    return Decision(
        Cosine(n_updates, eta0), "a network has a fixed number of updates", "learning_rate"
    )


def first_rates_of(schedule: Any) -> list[str]:
    """Return the names of the first rates of a schedule, and of one inside it; none of a function."""
    given = schedule.get_params() if isinstance(schedule, BaseEstimator) else {}
    return [name for name in given if name.rpartition("__")[2] == "eta0"]


def at_rate(schedule: Any, eta0: float) -> Any:
    """Return a copy of a schedule with another first rate."""
    return clone(schedule).set_params(**dict.fromkeys(first_rates_of(schedule), eta0))


def given_optimizer(estimator: Any) -> Decision | None:
    """
    Return the decision of the user on the optimizer, or None if the model decides. A name stands
    for an optimizer with its own defaults: the `epsilon` of the estimator belongs to the loss.
    """
    given = estimator.optimizer
    if not isinstance(given, str):
        return yours(resolved(given, "optimizer"), "optimizer")
    return None if given == "auto" else yours(OPTIMIZERS[given](), "optimizer")


def given_schedule(
    estimator: Any, left_open: Set[str], penalty: WeightPenalty | None
) -> tuple[Decision | None, RateChoice]:
    """
    Return the decision of the user on the schedule, or None if the model decides; and who chooses
    its first rate. A rate that is found multiplies the schedule, which begins at one.
    """
    is_auto = "eta0" in left_open
    if "learning_rate" in left_open:
        return None, RateChoice(is_auto, is_found=is_auto)

    name = estimator.learning_rate
    if not isinstance(name, str):
        chosen = resolved(name, "learning_rate")
        if not is_auto and first_rates_of(chosen):
            chosen = at_rate(chosen, float(estimator.eta0))
        choice = GIVEN_RATE
    else:
        chosen, choice = _named_schedule(estimator, name, left_open, penalty)

    # It raises an error for a schedule whose first rate is no rate.
    rate(chosen, 1)
    return yours(chosen, "learning_rate"), choice


def _named_schedule(estimator, name, left_open, penalty):
    """Return a schedule that is given by name, and who chooses its first rate."""
    kind = SCHEDULES[name]
    of_penalty = 0.0 if penalty is None else penalty.alpha
    alpha = of_penalty if "alpha" in left_open else estimator.alpha
    if "alpha" in kind.shared_parameters and not (np.ndim(alpha) == 0 and alpha > 0):
        raise ValueError(
            f'learning_rate="{name}" divides by alpha, got alpha={alpha}. Set alpha > 0 (with '
            'penalty=None it is no penalty), or another learning_rate, such as "invscaling".'
        )

    is_auto = "eta0" in left_open
    choice = RateChoice(is_auto, is_found=is_auto and "eta0" in kind.shared_parameters)
    eta0 = 1.0 if is_auto else estimator.eta0
    values = {"alpha": alpha, "eta0": eta0, "power_t": estimator.power_t}
    chosen = kind(**{each: values[each] for each in kind.shared_parameters})
    return validated(chosen), choice


def searched_rates() -> Decision:
    """
    Return the decision on the rates of L-BFGS, which finds the length of each step itself: all are
    one.
    """
    return Decision(Constant(1.0), "a line search finds the length of each step")
