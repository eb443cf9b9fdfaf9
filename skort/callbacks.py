"""Callbacks, which watch a training and may stop it: values of the parameter `callbacks`."""

from skort.common.component import name_their_parameters
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
