"""
How a gradient changes the weights: values of the parameter `optimizer`,
and what a custom one must have.
"""

from skort.optim.optimizers import LBFGS, SGD, Adam, Momentum, Nesterov, OnnxOptimizer, Optimizer

__all__ = ["LBFGS", "SGD", "Adam", "Momentum", "Nesterov", "OnnxOptimizer", "Optimizer"]
