"""How the learning rate changes from update to update: values of the parameter `learning_rate`."""

from typing import TYPE_CHECKING

from skort.common.component import name_their_parameters
from skort.common.elsewhere import asked_of
from skort.optim.schedules import (
    Adaptive,
    Constant,
    Cosine,
    Cyclic,
    InvScaling,
    Optimal,
    Schedule,
    Warmup,
)

__all__ = [
    "Adaptive",
    "Constant",
    "Cosine",
    "Cyclic",
    "InvScaling",
    "Optimal",
    "Schedule",
    "Warmup",
]

name_their_parameters(globals()[name] for name in __all__)

# To a type checker, a module with this function would have every name.
if not TYPE_CHECKING:
    __getattr__ = asked_of(__name__)
