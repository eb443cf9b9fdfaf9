"""Fits of estimators that differ in numbers only, begun and trained side by side."""

import contextlib
import copy
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from skort.estimators.beginning import begin_standardized, chosen_standardization
from skort.estimators.callback_list import callback_list
from skort.estimators.facts import RowFacts
from skort.estimators.fitted_model import FittedModel
from skort.estimators.reading import Reading
from skort.estimators.settings import Settings
from skort.estimators.stream import Stream
from skort.estimators.training_rows import RowsInMemory
from skort.optim.batches import Batches
from skort.optim.loop import Outcome
from skort.optim.side_by_side import minimise_together
from skort.optim.standardization import Standardization
from skort.optim.training import Training, TrainStep

if TYPE_CHECKING:
    from skort.graphs.chain import Link
    from skort.objective.sklearn_objectives import SklearnObjective
    from skort.solvers.side_by_side.step import LaneTerms

__all__ = ["OWN_PARAMETERS", "MadeFit", "made_fits"]

# The parameters in which the fits may differ: they change numbers of a step, but neither its data nor its operators.
OWN_PARAMETERS = frozenset(
    {
        "alpha",
        "epsilon",
        "eta0",
        "l1_ratio",
        "learning_rate",
        "max_iter",
        "n_iter_no_change",
        "n_total",
        "optimizer",
        "penalty",
        "power_t",
        "quantile",
        "tol",
    }
)


@dataclass(frozen=True, eq=False)
class MadeFit:
    """
    A fit that was made with others.

    Parameters
    ----------
    draft : BaseOrtSGD
        It has learned what the fit has to take over.
    outcome : Outcome
    own : SklearnObjective
        What the model inside minimises.
    """

    draft: Any
    outcome: Outcome
    own: "SklearnObjective"


@dataclass(frozen=True, eq=False)
class _Begun:
    """
    One of several fits before its first step.

    Parameters
    ----------
    draft : BaseOrtSGD
    fitted : FittedModel
        At the initial weights.
    stream : Stream
        Without a solver.
    terms : LaneTerms
    """

    draft: Any
    fitted: FittedModel
    stream: Stream
    terms: "LaneTerms"

    @property
    def weight_scale(self) -> float:
        """What the sample weights of a batch of this training sum to."""
        return self.stream.variables.sample_weight_scale(self.fitted.score_graph.n_outputs)

    def training(self, lane: TrainStep, batches: Batches) -> Training:
        """Return the training, whose steps a solver makes with those of others."""
        settings, draft, variables = self.stream.settings, self.draft, self.stream.variables
        is_linear = self.fitted.score_graph.is_linear
        patience = settings.patience(draft.n_iter_no_change, batches.n_batches, is_linear=is_linear)
        return Training(
            lane,
            batches,
            settings.schedule,
            self.stream.progress,
            variables,
            max_iter=draft.max_iter,
            is_compared=not settings.loss.is_least_at_zero,
            callbacks=callback_list(draft, unit=variables.in_units.unit, patience=patience),
        )


def made_fits(estimators: Sequence[Any], X: Any, y: Any, sample_weight: Any) -> dict[int, MadeFit]:
    """
    Fit copies of estimators. One run of ONNX Runtime makes a step of all of them.

    Parameters
    ----------
    estimators : sequence of BaseOrtSGD
        They differ in `OWN_PARAMETERS` only. They are not changed.
    X, y, sample_weight : array-like
        As passed to `fit`.

    Returns
    -------
    fits : dict of int to MadeFit
        By the places of the estimators. Estimators that are missing here have to be fitted alone.
    """
    try:
        common, settings = _read(estimators, X, y, sample_weight)
        begun = {} if common is None else {p: common.begin(estimators[p], s) for p, s in settings.items()}
    except (ValueError, TypeError, ImportError):
        # Each fit alone says what is wrong with its own parameters, or with the data.
        return {}
    groups: dict[Any, dict[int, _Begun]] = {}
    for place, fit in begun.items():
        if fit is not None:
            groups.setdefault(fit.terms.key, {})[place] = fit
    fits: dict[int, MadeFit] = {}
    for group in groups.values():
        if len(group) > 1:
            fits |= _trained(group, common)
    return fits


def _read(estimators, X, y, sample_weight):
    """Return what fits share, and the settings of each; None and none where they cannot be made together."""
    from skort.graphs.chain import chain_of

    draft, read = estimators[0]._read(RowsInMemory(X, y, sample_weight))
    settings = {}
    for place, estimator in enumerate(estimators):
        with contextlib.suppress(ValueError, TypeError):
            estimator._validate_params()
            settings[place] = read.settings(estimator, read.sample_weight)
    if len(settings) < 2:
        return None, {}
    first = next(iter(settings.values()))
    rows = draft._start_model(read, first, read.sample_weight)
    fitted, data = draft._fitted, (rows, read.encoded.target, read.sample_weight)
    standardization = chosen_standardization(first, fitted.score_graph, RowFacts(*data))
    chain = chain_of(fitted.score_graph)
    if fitted.loss_weights or chain is None or (standardization is not None and standardization.is_offset):
        return None, {}
    return _Common(draft, read, data, standardization, chain), settings


@dataclass(frozen=True, eq=False)
class _Common:
    """
    What the fits of a group share.

    Parameters
    ----------
    draft : BaseOrtSGD
        Of the first, with the model at its initial weights.
    read : Reading
    data : tuple
        X, the target and the sample weights.
    standardization : Standardization or None
    chain : tuple of Link
        The layers of the model.
    """

    draft: Any
    read: Reading
    data: tuple
    standardization: Standardization | None
    chain: tuple["Link", ...]

    def begin(self, estimator: Any, settings: Settings) -> _Begun | None:
        """Return a fit before its first step; None where it has to be made alone."""
        from skort.solvers.side_by_side.step import lane_terms

        if settings.update.largest_rate is None:
            # A function of the user's may raise an error, which would be that of another fit.
            return None
        draft = copy.copy(self.draft)
        for name in OWN_PARAMETERS & vars(estimator).keys():
            setattr(draft, name, getattr(estimator, name))
        fitted = self.draft._fitted
        progress, score_graph, variables = begin_standardized(
            settings,
            fitted.score_graph,
            RowFacts(*self.data),
            self.read.generator,
            self.standardization,
            is_drawn=self.read.inner.draws_weights,
        )
        if variables.score is not None and variables.score.is_of_y:
            return None
        fitted = dataclasses.replace(fitted, loss=settings.loss, score_graph=score_graph)
        # The rows are in the variables of the training before they are read, see `_rows`.
        training = fitted.with_score_graph(
            score_graph.with_weights(variables.training_weights(score_graph.trained_arrays))
        )
        bare = dataclasses.replace(variables, inputs=None, score=None)
        batch_size = min(settings.batch_size, self._n_rows)
        n_batches = -(-self._n_rows // batch_size)
        problem = settings.problem(training, bare, batch_size, progress.rate_scale, n_batches)
        terms = lane_terms(problem, self.chain)
        if terms is None:
            return None
        stream = Stream(settings, variables, problem, "graph", None, progress)  # type: ignore[arg-type]
        return _Begun(draft, fitted, stream, terms)

    @property
    def _n_rows(self):
        """The number of rows that are trained on."""
        X, _, sample_weight = self.data
        return X.shape[0] if sample_weight is None else int(np.count_nonzero(sample_weight))

    def batches(self, fit: _Begun) -> Batches:
        """Return the rows of trainings that are made together, in the variables of the training."""
        X, target, sample_weight = self.data
        settings, variables = fit.stream.settings, fit.stream.variables
        data = _rows(X, variables, fit.terms.n_ones), target, sample_weight
        return settings.batches(variables, data, copy.deepcopy(self.read.generator))


def _rows(X, variables, n_ones):
    """Return X as the first layer gets it in the training, with a column of ones where it has intercepts."""
    inputs, ones = variables.inputs, np.ones((X.shape[0], n_ones), X.dtype)
    if inputs is not None:
        inverse = (1 / inputs.scale).astype(X.dtype)
        if scipy.sparse.issparse(X):
            # All columns have the same scale.
            X = X * inverse[0]
        else:
            X = (X - inputs.mean.astype(X.dtype)) * inverse if n_ones else X * inverse
    return scipy.sparse.hstack([X, ones], format="csr") if scipy.sparse.issparse(X) else np.hstack([X, ones])


def _trained(group, common):
    """Train a group of fits, by their places; return those that are done."""
    from skort.solvers import choose
    from skort.solvers.side_by_side.solver import SideBySide

    fits = list(group.values())
    first = fits[0].stream
    if choose(first.settings.solvers, first.problem) != "graph":
        return {}
    batches = common.batches(fits[0])
    if batches.are_sparse:
        # A fit alone multiplies such rows as they are.
        return {}
    # The batches have the sample weights of the first.
    factors = [fit.weight_scale / fits[0].weight_scale for fit in fits]
    solver = SideBySide([fit.terms for fit in fits], factors)
    trainings = [fit.training(lane, batches) for fit, lane in zip(fits, solver.lanes, strict=True)]
    made = {}
    for (place, fit), outcome in zip(group.items(), minimise_together(trainings, solver, batches), strict=True):
        if outcome is not None:
            fit.draft._keep_outcome(fit.fitted, fit.stream, outcome)
            made[place] = MadeFit(fit.draft, outcome, common.read.own)
    return made
