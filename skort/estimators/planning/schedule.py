"""How the learning rate changes from update to update."""

from typing import Any

from sklearn.base import clone

from skort.estimators.planning.decision import Decision, rule
from skort.optim.schedules import SCHEDULES, Cosine, Schedule


@rule("learning rate")
def linear_schedule() -> type[Schedule]:
    """The rate of a linear model is divided by five whenever the objective no longer falls."""
    return SCHEDULES["adaptive"]


@rule("learning rate")
def network_schedule(n_updates: int, eta0: float) -> Decision:
    """The rate of a network falls along a cosine, and comes to zero with the last update."""
    return Decision(
        Cosine(n_updates, eta0), "a network has a fixed number of updates", "learning_rate"
    )


def at_rate(schedule: Any, eta0: float) -> Any:
    """Return a copy of a schedule with another first rate."""
    return clone(schedule).set_params(eta0=eta0)
