"""What may watch a training: values of the parameter `callbacks`."""

from skort.descent.callbacks import Callback, EarlyStopping, EpochLines, EpochScoring, ProgressBar

__all__ = ["Callback", "EarlyStopping", "EpochLines", "EpochScoring", "ProgressBar"]
