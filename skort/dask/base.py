"""What both estimators for Dask collections share: the fit, and the way back to a local estimator."""

import copy
import dataclasses
import functools
from numbers import Integral
from typing import Any

from distributed import Client, default_client
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from skort.dask.cluster import Cluster
from skort.dask.deals import Deals
from skort.dask.facts import PartFacts
from skort.dask.gathering import gather
from skort.dask.group import Job
from skort.dask.packed import Packed
from skort.dask.parts import Part, delayed_parts, is_collection
from skort.dask.preparation import Preparation, prepared
from skort.dask.rounds import Rounds, without_velocity
from skort.dask.scores import check_scoring, merged_tallies, tally
from skort.dask.steps import with_fitted_steps
from skort.dask.validation import PartScoring
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

__all__ = ["DASK_CONSTRAINTS", "DaskFit", "dask_parameters"]

_N_GROUPS = 2
# The number of rows is known, and the workers' devices are theirs.
_NOT_HERE = ("n_total", "device")
#: Parameters that the local estimators do not have.
DASK_CONSTRAINTS: dict[str, list] = {
    "client": [Client, None],
    "n_groups": [Interval(Integral, 1, None, closed="left"), None],
}


def dask_parameters(constraints: dict[str, Any]) -> dict[str, Any]:
    """Return the constraints of the parameters of a local estimator that one for Dask has, too."""
    return {name: allowed for name, allowed in constraints.items() if name not in _NOT_HERE}


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
        names = self.get_params(deep=False).keys() - DASK_CONSTRAINTS.keys()
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

    def _columns(self):
        """Return the shape of the prediction of a row."""
        return () if self._is_single() else (self._n_scores(),)

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
        gathered = gather(self, cluster, data, validation, generator)
        inner = with_fitted_steps(inner, gathered)
        draft = self._unfitted()
        settings, counted = self._begin_model(draft, inner, own, gathered, generator)
        draft._inside = self._what_is_inside()
        is_drawn = not self._gives_weights(draft, init) and inner.draws_weights
        facts, validation = draft._facts(gathered, counted), gathered.validation
        # Nothing holds the partitions as they were any more: the workers have the prepared ones.
        del gathered
        rows = facts.some_rows
        loss_weights = settings.loss.initial_weights(rows.target, rows.sample_weight, inner.fitted_model)
        draft._keep_model(draft._fitted.with_loss_weights(loss_weights))
        progress, score_graph, variables = begin(
            settings, draft._fitted.score_graph, facts, generator, is_drawn=is_drawn
        )
        draft._keep_model(draft._fitted.with_score_graph(score_graph))
        settings = settings.starting_at(score_graph)
        n_groups = _N_GROUPS if self.n_groups is None else self.n_groups
        deals = Deals(facts.measures.sizes, n_groups, settings.batch_size, generator)
        stream = Stream.begin(settings, draft._fitted, variables, deals.batch_size, progress, deals.n_batches)
        patience = settings.patience(self.n_iter_no_change, deals.n_batches, is_linear=score_graph.is_linear)
        scoring = draft._part_scoring(cluster, validation)
        callbacks = callback_list(self, scoring, unit=variables.in_units.unit, patience=patience)
        stream = dataclasses.replace(stream, solver=_rounds(draft._fitted, stream, facts, deals.n_groups))
        outcome = draft._train(stream, deals, callbacks, rows, one_epoch=False)
        # `partial_fit`, here and of the local estimator, makes steps of its own.
        draft._progress = without_velocity(draft._progress)
        self._take_over(draft)
        if not inner.is_fitted:
            warn_of_other_terms(self, inner.model, own)
        advance(self.random_state, self._progress.random_state)
        report(self, outcome, rows, one_epoch=False)
        return self

    def _begin_model(self, draft, inner, own, gathered, generator):
        """Give a draft its model at the initial weights; return the settings, and how much rows count."""
        X, y = gathered.survey.some_rows()
        rows, y = draft._validate(X, y, has_steps=inner.has_steps)
        inner.check_columns(X)
        target_transform = inner.fit_target(y)
        encoded = target_transform.applied(draft._encode(y, inner.known_classes(gathered.survey.classes)))
        inner.check_labels(multi_label=encoded.multi_label)
        class_weight = chosen_class_weight(self, own, one_epoch=False)
        counted = gathered.counted(class_weight, encoded.classes)
        size = counted.size(self.batch_size, encoded.target.shape[1])
        encoded = encoded._replace(class_weight=counted.of_positives)
        settings = Settings.of(self, own, size).for_target(encoded)
        fitted, _ = draft._convert(inner, rows, encoded, target_transform, settings, generator)
        draft._keep_model(fitted)
        return settings, counted

    def _facts(self, gathered, counted):
        """Return the facts of all rows, prepared for the training."""
        is_weighted = gathered.is_weighted or counted.by_class is not None
        preparation = Preparation(self._on_its_way(), self._fitted, counted.by_class, is_weighted)
        cluster = gathered.cluster
        packed = Packed.of(cluster.key("preparation"), preparation)
        return PartFacts.of(cluster, cluster.each(prepared, gathered.parts, packed), counted.n_rows)

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
        packed = Packed.of(cluster.key("view"), self._on_its_way())
        return PartScoring(cluster, validation, packed, name)

    def _score_collections(self, X, y, sample_weight):
        """Return the score of collections, without gathering them."""
        cluster, parts = self._cluster(), delayed_parts(X, y, sample_weight)
        packed = Packed.of(cluster.key("model"), self.to_local())
        name = check_scoring(self, None)
        tallies = cluster.each(_tally, cluster.computed(parts), packed, name)
        merged = cluster.value(cluster.merged(merged_tallies, tallies))
        if merged is None:
            raise ValueError("No row of X has a positive sample weight.")
        return merged.score(name)


def _rounds(fitted, stream, facts, n_groups):
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
    return Rounds(stream, job, facts)


def _tally(part: Part, packed: Packed, name: str):
    """Return what the score of a partition is computed from."""
    return tally(packed.value(), part.X, part.y, part.sample_weight, name)
