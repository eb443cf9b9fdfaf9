"""What the regressor and the classifier share: parameters, one fit, the fitted model."""

import contextlib
import copy
import os
import pathlib
import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length, check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from skort.descent.batches import Batches
from skort.descent.callbacks import ProgressBar
from skort.descent.loop import minimise
from skort.descent.optimizers import OPTIMIZERS
from skort.descent.schedules import SCHEDULES
from skort.estimators.components import checked_schedule, resolved
from skort.estimators.parts import as_rows, input_tags, plain, prepare, split
from skort.exceptions import NotTrainableError
from skort.objective.penalties import PENALTIES

if TYPE_CHECKING:
    import onnx

__all__ = ["BaseOrtSGD"]


class BaseOrtSGD(BaseEstimator):
    """
    Parameters, fit and export of `OrtSGDRegressor` and `OrtSGDClassifier`.

    They bring the table `_losses`, the model `_default` to train where `estimator` is None, and three steps of the fit:
    `_encode`, `_keep_linear` and `_deployable`.
    """

    _parameter_constraints = {
        # Checked in fit: an ONNX model is no estimator, and this module does not import onnx.
        "estimator": "no_validation",
        "solver": [StrOptions({"agent", "session"})],
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
        "shuffle": ["boolean"],
        "trainable": [str, list, tuple, None],
        "dtype": [StrOptions({"float32", "float64"})],
        "average": ["boolean", Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = input_tags(self.estimator) or tags.input_tags
        return tags

    @property
    def weights_(self) -> dict[str, np.ndarray]:
        """All weights, trained or frozen, by their names in `onnx_`, as copies."""
        from skort.graphs.score_graph import find_weights
        from skort.graphs.transformers import trainable_steps

        check_is_fitted(self)
        fitted = self._preprocessing
        graphs = [graph for _, graph in trainable_steps(fitted.transformers, fitted.dtype)]
        weights = {}
        for graph in [*graphs, self._score_graph]:
            weights.update(graph.weights(find_weights(graph.model.graph).names))
        return weights

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

    def __setstate__(self, state):
        super().__setstate__(state)
        if "onnx_" in state:
            self._register()

    def _register(self):
        """Make skl2onnx convert models that hold this one: here, so that `import skort` need not import it."""
        from skort.graphs.registration import register

        register(type(self))

    def _fit(self, X, y, sample_weight):
        from skort.graphs.trainable import check_trainable
        from skort.solvers import SOLVERS

        with _refitting(self):
            parts = split(self._default if self.estimator is None else self.estimator)
            check_trainable(parts.model, is_fitted=parts.is_fitted)
            _check_kind(self, parts.model)
            self._resolve_schedule()
            SOLVERS[self.solver].check(np.dtype(self.dtype), self._resolve_optimizer(), self.max_grad_norm)
            X, y = self._validate(X, y, parts)
            sample_weight = _validate_sample_weight(sample_weight, X)
            self._loss = self._resolve_loss()
            y, target = self._encode(y, getattr(parts.model, "classes_", None) if parts.is_fitted else None)
            self._loss.check_target(target)
            descent = self._train(parts, X, y, target, sample_weight)
            self._keep(descent)
        return self

    def _validate(self, X, y, parts):
        """Return X and y as arrays; X as it is where steps before the model take it, which validate it themselves."""
        if parts.transformers is not None:
            X, y = validate_data(self, as_rows(X), y, skip_check_array=True)
            y = check_array(y, dtype=None, ensure_2d=False, input_name="y", estimator=self)
        else:
            checks = ({"dtype": self.dtype, "order": "C"}, {"dtype": None, "ensure_2d": False})
            given = X
            X, y = validate_data(self, X, y, validate_separately=checks)
            if parts.is_fitted and isinstance(parts.model, BaseEstimator):
                # Its columns: those of steps are checked by the steps.
                validate_data(parts.model, given, reset=False, skip_check_array=True)
        check_consistent_length(X, y)
        return X, y

    def _train(self, parts, X, y, target, sample_weight):
        """Fit the steps before the model, train it on what they make of X, and keep what makes a solver."""
        from skort.objective.nodes import Objective

        random_state = check_random_state(self.random_state)
        self._parts = parts
        self._preprocessing, X, self._score_graph = prepare(
            parts,
            X,
            y,
            target.shape[1],
            self.dtype,
            random_state,
            trainable=self.trainable,
            is_classifier=is_classifier(self),
            own_link=self._loss.inverse_link_function(target.shape[1]) is None,
        )
        objective = Objective(
            loss=self._loss,
            penalty=self._resolve(PENALTIES, self.penalty),
            coefficients=self._score_graph.coefficients,
            n_outputs=self._score_graph.n_outputs,
            dtype=np.dtype(self.dtype),
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
        if batches.batch_size == 1 and batches.weighted:
            raise ValueError(
                "sample_weight has no effect with batch_size=1, as every batch is divided by its own weight. "
                "Use a larger batch_size."
            )
        self._solver = self.solver
        self._solver_arguments = {"objective": objective, "batch_size": batches.batch_size, **self._update_options()}
        with ProgressBar(self.max_iter, enabled=self.verbose) as progress:
            return minimise(
                self._make_solver(self._score_graph),
                batches,
                self._resolve_schedule(),
                max_iter=self.max_iter,
                tol=self.tol,
                n_iter_no_change=self.n_iter_no_change,
                on_epoch_end=progress,
            )

    def _keep(self, descent):
        from skort.graphs.export import SCORE
        from skort.runtime.inference import InferenceModel

        self._score_graph = self._score_graph.with_weights(descent.weights)
        self.loss_curve_ = descent.loss_curve
        self.loss_ = descent.loss_curve[-1]
        self.best_loss_ = min(descent.loss_curve)
        self.n_iter_ = len(descent.loss_curve)
        self.t_ = descent.n_updates
        linear = self._score_graph.linear_weights()
        if linear is not None:
            self._keep_linear(*linear)
        self.onnx_ = self._deployable(self._preprocessing.graph)
        # scikit-learn transforms X for predictions, as it did for the training.
        served = self.onnx_ if self._preprocessing.graph is None else self._deployable(None)
        self._inference = InferenceModel(served, inner_results=(SCORE,) if is_classifier(self) else ())
        self._register()
        if not descent.converged:
            warnings.warn(
                f"Maximum number of epochs reached before convergence (max_iter={self.max_iter}, tol={self.tol}). "
                "Consider increasing max_iter or eta0 to improve the fit.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _resolve(self, table, value):
        """Return what `value`, a name or an instance, stands for; by name it gets the parameters of this estimator."""
        if isinstance(value, str):
            value = table[value](**{key: getattr(self, key) for key in table[value]().get_params()})
        return resolved(value)

    def _resolve_optimizer(self):
        # By name it has its own defaults: its epsilon is not that of a loss.
        return resolved(OPTIMIZERS[self.optimizer]() if isinstance(self.optimizer, str) else self.optimizer)

    def _update_options(self):
        """Return what a solver is told about its updates."""
        optimizer = self._resolve_optimizer()
        return {"optimizer": optimizer, "max_grad_norm": self.max_grad_norm, "average": self.average}

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

    def _make_solver(self, score_graph):
        from skort.solvers import SOLVERS

        return SOLVERS[self._solver](score_graph, **self._solver_arguments)

    def _run(self, output, X):
        """Return a result of the deployable model."""
        check_is_fitted(self)
        if self._preprocessing.transformers is None:
            X = validate_data(self, X, reset=False, dtype=self._score_graph.dtype, order="C")
        else:
            X = self._preprocessing.transform(validate_data(self, as_rows(X), reset=False, skip_check_array=True))
        name = self._score_graph.input_name
        if not scipy.sparse.issparse(X):
            return self._inference.run(output, {name: X})
        return np.concatenate([self._inference.run(output, {name: rows}) for rows in _dense_blocks(X)])


def _dense_blocks(X):
    """Yield the rows of a sparse matrix as arrays of a few MB."""
    n_rows = max(1, 2**20 // X.shape[1])
    for start in range(0, X.shape[0], n_rows):
        yield X[start : start + n_rows].toarray()


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
    # An ONNX model is neither.
    if isinstance(predictor, BaseEstimator) and get_tags(predictor).estimator_type != kind:
        other = {"regressor": "OrtSGDClassifier for classifiers", "classifier": "OrtSGDRegressor for regressors"}[kind]
        raise NotTrainableError(f"estimator={type(predictor).__name__} is not a {kind}: use {other}.")


def _validate_sample_weight(sample_weight, X):
    if sample_weight is None:
        return None
    sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not sample_weight.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return sample_weight
