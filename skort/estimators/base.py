"""What the regressor and the classifier share: parameters, one fit, the fitted model."""

import copy
import os
import pathlib
import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, check_consistent_length, check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from skort.descent.batches import Batches
from skort.descent.callbacks import check_callbacks
from skort.descent.history import History
from skort.descent.loop import minimise
from skort.descent.optimizers import OPTIMIZERS
from skort.descent.schedules import SCHEDULES
from skort.descent.training import Training
from skort.estimators.preview import Preview
from skort.estimators.state import last_weights, refitting, settings, unchanged_by_errors
from skort.estimators.watching import VALIDATION_SCORE, validation_scoring, watchers
from skort.estimators.weights import validated_sample_weight
from skort.exceptions import NotTrainableError
from skort.objective.penalties import PENALTIES

if TYPE_CHECKING:
    import onnx

__all__ = ["BaseOrtSGD", "can_partial_fit"]


class BaseOrtSGD(BaseEstimator):
    """
    Parameters, fit and export of `OrtSGDRegressor` and `OrtSGDClassifier`.

    They bring the table `_losses`, the model `_default` to train where `estimator` is None, and three steps of the fit:
    `_encode`, `_keep_linear` and `_deployable`.
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
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "scoring": [str, callable, None],
        "shuffle": ["boolean"],
        "dtype": [StrOptions({"float32", "float64"})],
        "average": ["boolean", Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "callbacks": [list, tuple, None],
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

    def _fit(self, X, y, sample_weight, *, X_val=None, y_val=None, classes=None, one_epoch=False):
        from skort.graphs.templates import check_trainable
        from skort.solvers import SOLVERS

        with refitting(self) as before:
            transformers, predictor = _split(self._default if self.estimator is None else self.estimator)
            check_trainable(predictor)
            _check_kind(self, predictor)
            check_callbacks(self.callbacks)
            optimizer = self._resolve(OPTIMIZERS, self.optimizer)
            SOLVERS[self.solver].check(np.dtype(self.dtype), optimizer, self.max_grad_norm)
            given_X = X
            X, y = self._validate(X, y, has_steps=transformers is not None)
            y, target = self._encode(y, classes)
            weights = self._row_weights(sample_weight, X, y)
            random_state = check_random_state(self.random_state)
            scoring, weights = validation_scoring(self, given_X, y, sample_weight, weights, random_state, X_val, y_val)
            X = self._fit_transformers(transformers, X, y)
            self._start(predictor, X.shape[1], target.shape[1], random_state, before)
            descent = self._descend(
                X, target, weights, random_state, watchers(self, scoring, one_epoch=one_epoch), one_epoch=one_epoch
            )
            self._keep(descent)
            # The caller's generator goes its own way.
            self._random_state = copy.deepcopy(random_state)
        return self._report(descent, one_epoch)

    def _partial_fit(self, X, y, sample_weight, classes=None):
        if self.early_stopping:
            raise ValueError("partial_fit does not support early_stopping=True")
        if not hasattr(self, "n_iter_"):
            return self._fit(X, y, sample_weight, classes=classes, one_epoch=True)
        with unchanged_by_errors(self):
            check_callbacks(self.callbacks)
            if self.dtype != self._score_graph.dtype:
                raise ValueError(f"dtype={self.dtype!r}, but earlier calls had dtype='{self._score_graph.dtype}'.")
            X, y = self._validate(X, y, has_steps=self._steps is not None, reset=False)
            y, target = self._encode(y, classes)
            weights = self._row_weights(sample_weight, X, y)
            if target.shape[1] != self._score_graph.n_outputs:
                raise ValueError(f"y has {target.shape[1]} outputs, earlier calls had {self._score_graph.n_outputs}.")
            X = self._transformed(X)
            descent = self._descend(
                X, target, weights, self._random_state, watchers(self, one_epoch=True), one_epoch=True
            )
            self._keep(descent)
        return self._report(descent, one_epoch=True)

    def _validate(self, X, y, *, has_steps, reset=True):
        # The steps of a pipeline get X as precise as the caller has it; only what they return is cast.
        X_dtype = [np.float64, np.float32] if has_steps else np.dtype(self.dtype)
        checks = ({"dtype": X_dtype, "order": "C"}, {"dtype": None, "ensure_2d": False})
        X, y = validate_data(self, X, y, reset=reset, validate_separately=checks)
        check_consistent_length(X, y)
        return X, y

    def _row_weights(self, sample_weight, X, y):
        """Return the weight of each row, or None where all are equal."""
        return validated_sample_weight(sample_weight, X)

    def _fit_transformers(self, transformers, X, y):
        """Return what the steps before the model, if any, make of X, and keep them, as ONNX too."""
        from skort.graphs.transformers import sample, transformer_graph

        self._steps = self._transformers = None
        if transformers is None:
            return X
        some_rows = sample(X)
        X = transformers.fit_transform(X, y)
        X = check_array(X, dtype=self.dtype, order="C", input_name="transformed X", estimator=self)
        self._steps = transformers
        self._transformers = transformer_graph(transformers, some_rows, self.dtype)
        return X

    def _prepared(self, X):
        """Return X as the model takes it."""
        dtype = self._score_graph.dtype if self._steps is None else [np.float64, np.float32]
        return self._transformed(validate_data(self, X, reset=False, dtype=dtype, order="C"))

    def _transformed(self, X):
        if self._steps is None:
            return X
        return check_array(self._steps.transform(X), dtype=self._score_graph.dtype, order="C")

    def _start(self, predictor, n_features, n_outputs, random_state, before):
        """Make everything that a training goes on from."""
        from skort.graphs.conversion import score_graph
        from skort.runtime.transient import Transient

        self._score_graph = score_graph(predictor, n_features, n_outputs, np.dtype(self.dtype), random_state)
        if self.warm_start and "_score_graph" in before:
            self._score_graph = self._score_graph.with_weights(last_weights(self, before))
        self._solver_state, self._kept_solver = None, Transient()
        self.history_, self.t_ = History(), 0

    def _descend(self, X, target, weights, random_state, callbacks, *, one_epoch):
        """Train on validated data, from where the last training ended."""
        from skort.objective.nodes import Objective

        objective = Objective(
            loss=self._resolve(self._losses, self.loss),
            penalty=self._resolve(PENALTIES, self.penalty) if self.alpha > 0 else None,
            coefficients=self._score_graph.coefficients,
            n_outputs=self._score_graph.n_outputs,
            dtype=self._score_graph.dtype,
        )
        batches = Batches(
            X,
            target,
            weights,
            batch_size=200 if self.batch_size == "auto" else self.batch_size,
            shuffle=self.shuffle,
            random_state=random_state,
            sample_weight_scale=objective.sample_weight_scale,
        )
        made_for = [batches.batch_size, *settings(self)]
        kept = self._kept_solver.take()
        if kept is None or kept[0] != made_for:
            self._solver = self.solver
            self._solver_arguments = {
                "objective": objective,
                "optimizer": self._resolve(OPTIMIZERS, self.optimizer),
                "batch_size": batches.batch_size,
                "max_grad_norm": self.max_grad_norm,
                "average": self.average,
            }
            kept = made_for, self._make_solver(self._score_graph, state=self._solver_state)
        training = Training(
            kept[1],
            batches,
            self._resolve(SCHEDULES, self.learning_rate),
            max_iter=None if one_epoch else self.max_iter,
            callbacks=callbacks,
            preview=Preview(self),
            n_updates=self.t_,
            history=self.history_,
        )
        descent = minimise(training)
        if one_epoch:
            self._kept_solver.put(kept)
        return descent

    def _keep(self, descent):
        self._score_graph = self._score_graph.with_weights(descent.weights)
        self._solver_state, self._random_state = descent.solver_state, descent.random_state
        self.history_ = descent.history
        self.loss_curve_ = self.history_["objective"]
        self.loss_ = self.loss_curve_[-1]
        self.best_loss_ = min(self.loss_curve_)
        self.validation_scores_ = self.history_.get(VALIDATION_SCORE)
        self.best_validation_score_ = None if self.validation_scores_ is None else np.nanmax(self.validation_scores_)
        self.n_iter_ = len(self.loss_curve_)
        self.t_ = descent.n_updates
        linear = self._score_graph.linear_weights()
        if linear is not None:
            self._keep_linear(*linear)
        self.onnx_ = self._deployable(self._transformers)
        self._inference = self._runner(self.onnx_)

    def _report(self, descent, one_epoch):
        """Warn, or raise the error of a callback, after the training was kept."""
        interrupted = isinstance(descent.error, KeyboardInterrupt)
        if descent.error is not None and not interrupted:
            raise descent.error
        if interrupted:
            warnings.warn(
                f"Training interrupted by the user: fitted up to the last whole epoch, {self.n_iter_}.", stacklevel=5
            )
        elif not (descent.stopped or self.tol is None or one_epoch):
            warnings.warn(
                f"Maximum number of epochs reached before convergence (max_iter={self.max_iter}, tol={self.tol}). "
                "Consider increasing max_iter or eta0 to improve the fit.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return self

    def _runner(self, model, weights=None):
        """Return what runs a deployable model; `weights` are its values in place of initializers."""
        from skort.graphs.export import SCORE
        from skort.runtime.inference import InferenceModel

        return InferenceModel(model, (SCORE,) if is_classifier(self) else (), weights)

    def _resolve(self, table, value):
        """Return what `value`, a name or an instance, stands for: by name with this estimator's parameters."""
        if isinstance(value, str):
            value = table[value](**{key: getattr(self, key) for key in table[value]().get_params()})
        if hasattr(value, "_parameter_constraints"):
            value._validate_params()
        return value

    def _make_solver(self, score_graph, state=None):
        from skort.solvers import SOLVERS

        return SOLVERS[self._solver](score_graph, **self._solver_arguments, state=state)

    def _run(self, output, X):
        """Return a result of the deployable model."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=self._score_graph.dtype, order="C")
        return self._inference.run(output, X)


def can_partial_fit(estimator):
    """Raise an AttributeError where the steps before the model are still to be fitted."""
    if estimator.estimator is None:
        return True
    transformers, _ = _split(estimator.estimator)
    for name, step in transformers.steps if transformers is not None else ():
        if not isinstance(step, FrozenEstimator) and get_tags(step).requires_fit:
            raise AttributeError(
                f"partial_fit does not fit the step {name!r} before the model. Fit it on rows that stand for all, and "
                "put FrozenEstimator(fitted_step) in its place."
            )
    return True


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
