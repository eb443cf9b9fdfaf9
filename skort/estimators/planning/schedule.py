"""How the learning rate changes from update to update."""

from typing import Any

from sklearn.base import clone

from skort.estimators.planning.decision import Decision, rule
from skort.estimators.planning.stream import LATER
from skort.optim.schedules import SCHEDULES, Constant, Cosine, Schedule


@rule("learning rate")
def linear_schedule() -> type[Schedule]:
    """The rate of a linear model is divided by five whenever the objective no longer falls."""
    return SCHEDULES["adaptive"]


@rule("learning rate")
def network_schedule(n_updates: int, eta0: float) -> Decision:
    """The rate of a network falls along a cosine, and comes to zero with the last update."""
    return Decision(Cosine(n_updates, eta0), "a network has a fixed number of updates", "learning_rate")


@rule("learning rate")
def later_schedule(planned: Any) -> Decision:
    """Rows that come after the plan of a network, in calls of `partial_fit`, have a twentieth of its first rate."""
    because = "the plan of the network is over, or has no end in a stream"
    return Decision(Constant(LATER * planned.eta0), because, "learning_rate")


def at_rate(schedule: Any, eta0: float) -> Any:
    """Return a copy of a schedule with another first rate."""
    return clone(schedule).set_params(eta0=eta0)
