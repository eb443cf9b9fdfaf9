"""
How a gradient changes the weights: values of the parameter `optimizer`,
and what a custom one must have.
"""

from typing import TYPE_CHECKING

from skort.common.component import name_their_parameters
from skort.common.elsewhere import asked_of
from skort.optim.optimizers import LBFGS, SGD, Adam, Momentum, Nesterov, OnnxOptimizer, Optimizer

__all__ = ["LBFGS", "SGD", "Adam", "Momentum", "Nesterov", "OnnxOptimizer", "Optimizer"]

name_their_parameters(globals()[name] for name in __all__)

# To a type checker, a module with this function would have every name.
if not TYPE_CHECKING:
    __getattr__ = asked_of(__name__)
