"""The fits of a search that are trained together: their groups, their training, their results."""

import contextlib
import copy
import dataclasses
import hashlib
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import joblib
import numpy as np
import scipy.sparse

from skort.common.component import check_parameters
from skort.estimators.data.nesting import model_inside
from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.data.validation_set import ValidationSet
from skort.estimators.model.model import Model
from skort.estimators.planning.loss_and_penalty import strengths_inside
from skort.estimators.planning.optimizer import first_set
from skort.estimators.planning.plan import Plan, are_equal, snapshot
from skort.estimators.planning.plan_of_fit import for_model
from skort.estimators.training.data_source import BatchShape, GivenRows, InMemory, KnownRows
from skort.estimators.training.observers import Observers, has_callbacks
from skort.estimators.training.read import FitInput, model_and_data, read_fit, with_validation_set
from skort.estimators.training.result import FitResult
from skort.estimators.training.run import ReadyTraining, TrainRun, fit_models, run_fit
from skort.estimators.training.start import start_at_weights
from skort.optim.callbacks import CallbackError
from skort.optim.row_change import source_rows
from skort.optim.state import TrainState

if TYPE_CHECKING:
    from skort.graphs.score_graph import Link
    from skort.solvers.graph.lanes import Lane

# The attribute of an estimator with the `Together` that its next fit asks.
MARK = "_search"
# The values of parameters that a fit in a group must have.
_PLAIN = {
    "average": False,
    "max_grad_norm": None,
    "trainable": None,
    "verbose": 0,
    "warm_start": False,
}
# The parameters in which the fits of a group may differ. They change numbers of a step, but neither
# its data nor its operators.
OWN_PARAMETERS = frozenset(
    {"alpha", "epsilon", "l1_ratio", "n_total", "penalty", "quantile"}
    | {"eta0", "learning_rate", "optimizer", "power_t"}
    | {"max_iter", "n_iter_no_change", "tol"}
)


class Together:
    """
    Groups of estimators whose fits are trained together.

    This happens between `open` and `close`, and only in the thread that made the object.
    """

    # For each data set, the first fit of a group trains the whole group. The other fits take their
    # results. `mark` gives an estimator and its clones this object, and their fits ask it.

    def __init__(
        self, estimators: Iterable[Any] = (), on_fits: Callable[[int], object] = lambda n_fits: None
    ):
        #: The number of fits that were trained together.
        self.n_made: int = 0
        # It is told how many fits were made, or begun if they are made alone.
        self._on_fits = on_fits
        #: Whether fits that could have been trained together have callbacks of scikit-learn.
        self.has_callbacks: bool = False
        self._thread = threading.get_ident()
        self._groups: list[tuple[Any, list[tuple[Any, Any]]]] = []

        # Results that no fit has taken yet: group number -> data -> place in the group -> result.
        self._made: dict[int, dict[Any, dict[int, Any]]] = {}
        self.open(estimators)

    def __reduce__(self) -> tuple[type["Together"], tuple[()]]:
        # A fit in another process is trained alone.
        return Together, ()

    def open(self, estimators: Iterable[Any]) -> None:
        """Add unfitted estimators to the groups. The estimators themselves do not change."""
        for estimator in estimators:
            if _is_plain(estimator):
                self._add(estimator)

    @property
    def has_groups(self) -> bool:
        """Whether some of the estimators could be trained together."""
        return any(len(members) > 1 for _, members in self._groups)

    def close(self) -> None:
        """Remove all groups: later fits are trained alone."""
        self._groups = []
        self._made = {}

    def mark(self, estimator: Any) -> Any:
        """Let the next fits of an estimator and its clones ask here; return the estimator."""
        vars(estimator)[MARK] = self
        return estimator

    def unmark(self, estimator: Any) -> None:
        """Undo `mark`."""
        if vars(estimator).get(MARK) is self:
            del vars(estimator)[MARK]

    def _add(self, estimator):
        """Add an estimator to the group that differs from it only in numbers."""
        shared, own = _split(estimator)
        for key, members in self._groups:
            if are_equal(key, shared):
                if not any(are_equal(own, known) for known, _ in members):
                    members.append((own, estimator))
                return

        self._groups.append((shared, [(own, estimator)]))

    def take(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
        """
        Return the result of a fit and the data that it read.

        Return None if the fit has to be trained alone.
        """
        if threading.get_ident() != self._thread:
            return None

        n_before = self.n_made
        found = self._found(estimator, X, y, sample_weight)
        self._on_fits(self.n_made - n_before + (found is None))

        return found

    def _found(self, estimator, X, y, sample_weight):
        """Return what `take` returns."""
        if has_callbacks(estimator):
            # They see each epoch of one fit.
            self.has_callbacks |= self.has_groups
            return None

        shared, own = _split(estimator)
        for group, (key, members) in enumerate(self._groups):
            if len(members) > 1 and are_equal(key, shared):
                for place, (known, _) in enumerate(members):
                    if are_equal(known, own):
                        return self._take(group, place, X, y, sample_weight)

        return None

    def _take(self, group, place, X, y, sample_weight):
        made, data = (
            self._made.setdefault(group, {}),
            (_digest(X), _digest(y), _digest(sample_weight)),
        )
        if data not in made:
            if any(place in waiting for waiting in made.values()):
                # Data differ between the candidates if steps before the model draw random numbers.
                return None

            made[data] = joint_fits(
                [member for _, member in self._groups[group][1]], X, y, sample_weight
            )
            self.n_made += len(made[data])

            if not made[data]:
                # For the next data, the group would fail again.
                self._groups[group][1].clear()

        return made[data].pop(place, None)


def _is_plain(estimator):
    """Return whether the parameters of an estimator allow a common training."""
    return (
        first_set(vars(estimator), _PLAIN) is None
        and not estimator.callbacks
        and estimator.solver in ("auto", "graph")
        and not isinstance(estimator.random_state, np.random.RandomState)
    )


def _split(estimator):
    """Return the parameters that the fits of a group share, and the other parameters, as values."""
    kind, parameters = snapshot(estimator)
    own = {name: value for name, value in parameters.items() if name in OWN_PARAMETERS}
    shared = {name: value for name, value in parameters.items() if name not in OWN_PARAMETERS}

    strengths = strengths_inside(estimator)
    if strengths:
        inside = model_inside(estimator.estimator)
        shared["estimator"] = snapshot(estimator.estimator, inside, strengths)
        own["estimator"] = {name: snapshot(getattr(inside, name)) for name in strengths}

    return (kind, shared), own


def _digest(data):
    """Return a value that is equal for equal data."""
    if data is None:
        return None
    if type(data) is np.ndarray and not data.dtype.hasobject:
        values = np.ascontiguousarray(data)
        return (
            values.shape,
            values.dtype.str,
            hashlib.sha256(values.reshape(-1).view(np.uint8).data).digest(),
        )

    return joblib.hash(data)


class _LaneFit(NamedTuple):
    """
    A fit before its first step, and its lane in the common step of several fits.

    The run of the fit has no step of its own.
    """

    fit: ReadyTraining
    lane: "Lane"

    @property
    def weight_scale(self) -> float:
        """The sum of the sample weights of a batch of this training."""
        return self.fit.run.variables.sample_weight_scale(self.fit.model.score_graph.n_outputs)

    def goes_with(self, other: "_LaneFit") -> bool:
        """Return whether the two fits can have a common step on the same rows."""
        return (
            self.lane.key == other.lane.key
            and self.fit.state.standardization == other.fit.state.standardization
        )


def joint_fits(
    estimators: Sequence[Any], X: Any, y: Any, sample_weight: Any
) -> dict[int, tuple[FitResult, FitInput]]:
    """
    Train estimators that differ only in `OWN_PARAMETERS`, and in the strength of the penalty of the
    model inside, together.

    Return, by place, the results and the data that were read. Estimators that are missing have to
    be fitted alone.
    """
    groups: list[dict[int, _LaneFit]] = []
    paths: list[tuple[Any, list[_Candidate]]] = []
    try:
        common, candidates = _read(estimators, X, y, sample_weight)
        for candidate in candidates:
            if common.is_exact(candidate):
                _add_to_path(paths, candidate)
                continue

            place = candidate.place
            lane = common.lane(candidate)
            if lane is not None:
                group = next(
                    (group for group in groups if lane.goes_with(next(iter(group.values())))), None
                )
                if group is None:
                    groups.append(group := {})
                group[place] = lane
    except (ValueError, TypeError, ImportError):
        # The fits are then made alone, and raise the errors of their parameters or data.
        return {}

    reads = {candidate.place: candidate.read for candidate in candidates}
    fits: dict[int, tuple[FitResult, FitInput]] = {}
    for group in groups:
        if len(group) > 1:
            # If a scorer fails, the fits are made alone and raise its error.
            with contextlib.suppress(CallbackError):
                fits |= {place: (r, reads[place]) for place, r in common.trained(group).items()}

    for _, path in paths:
        if len(path) > 1:
            made = common.along(path)
            fits |= {place: (result, reads[place]) for place, result in made.items()}

    return fits


class _Candidate(NamedTuple):
    """A fit of a group: its place there, its estimator, what that reads, and its plan."""

    place: int
    estimator: Any
    read: FitInput
    plan: Plan

    @property
    def strength(self) -> float:
        """The largest strength of the penalty; 0 without one."""
        penalty = self.plan.penalty
        strengths = {} if penalty is None else penalty.strengths(("coef",))
        return max((float(np.max(strength.l2)) for strength in strengths.values()), default=0.0)


def _add_to_path(paths, candidate):
    """Add a candidate to those that differ from it in the strength of their penalties alone."""
    own = _split(candidate.estimator)[1]
    key = {name: value for name, value in own.items() if name not in ("alpha", "estimator")}
    for known, path in paths:
        if are_equal(known, key):
            path.append(candidate)
            return

    paths.append((key, [candidate]))


def _read(estimators, X, y, sample_weight):
    """
    Return the common part of the fits, and the candidates that may be trained together.

    If the fits cannot be trained together, return None and no candidates.
    """
    from skort.graphs.score_graph import chain_of

    first = estimators[0]
    read = read_fit(first, GivenRows(X, y, sample_weight))
    read, scoring, weights = with_validation_set(first, read)

    opened = []
    for place, estimator in enumerate(estimators):
        with contextlib.suppress(ValueError, TypeError):
            check_parameters(estimator)
            own = read.of_model_inside(estimator)
            opened.append((place, estimator, own, own.plan(estimator, weights)))

    if len(opened) < 2:
        return None, []

    model, data = model_and_data(read, opened[0][-1], weights, first.trainable)
    candidates = [
        _Candidate(place, estimator, own, for_model(open_plan, model, data))
        for place, estimator, own, open_plan in opened
    ]
    chain = chain_of(model.score_graph)
    # A fitted network has a part of the rate, and a fitted model may keep its weights or begin anew. A
    # common training has none of these.
    is_fitted = not model.is_drawn and (model.inner.is_fitted or not model.score_graph.is_linear)
    if model.loss_weights or chain is None or is_fitted:
        return None, []

    return _Common(read, model, data, DataStatistics(data), chain, scoring), candidates


class _Common(NamedTuple):
    """The common part of the fits of a group: data, the model at its initial weights, layers."""

    read: FitInput
    model: Model
    data: TrainingData
    statistics: DataStatistics
    chain: tuple["Link", ...]
    #: The score of the held-out rows, with `early_stopping`.
    scoring: ValidationSet | None

    def is_exact(self, candidate: _Candidate) -> bool:
        """Return whether a candidate ends at the optimum that the penalty's strength decides."""
        return candidate.plan.is_full and self.model.score_graph.is_linear and self.scoring is None

    def model_of(self, candidate: _Candidate) -> Model:
        """Return the model of a candidate at its initial weights."""
        return dataclasses.replace(self.model, inner=candidate.read.wrapped.without_data())

    def along(self, path: list[_Candidate]) -> dict[int, FitResult]:
        """
        Train linear models by L-BFGS, from the strongest penalty to the weakest; return the results
        of those that reached their optimum, by place.
        """
        known = KnownRows(InMemory(self.data))
        optima: list[_Optimum] = []
        for candidate in sorted(path, key=lambda each: -each.strength):
            # The fits are made alone, and raise the errors of their data.
            with contextlib.suppress(ValueError):
                result = self._exact_fit(candidate, known, optima)
                if result.state.stopped:
                    optima.append(_Optimum(candidate.place, candidate.strength, result))

        return {optimum.place: optimum.result for optimum in optima}

    def _exact_fit(self, candidate, known, optima):
        """Return the result of a fit by L-BFGS, from where the optima before lead, if it may."""
        model = self.model_of(candidate)
        first_objective = None
        if optima and _leads_to(optima[-1].result, candidate):
            model = model.going_on_from(_expected(optima, candidate.strength))
            first_objective = optima[-1].result.state.first_objective

        generator = copy.deepcopy(self.read.generator)
        state = TrainState.start(generator, first_objective=first_objective)
        observers = Observers(candidate.estimator, self.read.columns)
        return run_fit(candidate.plan, model, known.source, state, observers, known)

    def lane(self, candidate: _Candidate) -> _LaneFit | None:
        """Return a fit before its first step, or None if it has to be trained alone."""
        from skort.graphs.layers import OFFSET, TARGET_OFFSET
        from skort.solvers.graph.lanes import lane_of

        plan = candidate.plan
        state = TrainState.start(self.read.generator)
        if plan.is_full or plan.update.largest_rate is None:
            # The user's function may raise an error, which another fit would then raise.
            return None
        if self.data.n_rows <= plan.batch_size and _steps_by_noise(plan, self.model):
            return None

        plan, model, state, variables, *_ = start_at_weights(
            plan, self.model_of(candidate), self.statistics, state
        )
        is_offset = any(name in model.score_graph.arrays for name in (OFFSET, TARGET_OFFSET))
        is_of_y = variables.score is not None and variables.score.is_of_y
        if is_offset or is_of_y:
            return None

        model = dataclasses.replace(model, loss=plan.loss)
        # The model reads rows that are already in the variables of the training, see `_rows`.
        graph = model.score_graph
        initial = variables.training_weights(graph.trained_arrays)
        training = dataclasses.replace(model, score_graph=graph.with_weights(initial))
        bare = dataclasses.replace(variables, inputs=None, score=None)
        n_rows = self.data.n_rows
        shape = BatchShape(min(plan.batch_size, n_rows))
        run = TrainRun.of(plan, training, state, shape, -(-n_rows // shape.batch_size), bare)
        lane = lane_of(run.problem, self.chain) if run.solver_name == "graph" else None
        if lane is None:
            return None

        run = dataclasses.replace(run, variables=variables)
        observers = Observers(candidate.estimator, self.read.columns, copy.copy(self.scoring))
        rows = None if self.data.is_sparse else self.data
        fit = ReadyTraining(run, model, state, observers, plan.max_iter, rows=rows)
        return _LaneFit(fit, lane)

    def trained(self, group: dict[int, _LaneFit]) -> dict[int, FitResult]:
        """Train the fits of a group; return the results of those that succeeded, by place."""
        from skort.solvers import make_step

        fits = list(group.values())
        run = fits[0].fit.run
        scale = fits[0].weight_scale
        data = self.data._replace(X=_rows(self.data.X, run.variables, fits[0].lane.n_ones))
        variables = dataclasses.replace(run.variables, inputs=None)
        batches = InMemory(data).batches(run.plan, variables, copy.deepcopy(self.read.generator))
        if batches.are_sparse:
            # Separate fits do not make such rows dense.
            return {}

        # The batches have the sample weights of the first fit.
        lanes = [dataclasses.replace(fit.lane, factor=fit.weight_scale / scale) for fit in fits]
        step = make_step(run.problem, solver=run.solver_name, lanes=lanes)
        results = fit_models([fit.fit for fit in fits], step, batches, self.statistics)

        return {
            place: result
            for place, result in zip(group, results, strict=True)
            if result is not None
        }


class _Optimum(NamedTuple):
    """The result of a fit that reached its optimum, its place, and the strength of its penalty."""

    place: int
    strength: float
    result: FitResult


def _expected(optima, strength):
    """
    Return the model at the expected optimum of a strength. From the last two optima, weights change
    by as much again for the same factor of the strength, and at most once.
    """
    *before, last = optima[-2:]
    model = last.result.model
    if not before or before[0].strength == last.strength:
        return model

    # Further than the last step, the change is another one.
    step = math.log(last.strength / before[0].strength)
    part = min(math.log(strength / last.strength) / step, 1.0)
    weights = model.trained_weights
    earlier = before[0].result.model.trained_weights
    return model.with_weights(
        {name: array + part * (array - earlier[name]) for name, array in weights.items()}
    )


def _leads_to(last, candidate):
    """Return whether a fit may begin at the optimum of the last one, which has a stronger penalty."""
    # Without a penalty, and for a loss that may not be convex, where it ends depends on where it
    # begins. By a loss of one curvature it ends in a few iterations from anywhere.
    loss = candidate.plan.loss
    n_outputs = last.model.score_graph.n_outputs
    curvatures = loss.curvature(n_outputs), loss.curvature_function(n_outputs)
    return candidate.strength > 0 and None not in curvatures


def _steps_by_noise(plan, model):
    """Return whether a batch of all rows may make steps whose length is that of rounding errors."""
    # On columns of mean zero, the gradient of a linear model's intercept is zero but for rounding,
    # which is another one in a common step. Adam divides by the size of past gradients, and makes
    # whole steps of it. Optimizers that are linear in the gradient do not.
    return model.score_graph.is_linear and plan.update.tags.linear is None


def _rows(X, variables, n_ones):
    """Return X as the input of the first layer, with a column of ones for its intercepts."""
    ones = np.ones((X.shape[0], n_ones), variables.dtype)
    if not scipy.sparse.issparse(X):
        return np.hstack([variables.row_change(X), ones])

    X = source_rows(variables.rows(X)) * variables.dtype.type(variables.row_factor)
    return (
        scipy.sparse.hstack([X, ones], format="csr")
        if scipy.sparse.issparse(X)
        else np.hstack([X, ones])
    )
