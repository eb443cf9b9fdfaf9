"""How the learning rate changes from update to update: values of the parameter `learning_rate`."""

from skort.descent.schedules import Adaptive, Constant, Cosine, InvScaling, Optimal, Schedule, Warmup

__all__ = ["Adaptive", "Constant", "Cosine", "InvScaling", "Optimal", "Schedule", "Warmup"]
