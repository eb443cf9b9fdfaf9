"""What a fitted estimator shows and gives away."""

from __future__ import annotations

import copy
import os
import pathlib
from collections.abc import Callable, Mapping

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skort.common.available import available_if
from skort.common.files import write_file, write_files
from skort.estimators.data.rows import Columns
from skort.estimators.data.validation_set import VALIDATION_SCORE
from skort.estimators.literals import ModelProto
from skort.estimators.model.nesting import model_inside
from skort.estimators.planning.plan import Plan
from skort.estimators.training.result import FitResult, result_of, shown
from skort.estimators.training.run import fitted_problem
from skort.optim.optimizers import Optimizer
from skort.optim.standardization import Standardization


def _may_be_linear(estimator):
    """Raise an AttributeError where the fitted model, or a network inside that is not fitted yet, is not linear."""
    result = vars(estimator).get("_result")
    is_network = hasattr(model_inside(estimator.estimator), "hidden_layer_sizes")
    if is_network if result is None else not result.model.score_graph.is_linear:
        raise AttributeError("There is no coef_: the model is not linear.")


def _linear(estimator, name):
    """Return the weights of a fitted linear model, (coef, intercept), or say that there is no attribute of a name."""
    result = vars(estimator).get("_result")
    weights = None if result is None else result.model.linear_weights
    if weights is None:
        raise AttributeError(f"{type(estimator).__name__!r} object has no attribute {name!r}")
    return weights


def _not_set(name):
    return AttributeError(f"{name} shows weights of the fitted model and cannot be set: use set_weights.")


class FittedAttributes:
    """The attributes and exports of a fitted estimator, which it reads from its model, progress and settings."""

    _result: FitResult
    _adopt: Callable[..., None]
    _sparse_coef: scipy.sparse.csr_matrix | None = None
    solver_: str

    @property
    def coef_(self) -> np.ndarray | scipy.sparse.csr_matrix:
        """The coefficients of a linear model, which cannot be written into: `set_weights` changes the model."""
        coef = _linear(self, "coef_")[0]
        return coef if self._sparse_coef is None else self._sparse_coef

    @coef_.setter
    def coef_(self, value):
        raise _not_set("coef_")

    @property
    def intercept_(self) -> np.ndarray:
        """The intercepts of a linear model, which cannot be written into: `set_weights` changes the model."""
        return _linear(self, "intercept_")[1]

    @intercept_.setter
    def intercept_(self, value):
        raise _not_set("intercept_")

    @property
    def weights_(self) -> dict[str, np.ndarray]:
        """All weights, trained or frozen, by their names in `onnx_`, as copies."""
        return result_of(self).model.weights()

    @property
    def trainable_(self) -> tuple[str, ...]:
        """The names of the weights that the training changed; `weights_` has their values, and those of all others."""
        return result_of(self).model.score_graph.trainable

    @property
    def optimizer_(self) -> Optimizer:
        """The optimizer that made the updates."""
        return result_of(self).plan.update.optimizer

    @property
    def onnx_(self) -> ModelProto:
        """The deployable model."""
        return result_of(self).model.served

    @property
    def standardization_(self) -> Standardization | None:
        """What the training subtracted from X and y and divided them by; None where they were as they are."""
        return result_of(self).state.standardization

    @property
    def plan_(self) -> Plan:
        """Every decision of the last training, with its reason: `print(model.plan_)` shows them as a table.

        `plan_.decisions` has them by name, each with a `value`, a `because` and the parameters to `change_with`.
        """
        return result_of(self).told()

    @property
    def history_(self) -> dict[str, list]:
        """What was written down of every epoch, as a copy: name -> one value an epoch."""
        return result_of(self).state.rows()

    @property
    def stopping_reason_(self) -> str | None:
        """Why the training ended, a sentence; None after a `partial_fit`, which makes one epoch."""
        return result_of(self).state.stopping_reason

    @property
    def loss_curve_(self) -> list[float]:
        """The objective of every epoch, the penalty included."""
        return result_of(self).state.column("objective") or []

    @property
    def validation_scores_(self) -> list[float] | None:
        """After every epoch, minus the loss of the validation set, or its `scoring`: larger is better; or None."""
        return result_of(self).state.column(VALIDATION_SCORE)

    @property
    def best_validation_score_(self) -> float | None:
        """The largest of `validation_scores_`, minus a loss without `scoring`; None without a validation set."""
        scores = self.validation_scores_
        return None if scores is None else float(np.fmax.reduce(scores))

    @available_if(_may_be_linear)
    def sparsify(self) -> FittedAttributes:
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
        result_of(self)
        self._sparse_coef = scipy.sparse.csr_matrix(self.coef_)
        self._sparse_coef.data.flags.writeable = False
        return self

    @available_if(_may_be_linear)
    def densify(self) -> FittedAttributes:
        """Return the estimator itself, `coef_` being an array again after `sparsify`."""
        result_of(self)
        self._sparse_coef = None
        return self

    def set_weights(self, weights: Mapping[str, ArrayLike]) -> FittedAttributes:
        """
        Give the fitted model other weights.

        Predictions, `coef_`, `onnx_` and a later `partial_fit` use the new weights. The optimizer's memory and the mean
        of `average` begin from scratch. The attributes that describe the training, such as `history_`, stay.

        Parameters
        ----------
        weights : dict of str to array-like
            By their names in `weights_`, of the same shapes. Weights that are not in it stay. An empty dict changes
            none of them: only the optimizer begins anew.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For a name that the model does not have, such as that of a weight in a step before it, for another shape,
            and for numbers that are not finite. Nothing is changed then.
        NotFittedError
            Before a fit.
        """
        result = result_of(self)
        self._adopt(result.with_weights(result.model.checked_weights(weights)))
        return self

    def to_onnx(self, target_opset: int | None = None, *, original: bool = False) -> ModelProto:
        """
        Return the fitted model as ONNX: a copy of `onnx_`, which any onnxruntime serves.

        Parameters
        ----------
        target_opset : int, default=None
            Opset of the model, from 13. None: 17, with IR version 8, which every supported runtime reads.
        original : bool, default=False
            True: return the ONNX model that was given as `estimator`, with the trained weights. Nothing else in it
            changes: names, opset, producer, nodes and outputs stay, byte for byte. It has neither the steps of a
            pipeline before the model nor the inverse link of a loss.

        Raises
        ------
        NotExportableError
            Where a step of the pipeline cannot be part of an ONNX model; a `ValueError`.
        ValueError
            Where the model cannot be written in `target_opset`. With `original`: where no ONNX model was given, where a
            trained weight is none of its tensors, and where `target_opset` is given, too.
        """
        from skort.graphs.export import at_opset

        if original:
            model = result_of(self).model
            if target_opset is not None:
                raise ValueError(f"original=True keeps the opset of the model: leave out target_opset={target_opset}.")
            return model.original()
        model = self.onnx_
        return copy.deepcopy(model) if target_opset is None else at_opset(model, target_opset)

    def save_onnx(self, path: str | os.PathLike) -> None:
        """
        Write the fitted model to an ONNX file; an existing file is replaced when the new one is whole.

        Parameters
        ----------
        path : str or path-like

        Raises
        ------
        NotExportableError
            Where a step of the pipeline cannot be part of an ONNX model; a `ValueError`.
        OSError
            Where the file cannot be written; an old one is as it was.
        """
        write_file(path, self.onnx_.SerializeToString())

    def to_sklearn(self) -> BaseEstimator:
        """
        Return the model as plain scikit-learn: `estimator` with the trained weights written into it.

        Returns
        -------
        model : estimator
            Fitted; a `Pipeline` if `estimator` is one. Its `predict` and `decision_function` return the same as those
            of this estimator; its `predict_proba` may differ with another `loss` than that of the model inside.

        Raises
        ------
        ValueError
            Where `estimator` is neither a linear model nor a neural network of scikit-learn, where weights of steps
            before the model were trained, and where the loss has another link function than the model.
        """
        return result_of(self).model.to_sklearn(getattr(self, "feature_names_in_", None))

    def with_weights(self, weights: Mapping[str, ArrayLike]) -> FittedAttributes:
        """
        Return a copy that predicts with other weights, and starts from them in `partial_fit` and `warm_start`.

        Parameters
        ----------
        weights : dict of str to array-like
            As for `set_weights`, which has the errors, too.

        Returns
        -------
        model : estimator
            Fitted. Its attributes that describe the training are those of this estimator.

        Examples
        --------
        >>> from sklearn.linear_model import LinearRegression
        >>> from skort import OrtSGDRegressor
        >>> model = OrtSGDRegressor(LinearRegression()).fit([[0], [1], [2]], [0, 1, 2])
        >>> model.with_weights({"coef": [[5]], "intercept": [1]}).predict([[0], [1]])
        array([1., 6.])
        """
        result = result_of(self)
        return shown(self, Columns.of(self), result.with_weights(result.model.checked_weights(weights)))

    def training_graphs(self) -> dict[str, ModelProto]:
        """
        Return every ONNX graph that training used.

        Returns
        -------
        graphs : dict of str to onnx.ModelProto
            By names that depend on the solver: see :doc:`/how_it_works`. What ran on another device is shown as it runs
            on the CPU. The weights, targets and objectives are those of the training, on standardised data: see
            :doc:`/learning_rates`. The doc_string of a node of a step is its phase, such as "forward".

        Raises
        ------
        RuntimeNotAvailableError
            Where the installed ONNX Runtime lacks the API that the solver needs.
        """
        from skort.runtime.device import CPU
        from skort.solvers import make_step

        result = result_of(self)
        problem = fitted_problem(self, is_sparse=result.is_sparse).problem
        return make_step(problem, solver=result.solver_name, device=CPU).training_graphs()

    def save_training_graphs(self, folder: str | os.PathLike) -> list[pathlib.Path]:
        """
        Write every ONNX graph that training used to a file: those of `training_graphs`, as ``<name>.onnx``.

        Parameters
        ----------
        folder : str or path-like
            It is made where it does not exist.

        Returns
        -------
        paths : list of pathlib.Path
            In the order of `training_graphs`.

        Raises
        ------
        OSError
            Where the files cannot be written.
        """
        graphs, folder = self.training_graphs(), pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{name}.onnx" for name in graphs]
        write_files({path: graph.SerializeToString() for path, graph in zip(paths, graphs.values(), strict=True)})
        return paths
