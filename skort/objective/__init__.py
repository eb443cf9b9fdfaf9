"""What is minimised: losses and penalties, each one ONNX text and its formula."""

# ruff: noqa: F403

from skort.objective import classification, label_losses, log_link, log_losses, regression
from skort.objective.classification import *
from skort.objective.concomitant_huber import ConcomitantHuber
from skort.objective.custom import Loss, Penalty
from skort.objective.label_losses import *
from skort.objective.log_link import *
from skort.objective.log_losses import *
from skort.objective.penalties import L1, L2, ElasticPenalty
from skort.objective.regression import *
from skort.objective.weighted_sum import WeightedSum

__all__ = ["L1", "L2", "ConcomitantHuber", "ElasticPenalty", "Loss", "Penalty", "WeightedSum"]
__all__ += classification.__all__
__all__ += label_losses.__all__
__all__ += log_link.__all__
__all__ += log_losses.__all__
__all__ += regression.__all__
