"""What the regressor and the classifier share: parameters, one fit, the fitted model."""

import copy
import functools
import math
from numbers import Integral, Real
from typing import get_args

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, InvalidParameterError, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from skort.common.component import Component
from skort.estimators.before_fit import check_same_model
from skort.estimators.beginning import begin, go_on
from skort.estimators.callback_list import callback_list
from skort.estimators.ending import explained, report
from skort.estimators.facts import RowFacts
from skort.estimators.fit_batches import BatchesMixin
from skort.estimators.fitted_attributes import FittedAttributes
from skort.estimators.fitted_model import FittedModel
from skort.estimators.hardware import predicting_device
from skort.estimators.hints import hint
from skort.estimators.html_repr import HTMLRepr
from skort.estimators.inner_model import InnerModel
from skort.estimators.names import SolverName
from skort.estimators.nesting import input_tags
from skort.estimators.own_terms import chosen_class_weight, warn_of_other_terms
from skort.estimators.preview import Preview
from skort.estimators.random_state import advance, own_generator
from skort.estimators.reading import Reading
from skort.estimators.row_encoder import RowEncoder
from skort.estimators.rows import rows_to_predict, training_rows
from skort.estimators.sample_weight import validated_sample_weight
from skort.estimators.settings import snapshot
from skort.estimators.sklearn_callbacks import CallbackSupportMixin, sklearn_callbacks
from skort.estimators.stream import Stream
from skort.estimators.validation_set import given_scoring, held_out_scoring, hold_out
from skort.exceptions import DivergedError
from skort.objective.penalties import PENALTIES
from skort.optim.callbacks import check_callbacks
from skort.optim.optimizers import OPTIMIZERS
from skort.optim.schedules import SCHEDULES, rate

__all__ = ["BaseOrtSGD"]


class BaseOrtSGD(BatchesMixin, CallbackSupportMixin, FittedAttributes, HTMLRepr, Component):
    """
    Parameters, fit and export of `OrtSGDRegressor` and `OrtSGDClassifier`.

    They bring the table `_losses`, the names of their parameters, `_parameters`, the model `_default()` to train where
    `estimator` is None, and two steps of the fit: `_encode` and `_sample_weight`.

    A fit works on a draft, a copy of the estimator, which takes it over at the end: an error changes nothing.
    """

    # What a fit leaves, besides the attributes that end with an underscore.
    _fit_leaves = (
        *("_fitted", "_progress", "_settings", "_batch_size", "_n_batches", "_is_sparse", "_inside", "_stream"),
        *("_outputs", "_sparse_coef"),
    )

    _parameter_constraints = {
        # Checked in fit: an ONNX model is no estimator, and this module does not import onnx.
        "estimator": "no_validation",
        "solver": [StrOptions(set(get_args(SolverName)))],
        "penalty": [StrOptions({"auto", *PENALTIES}), HasMethods(["strengths"]), None],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, float(np.finfo(np.float32).max), closed="both")],
        "l1_ratio": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both"), None],
        "n_total": [Interval(Integral, 1, None, closed="left"), None],
        "optimizer": [StrOptions(set(OPTIMIZERS)), HasMethods(["start", "update", "step_length"])],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither"), None],
        "learning_rate": [StrOptions(set(SCHEDULES)), callable],
        "eta0": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "n_iter_no_change": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
            Options(Real, {math.inf}),
        ],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "scoring": [str, callable, None],
        "shuffle": ["boolean"],
        "standardize": [StrOptions({"auto"}), "boolean"],
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

    def _validate_params(self):
        try:
            super()._validate_params()
        except InvalidParameterError as error:
            message = f"{error}{hint(self.get_params(deep=False), self._parameter_constraints)}"
            raise InvalidParameterError(message) from None
        if self.penalty == "elasticnet" and self.l1_ratio is None:
            raise ValueError("l1_ratio must be set when penalty is 'elasticnet'")

    def __setstate__(self, state):
        super().__setstate__(state)
        if "_fitted" in state:
            self._register()

    def _register(self):
        """Make skl2onnx convert models that hold this one: here, so that `import skort` need not import it."""
        from skort.graphs.sklearn.registration import register

        register(type(self))  # type: ignore[arg-type]  # classes are hashable

    def _fit_to(self, given, *, X_val=None, y_val=None, init=(None, None), classes=None, one_epoch=False):
        X, y, sample_weight = given.X, given.y, given.sample_weight
        theirs = [] if one_epoch else sklearn_callbacks(self, X, y, sample_weight)
        draft, read = self._read(given, classes=classes, one_epoch=one_epoch)
        weights, encoded = read.sample_weight, read.encoded
        scoring = given_scoring(X_val, y_val, self.scoring)
        if scoring is None and self.early_stopping:
            held_out, weights = hold_out(self, encoded.y, weights, read.generator)
            scoring = held_out_scoring(X, encoded.y, sample_weight, held_out, self.scoring)
        settings = read.settings(self, weights)
        data = draft._start_model(read, settings, weights), encoded.target, weights
        is_drawn = not self._gives_weights(draft, init) and read.inner.draws_weights
        initial, facts = draft._fitted.score_graph, RowFacts(*data)
        progress, score_graph, variables = begin(settings, initial, facts, read.generator, is_drawn=is_drawn)
        draft._keep_model(draft._fitted.with_score_graph(score_graph))
        settings = settings.starting_at(score_graph)
        encoder = RowEncoder(draft, draft._fitted, settings, read.class_weight)
        batches = given.batches(encoder, variables, data, read.generator)
        # The rows of one call say nothing about those of a stream.
        n_batches = None if one_epoch else batches.n_batches
        size, are_sparse = batches.batch_size, batches.are_sparse
        stream = Stream.begin(settings, draft._fitted, variables, size, progress, n_batches, are_sparse=are_sparse)
        unit = variables.in_units.unit
        patience = settings.patience(self.n_iter_no_change, batches.n_batches, is_linear=score_graph.is_linear)
        callbacks = [*callback_list(self, scoring, unit=unit, patience=patience, one_epoch=one_epoch), *theirs]
        outcome = draft._train(stream, batches, callbacks, data, one_epoch=one_epoch)
        return self._end_fit(draft, outcome, data, read.own, one_epoch=one_epoch)

    def _read(self, given, *, classes=None, one_epoch=False):
        """Return a draft, and what a fit reads of its rows and of the model inside."""
        inner = self._inner_model()
        own = self._own_objective(None if self.estimator is None else inner.model)
        check_callbacks(self.callbacks)
        draft = self._unfitted()
        rows, y = draft._validate(given.X, given.y, has_steps=inner.has_steps)
        inner.check_columns(given.X)
        target_transform = inner.fit_target(y)
        encoded = target_transform.applied(draft._encode(y, inner.known_classes(classes)))
        inner.check_labels(multi_label=encoded.multi_label)
        class_weight = given.class_weight(chosen_class_weight(self, own, one_epoch=one_epoch), encoded)
        weights, encoded = draft._weighted(given.sample_weight, rows, encoded, class_weight)
        generator = own_generator(self.random_state)
        return draft, Reading(given, inner, own, rows, encoded, class_weight, weights, target_transform, generator)

    def _start_model(self, read, settings, weights):
        """Keep the model at its initial weights; return X as it is trained on."""
        inner, encoded = read.inner, read.encoded
        settings.loss.check_target(encoded.target)
        fitted, rows = self._convert(inner, read.rows, encoded, read.target_transform, settings, read.generator)
        loss_weights = settings.loss.initial_weights(encoded.target, weights, inner.fitted_model)
        self._inside = self._what_is_inside()
        self._keep_model(fitted.with_loss_weights(loss_weights))
        return rows

    def _end_fit(self, draft, outcome, data, own, *, one_epoch=False):
        """Take over what a draft has learned, and say how its training ended."""
        self._take_over(draft)
        if not self._fitted.inner.is_fitted:
            warn_of_other_terms(self, self._fitted.inner.model, own)
        advance(self.random_state, self._progress.random_state)
        report(self, outcome, data, one_epoch=one_epoch)
        return self

    def _partial_fit(self, X, y, sample_weight, classes=None):
        if self.early_stopping:
            raise ValueError(
                "partial_fit does not support early_stopping=True: one epoch has no best one. early_stopping should be "
                "False with partial_fit."
            )
        if not hasattr(self, "_fitted"):
            return self._fit(X, y, sample_weight, classes=classes, one_epoch=True)
        check_callbacks(self.callbacks)
        settings, stream = self._settings, self._stream.look()
        if not settings.hold(self):
            # scikit-learn validates them before the first call only.
            self._validate_params()
            settings = settings.renewed(self)
        check_same_model(self, self._inside, self._what_is_inside(), self._settings.dtype)
        draft = copy.copy(self)
        rows, y = draft._validate(X, y, has_steps=self._fitted.has_steps, reset=False)
        encoded = self._fitted.target_transform.applied(draft._encode(y, classes))
        class_weight = chosen_class_weight(self, settings.own, one_epoch=True)
        weights, encoded = draft._weighted(sample_weight, rows, encoded, class_weight)
        settings = settings.for_target(encoded)
        settings.loss.check_target(encoded.target)
        draft._keep_model(self._fitted.for_stream(settings.loss, encoded))
        settings = settings.starting_at(draft._fitted.score_graph)
        rows = draft._fitted.preprocessing.transform(rows)
        data = rows, encoded.target, weights
        progress = go_on(settings, draft._fitted, self._progress, data)
        if stream is not None and stream.progress is self._progress:
            generator, stream = stream.generator(), stream.from_there(progress)
        else:
            generator, stream = progress.generator(), None
        if stream is None or stream.settings is not settings:
            variables = settings.variables(draft._fitted.score_graph, progress.standardization)
        else:
            variables = stream.variables
        batches = settings.batches(variables, data, generator)
        if stream is None or not stream.goes_on(settings, batches):
            size, are_sparse = batches.batch_size, batches.are_sparse
            stream = Stream.begin(settings, draft._fitted, variables, size, progress, are_sparse=are_sparse)
        # A training that fails keeps no solver.
        self._stream.take()
        outcome = draft._train(stream, batches, callback_list(self, one_epoch=True), data, one_epoch=True)
        self._take_over(draft)
        report(self, outcome, data, one_epoch=True)
        return self

    def _gives_weights(self, draft, init):
        """Give a draft the first weights of the last fit, or of the user; return whether there are any."""
        goes_on, is_given = self.warm_start and hasattr(self, "_fitted"), any(values is not None for values in init)
        if goes_on:
            draft._keep_model(draft._fitted.going_on_from(self._fitted))
        if is_given:
            draft._keep_model(draft._fitted.starting_at(*init))
        return goes_on or is_given

    def _inner_model(self):
        """Return what is inside, checked; the model of skort's own needs no check."""
        if self.estimator is None:
            return InnerModel.of(self._default())
        inner = InnerModel.of(self.estimator)
        inner.check(get_tags(self).estimator_type)
        return inner

    def _own_objective(self, model):
        """Return what a model inside minimises."""
        # It imports scikit-learn's models, which take most of the time of `import skort`.
        from skort.objective.sklearn_objectives import sklearn_objective

        return sklearn_objective(model, is_classifier=isinstance(self, ClassifierMixin))

    def _what_is_inside(self):
        return {"estimator": snapshot(self.estimator), "trainable": snapshot(self.trainable)}

    def _unfitted(self):
        """Return a copy without what a fit leaves."""
        draft = copy.copy(self)
        for name in draft._left_by_fit():
            delattr(draft, name)
        return draft

    def _left_by_fit(self):
        """Return the names of the attributes that a fit leaves."""
        return [n for n in vars(self) if n in self._fit_leaves or (n.endswith("_") and not n.startswith("_"))]

    def _take_over(self, draft):
        """Forget an earlier fit, and take what a draft has learned."""
        left = set(self._left_by_fit())
        kept = {name: value for name, value in vars(self).items() if name not in left}
        # One assignment: a thread that predicts meanwhile sees the earlier fit or this one.
        self.__dict__ = kept | {name: getattr(draft, name) for name in draft._left_by_fit()}
        self._register()

    def _validate(self, X, y, *, has_steps, reset=True):
        """Return X and y as arrays; X as it is where steps before the model take it, which validate it themselves."""
        return training_rows(self, X, y, has_steps=has_steps, reset=reset)

    def _prepared(self, fitted, X):
        """Return X as a model takes it: validated, and after the steps before the model."""
        rows = rows_to_predict(self, X, fitted.preprocessing.dtype, has_steps=fitted.has_steps)
        return fitted.preprocessing.transform(rows)

    def _weighted(self, sample_weight, X, encoded, class_weight):
        """Return what each row counts, or None where all count the same, and the target with its class weights."""
        return validated_sample_weight(sample_weight, X), encoded

    def _convert(self, inner, X, encoded, target_transform, settings, random_state):
        """Fit the steps before the model; return the model at its initial weights, and what it is trained on."""
        from skort.graphs.score_graph import ScoreSpec

        n_outputs = encoded.target.shape[1]
        spec = functools.partial(
            ScoreSpec,
            n_outputs=n_outputs,
            dtype=settings.dtype,
            is_classifier=encoded.classes is not None,
            own_link=settings.loss.inverse_link_function(n_outputs) is None,
            outputs=tuple(encoded.outputs or ()),
        )
        y = target_transform.for_steps(encoded.y)
        preprocessing, X, score_graph = inner.fit(X, y, spec, random_state, self.trainable)
        fitted = FittedModel(
            inner if self.estimator is None else inner.without_data(),
            preprocessing,
            score_graph,
            settings.loss,
            encoded.classes,
            encoded.single_output,
            target_transform,
        )
        fitted.warn_without_onnx()
        return fitted, X

    def _keep_model(self, fitted):
        """Keep a model, and the attributes that show it."""
        self._fitted, self._sparse_coef = fitted, None
        if fitted.classes is not None:
            self.classes_ = fitted.classes
        for name, value in fitted.loss_attributes().items():
            setattr(self, name, value)

    def _train(self, stream, batches, callbacks, data, *, one_epoch):
        """Train, and keep the weights, what a training goes on from, and the attributes that tell of it."""
        view = Preview(self._fitted, functools.partial(self._prepared, self._fitted), self._with_model)
        max_iter = None if one_epoch else self.max_iter
        try:
            outcome = stream.train(batches, max_iter=max_iter, callbacks=callbacks, view=view)
        except DivergedError as error:
            raise explained(self, error, stream.progress, data) from None
        self._keep_outcome(self._fitted, stream, outcome)
        if one_epoch:
            self._stream.put(stream.at(outcome.progress, batches.random_state))
        return outcome

    def _keep_outcome(self, fitted, stream, outcome):
        """Keep a model with trained weights, what a training goes on from, and the attributes that tell of it."""
        from skort.runtime.no_pickle import NoPickle

        progress, self._stream = outcome.progress, NoPickle()
        self._keep_model(fitted.with_weights(outcome.weights))
        new_losses = progress.history["objective"][stream.progress.n_epochs :]
        # As in MLPClassifier: where the score of a validation set decides, no loss is the best.
        so_far = getattr(self, "best_loss_", None)
        self.best_loss_ = None if self.early_stopping else min([*new_losses, *([] if so_far is None else [so_far])])
        self.loss_, self.n_iter_, self.t_ = new_losses[-1], progress.n_epochs, progress.n_updates
        self.solver_ = stream.solver_name
        if outcome.first_eta is not None:
            self.eta0_ = outcome.first_eta
        elif not hasattr(self, "eta0_"):
            # A training that was resumed makes no first update.
            self.eta0_ = progress.rate_scale * rate(stream.settings.schedule, 1)
        self._progress, self._settings = progress, stream.settings
        self._batch_size, self._n_batches = stream.problem.batch_size, stream.problem.n_batches
        self._is_sparse = stream.problem.row_factor is not None

    def _model(self):
        """Return the fitted model. A prediction asks once, as another thread may fit the estimator meanwhile."""
        if not hasattr(self, "_fitted"):
            check_is_fitted(self)
        return self._fitted

    def _run(self, fitted, output, X):
        """Return a result of the deployable model."""
        X = self._prepared(fitted, X)
        return fitted.run(output, X, predicting_device(self, X.shape[0]))
