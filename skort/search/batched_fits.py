"""Fits of estimators that differ in numbers only, begun and trained together."""

import contextlib
import copy
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from skort.common.component import check_parameters
from skort.estimators.data.data_source import GivenRows, InMemory
from skort.estimators.data.rows import TrainingData
from skort.estimators.data.statistics import RowStatistics
from skort.estimators.model.model import Model
from skort.estimators.training.config import TrainConfig
from skort.estimators.training.fitting import TrainRun
from skort.estimators.training.initialization import begin_standardized, chosen_standardization
from skort.estimators.training.observers import Observers
from skort.estimators.training.reparametrization import Reparametrization
from skort.estimators.training.result import FitResult
from skort.estimators.training.validation import FitData, model_and_data, validated
from skort.optim.batches import Batches
from skort.optim.loop import minimise_together
from skort.optim.standardization import Standardization
from skort.optim.state import TrainState
from skort.optim.training import Training, TrainStep

if TYPE_CHECKING:
    from skort.graphs.chain import Link
    from skort.solvers.base import Problem
    from skort.solvers.graph.joint_graph import MemberTerms

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
class _Begun:
    """One of several fits before its first step."""

    estimator: Any
    model: Model
    state: TrainState
    config: TrainConfig
    variables: Reparametrization
    problem: "Problem"
    terms: "MemberTerms"

    @property
    def weight_scale(self) -> float:
        """What the sample weights of a batch of this training sum to."""
        return self.variables.sample_weight_scale(self.model.score_graph.n_outputs)

    def training(self, lane: TrainStep, batches: Batches) -> Training:
        """Return the training, whose steps a solver makes with those of others."""
        config, variables = self.config, self.variables
        patience = config.patience(batches.n_batches, is_linear=self.model.score_graph.is_linear)
        return Training(
            lane,
            batches,
            config.schedule,
            self.state,
            variables,
            max_iter=self.estimator.max_iter,
            is_compared=config.is_compared,
            callbacks=Observers(self.estimator, None).callbacks(variables.in_units.unit, patience, one_epoch=False),
        )


def joint_fits(estimators: Sequence[Any], X: Any, y: Any, sample_weight: Any) -> dict[int, tuple[FitResult, FitData]]:
    """
    Train copies of estimators that differ in `OWN_PARAMETERS` only: one run of ONNX Runtime makes a step of all.

    Returns the results and what was read of the data by the places of the estimators, which are not changed. Those that
    are missing have to be fitted alone.
    """
    try:
        common, configs = _read(estimators, X, y, sample_weight)
        begun = {} if common is None else {p: common.begin(estimators[p], c) for p, c in configs.items()}
    except (ValueError, TypeError, ImportError):
        # Each fit alone says what is wrong with its own parameters, or with the data.
        return {}
    groups: dict[Any, dict[int, _Begun]] = {}
    for place, fit in begun.items():
        if fit is not None:
            groups.setdefault(fit.terms.key, {})[place] = fit
    fits: dict[int, tuple[FitResult, FitData]] = {}
    for group in groups.values():
        if len(group) > 1:
            fits |= _trained(group, common)
    return fits


def _read(estimators, X, y, sample_weight):
    """Return what fits share, and the parameters of each; None and none where they cannot be made together."""
    from skort.graphs.chain import chain_of

    read = validated(estimators[0], GivenRows(X, y, sample_weight))
    configs = {}
    for place, estimator in enumerate(estimators):
        with contextlib.suppress(ValueError, TypeError):
            check_parameters(estimator)
            configs[place] = read.config(estimator, read.sample_weight)
    if len(configs) < 2:
        return None, {}
    first = next(iter(configs.values()))
    model, data = model_and_data(read, first, read.sample_weight, estimators[0].trainable)
    statistics = RowStatistics(data)
    standardization = chosen_standardization(first, model.score_graph, statistics)
    chain = chain_of(model.score_graph)
    if model.loss_weights or chain is None or (standardization is not None and standardization.is_offset):
        return None, {}
    return _Common(read, model, data, statistics, standardization, chain), configs


@dataclass(frozen=True, eq=False)
class _Common:
    """What the fits of a group share: data, the model at its initial weights, and its layers."""

    read: FitData
    model: Model
    data: TrainingData
    statistics: RowStatistics
    standardization: Standardization | None
    chain: tuple["Link", ...]

    def begin(self, estimator: Any, config: TrainConfig) -> _Begun | None:
        """Return a fit before its first step; None where it has to be made alone."""
        from skort.solvers.graph.joint_graph import member_terms

        if config.update.largest_rate is None:
            # A function of the user's may raise an error, which would be that of another fit.
            return None
        state = TrainState.start(self.read.generator)
        state, model, variables = begin_standardized(config, self.model, self.statistics, state, self.standardization)
        if variables.score is not None and variables.score.is_of_y:
            return None
        model = dataclasses.replace(model, loss=config.loss)
        # The rows are in the variables of the training before they are read, see `_rows`.
        graph = model.score_graph
        training = model.with_score_graph(graph.with_weights(variables.training_weights(graph.trained_arrays)))
        bare = dataclasses.replace(variables, inputs=None, score=None)
        batch_size = min(config.batch_size, self.data.n_rows)
        n_batches = -(-self.data.n_rows // batch_size)
        problem = config.problem(training, bare, state, batch_size, n_batches)
        terms = member_terms(problem, self.chain)
        if terms is None:
            return None
        return _Begun(estimator, model, state, config, variables, problem, terms)

    def batches(self, fit: _Begun) -> Batches:
        """Return the rows of trainings that are made together, in the variables of the training."""
        data = self.data._replace(X=_rows(self.data.X, fit.variables, fit.terms.n_ones))
        return InMemory(fit.config, data).batches(fit.variables, copy.deepcopy(self.read.generator))


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
    from skort.solvers.graph.joint_step import JointStep

    fits = list(group.values())
    first = fits[0]
    if choose(first.config.solvers, first.problem) != "graph":
        return {}
    batches = common.batches(fits[0])
    if batches.are_sparse:
        # A fit alone multiplies such rows as they are.
        return {}
    # The batches have the sample weights of the first.
    factors = [fit.weight_scale / fits[0].weight_scale for fit in fits]
    solver = JointStep([fit.terms for fit in fits], factors)
    trainings = [fit.training(lane, batches) for fit, lane in zip(fits, solver.lanes, strict=True)]
    made, outcomes = {}, minimise_together(trainings, solver, batches)
    for (place, fit), lane, outcome in zip(group.items(), solver.lanes, outcomes, strict=True):
        if outcome is not None:
            run = TrainRun(fit.config, fit.variables, fit.problem, "graph", lane)
            made[place] = FitResult.of(run, fit.model, fit.state, outcome, None), common.read
    return made
