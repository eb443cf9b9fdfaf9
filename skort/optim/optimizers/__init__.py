"""
Optimizers: how a gradient changes the weights.
The caller keeps the arrays that an optimizer remembers.
"""

from skort.optim.optimizers.protocol import (
    OPTIMIZERS,
    LinearUpdate,
    NamedOptimizer,
    OnnxOptimizer,
    Optimizer,
    OptimizerTags,
    State,
    optimizer_tags,
)

# isort: off
# Messages list the names of optimizers in this order.
from skort.optim.optimizers.sgd import SGD
from skort.optim.optimizers.momentum import Momentum
from skort.optim.optimizers.nesterov import Nesterov
from skort.optim.optimizers.adam import Adam
from skort.optim.optimizers.lbfgs import LBFGS
# isort: on

__all__ = [
    "LBFGS",
    "OPTIMIZERS",
    "SGD",
    "Adam",
    "LinearUpdate",
    "Momentum",
    "NamedOptimizer",
    "Nesterov",
    "OnnxOptimizer",
    "Optimizer",
    "OptimizerTags",
    "State",
    "optimizer_tags",
]
