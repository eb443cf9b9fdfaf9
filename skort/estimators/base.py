"""What the regressor and the classifier share: parameters, one fit, the fitted model."""

import copy
import functools
import os
import pathlib
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_array, check_consistent_length, check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from skort.descent.callbacks import check_callbacks
from skort.descent.optimizers import OPTIMIZERS
from skort.descent.schedules import SCHEDULES
from skort.estimators.components import checked_schedule, named, resolved
from skort.estimators.deployed import Deployed
from skort.estimators.hardware import predicting_device, training_device
from skort.estimators.parts import as_rows, check_columns, input_tags, known_classes, plain, prepare, split
from skort.estimators.rows import blocks, is_plain, plain_rows
from skort.estimators.sklearn_callbacks import CallbackSupportMixin, sklearn_callbacks
from skort.estimators.state import refitting, unchanged_by_errors
from skort.estimators.training import begin, descend, keep, kept, report
from skort.estimators.watching import validation_scoring, watchers
from skort.estimators.weights import validated_sample_weight
from skort.exceptions import NotTrainableError
from skort.objective.penalties import PENALTIES

if TYPE_CHECKING:
    import onnx

__all__ = ["BaseOrtSGD", "can_partial_fit"]

# How X is validated where no steps before the model take it.
_ROWS = {"order": "C", "accept_sparse": "csr"}


class BaseOrtSGD(CallbackSupportMixin, BaseEstimator):
    """
    Parameters, fit and export of `OrtSGDRegressor` and `OrtSGDClassifier`.

    They bring the table `_losses`, the model `_default()` to train where `estimator` is None, and three steps of the
    fit: `_encode`, `_keep_linear` and `_deployable`.
    """

    _parameter_constraints = {
        # Checked in fit: an ONNX model is no estimator, and this module does not import onnx.
        "estimator": "no_validation",
        "solver": [StrOptions({"auto", "graph", "session", "agent"})],
        "penalty": [StrOptions(set(PENALTIES)), HasMethods(["strengths"]), None],
        "alpha": [Interval(Real, 0, float(np.finfo(np.float32).max), closed="both")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "optimizer": [StrOptions(set(OPTIMIZERS)), HasMethods(["start", "update", "step_length"])],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither"), None],
        "learning_rate": [StrOptions(set(SCHEDULES)), callable],
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
        "trainable": [str, list, tuple, None],
        "dtype": [StrOptions({"float32", "float64"})],
        # Which ones there are is known to the runtime: the name is checked in fit.
        "device": [str],
        "n_jobs": [Interval(Integral, 1, None, closed="left"), Interval(Integral, None, -1, closed="right"), None],
        "average": ["boolean", Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "callbacks": [list, tuple, None],
        "verbose": ["verbose"],
    }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags = input_tags(self.estimator) or tags.input_tags
        return tags

    @property
    def weights_(self) -> dict[str, np.ndarray]:
        """All weights, trained or frozen, by their names in `onnx_`, as copies."""
        from skort.graphs.transformers import trainable_steps

        check_is_fitted(self)
        fitted = self._preprocessing
        steps = trainable_steps(fitted.transformers, fitted.dtype).graphs.values()
        return {name: array.copy() for graph in (*steps, self._score_graph) for name, array in graph.arrays.items()}

    @property
    def onnx_(self) -> "onnx.ModelProto":
        """The deployable model."""
        check_is_fitted(self)
        return self._deployed.model

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
        ValueError
            Where the model cannot be written in `target_opset`.
        """
        from skort.graphs.export import at_opset

        check_is_fitted(self)
        return copy.deepcopy(self.onnx_) if target_opset is None else at_opset(self.onnx_, target_opset)

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
        has_link = not is_classifier(self) and self._inverse_link() is not None
        return plain(self._parts, self._preprocessing, self._score_graph, vars(self), has_link=has_link)

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
            Solver "graph": "step", a whole step of standard operators, which any onnxruntime runs. Its inputs are a
            batch, the learning rate, the weights as one vector and what the optimizer remembers; its outputs the loss,
            the objective and its gradient, and the weights and the memory for the next step, under the same names and
            "_next". "start" gives the fitted weights and an empty memory for the first step. Solver "agent":
            "gradient", forward and backward of one batch, with the trained weights as inputs and their gradients as
            outputs. Solver "session": "objective", as given to TrainingSession, and "training", as it was run, with
            the trained weights as initializers.

        Raises
        ------
        RuntimeNotAvailableError
            Where the installed ONNX Runtime lacks the API that the solver needs.
        """
        from skort.runtime.device import CPU

        check_is_fitted(self)
        return self._make_solver(self._score_graph, device=CPU).training_graphs()

    def __setstate__(self, state):
        super().__setstate__(state)
        if "_deployed" in state:
            self._register()

    def _register(self):
        """Make skl2onnx convert models that hold this one: here, so that `import skort` need not import it."""
        from skort.graphs.registration import register

        register(type(self))

    def _fit(self, X, y, sample_weight, *, X_val=None, y_val=None, classes=None, one_epoch=False):
        from skort.graphs.trainable import check_trainable

        theirs = [] if one_epoch else sklearn_callbacks(self, X, y, sample_weight)
        with refitting(self) as before:
            parts = split(self._default() if self.estimator is None else self.estimator)
            check_trainable(parts.model, is_fitted=parts.is_fitted)
            _check_kind(self, parts.model)
            check_callbacks(self.callbacks)
            self._resolve_schedule()
            self._usable_solvers()
            given_X = X
            X, y = self._validate(X, y, has_steps=parts.transformers is not None)
            check_columns(parts, given_X)
            self._loss = self._resolve_loss()
            y, target = self._encode(y, known_classes(parts, classes))
            self._loss.check_target(target)
            weights = self._row_weights(sample_weight, X, y)
            random_state = check_random_state(self.random_state)
            scoring, weights = validation_scoring(self, given_X, y, sample_weight, weights, random_state, X_val, y_val)
            X = self._prepare(parts, X, y, target.shape[1], random_state)
            begin(self, before)
            callbacks = [*watchers(self, scoring, one_epoch=one_epoch), *theirs]
            descent = descend(self, X, target, weights, random_state, callbacks, one_epoch=one_epoch)
            self._keep(descent)
            # The caller's generator goes its own way.
            self._random_state = copy.deepcopy(random_state)
        report(self, descent, one_epoch=one_epoch)
        return self

    def _partial_fit(self, X, y, sample_weight, classes=None):
        if self.early_stopping:
            raise ValueError("partial_fit does not support early_stopping=True")
        if not hasattr(self, "n_iter_"):
            return self._fit(X, y, sample_weight, classes=classes, one_epoch=True)
        with unchanged_by_errors(self):
            check_callbacks(self.callbacks)
            left = kept(self)
            if left is None:
                # scikit-learn validates them before the first call only.
                self._validate_params()
                self._usable_solvers()
                if self.dtype != self._score_graph.dtype:
                    raise ValueError(f"dtype={self.dtype!r}, but earlier calls had dtype='{self._score_graph.dtype}'.")
                self._loss = self._resolve_loss()
            X, y = self._validate(X, y, has_steps=self._preprocessing.transformers is not None, reset=False)
            y, target = self._encode(y, classes)
            self._loss.check_target(target)
            weights = self._row_weights(sample_weight, X, y)
            if target.shape[1] != self._score_graph.n_outputs:
                raise ValueError(f"y has {target.shape[1]} outputs, earlier calls had {self._score_graph.n_outputs}.")
            X = self._preprocessing.transform(X)
            callbacks = watchers(self, one_epoch=True)
            descent = descend(self, X, target, weights, self._random_state, callbacks, left, one_epoch=True)
            self._keep(descent)
        report(self, descent, one_epoch=True)
        return self

    def _validate(self, X, y, *, has_steps, reset=True):
        """Return X and y as arrays; X as it is where steps before the model take it, which validate it themselves."""
        if has_steps:
            X, y = validate_data(self, as_rows(X), y, reset=reset, skip_check_array=True)
            y = check_array(y, dtype=None, ensure_2d=False, input_name="y", estimator=self)
        else:
            rows = None if reset or not is_plain(y) else plain_rows(self, X, self.dtype)
            if rows is None:
                checks = ({"dtype": self.dtype, **_ROWS}, {"dtype": None, "ensure_2d": False})
                X, y = validate_data(self, X, y, reset=reset, validate_separately=checks)
            else:
                X = rows
        check_consistent_length(X, y)
        return X, y

    def _prepared(self, X):
        """Return X as the model takes it: validated, and after the steps before the model."""
        if self._preprocessing.transformers is not None:
            return self._preprocessing.transform(validate_data(self, as_rows(X), reset=False, skip_check_array=True))
        dtype = self._preprocessing.dtype
        rows = plain_rows(self, X, dtype)
        return validate_data(self, X, reset=False, dtype=dtype, **_ROWS) if rows is None else rows

    def _row_weights(self, sample_weight, X, y):
        """Return the weight of each row, or None where all are equal."""
        return validated_sample_weight(sample_weight, X)

    def _prepare(self, parts, X, y, n_outputs, random_state):
        """Fit the steps before the model, convert it at its initial weights, and return what it is trained on."""
        self._parts = parts
        self._preprocessing, X, self._score_graph = prepare(
            parts,
            X,
            y,
            n_outputs,
            self.dtype,
            random_state,
            trainable=self.trainable,
            is_classifier=is_classifier(self),
            own_link=self._loss.inverse_link_function(n_outputs) is None,
        )
        return X

    def _keep(self, descent):
        keep(self, descent)
        self._keep_models()
        self._register()

    def _keep_models(self):
        """Keep what shows the weights of the score graph and predicts with them."""
        linear = self._score_graph.linear_weights()
        if linear is not None:
            self._keep_linear(*linear)
        self._deployed = Deployed(self._deployable(), self._preprocessing.graph, self._runner())

    def _with_weights(self, weights):
        """Return the attributes of this estimator with other weights."""
        model = copy.copy(self)
        model._score_graph = self._score_graph.with_weights(weights)
        model._keep_models()
        return vars(model)

    def _runner(self, **options):
        """Return the class of what runs a deployable model, and what it is told besides the model."""
        from skort.graphs.export import SCORE
        from skort.runtime.inference import InferenceModel

        return functools.partial(InferenceModel, inner_results=(SCORE,) if is_classifier(self) else (), **options)

    def _resolve(self, table, value):
        """Return what `value`, a name or an instance, stands for; by name it gets the parameters of this estimator."""
        return named(table[value], self) if isinstance(value, str) else resolved(value)

    def _resolve_optimizer(self):
        # By name it has its own defaults: its epsilon is not that of a loss.
        return resolved(OPTIMIZERS[self.optimizer]() if isinstance(self.optimizer, str) else self.optimizer)

    def _update_options(self):
        """Return what a solver is told about its updates."""
        optimizer = self._resolve_optimizer()
        options = {"max_grad_norm": self.max_grad_norm, "average": self.average}
        return {"optimizer": optimizer, "device": training_device(self), **options}

    def _resolve_loss(self):
        loss = self._resolve(self._losses, self.loss)
        kind = get_tags(self).estimator_type
        if kind not in loss.estimator_types:
            names = ", ".join(repr(name) for name in self._losses)
            raise ValueError(f"loss={type(loss).__name__} is no loss of a {kind}. Use one of {names}.")
        return loss

    def _inverse_link(self):
        return self._loss.inverse_link_function(self._score_graph.n_outputs)

    def _resolve_schedule(self):
        if self.learning_rate == "optimal" and self.alpha == 0:
            raise ValueError(
                'learning_rate="optimal" divides by alpha, got alpha=0. Use alpha > 0 (with penalty=None it is no '
                'penalty), or another learning_rate, such as "invscaling".'
            )
        return checked_schedule(self._resolve(SCHEDULES, self.learning_rate))

    def _usable_solvers(self):
        """Return the names of the solvers that can do what the parameters ask for."""
        from skort.solvers import usable

        optimizer = self._resolve_optimizer()
        return usable(self.solver, np.dtype(self.dtype), optimizer, self.max_grad_norm, training_device(self))

    def _make_solver(self, score_graph, **options):
        from skort.solvers import solver_class

        arguments = self._solver_arguments | options
        return solver_class(self.solver_, arguments["device"])(score_graph, **arguments)

    def _run(self, output, X):
        """Return a result of the deployable model."""
        if not hasattr(self, "_preprocessing"):
            check_is_fitted(self)
        X, name = self._prepared(X), self._score_graph.input_name
        run, device = self._deployed.inference.run, predicting_device(self, X.shape[0])
        parts = [run(output, {name: rows}, device) for rows in blocks(X)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def can_partial_fit(estimator):
    """Raise an AttributeError where the steps before the model are still to be fitted."""
    transformers = split(estimator.estimator).transformers
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
    # An ONNX model is neither.
    if isinstance(predictor, BaseEstimator) and get_tags(predictor).estimator_type != kind:
        other = {"regressor": "OrtSGDClassifier for classifiers", "classifier": "OrtSGDRegressor for regressors"}[kind]
        raise NotTrainableError(f"estimator={type(predictor).__name__} is not a {kind}: use {other}.")
