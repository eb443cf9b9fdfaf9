"""What may watch a training and stop it: values of the parameter `callbacks`, and what they see."""

from skort.descent.callbacks import Callback, EarlyStopping, EpochScoring
from skort.descent.checkpoint import Checkpoint
from skort.descent.display import EpochLines, ProgressBar
from skort.descent.history import History
from skort.descent.training import Training

__all__ = [
    "Callback",
    "Checkpoint",
    "EarlyStopping",
    "EpochLines",
    "EpochScoring",
    "History",
    "ProgressBar",
    "Training",
]
