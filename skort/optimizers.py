"""
How a gradient changes the weights: values of the parameter `optimizer`,
and what a custom one must have.
"""

from skort.common.component import name_their_parameters
from skort.optim.optimizers import LBFGS, SGD, Adam, Momentum, Nesterov, OnnxOptimizer, Optimizer

__all__ = ["LBFGS", "SGD", "Adam", "Momentum", "Nesterov", "OnnxOptimizer", "Optimizer"]

name_their_parameters(globals()[name] for name in __all__)
