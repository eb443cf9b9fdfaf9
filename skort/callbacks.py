"""Callbacks, which watch a training and may stop it: values of the parameter `callbacks`."""

from typing import TYPE_CHECKING

from skort.common.component import name_their_parameters
from skort.common.elsewhere import asked_of
from skort.optim.callbacks import Callback, EarlyStopping, EpochScoring
from skort.optim.checkpoint import Checkpoint
from skort.optim.display import EpochLines, MLflowLogger, ProgressBar
from skort.optim.state import History
from skort.optim.training import Training

__all__ = [
    "Callback",
    "Checkpoint",
    "EarlyStopping",
    "EpochLines",
    "EpochScoring",
    "History",
    "MLflowLogger",
    "ProgressBar",
    "Training",
]

name_their_parameters(globals()[name] for name in __all__)

# To a type checker, a module with this function would have every name.
if not TYPE_CHECKING:
    __getattr__ = asked_of(__name__)
