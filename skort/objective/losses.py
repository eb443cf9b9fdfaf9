"""The losses by name: the values of the estimators' parameter `loss`."""

from skort.objective.classification import Hinge, ModifiedHuber, PerceptronLoss, SquaredHinge
from skort.objective.label_losses import (
    LabelEpsilonInsensitive,
    LabelHuber,
    LabelSquaredEpsilonInsensitive,
    LabelSquaredError,
)
from skort.objective.log_link import GammaLoss, PoissonLoss
from skort.objective.log_losses import LogLoss
from skort.objective.loss import TextLoss
from skort.objective.regression import (
    AbsoluteError,
    EpsilonInsensitive,
    Huber,
    Quantile,
    SquaredEpsilonInsensitive,
    SquaredError,
)

__all__ = ["CLASSIFICATION_LOSSES", "REGRESSION_LOSSES"]

REGRESSION_LOSSES: dict[str, type[TextLoss]] = {
    "squared_error": SquaredError,
    "absolute_error": AbsoluteError,
    "huber": Huber,
    "epsilon_insensitive": EpsilonInsensitive,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
    "quantile": Quantile,
    "poisson": PoissonLoss,
    "gamma": GammaLoss,
}
CLASSIFICATION_LOSSES: dict[str, type[TextLoss]] = {
    "log_loss": LogLoss,
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "modified_huber": ModifiedHuber,
    "perceptron": PerceptronLoss,
    "squared_error": LabelSquaredError,
    "huber": LabelHuber,
    "epsilon_insensitive": LabelEpsilonInsensitive,
    "squared_epsilon_insensitive": LabelSquaredEpsilonInsensitive,
}
