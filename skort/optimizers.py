"""How a gradient changes the weights: values of the parameter `optimizer`, and what one of your own must have."""

from skort.optim.optimizers import SGD, Adam, Momentum, Nesterov, OnnxOptimizer, Optimizer

__all__ = ["SGD", "Adam", "Momentum", "Nesterov", "OnnxOptimizer", "Optimizer"]
