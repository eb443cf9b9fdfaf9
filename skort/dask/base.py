"""`DaskFit`: fit, predictions and export of both estimators for Dask collections."""

import copy
import dataclasses
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, default_client
from sklearn.utils.validation import check_is_fitted

from skort.common.random_state import training_generator
from skort.common.sklearn_private import fit_context
from skort.dask.cluster import Broadcast, Cluster
from skort.dask.fitted_steps import with_fitted_steps
from skort.dask.local_sgd import PartitionedRows, without_velocity
from skort.dask.part_statistics import PartStatistics, Preparation, prepared_rows
from skort.dask.partitions import (
    Part,
    Partitions,
    blocks_of,
    check_rows,
    delayed_parts,
    is_collection,
    sizes_of,
)
from skort.dask.scores import PartLoss, PartScoring, check_scoring, merged_tallies, tally
from skort.estimators.base import BaseOrtSGD, hand_over_fit
from skort.estimators.data.first_pass import known_classes
from skort.estimators.data.rows import knowing
from skort.estimators.model.wrapped import WrappedModel
from skort.estimators.planning.epochs import TrainingSize, asks_to_stop_early, batch_rows
from skort.estimators.planning.loss_and_penalty import chosen_class_weight, objective_inside
from skort.estimators.planning.plan import OpenPlan
from skort.estimators.planning.plan_of_fit import for_model
from skort.estimators.training.data_source import GivenRows
from skort.estimators.training.fit import at_given_weights
from skort.estimators.training.observers import Observers
from skort.estimators.training.read import FitInput, converted
from skort.estimators.training.result import result_of
from skort.estimators.training.run import run_fit
from skort.estimators.training.warnings_at_start import warn_of_absent
from skort.optim.callbacks import check_callbacks
from skort.optim.state import TrainState

_N_GROUPS = 2


class DaskFit(BaseOrtSGD):
    """
    The fit of both estimators of `skort.dask`.

    `_local` is the estimator's class for data in memory.
    """

    device: str = "cpu"
    n_total: int | None = None
    client: Client | None
    n_groups: int | None
    _local: type[BaseOrtSGD]

    def __getstate__(self) -> dict[str, Any]:
        # A client is a connection, and cannot be copied. A copy finds a client of its own process.
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self) -> Any:
        # Clone without the client, which cannot be cloned, and set it afterwards.
        unconnected = copy.copy(self)
        unconnected.client = None
        cloned = super(DaskFit, unconnected).__sklearn_clone__()
        cloned.client = self.client
        return cloned

    @fit_context
    def fit(  # noqa: PLR0913  # as for rows in memory
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        *,
        coef_init: Any = None,
        intercept_init: Any = None,
    ) -> Any:
        """
        Train on the partitions of Dask collections, and forget an earlier fit.

        Parameters
        ----------
        X : dask Array of shape (n_samples, n_features), or DataFrame
            Its partitions are arrays, sparse matrices or DataFrames. They may have different sizes,
            or no rows.
        y : dask Array of shape (n_samples,) or (n_samples, n_outputs), or Series
            Targets, or class labels. The classes are those of all partitions. If all sizes are
            known, skort divides y like X. Otherwise y must have as many partitions as X.
        sample_weight : dask Array of shape (n_samples,), or Series, default=None
            Weights of the rows, not negative and not all zero.
        X_val, y_val : dask Array or DataFrame, default=None
            A validation set. It is scored after every round.
        coef_init, intercept_init : array-like, default=None
            Initial weights of a linear model.

        Returns
        -------
        self : object

        Raises
        ------
        TypeError
            For anything but Dask collections.
        ClusterError
            If the cluster cannot continue, because it has no workers, its workers die, or its
            scheduler is gone; a `RuntimeError`. All other errors and warnings are those of
            `skort.OrtSGDRegressor.fit`.
        """
        return self._fit_collections(
            (X, y, sample_weight), (X_val, y_val), (coef_init, intercept_init)
        )

    def predict(self, X: Any) -> Any:
        """
        Predict targets or class labels, lazily if X is a Dask collection.

        Parameters
        ----------
        X : dask Array of shape (n_samples, n_features), DataFrame, or array-like

        Returns
        -------
        y : dask Array, or ndarray, of shape (n_samples,) or (n_samples, n_outputs)
            Predictions, with the partitions of X.
        """
        return self._predicted(
            "predict", X, () if result_of(self).model.single_output else (self._n_scores(),)
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """
        Return R², or the accuracy, of the predictions. No row leaves its worker.

        Parameters
        ----------
        X : dask Array of shape (n_samples, n_features), DataFrame, or array-like
        y : dask Array of shape (n_samples,) or (n_samples, n_outputs), Series, or array-like
        sample_weight : dask Array of shape (n_samples,), Series, or array-like, default=None
        """
        if not is_collection(X):
            return self.to_local().score(X, y, sample_weight)

        cluster = self._cluster()
        parts = delayed_parts(X, y, sample_weight)
        model = cluster.broadcast("model", self.to_local())
        name = check_scoring(self, None)
        tallies = cluster.each(_tally, cluster.computed(parts), model, name)
        merged = cluster.value(cluster.merged(merged_tallies, tallies))
        if merged is None:
            raise ValueError("No row of X has a positive sample weight.")

        return merged.score(name)

    def to_local(self) -> Any:
        """
        Return the fitted estimator for data in memory, with the same parameters.

        It needs neither Dask nor a cluster.

        Raises
        ------
        NotFittedError
            Before a fit.
        """
        check_is_fitted(self)
        names = self.get_params(deep=False).keys() - {"client", "n_groups"}
        local = self._local(**{name: getattr(self, name) for name in names})
        hand_over_fit(self, local)
        return local

    def _partial_fit(self, X, y, sample_weight, classes=None):
        if is_collection(X) or is_collection(y):
            raise TypeError(
                "partial_fit takes rows in memory, but X or y is a Dask collection. Use fit, or "
                "give one partition after the other: partial_fit(*dask.compute(part_X, part_y))."
            )

        return super()._partial_fit(X, y, sample_weight, classes)

    def _n_scores(self):
        return result_of(self).model.score_graph.n_outputs

    def _cluster(self):
        if self.client is not None:
            return Cluster(self.client)

        try:
            return Cluster(default_client())
        except ValueError:
            raise ValueError(
                "There is no Dask client: make one with distributed.Client(), or give client=."
            ) from None

    def _check_callbacks(self):
        check_callbacks(self.callbacks)
        for callback in self.callbacks or ():
            if hasattr(callback, "on_batch_end"):
                raise ValueError(
                    f"callbacks: {callback!r} has on_batch_end, but the batches are on the "
                    "workers: use on_epoch_end."
                )

    def _fit_collections(self, data, validation, init):
        wrapped = WrappedModel.inside(self)
        is_validated = asks_to_stop_early(self.early_stopping)
        inside = objective_inside(self, wrapped.model)
        self._check_callbacks()
        cluster = self._cluster()
        generator = training_generator(self.random_state)
        partitions = Partitions.of(
            self, cluster, data, validation, generator, holds_out=is_validated
        )
        read, counted = self._read(
            with_fitted_steps(wrapped, partitions), inside, partitions, generator
        )
        n_groups = min(_N_GROUPS if self.n_groups is None else self.n_groups, len(partitions.parts))
        size = TrainingSize.of(
            counted.weight_sum,
            counted.n_rows,
            batch_rows(self.batch_size),
            read.encoded.target.shape[1],
        )
        size = size._replace(n_batches=-(-size.n_batches // n_groups))
        open_plan = OpenPlan.of(self, inside, size, is_validated=is_validated)
        open_plan = open_plan.for_target(read.encoded)
        open_plan.check_steps("the estimators of skort.dask")
        model, _ = converted(read, open_plan, self.trainable)
        model = at_given_weights(self, model, init)
        plan = for_model(open_plan, model)
        preparation = self._preparation(partitions, counted, model, read.columns)
        parts = cluster.each(prepared_rows, partitions.parts, preparation)
        scores: PartLoss | PartScoring | None = None
        statistics = PartStatistics.of(cluster, parts, counted.n_rows)
        validation = partitions.validation

        if validation is not None and self.scoring is None:
            rows = cluster.each(prepared_rows, validation, preparation, " of the validation set")
            scores = PartLoss(cluster, rows, decides=is_validated)
        elif validation is not None:
            scores = PartScoring(cluster, validation, check_scoring(self, self.scoring))

        # Release the original partitions: the workers have the prepared ones.
        del partitions
        some = statistics.some_rows
        model = model.with_loss_weights(
            plan.loss.initial_weights(some.counted(some.target), wrapped.fitted_model)
        )
        source = PartitionedRows(statistics, n_groups)
        observers = Observers(self, read.columns, scores)
        start = TrainState.start(generator)
        result = run_fit(plan, model, source, start, observers)

        # Leave out the velocity, which the steps of a later `partial_fit` do not have.
        state = dataclasses.replace(
            result.state, solver=without_velocity(result.state.solver or {})
        )
        return self._end_fit(dataclasses.replace(result, state=state), read)

    def _read(self, wrapped, inside, partitions, generator):
        """Return the `FitInput` of some rows of all partitions, and the counts of all rows."""
        X, y = partitions.survey.some_rows()
        given = GivenRows(X, y, None)
        # A fitted model knows its classes, of which the rows may lack some.
        classes = partitions.survey.classes
        known = None if classes is None else known_classes(self.estimator, None, classes)
        read = FitInput.of(self, given, wrapped, inside, generator, known)
        if known is not None and wrapped.is_fitted:
            warn_of_absent(np.setdiff1d(known, classes).tolist())
        counted = partitions.counts(
            chosen_class_weight(self, inside, is_stream=False), read.encoded.classes
        )
        encoded = read.encoded._replace(class_weight=counted.of_positives)

        return dataclasses.replace(read, encoded=encoded), counted

    def _preparation(self, partitions, counted, model, columns):
        """Return the broadcast `Preparation`, with which workers prepare the rows."""
        is_weighted = partitions.is_weighted or counted.by_class is not None
        light = knowing(self, columns)
        light.callbacks = None
        preparation = Preparation(light, columns, model, counted.by_class, is_weighted)
        return partitions.cluster.broadcast("preparation", preparation)

    def _predicted(self, method, X, columns):
        """
        Return predictions: lazily for a collection, at once for rows in memory.

        `columns` is the shape of the prediction of one row.
        """
        model = self.to_local()
        if not is_collection(X):
            return getattr(model, method)(X)

        check_rows("X", X)
        shared = dask.delayed(model)
        one = dask.delayed(_of_block, pure=False)
        dtype = (
            model.classes_.dtype
            if method == "predict" and hasattr(model, "classes_")
            else np.dtype(np.float64)
        )
        pieces = [
            da.from_delayed(
                one(shared, method, block, columns, dtype), (size, *columns), dtype=dtype
            )
            for block, size in zip(blocks_of("X", X), sizes_of(X), strict=True)
        ]

        return da.concatenate(pieces)


def _tally(part: Part, model: Broadcast, name: str):
    """Return the tally of a partition, from which the score is computed."""
    return tally(model.value(), part.X, part.y, part.sample_weight, name)


def _of_block(model, method, X, columns, dtype):
    """Return the predictions for a partition."""
    return getattr(model, method)(X) if X.shape[0] else np.empty((0, *columns), dtype)
