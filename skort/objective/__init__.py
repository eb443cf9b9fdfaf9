"""What is minimised: losses and penalties, each one ONNX text and its formula."""

from skort.objective.classification import Hinge, ModifiedHuber, PerceptronLoss, SquaredHinge
from skort.objective.concomitant_huber import ConcomitantHuber
from skort.objective.custom import Loss, Penalty
from skort.objective.label_losses import (
    LabelEpsilonInsensitive,
    LabelHuber,
    LabelSquaredEpsilonInsensitive,
    LabelSquaredError,
)
from skort.objective.log_link import GammaLoss, PoissonLoss, TweedieLoss
from skort.objective.log_losses import LogLoss, OneVsRestLogLoss
from skort.objective.penalties import L1, L2, ElasticPenalty
from skort.objective.regression import (
    AbsoluteError,
    ElasticLoss,
    EpsilonInsensitive,
    Huber,
    Quantile,
    SquaredEpsilonInsensitive,
    SquaredError,
)
from skort.objective.weighted_sum import WeightedSum

__all__ = [
    "L1",
    "L2",
    "AbsoluteError",
    "ConcomitantHuber",
    "ElasticLoss",
    "ElasticPenalty",
    "EpsilonInsensitive",
    "GammaLoss",
    "Hinge",
    "Huber",
    "LabelEpsilonInsensitive",
    "LabelHuber",
    "LabelSquaredEpsilonInsensitive",
    "LabelSquaredError",
    "LogLoss",
    "Loss",
    "ModifiedHuber",
    "OneVsRestLogLoss",
    "Penalty",
    "PerceptronLoss",
    "PoissonLoss",
    "Quantile",
    "SquaredEpsilonInsensitive",
    "SquaredError",
    "SquaredHinge",
    "TweedieLoss",
    "WeightedSum",
]
