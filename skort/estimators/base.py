"""What the regressor and the classifier share: parameters, one training, the fitted model."""

import contextlib
import os
import pathlib
import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from skort.descent.batches import Batches
from skort.descent.callbacks import ProgressBar
from skort.descent.loop import minimise
from skort.descent.optimizers import OPTIMIZERS
from skort.descent.schedules import Constant, InvScaling
from skort.exceptions import NotTrainableError
from skort.objective.losses import LOSSES
from skort.objective.penalties import L2

if TYPE_CHECKING:
    import onnx

__all__ = ["BaseOrtSGD", "refitting"]


class BaseOrtSGD(BaseEstimator):
    """Parameters, training and export of `OrtSGDRegressor` and `OrtSGDClassifier`."""

    _parameter_constraints = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "solver": [StrOptions({"agent", "session"})],
        "penalty": [StrOptions({"l2"}), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "optimizer": [StrOptions(set(OPTIMIZERS))],
        "learning_rate": [StrOptions({"constant", "invscaling"})],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "dtype": [StrOptions({"float32", "float64"})],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def to_onnx(self) -> "onnx.ModelProto":
        """
        Return the fitted model as ONNX.

        Returns
        -------
        model : onnx.ModelProto
            A copy of `onnx_`: any onnxruntime serves it.
        """
        check_is_fitted(self)
        model = type(self.onnx_)()
        model.CopyFrom(self.onnx_)
        return model

    def save_onnx(self, path: str | os.PathLike) -> None:
        """
        Write the fitted model to an ONNX file.

        Parameters
        ----------
        path : str or path-like
        """
        check_is_fitted(self)
        pathlib.Path(path).write_bytes(self.onnx_.SerializeToString())

    def training_graphs(self) -> dict[str, "onnx.ModelProto"]:
        """
        Return every ONNX graph that training used.

        Returns
        -------
        graphs : dict of str to onnx.ModelProto
            Solver "agent": "gradient", forward and backward of one batch. Solver "session": "objective", as given to
            TrainingSession, and "training", as it was run. The weights in them are the fitted ones.
        """
        check_is_fitted(self)
        return self._make_solver(self._score_graph).training_graphs()

    def _check_estimator(self, is_kind, kind, other):
        """Raise an error where the model inside is not of a kind, which sends the user to another estimator."""
        if isinstance(self.estimator, type):
            name = self.estimator.__name__
            raise NotTrainableError(f"estimator={name} is a class: pass an instance, {name}().")
        if self.estimator is not None and not is_kind(self.estimator):
            raise NotTrainableError(f"estimator={type(self.estimator).__name__} is not {kind}: use {other}.")

    def _validate_training_data(self, X, y, y_dtype):
        """Return X, in the dtype that training needs, and y."""
        X, y = validate_data(
            self,
            X,
            y,
            validate_separately=(
                {"dtype": self._input_dtype(), "order": "C"},
                {"dtype": y_dtype, "ensure_2d": False},
            ),
        )
        check_consistent_length(X, y)
        return X, y

    def _input_dtype(self):
        # The steps of a pipeline get X as precise as the caller has it; only what they return is cast.
        return [np.float64, np.float32] if isinstance(self.estimator, Pipeline) else np.dtype(self.dtype)

    def _train(self, X, y, target, sample_weight, default):
        """Train on validated data and keep what both estimators need afterwards."""
        from skort.graphs.conversion import score_graph
        from skort.objective.nodes import Objective
        from skort.solvers import SOLVERS

        dtype = np.dtype(self.dtype)
        SOLVERS[self.solver].check(dtype)
        sample_weight = _validate_sample_weight(sample_weight, X)
        transformers, predictor = _split(default if self.estimator is None else self.estimator)
        random_state = check_random_state(self.random_state)
        X = self._fit_transformers(transformers, X, y)
        graph = score_graph(predictor, X.shape[1], target.shape[1], dtype, random_state)
        batch_size = 200 if self.batch_size == "auto" else self.batch_size
        batches = Batches(
            X, target, sample_weight, batch_size=batch_size, shuffle=self.shuffle, random_state=random_state
        )
        penalty = L2(self.alpha) if self.penalty == "l2" and self.alpha > 0 else None
        objective = Objective(LOSSES[self.loss](), penalty, graph.coefficients, graph.n_outputs, dtype)
        self._solver_arguments = (self.solver, objective, OPTIMIZERS[self.optimizer](), batches.batch_size)
        with ProgressBar(self.max_iter, enabled=self.verbose) as progress:
            descent = minimise(
                self._make_solver(graph),
                batches,
                self._make_schedule(),
                max_iter=self.max_iter,
                tol=self.tol,
                n_iter_no_change=self.n_iter_no_change,
                on_epoch_end=progress,
            )
        self._keep(graph.with_weights(descent.weights), descent)

    def _fit_transformers(self, transformers, X, y):
        """Return what the steps before the model, if any, make of X, and keep them as ONNX."""
        self._transformers = None
        if transformers is None:
            return X
        from skort.graphs.conversion import transformer_graph

        transformed = transformers.fit_transform(X, y)
        self._transformers = transformer_graph(transformers, X.shape[1], self.dtype)
        return check_array(transformed, dtype=self.dtype, order="C", input_name="transformed X", estimator=self)

    def _keep(self, graph, descent):
        self._score_graph = graph
        self.weights_ = graph.weights()
        self.loss_curve_ = descent.loss_curve
        self.loss_ = descent.loss_curve[-1]
        self.best_loss_ = min(descent.loss_curve)
        self.n_iter_ = len(descent.loss_curve)
        self.t_ = descent.n_updates
        if not descent.converged:
            warnings.warn(
                f"Maximum number of epochs reached before convergence (max_iter={self.max_iter}, tol={self.tol}). "
                "Consider increasing max_iter or eta0 to improve the fit.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _make_solver(self, graph):
        from skort.solvers import SOLVERS

        solver, *arguments = self._solver_arguments
        return SOLVERS[solver](graph, *arguments)

    def _make_schedule(self):
        if self.learning_rate == "constant":
            return Constant(self.eta0)
        return InvScaling(self.eta0, self.power_t)

    def _set_onnx(self, model, runnable):
        from skort.runtime.inference import InferenceModel

        self.onnx_ = model
        self._inference = InferenceModel(runnable.SerializeToString())
        self._inference_dtype = np.dtype(self.dtype)

    def _run(self, output, X):
        """Return an output of the deployable model."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=self._inference_dtype, order="C")
        return self._inference.run(output, X)


@contextlib.contextmanager
def refitting(estimator):
    """Forget an earlier fit, and put everything back where the new one fails."""
    before = dict(vars(estimator))
    for name in before:
        if name.endswith("_") and not name.startswith("_"):
            delattr(estimator, name)
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def _validate_sample_weight(sample_weight, X):
    """Return the validated weights, or None where there are none."""
    if sample_weight is None:
        return None
    sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not sample_weight.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return sample_weight


def _split(estimator):
    """Return the steps before the final predictor as an unfitted pipeline, or None, and the predictor."""
    if not isinstance(estimator, Pipeline):
        return None, estimator
    predictor = estimator.steps[-1][1]
    transformers = clone(estimator[:-1])
    return (transformers if len(transformers) else None), predictor
