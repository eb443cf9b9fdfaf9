"""How a gradient changes the weights: values of the parameter `optimizer`, and what a custom one must have."""

from skort.optim.optimizers import *  # noqa: F403
from skort.optim.optimizers import __all__ as __all__
