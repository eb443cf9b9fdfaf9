"""The result of a training."""

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from skort.estimators.data.rows import Columns, TrainingData
from skort.estimators.data.validation_set import VALIDATION_SCORE
from skort.estimators.model.model import Model
from skort.estimators.planning.decision import Decision
from skort.estimators.planning.optimizer import at_rate
from skort.estimators.planning.plan import Plan
from skort.estimators.planning.scaling import described as scaling_as_text
from skort.estimators.planning.scaling import whitens
from skort.estimators.planning.stream import at_bound
from skort.estimators.planning.table import MATTERS
from skort.estimators.variables.reparametrization import Reparametrization
from skort.optim.loop import Outcome
from skort.optim.schedules import rate
from skort.optim.state import TrainState


class Ending(NamedTuple):
    """How a training ended, for warnings. A fitted model keeps nothing of it."""

    #: What the loop returned. None: no step was made, or the estimator is fitted.
    outcome: Outcome | None
    #: All rows, or some that stand for all. None: no warning looks at them.
    rows: TrainingData | None
    #: The variables of the training.
    variables: Reparametrization | None = None
    #: The loss of the validation set's best constant prediction. None: this loss does not decide.
    validation_constant_loss: float | None = None
    #: The loss of the best constant prediction, if the training began at fitted weights.
    constant_loss: float | None = None
    #: Whether a warning has said that the fitted network is worse than a constant.
    warned_of_fitted: bool = False
    #: If too few rows count to change a fitted model: how many count, and how many there are.
    counts: tuple[int, int] | None = None


#: The ending in a result that an estimator keeps.
NO_ENDING = Ending(None, None)


#: Why steps end far above the least objective.
FAR_END = "steps are slow where columns of X are strongly correlated, or rates small"
#: The values of `FitResult.kept` at which a fitted model keeps its weights after no training.
KEEPS = ("not beaten", "few rows", "interrupted")
#: The values of `FitResult.kept` -> the decision that a plan shows.
KEPT = {
    "best": Decision("weights of the best epoch", "the validation set says so", "early_stopping"),
    "last": Decision(
        "weights of the last epoch", "the best ones are better by chance alone", "early_stopping"
    ),
    "fitted": Decision(
        "the fitted weights", "the training ended no better than it began", "eta0, early_stopping"
    ),
    "not beaten": Decision(
        "the fitted weights", "others are not clearly better in cross-validation", "early_stopping"
    ),
    "few rows": Decision(
        "the fitted weights",
        "fewer than 20 rows say nothing, and of rows with the same y only ten count",
        "early_stopping",
    ),
    "trained": Decision(
        "trained ones",
        "they are better than the fitted ones in cross-validation",
        "early_stopping",
    ),
    "new": Decision(
        "new ones", "they are better than the fitted ones in cross-validation", "early_stopping"
    ),
    "interrupted": Decision(
        "the fitted weights", "the user interrupted the cross-validation", "early_stopping"
    ),
}


@dataclass(frozen=True, eq=False)
class FitResult:
    """
    The result of a training: the model, and everything from which the next training continues.
    Files keep equal weights once.
    """

    plan: Plan
    model: Model
    state: TrainState
    solver_name: str = ""
    batch_size: int = 0
    n_batches: int | None = None
    is_sparse: bool = False
    #: The number of epochs before this training.
    n_before: int = 0
    #: The learning rate of the first update. None: there was no update.
    first_eta: float | None = None
    #: Which weights the training ended with: see `Training.kept`; for a fitted model also
    #: "trained", "new" or one of `KEEPS`.
    kept: str | None = None
    #: The validation score of the fitted weights that the training began with. None: there is none.
    initial_score: float | None = None
    #: How far above the least objective the user's steps ended, as a part of it. None: not far, or
    #: not known.
    above_least: float | None = None
    #: The largest eigenvalue and the largest squared norm of the rows of a linear fit, or of the
    #: first rows of a stream, in the variables of the training. A later stream has its rate from
    #: them.
    spread: tuple[float, float] | None = None
    ending: Ending = NO_ENDING
    #: The shapes of the trained weights, if only the state has these, as in a file.
    shapes: dict[str, tuple[int, ...]] | None = None

    @property
    def new_losses(self) -> list[float]:
        """The objective after each epoch of this training."""
        return self.state.history.get("objective", [])[self.n_before : self.state.n_epochs]

    @property
    def eta0(self) -> float:
        """The learning rate of the first update, or of the next one if a resumed training made none."""
        return (
            self.state.rate_scale * rate(self.plan.schedule, 1)
            if self.first_eta is None
            else self.first_eta
        )

    def whole_plan(self) -> Plan:
        """Return the plan with the decisions of the training itself."""
        plan = self.plan
        decisions = {
            **plan.decisions,
            **(self._of_all_rows() if plan.is_full else self._of_steps()),
            "threads": self._of_threads(),
            **self._of_end(),
        }
        return dataclasses.replace(
            plan, decisions={name: decisions[name] for name in MATTERS if name in decisions}
        )

    def _of_all_rows(self):
        """Return the decisions of an optimizer over all rows."""
        none = Decision("none", "a line search finds the length of each step", "optimizer")
        all_rows = Decision("all rows", "the optimizer reads all rows", "optimizer")
        decisions = {"learning rate": none, "first rate": none, "batches": all_rows}

        graph = self.model.score_graph
        if graph.is_linear and whitens(graph.n_features, are_sparse=self.is_sparse):
            of_scaling = self.plan.decisions["scaling"]
            value = f"{scaling_as_text(of_scaling.value)}, made uncorrelated"
            decisions["scaling"] = of_scaling._replace(value=value)

        return decisions

    def _of_steps(self):
        """Return the decisions on rates and on the end, with their numbers for these rows."""
        plan = self.plan
        decisions = {}

        of_rate = plan.decisions.get("first rate")
        if of_rate is not None:
            bound = plan.rate.bound
            # A number for `eta0` may be given after the first update.
            eta0 = self.eta0 if bound is None else min(self.eta0, bound)
            decisions["first rate"] = at_bound(of_rate, bound)._replace(value=eta0)
            if plan.rate.is_found:
                rates = plan.decisions["learning rate"]
                decisions["learning rate"] = rates._replace(value=at_rate(rates.value, eta0))

        if not (plan.tol is None or plan.is_stream) and self.n_batches:
            is_linear = self.model.score_graph.is_linear
            stopping = plan.stopping(self.n_batches, is_linear=is_linear)
            decisions["stopping"] = plan.decisions["stopping"]._replace(value=stopping)

        return decisions

    def _of_threads(self):
        """Return the decision on the threads of a step."""
        plan = self.plan
        device = plan.device_for(self.model.score_graph, 0 if self.is_sparse else self.batch_size)
        if "n_jobs" not in plan.left_open:
            because = "n_jobs says it"
        elif self.is_sparse:
            because = "one thread multiplies sparse rows"
        elif device.n_threads == 1:
            because = "a step has too little work for more, or no other core is free"
        else:
            because = "a step has enough work for them"
        return Decision(str(device.n_threads), because, "n_jobs")

    def _of_end(self):
        """Return the decisions of the training on its restarts, its weights and its end."""
        decisions = {}

        n_restarts = (self.state.column("restarts") or [0])[-1]
        if n_restarts:
            because = (
                "the training diverged, or ended above its beginning: each began anew at a tenth "
                "of the rate, and the first rate is that of the last one"
            )
            decisions["restarts"] = Decision(str(int(n_restarts)), because, "eta0")

        if self.kept is not None:
            of_weights = KEPT[self.kept]
            because = "; ".join(filter(None, (of_weights.because, self.initial_score_told)))
            decisions["kept"] = of_weights._replace(because=because)

        if self.above_least is not None:
            decisions["end"] = Decision(
                f"at least {self.above_least:.0%} above the optimum",
                FAR_END,
                self.plan.chosen_of_steps or "optimizer",
            )

        return decisions

    @property
    def initial_score_told(self) -> str:
        """The validation score of the fitted weights, as part of a sentence. "": there is none."""
        if self.initial_score is None:
            return ""

        scores = self.state.history.get(VALIDATION_SCORE, [])[self.n_before : self.state.n_epochs]
        is_best = self.kept in ("best", "fitted")
        end = np.fmax.reduce(scores) if is_best else scores[-1]
        when = "at best" if self.kept == "fitted" else "now"
        return (
            f"its score is {self.initial_score:.4g} with the fitted weights, and {end:.4g} {when}"
        )

    def with_weights(self, weights: dict[str, np.ndarray]) -> "FitResult":
        """Return the result with other weights. The optimizer's memory begins from scratch."""
        first_weights = None if weights else self.state.first_weights
        state = dataclasses.replace(self.state, solver=None, live=None, first_weights=first_weights)
        return dataclasses.replace(self, model=self.model.with_weights(weights), state=state)

    def packed(self) -> "FitResult":
        """Return the result for a file: it has the weights once, and nothing of this process."""
        packed = dataclasses.replace(
            self, state=dataclasses.replace(self.state, live=None), ending=NO_ENDING
        )
        made, known = self._of_state(), self.model.trained_weights
        if made is None or not all(
            np.array_equal(array, known[name]) for name, array in made.items()
        ):
            return packed

        shapes = {name: array.shape for name, array in known.items()}
        empty = {
            name: np.empty(0, array.dtype)
            for name, array in self.model.score_graph.trained_arrays.items()
        }
        return dataclasses.replace(packed, model=_with_arrays(self.model, empty), shapes=shapes)

    def unpacked(self) -> "FitResult":
        """Return the result that was `packed`."""
        if self.shapes is None:
            return self

        trained = self.model.score_graph.trained_arrays
        zeros = {name: np.zeros(self.shapes[name], array.dtype) for name, array in trained.items()}
        whole = dataclasses.replace(self, model=_with_arrays(self.model, zeros), shapes=None)

        return dataclasses.replace(whole, model=whole.model.with_weights(whole._of_state()))

    def _of_state(self):
        """
        Return the trained weights of the model, computed from the state, or None if the state has
        none.
        """
        from skort.solvers.base import views

        vector = (self.state.solver or {}).get("weights")
        arrays = self.model.trained_weights
        if vector is None or vector.size != sum(array.size for array in arrays.values()):
            return None

        variables = self.plan.variables(self.model.score_graph, self.state.standardization)
        return {
            name: np.array(array)
            for name, array in variables.model_weights(views(vector, arrays)).items()
        }


def _with_arrays(model, arrays):
    """Return a model with other arrays in its score graph, by name. Their shapes may differ."""
    graph = dataclasses.replace(model.score_graph, arrays={**model.score_graph.arrays, **arrays})
    return dataclasses.replace(model, score_graph=graph)


def result_of(estimator: Any) -> FitResult:
    """Return the result of an estimator's last training. Raise a NotFittedError before one."""
    result = vars(estimator).get("_result")
    if result is None:
        _check_fitted(estimator)
    return result


def _check_fitted(estimator):
    """Raise scikit-learn's NotFittedError. If the model inside predicts already, say how."""
    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        inside = estimator.estimator
        advice = ""
        if hasattr(inside, "SerializeToString"):
            advice = " fit trains the ONNX model inside; onnxruntime predicts with it as it is."
        elif isinstance(inside, FrozenEstimator):
            advice = (
                " fit or partial_fit trains the frozen model inside; until then, "
                "model.estimator.predict(X) predicts with it as it is."
            )
        raise NotFittedError(f"{error}{advice}") from None


def is_of_fit(name: str) -> bool:
    """Return whether an attribute comes from a fit."""
    return (name[-1] == "_" and name[0] != "_") or name in ("_result", "_sparse_coef", "_search")


def shown(estimator: Any, columns: Columns, result: FitResult) -> Any:
    """Return a copy of an estimator that has the model of a result, for some columns of X."""
    copied = object.__new__(type(estimator))
    left_out = (
        is_of_fit
        if not result.state.n_epochs
        else {"_sparse_coef", "feature_names_in_"}.__contains__
    )
    known = {name: value for name, value in vars(estimator).items() if not left_out(name)}
    copied.__dict__ = (
        known | columns.attributes | result.model.shown_attributes() | {"_result": result}
    )

    return copied
