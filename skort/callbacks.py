"""What may watch a training: values of the parameter `callbacks`."""

from skort.descent.callbacks import Callback, EarlyStopping, EpochLines, EpochScoring, ProgressBar
from skort.descent.checkpoint import Checkpoint

__all__ = ["Callback", "Checkpoint", "EarlyStopping", "EpochLines", "EpochScoring", "ProgressBar"]
