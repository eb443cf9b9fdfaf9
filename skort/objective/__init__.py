"""Losses and penalties, each with its formula."""

# ruff: noqa: F403

from typing import TYPE_CHECKING

from skort.common.component import name_their_parameters
from skort.common.elsewhere import asked_of
from skort.objective import classification, log_link, regression
from skort.objective.classification import *
from skort.objective.custom import Loss, Penalty
from skort.objective.log_link import *
from skort.objective.penalties import L1, L2, ElasticPenalty
from skort.objective.regression import *
from skort.objective.weighted_sum import WeightedSum

__all__ = ["L1", "L2", "ElasticPenalty", "Loss", "Penalty", "WeightedSum"]
__all__ += classification.__all__
__all__ += log_link.__all__
__all__ += regression.__all__

name_their_parameters(globals()[name] for name in __all__)

# To a type checker, a module with this function would have every name.
if not TYPE_CHECKING:
    __getattr__ = asked_of(__name__)
