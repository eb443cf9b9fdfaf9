"""What a fit finds of its rows, which the next fit on the same rows need not find again."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from skort.estimators.data.data_source import DataSource
from skort.estimators.data.rows import DataStatistics
from skort.estimators.training.reparametrization import Reparametrization


@dataclass(eq=False)
class KnownRows:
    """
    The statistics, batches and Gram matrices of rows, for fits that differ in strengths of their
    penalties alone. Each is found when the first fit asks for it.
    """

    source: DataSource
    _batches: Any = None
    _standardization: Any = None
    _grams: Any = None

    @functools.cached_property
    def statistics(self) -> DataStatistics:
        """The statistics of the rows, for the variables and the learning rate of a training."""
        return self.source.statistics()

    def batches(self, variables: Reparametrization, random_state: np.random.RandomState) -> Any:
        """Return the batches of the rows in the variables of a training."""
        if self._batches is None or self._standardization != variables.standardization:
            self._batches = self.source.batches(variables, random_state)
            self._standardization = variables.standardization
            self._grams = None

        return self._batches

    @property
    def grams(self) -> Any:
        """The `Grams` of the batches."""
        from skort.solvers.whitening import Grams

        if self._grams is None:
            self._grams = Grams()
        return self._grams
