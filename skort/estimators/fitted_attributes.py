"""What a fitted estimator shows and gives away."""

import copy
import dataclasses
import os
import pathlib
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skort.descent.progress import Progress
from skort.descent.standardization import Standardization
from skort.estimators.fitted_model import FittedModel
from skort.estimators.nesting import model_inside
from skort.estimators.settings import Settings
from skort.estimators.validation_set import VALIDATION_SCORE

if TYPE_CHECKING:
    import onnx

__all__ = ["FittedAttributes"]


def _may_be_linear(estimator):
    """Return True unless the fitted model, or a neural network inside that is not fitted yet, is not linear."""
    fitted = vars(estimator).get("_fitted")
    is_network = hasattr(model_inside(estimator.estimator), "hidden_layer_sizes")
    if is_network if fitted is None else not fitted.score_graph.is_linear:
        raise AttributeError("There is no coef_: the model is not linear.")
    return True


class FittedAttributes:
    """The attributes and exports of a fitted estimator, which it reads from its model, progress and settings."""

    _fitted: FittedModel
    _progress: Progress
    _settings: Settings
    _batch_size: int
    _n_batches: int | None
    _is_sparse: bool
    solver_: str
    coef_: "np.ndarray | scipy.sparse.csr_matrix"

    @property
    def weights_(self) -> dict[str, np.ndarray]:
        """All weights, trained or frozen, by their names in `onnx_`, as copies."""
        check_is_fitted(self)
        return self._fitted.weights()

    @property
    def onnx_(self) -> "onnx.ModelProto":
        """The deployable model."""
        check_is_fitted(self)
        return self._fitted.onnx

    @property
    def standardization_(self) -> Standardization | None:
        """What the training subtracted from X and y and divided them by; None where they were as they are."""
        check_is_fitted(self)
        return self._progress.standardization

    @property
    def history_(self) -> dict[str, list]:
        """What was written down of every epoch, as a copy: name -> one value an epoch."""
        check_is_fitted(self)
        return self._progress.rows()

    @property
    def loss_curve_(self) -> list[float]:
        """The objective of every epoch, the penalty included."""
        check_is_fitted(self)
        return self._progress.column("objective") or []

    @property
    def validation_scores_(self) -> list[float] | None:
        """The validation score after every epoch; None without a validation set."""
        check_is_fitted(self)
        return self._progress.column(VALIDATION_SCORE)

    @property
    def best_validation_score_(self) -> float | None:
        """The largest validation score; None without a validation set."""
        scores = self.validation_scores_
        return None if scores is None else float(np.fmax.reduce(scores))

    @available_if(_may_be_linear)
    def sparsify(self) -> "FittedAttributes":
        """
        Make `coef_` a CSR matrix, which takes less memory where most coefficients are zero. Predictions are the same.

        Returns
        -------
        self : object
            Fitted. A later fit makes `coef_` dense again.

        Raises
        ------
        NotFittedError
            Before a fit. The method exists where the model is linear.
        """
        self.coef_ = scipy.sparse.csr_matrix(self._dense_coef())
        return self

    @available_if(_may_be_linear)
    def densify(self) -> "FittedAttributes":
        """
        Make `coef_` an array again, after `sparsify`.

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        NotFittedError
            Before a fit. The method exists where the model is linear.
        """
        self.coef_ = self._dense_coef()
        return self

    def _dense_coef(self):
        """Return the coefficients as an array."""
        check_is_fitted(self)
        coef, _ = self._fitted.linear_weights() or (self.coef_, None)
        return coef

    def to_onnx(self, target_opset: int | None = None) -> "onnx.ModelProto":
        """
        Return the fitted model as ONNX.

        Parameters
        ----------
        target_opset : int, default=None
            Opset of the model, from 13. None: 17, with IR version 8, which every supported runtime reads.

        Returns
        -------
        model : onnx.ModelProto
            A copy of `onnx_`: any onnxruntime serves it.

        Raises
        ------
        NotExportableError
            Where a step of the pipeline cannot be part of an ONNX model; a `ValueError`.
        ValueError
            Where the model cannot be written in `target_opset`.
        """
        from skort.graphs.export import at_opset

        model = self.onnx_
        return copy.deepcopy(model) if target_opset is None else at_opset(model, target_opset)

    def save_onnx(self, path: str | os.PathLike) -> None:
        """
        Write the fitted model to an ONNX file.

        Parameters
        ----------
        path : str or path-like

        Raises
        ------
        NotExportableError
            Where a step of the pipeline cannot be part of an ONNX model; a `ValueError`.
        """
        pathlib.Path(path).write_bytes(self.onnx_.SerializeToString())

    def to_sklearn(self) -> BaseEstimator:
        """
        Return the model as plain scikit-learn: `estimator` with the trained weights written into it.

        Returns
        -------
        model : estimator
            Fitted; the last step of a fitted `Pipeline` where `estimator` is one. Its `predict`, and a classifier's
            `decision_function`, give what this estimator's do.

        Raises
        ------
        ValueError
            Where `estimator` is no linear model and no neural network of scikit-learn's, where weights of steps before
            the model were trained, and where the loss has another link than the model.
        """
        check_is_fitted(self)
        return self._fitted.to_sklearn(getattr(self, "feature_names_in_", None))

    def training_graphs(self) -> dict[str, "onnx.ModelProto"]:
        """
        Return every ONNX graph that training used.

        Returns
        -------
        graphs : dict of str to onnx.ModelProto
            Solver "graph": "step", a whole step of standard operators, which any onnxruntime runs. Its inputs are a
            batch, the learning rate, the weights as one vector and what the optimizer remembers; its outputs the loss,
            the objective and its gradient, and the weights and the memory for the next step, under the same names and
            "_next". "start" gives the fitted weights and an empty memory for the first step. Solver "agent":
            "gradient", forward and backward of one batch, with the trained weights as inputs and their gradients as
            outputs; after a fit of sparse rows both have "gradient" alone, from the product of the rows and the first
            coefficients on. Solver "session": "objective", as given to TrainingSession, and "training", as it was run,
            with the trained weights as initializers. The weights, targets and objectives of all of them are those of
            the training: with `standardization_` s, `coef_` is s.target_scale / s.scale times those of a linear model.
            With `standardize=False` they are those of X and y.

        Raises
        ------
        RuntimeNotAvailableError
            Where the installed ONNX Runtime lacks the API that the solver needs.
        """
        from skort.runtime.device import CPU
        from skort.solvers import solver_class

        check_is_fitted(self)
        settings, graph, progress = self._settings, self._fitted.score_graph, self._progress
        variables = settings.variables(graph, progress.standardization)
        size, is_sparse = (self._batch_size, progress.rate_scale, self._n_batches), self._is_sparse
        problem = settings.problem(self._fitted, variables, *size, is_sparse=is_sparse)
        made_from = dataclasses.replace(problem, device=CPU)
        return solver_class(self.solver_, CPU, is_sparse=is_sparse)(made_from).training_graphs()
