"""What a fitted estimator shows and gives away."""

import copy
import dataclasses
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skort.descent.progress import Progress
from skort.descent.standardization import Standardization
from skort.estimators.exchange import fitted_problem
from skort.estimators.fitted_model import FittedModel
from skort.estimators.given_weights import checked_weights, original_model
from skort.estimators.nesting import model_inside
from skort.estimators.settings import Settings
from skort.estimators.validation_set import VALIDATION_SCORE
from skort.files import write_file
from skort.runtime.transient import Transient

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
    _stream: Transient
    _keep_model: Callable[[FittedModel], None]
    _take_over: Callable[["FittedAttributes"], None]
    solver_: str
    coef_: "np.ndarray | scipy.sparse.csr_matrix"

    @property
    def weights_(self) -> dict[str, np.ndarray]:
        """All weights, trained or frozen, by their names in `onnx_`, as copies."""
        check_is_fitted(self)
        return self._fitted.weights()

    @property
    def trainable_(self) -> tuple[str, ...]:
        """The names of the weights that the training changed; `weights_` has their values, and those of all others."""
        check_is_fitted(self)
        return self._fitted.score_graph.trainable

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

    def set_weights(self, weights: Mapping[str, ArrayLike]) -> "FittedAttributes":
        """
        Give the fitted model other weights.

        Predictions, `coef_`, `onnx_` and a later `partial_fit` are those of the new weights. The optimizer's memory and
        the mean of `average` begin anew; the attributes that tell of the training stay.

        Parameters
        ----------
        weights : dict of str to array-like
            By their names in `weights_`, of the same shapes. Weights that are not in it stay.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For another name, such as that of a weight in a step before the model, another shape, and numbers that are
            not finite. Nothing is changed.
        NotFittedError
            Before a fit.

        Examples
        --------
        >>> import numpy as np
        >>> from skort import OrtSGDRegressor
        >>> model = OrtSGDRegressor(eta0=0.1).fit(np.array([[0.0], [1.0]]), np.array([1.0, 3.0]))
        >>> model.set_weights({"coef": [[5.0]], "intercept": [1.0]}).predict(np.array([[2.0]]))
        array([11.])
        """
        check_is_fitted(self)
        draft = copy.copy(self)
        draft._keep_model(self._fitted.with_weights(checked_weights(self._fitted, weights)))
        draft._progress = dataclasses.replace(self._progress, solver=None, best=None)
        draft._stream = Transient()
        self._take_over(draft)
        return self

    def to_onnx(self, target_opset: int | None = None, *, original: bool = False) -> "onnx.ModelProto":
        """
        Return the fitted model as ONNX.

        Parameters
        ----------
        target_opset : int, default=None
            Opset of the model, from 13. None: 17, with IR version 8, which every supported runtime reads.
        original : bool, default=False
            True: where an ONNX model was given, that model with the trained weights, byte for byte but for their
            numbers: its names, opset, producer, nodes and outputs. Its outputs are those of the model alone, without
            the steps of a pipeline before it and without the inverse link of a loss.

        Returns
        -------
        model : onnx.ModelProto
            A copy of `onnx_`: any onnxruntime serves it.

        Raises
        ------
        NotExportableError
            Where a step of the pipeline cannot be part of an ONNX model; a `ValueError`.
        ValueError
            Where the model cannot be written in `target_opset`; with `original`, where no ONNX model was given, where
            a trained weight is none of its tensors, and with a `target_opset`.
        """
        from skort.graphs.export import at_opset

        if original:
            check_is_fitted(self)
            if target_opset is not None:
                raise ValueError(f"original=True keeps the opset of the model: leave out target_opset={target_opset}.")
            return original_model(self._fitted)
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

    def with_weights(self, weights: Mapping[str, ArrayLike]) -> "FittedAttributes":
        """
        Return a copy that predicts with other weights, and goes on from them in `partial_fit` and `warm_start`.

        Parameters
        ----------
        weights : dict of str to array-like
            Some of the weights of the model, by their names and with their shapes in `weights_`.

        Returns
        -------
        model : estimator
            Fitted. What it tells of its training is that of this one.

        Raises
        ------
        ValueError
            Where the model has no weight of such a name and shape. Those of steps before the model are not taken.

        Examples
        --------
        >>> from sklearn.linear_model import LinearRegression
        >>> from skort import OrtSGDRegressor
        >>> model = OrtSGDRegressor(LinearRegression()).fit([[0], [1], [2]], [0, 1, 2])
        >>> model.with_weights({"coef": [[5]], "intercept": [1]}).predict([[0], [1]])
        array([1., 6.])
        """
        check_is_fitted(self)
        return copy.copy(self).set_weights(weights)

    def _with_model(self, fitted: FittedModel) -> Any:
        """Return a copy that has another model."""
        model = copy.copy(self)
        model._keep_model(fitted)
        return model

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
            with the trained weights as initializers. Solver "module": "training" and "optimizer". The weights, targets
            and objectives of all of them are those of the training: with `standardization_` s, `coef_` is
            s.target_scale / s.scale times those of a linear model.
            With `standardize=False` they are those of X and y.

        Raises
        ------
        RuntimeNotAvailableError
            Where the installed ONNX Runtime lacks the API that the solver needs.
        """
        from skort.runtime.device import CPU
        from skort.solvers import solver_class

        check_is_fitted(self)
        problem = fitted_problem(self, is_sparse=self._is_sparse).problem
        return solver_class(self.solver_, CPU, is_sparse=self._is_sparse)(problem).training_graphs()

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
        RuntimeNotAvailableError
            As `training_graphs` does.
        OSError
            Where the files cannot be written.
        """
        graphs, folder = self.training_graphs(), pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{name}.onnx" for name in graphs]
        for path, graph in zip(paths, graphs.values(), strict=True):
            write_file(path, graph.SerializeToString())
        return paths
