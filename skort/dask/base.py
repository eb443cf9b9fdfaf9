"""What both estimators for Dask collections share: the fit, predictions, and the way back to a local estimator."""

import copy
import dataclasses
import functools
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, default_client
from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted

from skort.dask.assignment import Assignments
from skort.dask.cluster import Broadcast, Cluster
from skort.dask.data_source import PartFacts, Preparation, prepared
from skort.dask.local_sgd import DistributedStep, Job, without_velocity
from skort.dask.partitions import Part, Partitions, check_rows, delayed_parts, is_collection
from skort.dask.preprocessing import with_fitted_steps
from skort.dask.scores import PartScoring, check_scoring, merged_tallies, tally
from skort.estimators.base import BaseOrtSGD
from skort.estimators.beginning import begin
from skort.estimators.callback_list import callback_list
from skort.estimators.ending import report
from skort.estimators.fitted_model import FittedModel
from skort.estimators.labels import EncodedTarget
from skort.estimators.own_terms import chosen_class_weight, warn_of_other_terms
from skort.estimators.preview import Preview
from skort.estimators.random_state import advance, own_generator
from skort.estimators.settings import Settings
from skort.estimators.stream import Stream
from skort.optim.callbacks import check_callbacks

__all__ = ["DaskFit"]

_N_GROUPS = 2


class DaskFit(BaseOrtSGD):
    """
    The fit of `skort.dask.OrtSGDRegressor` and `skort.dask.OrtSGDClassifier`.

    They bring `_local`, the class of the estimator for data in memory, whose parameters and methods they have.
    """

    device: str = "cpu"
    n_total: int | None = None
    client: Client | None
    n_groups: int | None
    _local: type[BaseOrtSGD]

    def __getstate__(self):
        # A client is a connection: a copy finds one where it is.
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self):
        # A copy has no client, which cannot be cloned.
        cloned = super(DaskFit, copy.copy(self)).__sklearn_clone__()
        cloned.client = self.client
        return cloned

    # False: the steps of a pipeline in `estimator` validate their own parameters.
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None, X_val=None, y_val=None, *, coef_init=None, intercept_init=None):
        """
        Train on the partitions of collections; an earlier fit is forgotten.

        Parameters
        ----------
        X : dask Array of shape (n_samples, n_features), or DataFrame
            Of arrays or of sparse matrices. Partitions may have different sizes, or no rows.
        y : dask Array of shape (n_samples,) or (n_samples, n_outputs), or Series
            Targets, or class labels; the classes are those of all partitions. Where all sizes are known it is cut as X
            is; otherwise it must have as many partitions.
        sample_weight : dask Array of shape (n_samples,), or Series, default=None
            Weights of the rows, not negative and not all zero.
        X_val, y_val : dask Array or DataFrame, default=None
            A validation set: it is scored after every round.
        coef_init, intercept_init : array-like, default=None
            Initial weights of a linear model.

        Returns
        -------
        self : object

        Raises
        ------
        TypeError
            For anything but Dask collections.
        ValueError
            For a parameter, X, y or `sample_weight` that is not as described, and where the training diverges.
        ClusterError
            Where the cluster cannot go on: no workers, workers that die, or no scheduler; a `RuntimeError`.

        Warns
        -----
        ConvergenceWarning, UserWarning
            As the `fit` of `skort.OrtSGDRegressor` and `skort.OrtSGDClassifier`.
        """
        return self._fit_collections((X, y, sample_weight), (X_val, y_val), (coef_init, intercept_init))

    def predict(self, X):
        """
        Predict targets or class labels, lazily where X is a collection.

        Parameters
        ----------
        X : dask Array of shape (n_samples, n_features), DataFrame, or array-like

        Returns
        -------
        y : dask Array, or ndarray, of shape (n_samples,) or (n_samples, n_outputs)
            With the partitions of X.
        """
        return self._predicted("predict", X, () if self._is_single() else (self._n_scores(),))

    def score(self, X, y, sample_weight=None):
        """
        Return the coefficient of determination, or the accuracy, of predictions; no row leaves its worker.

        Parameters
        ----------
        X : dask Array of shape (n_samples, n_features), DataFrame, or array-like
        y : dask Array of shape (n_samples,) or (n_samples, n_outputs), Series, or array-like
        sample_weight : dask Array of shape (n_samples,), Series, or array-like, default=None

        Returns
        -------
        score : float
        """
        if not is_collection(X):
            return self.to_local().score(X, y, sample_weight)
        return self._score_collections(X, y, sample_weight)

    def to_local(self) -> Any:
        """
        Return the fitted estimator for data in memory.

        Returns
        -------
        model : skort.OrtSGDRegressor or skort.OrtSGDClassifier
            With the same parameters and fitted attributes. It needs neither Dask nor a cluster.

        Raises
        ------
        NotFittedError
            Before a fit.
        """
        check_is_fitted(self)
        names = self.get_params(deep=False).keys() - {"client", "n_groups"}
        local = self._local(**{name: getattr(self, name) for name in names})
        local._take_over(self)
        return local

    def validated_part(self, part: Part, fitted: FittedModel) -> tuple[Any, EncodedTarget]:
        """Return the X of a partition as the model takes it, and its y as it is trained."""
        X, y = self._validate(part.X, part.y, has_steps=fitted.has_steps, reset=False)
        encoded = fitted.target_transform.applied(self._encode(y, fitted.classes))
        return fitted.preprocessing.transform(X), encoded

    def prepared_part(self, X: Any) -> Any:
        """Return the X of a partition as the model takes it."""
        return self._prepared(self._fitted, X)

    def view(self) -> Preview:
        """Return what shows this estimator with other weights."""
        return Preview(self._fitted, functools.partial(self._prepared, self._fitted), self._with_model)

    def _validate(self, X, y, *, has_steps, reset=True):
        if is_collection(X) or is_collection(y):
            raise TypeError(
                "partial_fit takes rows in memory, and X or y is a Dask collection. Use fit, or give one partition "
                "after the other: partial_fit(*dask.compute(part_X, part_y))."
            )
        return super()._validate(X, y, has_steps=has_steps, reset=reset)

    def _n_scores(self):
        check_is_fitted(self)
        return self._fitted.score_graph.n_outputs

    def _is_single(self):
        check_is_fitted(self)
        return self._fitted.single_output

    def _cluster(self):
        if self.client is not None:
            return Cluster(self.client)
        try:
            return Cluster(default_client())
        except ValueError:
            raise ValueError("There is no Dask client: make one with distributed.Client(), or give client=.") from None

    def _check_callbacks(self):
        check_callbacks(self.callbacks)
        for callback in self.callbacks or ():
            if hasattr(callback, "on_batch_end"):
                raise ValueError(
                    f"callbacks: {callback!r} has on_batch_end, but the batches are on the workers: use on_epoch_end."
                )

    def _fit_collections(self, data, validation, init):
        inner = self._inner_model()
        own = self._own_objective(None if self.estimator is None else inner.model)
        self._check_callbacks()
        cluster, generator = self._cluster(), own_generator(self.random_state)
        partitions = Partitions.of(self, cluster, data, validation, generator)
        inner = with_fitted_steps(inner, partitions)
        draft = self._unfitted()
        settings, counted = self._begin_model(draft, inner, own, partitions, generator)
        draft._inside = self._what_is_inside()
        is_drawn = not self._gives_weights(draft, init) and inner.draws_weights
        facts, validation = draft._facts(partitions, counted), partitions.validation
        # Nothing holds the partitions as they were any more: the workers have the prepared ones.
        del partitions
        rows = facts.some_rows
        loss_weights = settings.loss.initial_weights(rows.target, rows.sample_weight, inner.fitted_model)
        draft._keep_model(draft._fitted.with_loss_weights(loss_weights))
        progress, score_graph, variables = begin(
            settings, draft._fitted.score_graph, facts, generator, is_drawn=is_drawn
        )
        draft._keep_model(draft._fitted.with_score_graph(score_graph))
        settings = settings.starting_at(score_graph)
        n_groups = _N_GROUPS if self.n_groups is None else self.n_groups
        assignments = Assignments(facts.measures.sizes, n_groups, settings.batch_size, generator)
        stream = Stream.begin(
            settings, draft._fitted, variables, assignments.batch_size, progress, assignments.n_batches
        )
        patience = settings.patience(self.n_iter_no_change, assignments.n_batches, is_linear=score_graph.is_linear)
        scoring = draft._part_scoring(cluster, validation)
        callbacks = callback_list(self, scoring, unit=variables.in_units.unit, patience=patience)
        stream = dataclasses.replace(stream, solver=_distributed(draft._fitted, stream, facts, assignments.n_groups))
        outcome = draft._train(stream, assignments, callbacks, rows, one_epoch=False)
        # `partial_fit`, here and of the local estimator, makes steps of its own.
        draft._progress = without_velocity(draft._progress)
        self._take_over(draft)
        if not inner.is_fitted:
            warn_of_other_terms(self, inner.model, own)
        advance(self.random_state, self._progress.random_state)
        report(self, outcome, rows, one_epoch=False)
        return self

    def _begin_model(self, draft, inner, own, partitions, generator):
        """Give a draft its model at the initial weights; return the settings, and how much rows count."""
        X, y = partitions.survey.some_rows()
        rows, y = draft._validate(X, y, has_steps=inner.has_steps)
        inner.check_columns(X)
        target_transform = inner.fit_target(y)
        encoded = target_transform.applied(draft._encode(y, inner.known_classes(partitions.survey.classes)))
        inner.check_labels(multi_label=encoded.multi_label)
        class_weight = chosen_class_weight(self, own, one_epoch=False)
        counted = partitions.counts(class_weight, encoded.classes)
        size = counted.size(self.batch_size, encoded.target.shape[1])
        encoded = encoded._replace(class_weight=counted.of_positives)
        settings = Settings.of(self, own, size).for_target(encoded)
        fitted, _ = draft._convert(inner, rows, encoded, target_transform, settings, generator)
        draft._keep_model(fitted)
        return settings, counted

    def _facts(self, partitions, counted):
        """Return the facts of all rows, prepared for the training."""
        is_weighted = partitions.is_weighted or counted.by_class is not None
        preparation = Preparation(self._on_its_way(), self._fitted, counted.by_class, is_weighted)
        cluster = partitions.cluster
        parts = cluster.each(prepared, partitions.parts, cluster.broadcast("preparation", preparation))
        return PartFacts.of(cluster, parts, counted.n_rows)

    def _on_its_way(self):
        """Return a copy for the workers."""
        light = copy.copy(self)
        light.callbacks = None
        return light

    def _part_scoring(self, cluster, validation):
        """Return the callback that scores the validation set, or None."""
        if validation is None:
            return None
        name = check_scoring(self, self.scoring)
        return PartScoring(cluster, validation, cluster.broadcast("view", self._on_its_way()), name)

    def _predicted(self, method, X, columns):
        """Return the predictions of a collection, lazily, or of rows in memory; `columns` is the shape of a row's."""
        model = self.to_local()
        if not is_collection(X):
            return getattr(model, method)(X)
        check_rows("X", X)
        shared, one = dask.delayed(model), dask.delayed(_of_block, pure=False)
        dtype = _dtype(model, method)
        if isinstance(X, da.Array):
            X, sizes = X.rechunk({1: -1}), X.chunks[0]
            blocks = X.to_delayed().ravel()
        else:
            blocks, sizes = X.to_delayed(), (np.nan,) * X.npartitions
        pieces = [
            da.from_delayed(one(shared, method, block, columns, dtype), (size, *columns), dtype=dtype)
            for block, size in zip(blocks, sizes, strict=True)
        ]
        return da.concatenate(pieces)

    def _score_collections(self, X, y, sample_weight):
        """Return the score of collections, without gathering them."""
        cluster, parts = self._cluster(), delayed_parts(X, y, sample_weight)
        model = cluster.broadcast("model", self.to_local())
        name = check_scoring(self, None)
        tallies = cluster.each(_tally, cluster.computed(parts), model, name)
        merged = cluster.value(cluster.merged(merged_tallies, tallies))
        if merged is None:
            raise ValueError("No row of X has a positive sample weight.")
        return merged.score(name)


def _distributed(fitted, stream, facts, n_groups):
    """Return the solver whose steps groups make."""
    progress, problem = stream.progress, stream.problem
    job = Job(
        stream.settings,
        fitted.without_steps(),
        progress.standardization,
        progress.rate_scale,
        problem.n_batches,
        facts.mean_weight,
        1 - 1 / n_groups,
    )
    return DistributedStep(stream, job, facts)


def _tally(part: Part, model: Broadcast, name: str):
    """Return what the score of a partition is computed from."""
    return tally(model.value(), part.X, part.y, part.sample_weight, name)


def _dtype(model, method):
    """Return the dtype of predictions."""
    if method == "predict_proba":
        return np.dtype(model.dtype)
    if method == "predict" and hasattr(model, "classes_"):
        return model.classes_.dtype
    return np.dtype(np.float64)


def _of_block(model, method, X, columns, dtype):
    """Return the prediction of a partition."""
    return getattr(model, method)(X) if X.shape[0] else np.empty((0, *columns), dtype)
