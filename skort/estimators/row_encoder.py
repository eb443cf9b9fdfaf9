"""What rows of the user are for a model that exists already: those of X, targets and sample weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skort.estimators.dlpack import as_array
from skort.estimators.fitted_model import FittedModel
from skort.estimators.sample_weight import ClassWeight
from skort.estimators.settings import Settings

__all__ = ["RowEncoder"]


@dataclass(frozen=True, eq=False)
class RowEncoder:
    """
    Validates rows, and returns what a model is trained on.

    Parameters
    ----------
    estimator : BaseOrtSGD
        It knows the columns of X.
    fitted : FittedModel
        The model, with its classes and the fitted steps before it.
    settings : Settings
        Its loss says which targets there may be.
    class_weight : ClassWeight or None
        That does not depend on all rows.
    """

    estimator: Any
    fitted: FittedModel
    settings: Settings
    class_weight: ClassWeight | None

    def __call__(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """
        Return what the model is trained on.

        Parameters
        ----------
        X, y, sample_weight : array-like
            As for `fit`, of numpy or of any library with DLPack; y may be a dict of them.

        Returns
        -------
        rows : ndarray or CSR matrix of shape (n_samples, n_features)
        target : ndarray of shape (n_samples, n_outputs)
        sample_weight : ndarray of shape (n_samples,) or None
            With the class weights. None: all rows count the same.

        Raises
        ------
        ValueError
            Where they are not as `fit` takes them.
        """
        estimator, fitted = self.estimator, self.fitted
        if y is None:
            raise ValueError("y is needed: the loss depends on it.")
        X = as_array(X, "X")
        if isinstance(y, Mapping):
            y = {name: as_array(column, f"y[{name!r}]") for name, column in y.items()}
        else:
            y = as_array(y, "y")
        if sample_weight is not None:
            sample_weight = as_array(sample_weight, "sample_weight")
        rows, y = estimator._validate(X, y, has_steps=fitted.has_steps, reset=False)
        encoded = fitted.target_transform.applied(estimator._encode(y, fitted.classes))
        n_outputs, expected = encoded.target.shape[1], fitted.score_graph.n_outputs
        if n_outputs != expected:
            raise ValueError(f"y has {n_outputs} outputs, but the model has {expected}.")
        sample_weight, encoded = estimator._weighted(sample_weight, rows, encoded, self.class_weight)
        self.settings.loss.check_target(encoded.target)
        return fitted.preprocessing.transform(rows), encoded.target, sample_weight
