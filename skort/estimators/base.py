"""What the regressor and the classifier share: parameters, one fit, the fitted model."""

import contextlib
import copy
import os
import pathlib
import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, check_consistent_length, check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from skort.descent.batches import Batches
from skort.descent.callbacks import ProgressBar
from skort.descent.loop import minimise
from skort.descent.optimizers import OPTIMIZERS
from skort.descent.schedules import SCHEDULES
from skort.estimators.weights import validated_sample_weight
from skort.exceptions import NotTrainableError
from skort.objective.penalties import PENALTIES

if TYPE_CHECKING:
    import onnx

__all__ = ["BaseOrtSGD"]


class BaseOrtSGD(BaseEstimator):
    """
    Parameters, fit and export of `OrtSGDRegressor` and `OrtSGDClassifier`.

    They bring the table `_losses`, the model `_default` to train where `estimator` is None, and three steps of the fit:
    `_encode`, `_keep_linear` and `_keep_onnx`.
    """

    _parameter_constraints = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "solver": [StrOptions({"agent", "session"})],
        "penalty": [StrOptions(set(PENALTIES)), None],
        "alpha": [Interval(Real, 0, float(np.finfo(np.float32).max), closed="both")],
        "optimizer": [StrOptions(set(OPTIMIZERS)), HasMethods(["start", "update"])],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither"), None],
        "learning_rate": [StrOptions(set(SCHEDULES))],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "dtype": [StrOptions({"float32", "float64"})],
        "average": ["boolean", Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    @property
    def weights_(self) -> dict[str, np.ndarray]:
        """The trained weights by their names in `onnx_`, as copies."""
        check_is_fitted(self)
        return self._score_graph.weights()

    def to_onnx(self) -> "onnx.ModelProto":
        """
        Return the fitted model as ONNX.

        Returns
        -------
        model : onnx.ModelProto
            A copy of `onnx_`: any onnxruntime serves it.
        """
        check_is_fitted(self)
        return copy.deepcopy(self.onnx_)

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
            Solver "agent": "gradient", forward and backward of one batch, with the trained weights as inputs and their
            gradients as outputs. Solver "session": "objective", as given to TrainingSession, and "training", as it
            was run, with the trained weights as initializers.

        Raises
        ------
        RuntimeNotAvailableError
            Where the installed ONNX Runtime lacks the API that the solver needs.
        """
        check_is_fitted(self)
        return self._make_solver(self._score_graph).training_graphs()

    def _fit(self, X, y, sample_weight):
        from skort.graphs.templates import check_trainable
        from skort.solvers import SOLVERS

        with _refitting(self):
            transformers, predictor = _split(self._default if self.estimator is None else self.estimator)
            check_trainable(predictor)
            _check_kind(self, predictor)
            optimizer = self._resolve(OPTIMIZERS, self.optimizer)
            SOLVERS[self.solver].check(np.dtype(self.dtype), optimizer, self.max_grad_norm)
            # The steps of a pipeline get X as precise as the caller has it; only what they return is cast.
            X_dtype = np.dtype(self.dtype) if transformers is None else [np.float64, np.float32]
            X, y = validate_data(
                self, X, y, validate_separately=({"dtype": X_dtype, "order": "C"}, {"dtype": None, "ensure_2d": False})
            )
            check_consistent_length(X, y)
            y, target = self._encode(y)
            sample_weight = self._row_weights(sample_weight, X, y)
            X = self._fit_transformers(transformers, X, y)
            descent = self._train(predictor, X, target, sample_weight)
            self._keep(descent)
        return self

    def _row_weights(self, sample_weight, X, y):
        """Return the weight of each row, or None where all are equal."""
        return validated_sample_weight(sample_weight, X)

    def _fit_transformers(self, transformers, X, y):
        """Return what the steps before the model, if any, make of X, and keep them as ONNX."""
        from skort.graphs.transformers import sample, transformer_graph

        self._transformers = None
        if transformers is None:
            return X
        some_rows = sample(X)
        X = transformers.fit_transform(X, y)
        X = check_array(X, dtype=self.dtype, order="C", input_name="transformed X", estimator=self)
        self._transformers = transformer_graph(transformers, some_rows, self.dtype)
        return X

    def _train(self, predictor, X, target, sample_weight):
        """Train on validated data; keep what makes a solver."""
        from skort.graphs.conversion import score_graph
        from skort.objective.nodes import Objective

        random_state = check_random_state(self.random_state)
        dtype = np.dtype(self.dtype)
        self._score_graph = score_graph(predictor, X.shape[1], target.shape[1], dtype, random_state)
        objective = Objective(
            loss=self._resolve(self._losses, self.loss),
            penalty=self._resolve(PENALTIES, self.penalty) if self.alpha > 0 else None,
            coefficients=self._score_graph.coefficients,
            n_outputs=self._score_graph.n_outputs,
            dtype=dtype,
        )
        batches = Batches(
            X,
            target,
            sample_weight,
            batch_size=200 if self.batch_size == "auto" else self.batch_size,
            shuffle=self.shuffle,
            random_state=random_state,
            sample_weight_scale=objective.sample_weight_scale,
        )
        self._solver = self.solver
        self._solver_arguments = {
            "objective": objective,
            "optimizer": self._resolve(OPTIMIZERS, self.optimizer),
            "batch_size": batches.batch_size,
            "max_grad_norm": self.max_grad_norm,
            "average": self.average,
        }
        with ProgressBar(self.max_iter, enabled=self.verbose) as progress:
            return minimise(
                self._make_solver(self._score_graph),
                batches,
                self._resolve(SCHEDULES, self.learning_rate),
                max_iter=self.max_iter,
                tol=self.tol,
                n_iter_no_change=self.n_iter_no_change,
                on_epoch_end=progress,
            )

    def _keep(self, descent):
        self._score_graph = self._score_graph.with_weights(descent.weights)
        self.loss_curve_ = descent.loss_curve
        self.loss_ = descent.loss_curve[-1]
        self.best_loss_ = min(descent.loss_curve)
        self.n_iter_ = len(descent.loss_curve)
        self.t_ = descent.n_updates
        linear = self._score_graph.linear_weights()
        if linear is not None:
            self._keep_linear(*linear)
        self._keep_onnx()
        if not descent.converged:
            warnings.warn(
                f"Maximum number of epochs reached before convergence (max_iter={self.max_iter}, tol={self.tol}). "
                "Consider increasing max_iter or eta0 to improve the fit.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _resolve(self, table, value):
        """Return what `value`, a name or an instance, stands for: by name with this estimator's parameters."""
        if isinstance(value, str):
            value = table[value](**{key: getattr(self, key) for key in table[value]().get_params()})
        if hasattr(value, "_parameter_constraints"):
            value._validate_params()
        return value

    def _make_solver(self, score_graph):
        from skort.solvers import SOLVERS

        return SOLVERS[self._solver](score_graph, **self._solver_arguments)

    def _run(self, output, X):
        """Return a result of the deployable model."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=self._score_graph.dtype, order="C")
        return self._inference.run(output, X)


@contextlib.contextmanager
def _refitting(estimator):
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


def _check_kind(estimator, predictor):
    """Raise an error for a classifier inside a regressor, and the other way round."""
    kind = get_tags(estimator).estimator_type
    if get_tags(predictor).estimator_type != kind:
        other = {"regressor": "OrtSGDClassifier for classifiers", "classifier": "OrtSGDRegressor for regressors"}[kind]
        raise NotTrainableError(f"estimator={type(predictor).__name__} is not a {kind}: use {other}.")


def _split(estimator):
    """Return the steps before the final predictor as an unfitted pipeline, or None, and the predictor."""
    if not isinstance(estimator, Pipeline):
        return None, estimator
    *steps, (name, last) = estimator.steps
    inner, predictor = _split(last)
    steps = [(key, step) for key, step in [*steps, (name, inner)] if step is not None and step != "passthrough"]
    for key, step in steps:
        if not hasattr(step, "transform") or isinstance(step, type):
            raise ValueError(f"estimator: the step {key!r} before the model is no transformer: {step!r}")
    return (clone(Pipeline(steps, memory=estimator.memory)) if steps else None), predictor
