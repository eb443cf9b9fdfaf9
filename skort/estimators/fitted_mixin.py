"""The attributes and exports of a fitted estimator."""

from __future__ import annotations

import copy
import dataclasses
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from skort.common.available import available_if
from skort.common.files import write_file, write_files
from skort.estimators.data.nesting import model_inside
from skort.estimators.data.rows import Columns
from skort.estimators.data.validation_set import VALIDATION_SCORE
from skort.estimators.did_you_mean import explained_arguments
from skort.estimators.literals import ModelProto
from skort.estimators.planning.plan import Plan
from skort.estimators.training.fitted_problem import fitted_problem
from skort.estimators.training.result import FitResult, result_of, shown
from skort.optim.optimizers import Optimizer
from skort.optim.standardization import Standardization

Own = TypeVar("Own", bound="FittedAttributes")
# Endings of files -> what holds other models.
_OTHER_FORMATS = {
    **dict.fromkeys(
        (".pkl", ".pickle", ".joblib"), "a pickle, which pickle.dump or joblib.dump writes"
    ),
    **dict.fromkeys((".pt", ".pth", ".safetensors"), "a file of torch"),
    **dict.fromkeys((".h5", ".keras", ".tflite"), "a file of Keras"),
    **dict.fromkeys((".npy", ".npz"), "a file of numpy"),
    **dict.fromkeys((".zip", ".gz"), "a compressed file"),
    ".json": "a JSON file",
    ".ort": "a file of ONNX Runtime's own format",
    ".skops": "a file of skops, which skops.io.dump writes",
}


def _may_be_linear(estimator: Any) -> bool:
    """
    Raise an AttributeError if the fitted model is not linear.

    Before a fit, raise it if the model inside is a network.
    """
    result = vars(estimator).get("_result")
    is_network = hasattr(model_inside(estimator.estimator), "hidden_layer_sizes")
    if is_network if result is None else not result.model.score_graph.is_linear:
        raise AttributeError("There is no coef_: the model is not linear.")
    return True


def _linear(estimator, name):
    """Return (coef, intercept) of a fitted linear model, or raise an AttributeError for `name`."""
    result = vars(estimator).get("_result")
    weights = None if result is None else result.model.linear_weights
    if weights is None:
        reason = (
            "it is not fitted yet"
            if result is None
            else "its model is not linear. weights_ has all weights by name"
        )
        raise AttributeError(
            f"{type(estimator).__name__!r} object has no attribute {name!r}: {reason}."
        )
    return weights


def _not_set(name):
    return AttributeError(
        f"{name} shows weights of the fitted model and cannot be set: use set_weights."
    )


class FittedAttributes:
    """The attributes and exports of a fitted estimator: they read its model, state and settings."""

    _result: FitResult
    _adopt: Callable[..., None]
    _sparse_coef: Any | None = None
    solver_: str
    loss_: float
    best_loss_: float | None
    eta0_: float
    n_iter_: int
    t_: int

    @property
    def coef_(self) -> np.ndarray | Any:
        """The coefficients of a linear model, read-only. `set_weights` changes the model."""
        coef = _linear(self, "coef_")[0]
        return coef if self._sparse_coef is None else self._sparse_coef

    @coef_.setter
    def coef_(self, value: Any) -> None:
        raise _not_set("coef_")

    @property
    def intercept_(self) -> np.ndarray:
        """The intercepts of a linear model, read-only. `set_weights` changes the model."""
        return _linear(self, "intercept_")[1]

    @intercept_.setter
    def intercept_(self, value: Any) -> None:
        raise _not_set("intercept_")

    @property
    def weights_(self) -> dict[str, np.ndarray]:
        """Copies of all weights, trained or frozen, by their names in `onnx_`."""
        return result_of(self).model.weights()

    @property
    def trainable_(self) -> tuple[str, ...]:
        """The names of the trained weights. `weights_` has the values of all weights."""
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
        """The means and scales by which the training standardised X and y, or None."""
        return result_of(self).state.standardization

    @property
    def plan_(self) -> Plan:
        """
        Every decision of the last training, with its reason:
        `print(model.plan_)` shows them as a table.

        `plan_.decisions` has them by name, each with a `value`, a `because` and the parameters to
        `change_with`.
        """
        return result_of(self).whole_plan()

    @property
    def history_(self) -> dict[str, list[Any]]:
        """A copy of the records of all epochs: name -> one value per epoch."""
        return result_of(self).state.rows()

    @property
    def stopping_reason_(self) -> str | None:
        """A sentence that says why the training ended, or None after a `partial_fit`."""
        return result_of(self).state.stopping_reason

    @property
    def loss_curve_(self) -> list[float]:
        """The objective of every epoch, including the penalty."""
        return result_of(self).state.column("objective") or []

    @property
    def validation_scores_(self) -> list[float] | None:
        """
        The score of the validation set after every epoch, or None without a validation set.

        The score is minus the loss, or the score of `scoring`. Larger is better.
        """
        return result_of(self).state.column(VALIDATION_SCORE)

    @property
    def best_validation_score_(self) -> float | None:
        """The largest of `validation_scores_`, or None without a validation set."""
        scores = self.validation_scores_
        return None if scores is None else float(np.fmax.reduce(scores))

    @property
    def initial_validation_score_(self) -> float | None:
        """
        The validation score of the fitted weights that the training began at.

        It is None without a validation set, for a new model, and after a `partial_fit`.
        """
        return result_of(self).initial_score

    @available_if(_may_be_linear)
    def sparsify(self: Own) -> Own:
        """
        Make `coef_` a CSR matrix, which takes less memory if most coefficients are zero.

        Predictions stay the same. The method exists if the model is linear.

        Returns
        -------
        self : object
            Fitted. A later fit makes `coef_` dense again.

        Raises
        ------
        NotFittedError
            Before a fit.
        """
        result_of(self)
        self._sparse_coef = scipy.sparse.csr_matrix(self.coef_)
        self._sparse_coef.data.flags.writeable = False
        return self

    @available_if(_may_be_linear)
    def densify(self: Own) -> Own:
        """Return the estimator itself, with `coef_` as an array again after `sparsify`."""
        result_of(self)
        self._sparse_coef = None
        return self

    @explained_arguments
    def set_weights(self: Own, weights: Mapping[str, ArrayLike]) -> Own:
        """
        Give the fitted model other weights.

        Predictions, `coef_`, `onnx_` and a later `partial_fit` use the new weights. The memory of
        the optimizer and the mean of `average` are reset. The attributes that describe the
        training, such as `history_`, stay.

        Parameters
        ----------
        weights : dict of str to array-like
            New values of weights, by their names in `weights_`, with the same shapes. The other
            weights stay. An empty dict changes no weight and resets only the optimizer.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a name is not one of the model's weights, for instance the name of a weight in a step
            before the model; if a shape differs; or if a number is not finite. Then nothing is
            changed.
        NotFittedError
            Before a fit.
        """
        result = result_of(self)
        self._adopt(result.with_weights(result.model.checked_weights(weights)))
        return self

    @explained_arguments
    def to_onnx(self, target_opset: int | None = None, *, original: bool = False) -> ModelProto:
        """
        Return the fitted model as ONNX: a copy of `onnx_`, which any ONNX Runtime can run.

        Parameters
        ----------
        target_opset : int, default=None
            Opset of the model, at least 13. None is opset 17 with IR version 8, which every
            supported runtime reads.
        original : bool, default=False
            With True, return the ONNX model that was given as `estimator`, with the trained
            weights. Nothing else in the model changes: names, opset, producer, nodes and outputs
            stay, byte for byte. The model contains neither the steps of a pipeline before it nor
            the inverse link of a loss.

        Raises
        ------
        NotExportableError
            If a step of the pipeline cannot be part of an ONNX model; a `ValueError`.
        ValueError
            If the model cannot be written in `target_opset`. With `original`: if `estimator` is not
            an ONNX model, if a trained weight is not a tensor of that model, or if `target_opset`
            is given, too.
        """
        from skort.graphs.export import at_opset

        if original:
            model = result_of(self).model
            if target_opset is not None:
                raise ValueError(
                    "original=True keeps the opset of the model: leave out "
                    f"target_opset={target_opset}."
                )

            return model.original()

        model = self.onnx_
        result_of(self).model.warn_of_renamed_outputs()
        return copy.deepcopy(model) if target_opset is None else at_opset(model, target_opset)

    @explained_arguments
    def save_onnx(self, path: str | os.PathLike[str]) -> None:
        """
        Write the fitted model to an ONNX file. The complete new file replaces an existing one.

        A search or a pipeline of scikit-learn does not have this method: call
        ``search.best_estimator_.save_onnx(path)`` or ``pipeline[-1].save_onnx(path)``. See
        :doc:`/serving`.

        Parameters
        ----------
        path : str or path-like
            A name that ends in ".onnx": the file holds ONNX, and no pickle.

        Raises
        ------
        NotExportableError
            If a step of the pipeline cannot be part of an ONNX model; a `ValueError`.
        ValueError
            If the name ends as that of another format, such as ".pkl" or ".pt".
        OSError
            If the file cannot be written. An existing file stays as it was.
        """
        suffix = pathlib.Path(path).suffix.lower() if isinstance(path, str | os.PathLike) else ""
        if suffix in _OTHER_FORMATS:
            raise ValueError(
                f"path={os.fspath(path)!r} is the name of {_OTHER_FORMATS[suffix]}. save_onnx writes "
                "ONNX: end the name in .onnx."
            )
        serialized = self.onnx_.SerializeToString()
        result_of(self).model.warn_of_renamed_outputs()
        write_file(path, serialized)

    def to_sklearn(self) -> Any:
        """
        Return the model as plain scikit-learn:
        `estimator` with the trained weights written into it.

        Returns
        -------
        model : estimator
            A fitted model; a `Pipeline` if `estimator` is one. Its `predict` and
            `decision_function` return the same values as those of this estimator. Its
            `predict_proba` may differ if `loss` is not the loss of the model inside.

        Raises
        ------
        ValueError
            If `estimator` is neither a linear model nor a neural network of scikit-learn, if
            weights of steps before the model were trained, or if the loss and the model have
            different link functions.
        """
        return result_of(self).model.to_sklearn(getattr(self, "feature_names_in_", None))

    @explained_arguments
    def with_weights(self: Own, weights: Mapping[str, ArrayLike]) -> Own:
        """
        Return a copy with other weights. `partial_fit` and `warm_start` continue from them.

        The errors are those of `set_weights`.

        Parameters
        ----------
        weights : dict of str to array-like
            New values of weights, as for `set_weights`.

        Returns
        -------
        model : estimator
            The fitted copy. Its attributes that describe the training are those of this estimator.

        Examples
        --------
        >>> from sklearn.linear_model import LinearRegression
        >>> from skort import OrtSGDRegressor
        >>> model = OrtSGDRegressor(LinearRegression()).fit([[0], [1], [2]], [0, 1, 2])
        >>> model.with_weights({"coef": [[5]], "intercept": [1]}).predict([[0], [1]])
        array([1., 6.])
        """
        result = result_of(self)
        return shown(
            self, Columns.of(self), result.with_weights(result.model.checked_weights(weights))
        )

    def __skort_apart__(self: Own) -> tuple[list[tuple[str, Any]], Own]:
        """Return the fitted steps before the model, and a copy of the estimator without them."""
        result = result_of(self)
        steps = result.model.preprocessing.transformers
        if steps is None:
            return [], self

        bare = dataclasses.replace(result, model=result.model.without_steps())
        n_columns = result.model.score_graph.n_features
        return list(steps.steps), shown(self, Columns(n_columns), bare)

    def training_graphs(self) -> dict[str, ModelProto]:
        """
        Return every ONNX graph that training used.

        Returns
        -------
        graphs : dict of str to onnx.ModelProto
            The graphs, by names that depend on the solver, see :doc:`/how_it_works`. They are
            graphs for the CPU, even if the training ran on another device. Their weights, targets
            and objectives are those of the training, on standardised data, see
            :doc:`/learning_rates`. The doc_string of each node of a step is the phase of the step,
            such as "forward".

        Raises
        ------
        RuntimeNotAvailableError
            If the installed ONNX Runtime lacks the API that the solver needs.
        """
        from skort.runtime.device import CPU
        from skort.solvers import make_step

        result = result_of(self)
        problem = fitted_problem(self, is_sparse=result.is_sparse).problem
        return make_step(problem, solver=result.solver_name, device=CPU).training_graphs()

    @explained_arguments
    def save_training_graphs(self, folder: str | os.PathLike[str]) -> list[pathlib.Path]:
        """
        Write each graph of `training_graphs` to a file ``<name>.onnx``.

        Parameters
        ----------
        folder : str or path-like
            The folder of the files. It is made if it does not exist.

        Returns
        -------
        paths : list of pathlib.Path
            The paths of the files, in the order of `training_graphs`.

        Raises
        ------
        OSError
            If the files cannot be written.
        """
        graphs = self.training_graphs()
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{name}.onnx" for name in graphs]
        write_files(
            {
                path: graph.SerializeToString()
                for path, graph in zip(paths, graphs.values(), strict=True)
            }
        )

        return paths
