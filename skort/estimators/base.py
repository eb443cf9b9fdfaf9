"""The base of the regressor and the classifier: their parameters, one fit, the fitted model."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from skort.common.named_errors import errors_of
from skort.common.random_state import advance
from skort.common.sklearn_private import HasMethods, Interval, Options, StrOptions, fit_context
from skort.estimators.data.first_pass import FirstPass, known_classes, repeatable
from skort.estimators.data.nesting import FIT_STEP_FIRST, input_tags, split, steps_to_fit
from skort.estimators.data.rows import prepared
from skort.estimators.data.validation_set import VALIDATION_SCORE
from skort.estimators.did_you_mean import NamedParameters, check_not_named, explained_arguments
from skort.estimators.fitted_mixin import FittedAttributes
from skort.estimators.html import HTMLRepr
from skort.estimators.literals import (
    Auto,
    DtypeName,
    OptimizerName,
    PenaltyName,
    Rows,
    ScheduleName,
    SolverName,
    Targets,
)
from skort.estimators.persistence import from_plain, to_plain
from skort.estimators.planning.epochs import asks_to_stop_early
from skort.estimators.planning.threads import predicting_device
from skort.estimators.training.data_source import GivenBatches, GivenRows
from skort.estimators.training.fit import fit
from skort.estimators.training.observers import CallbackSupportMixin
from skort.estimators.training.partial_fit import first_call, next_call
from skort.estimators.training.read import check_without_rows
from skort.estimators.training.result import NO_ENDING, is_of_fit, result_of
from skort.estimators.training.warnings_at_end import warn_of_outcome, warn_of_unused_weights
from skort.estimators.training.warnings_of_values import warn_of_lost_digits, warn_of_target_units
from skort.estimators.training.without_effect import (
    warn_of_late_average,
    warn_of_other_terms,
    warn_of_scoring,
    warn_of_unused,
)
from skort.objective.penalties import PENALTIES, WeightPenalty
from skort.optim.callbacks import AnyCallback
from skort.optim.display import print_line
from skort.optim.optimizers import OPTIMIZERS, Optimizer
from skort.optim.schedules import SCHEDULES

Own = TypeVar("Own", bound="BaseOrtSGD")
# Constraints of several parameters.
_AUTO = StrOptions({"auto"})
_POSITIVE_INT = Interval(Integral, 1, None, closed="left")
# float32 holds all numbers up to here.
_NOT_NEGATIVE = Interval(Real, 0, 1e38, closed="both")


class BaseOrtSGD(CallbackSupportMixin, FittedAttributes, HTMLRepr, NamedParameters):
    """Parameters, fit and export of both estimators. An error before `_adopt` changes nothing."""

    solver: SolverName
    loss: Any
    penalty: PenaltyName | WeightPenalty | None
    alpha: float | Auto
    epsilon: float | Auto
    l1_ratio: float | Auto | None
    n_total: int | None
    optimizer: OptimizerName | Optimizer
    max_grad_norm: float | None
    learning_rate: ScheduleName | Callable[[int], float]
    eta0: float | Auto
    power_t: float
    batch_size: int | Auto
    max_iter: int | Auto
    tol: float | Auto | None
    n_iter_no_change: int | float | Auto
    early_stopping: bool | Auto
    validation_fraction: float
    scoring: str | Callable[..., Any] | None
    shuffle: bool
    standardize: bool | Auto
    trainable: str | list[str] | None
    dtype: DtypeName
    device: str
    n_jobs: int | str | None
    average: bool | int | Auto
    random_state: int | np.random.RandomState | None
    warm_start: bool
    callbacks: Sequence[AnyCallback] | None
    verbose: int

    _parameter_constraints = {
        # Checked in fit: an ONNX model is no estimator, and this module does not import onnx.
        "estimator": "no_validation",
        "solver": [StrOptions(set(get_args(SolverName)))],
        "loss": [HasMethods(["value_function", "gradient_function"]), None],
        "penalty": [StrOptions({"auto", *PENALTIES}), HasMethods(["strengths"]), None],
        "alpha": [_AUTO, _NOT_NEGATIVE],
        "epsilon": [_AUTO, _NOT_NEGATIVE],
        "l1_ratio": [_AUTO, Interval(Real, 0, 1, closed="both"), None],
        "n_total": [_POSITIVE_INT, None],
        "optimizer": [
            StrOptions({"auto", *OPTIMIZERS}),
            HasMethods(["start", "update", "step_length"]),
        ],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither"), None],
        "learning_rate": [StrOptions({"auto", *SCHEDULES}), callable],
        "eta0": [_AUTO, Interval(Real, 0, None, closed="neither")],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "batch_size": [_AUTO, _POSITIVE_INT],
        "max_iter": [_AUTO, _POSITIVE_INT],
        "tol": [_AUTO, Interval(Real, 0, None, closed="left"), None],
        "n_iter_no_change": [_AUTO, _POSITIVE_INT, Options(Real, {math.inf})],
        "early_stopping": [_AUTO, "boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "scoring": [str, callable, None],
        "shuffle": ["boolean"],
        "standardize": [_AUTO, "boolean"],
        "trainable": [str, list, tuple, None],
        "dtype": [StrOptions({"float32", "float64"})],
        # The runtime knows which devices there are: the name is checked in fit.
        "device": [str],
        "n_jobs": [_POSITIVE_INT, Interval(Integral, None, -1, closed="right"), _AUTO, None],
        "average": [_AUTO, "boolean", Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "callbacks": [list, tuple, None],
        "verbose": ["verbose"],
    }

    def _store(self, parameters):
        """Store all parameters by the names of a constructor. A subclass may have other ones."""
        self.__dict__.update(
            {name: value for name, value in parameters.items() if name not in ("self", "__class__")}
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags = input_tags(self.estimator) or tags.input_tags
        return tags

    def _validate_params(self) -> None:
        super()._validate_params()
        check_not_named(self)
        if self.penalty == "elasticnet" and self.l1_ratio is None:
            raise ValueError("l1_ratio must be set when penalty is 'elasticnet'")

    def __sklearn_clone__(self: Own) -> Own:
        cloned = super().__sklearn_clone__()
        search = vars(self).get("_search")

        if search is not None:
            # A search makes the fits of its candidates, which are clones, together.
            search.mark(cloned)

        return cloned

    def __getstate__(self) -> dict[str, Any]:
        # From Python 3.11 on, it may be the dict of this object itself.
        state = dict(super().__getstate__())
        # A fit in another process is made alone.
        state.pop("_search", None)
        if "_result" in state:
            state["_result"] = state["_result"].packed()
        return to_plain(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        attributes = from_plain(state)
        if "_result" in attributes:
            attributes["_result"] = attributes["_result"].unpacked()
            self._register()
        self.__dict__.update(attributes)

    def __copy__(self: Own) -> Own:
        copied = object.__new__(type(self))
        copied.__dict__ = vars(self).copy()
        return copied

    def _register(self):
        """
        Make skl2onnx convert models that hold this one:
        here, so that `import skort` need not import it.
        """
        from skort.graphs.sklearn.registration import register

        register(type(self))  # type: ignore[arg-type]  # classes are hashable

    @explained_arguments
    @fit_context
    def fit(  # noqa: PLR0913  # as in scikit-learn
        self: Own,
        X: Rows,
        y: Targets,
        sample_weight: ArrayLike | None = None,
        X_val: Rows | None = None,
        y_val: Targets | None = None,
        *,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
    ) -> Own:
        """
        Train on X and y; an earlier fit is forgotten.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers, or what the first step of a pipeline in `estimator` takes: a DataFrame,
            texts, sparse rows. For an ONNX model with an input of more dimensions, such as images,
            X has the shape of that input, or flattened rows; the exported file takes the same.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or dict of str to such arrays
            Targets, finite numbers; a dict with the same names if `loss` is a dict. For a
            classifier: labels of at least two classes; only ints, strings, bools and floats can be
            exported to ONNX. With an `MLPClassifier` in `estimator`, y may be multi-label: 1 where
            a row has a label, 0 elsewhere.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative and not all zero. A row of weight zero is in no batch.
            The steps of a pipeline in `estimator` are fitted on all rows, without weights.
        X_val, y_val : array-like, default=None
            A validation set, like X and y. It is scored after every epoch (`validation_scores_`).
            With `early_stopping=True`, it decides when the training ends.
        coef_init, intercept_init : array-like, default=None
            Initial weights of a linear model, of the shapes of `coef_` and `intercept_`. They
            replace zeros, and the weights of `warm_start` or of a fitted model.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter, X, y or `sample_weight` is not as described, or if the training
            diverges. An error leaves the estimator as it was before, with one exception: an error
            of a callback leaves it fitted up to the last whole epoch, if there is one.
        NotTrainableError
            If `estimator` is not a model that can be trained; a `ValueError`.
        RuntimeNotAvailableError
            If the installed ONNX Runtime lacks the API that `solver` needs, or cannot use `device`;
            an `ImportError`.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` ended the training before `tol` did. If the training ended no better than
            it began, or no better than a constant prediction. If one y is so far from all others
            that a squared error follows it alone.
        UserWarning
            If a step of a pipeline cannot be part of an ONNX model, or gives other values as ONNX
            than in scikit-learn: everything works except the export, which raises the same message.
            If a `KeyboardInterrupt` ended the training: the estimator is fitted up to the last
            whole epoch, or keeps the weights of a fitted model. If the model in `estimator` is
            fitted and in no `FrozenEstimator`, so that its weights are not used.
        """
        return self._fit(
            GivenRows(X, y, sample_weight),
            X_val=X_val,
            y_val=y_val,
            init=(coef_init, intercept_init),
        )

    @explained_arguments
    @fit_context
    def fit_batches(
        self: Own,
        batches: Iterable[Any] | Callable[[], Iterable[Any]],
        *,
        X_val: Rows | None = None,
        y_val: Targets | None = None,
        classes: ArrayLike | None = None,
    ) -> Own:
        """
        Train on your batches, in their order; an earlier fit is forgotten.

        Everything else is as in `fit`: schedules, stopping, validation sets, history and
        checkpoints. One pass over the batches comes before the training, and each epoch is one
        pass. X is never in memory as a whole. The scales of the columns and the learning rate come
        from about 4 million values of it. The labels of a classifier and the sample weights of all
        rows are kept.

        Parameters
        ----------
        batches : iterable, or callable that returns one
            Each batch is (X, y) or (X, y, sample_weight), with parts as for `fit`, or from a
            library with DLPack, such as torch. Every pass has to give the same rows, in any
            order. An iterator, which can be read only once, is refused: give a function that
            returns a new one.
        X_val, y_val : array-like, default=None
            A validation set, as for `fit`. `early_stopping=True` needs it: no rows of
            batches are held out.
        classes : array-like of shape (n_classes,), default=None
            The labels of a classifier. None: those in the batches.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For what `fit` refuses, with the number of the batch; for batches that cannot be read
            again, or that have another number of rows in a later pass; and for steps before the
            model that need a fit.
        NotTrainableError, RuntimeNotAvailableError
            As `fit` does, which also says what it warns of.

        Notes
        -----
        With `batch_size="auto"`, each batch makes one update. With a number, larger batches, such
        as files, are split into parts of so many rows. `shuffle` has no effect: the rows are used
        in the order of the batches.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skort import OrtSGDRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> batches = [(X[i : i + 50], y[i : i + 50]) for i in range(0, len(X), 50)]
        >>> model = OrtSGDRegressor(random_state=0).fit_batches(batches)
        >>> round(model.score(X, y), 2)
        0.52
        """
        for name in steps_to_fit(self.estimator):
            raise ValueError(
                f"fit_batches does not fit the step {name!r} before the model. {FIT_STEP_FIRST}"
            )

        if asks_to_stop_early(self.early_stopping) and X_val is None:
            raise ValueError(
                "early_stopping=True cannot hold out rows of batches: give X_val and y_val."
            )

        is_labelled = isinstance(self, ClassifierMixin)
        if classes is not None and not is_labelled:
            raise ValueError("classes is for classifiers, and this is a regressor.")

        check_without_rows(self)
        passes = repeatable(batches)
        steps, *_ = split(self.estimator)
        first = FirstPass.over(passes(), has_labels=is_labelled, has_steps=bool(steps))
        with errors_of("batches"):
            known = known_classes(self.estimator, classes, first.all_labels)
        given = GivenBatches(first.X, first.y, first.sample_weight, passes, first, self.batch_size)

        return self._fit(given, X_val=X_val, y_val=y_val, classes=known)

    def _fit(self, given, *, X_val=None, y_val=None, init=(None, None), classes=None):
        """
        Train from the beginning, alone or with other fits of a search,
        and take over the result.
        """
        made = self._joint_fit(given, X_val, y_val, init)
        if made is None:
            made = fit(self, given, X_val=X_val, y_val=y_val, init=init, classes=classes)
        return self._end_fit(*made)

    def _joint_fit(self, given, X_val, y_val, init):
        """Return a fit that a search makes with others, and its input. None: it is made alone."""
        search = self.__dict__.pop("_search", None)
        is_plain = not isinstance(given, GivenBatches) and not any(
            each is not None for each in (X_val, y_val, *init)
        )
        if search is None or not is_plain:
            return None

        return search.take(self, given.X, given.y, given.sample_weight)

    def _end_fit(self, result, read, *, is_stream=False):
        """Take over a result, and say how its training ended."""
        self._adopt(result, read.columns)
        advance(self.random_state, result.state.random_state)

        if not read.wrapped.is_fitted:
            warn_of_other_terms(self, read.wrapped.model, read.objective_inside, result)
            if not read.wrapped.is_default:
                warn_of_unused_weights(read.wrapped, result)
        warn_of_unused(self, read.objective_inside)
        if self.scoring is not None and VALIDATION_SCORE not in result.state.history:
            warn_of_scoring(self, is_stream=is_stream)
        if not is_stream:
            warn_of_late_average(result.plan.update.average, result.state.n_updates)
        if self.verbose and result.initial_score_told:
            print_line(f"Validation set: {result.initial_score_told}.")

        warn_of_lost_digits(self, result)
        warn_of_target_units(result)
        warn_of_outcome(self, result, is_stream=is_stream)

        return self

    def _partial_fit(self, X, y, sample_weight, classes=None):
        """Train on the rows of a call: begin a stream, or go on with the last training."""
        if asks_to_stop_early(self.early_stopping):
            raise ValueError(
                "partial_fit does not support early_stopping=True: a call is one epoch, so there is no "
                "earlier epoch to go back to. early_stopping should be False with partial_fit."
            )

        given = GivenRows(X, y, sample_weight)
        last = vars(self).get("_result")
        if last is None:
            return self._end_fit(*first_call(self, given, classes), is_stream=True)

        made = next_call(self, last, given)
        if made is not None:
            result, columns = made
            self._adopt(result, columns)
            warn_of_outcome(self, result, is_stream=True)

        return self

    def _adopt(self, result, columns=None):
        """
        Take over a result. With `columns` it is that of a training, which replaces an earlier one;
        without, it has other weights alone.
        """
        if columns is None:
            kept = vars(self)
            described = {"_sparse_coef": None}
        else:
            kept = {name: value for name, value in vars(self).items() if not is_of_fit(name)}
            described = columns.attributes | self._of_training(result)

        adopted = {
            "_result": dataclasses.replace(result, ending=NO_ENDING),
            **result.model.shown_attributes(),
        }

        # One assignment: a thread that predicts meanwhile sees the earlier fit or this one.
        self.__dict__ = kept | described | adopted
        self._register()

    def _of_training(self, result):
        """Return the fitted attributes that describe a training."""
        goes_on = result.n_before > 0
        so_far = vars(self).get("best_loss_") if goes_on else None
        return {
            # As in MLPClassifier: if the score of a validation set decides, no loss is the best.
            "best_loss_": None
            if result.plan.is_validated
            else min([*result.new_losses, *([] if so_far is None else [so_far])], default=None),
            "loss_": result.new_losses[-1] if result.new_losses else None,
            "n_iter_": result.state.n_epochs,
            "t_": result.state.n_updates,
            "solver_": result.solver_name,
            "eta0_": self.eta0_ if goes_on and result.first_eta is None else result.eta0,
        }

    def _model(self):
        """
        Return the fitted model. A prediction asks once,
        as another thread may fit the estimator meanwhile.
        """
        return result_of(self).model

    def _run(self, model, output, X):
        """Return a result of the deployable model."""
        X = prepared(self, model, X)
        return model.run(output, X, predicting_device(self, X.shape[0]))


def hand_over_fit(estimator: BaseOrtSGD, other: BaseOrtSGD) -> None:
    """Give another estimator what a fit has left in this one."""
    other.__dict__.update(
        {name: value for name, value in vars(estimator).items() if is_of_fit(name)}
    )
    other._register()
