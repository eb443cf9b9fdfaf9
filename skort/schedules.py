"""How the learning rate changes from update to update: values of the parameter `learning_rate`."""

from skort.common.component import name_their_parameters
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
