"""The plan of a training: every decision, made once, before the training runs."""

import dataclasses
import functools
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

from skort.common.component import PLAIN, parameter_names
from skort.estimators.data.targets import EncodedTarget
from skort.estimators.planning import epochs, optimizer
from skort.estimators.planning.decision import Decision, yours
from skort.estimators.planning.epochs import Stopping, TrainingSize, chosen_batches
from skort.estimators.planning.loss_and_penalty import (
    class_weight_decision,
    loss_decision,
    penalty_decision,
    training_loss,
    training_penalty,
)
from skort.estimators.planning.rate import RateChoice
from skort.estimators.planning.table import as_html, as_text
from skort.estimators.planning.threads import threads_for, training_device
from skort.estimators.variables.reparametrization import Reparametrization
from skort.objective.combined import ClassWeighted
from skort.objective.loss import ScoreLoss
from skort.objective.penalties import WeightPenalty
from skort.optim.batches import block_size, has_few_values
from skort.optim.optimizers import SGD
from skort.optim.schedules import largest_rate, last_update
from skort.optim.standardization import Standardization
from skort.optim.update import Update

if TYPE_CHECKING:
    from skort.estimators.model.model import Model
    from skort.graphs.score_graph import ScoreGraph
    from skort.objective.sklearn_objectives import SklearnObjective
    from skort.runtime.device import Device

P = TypeVar("P", bound="OpenPlan")


# The parameters that say nothing about the steps.
_NO_SETTINGS = ("estimator", "trainable", "callbacks", "client", "n_groups")
# It replaces a NaN, which does not equal itself.
_NAN = ("NaN",)


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OpenPlan:
    """
    What the user decides of a training, before its model is known. `plan_of_fit` and
    `plan_of_stream` make a `Plan` of it.
    """

    #: The parameters of the estimator, as values to compare, see `given_parameters`.
    given: dict[str, Any]
    #: The names of the parameters that the user leaves to skort.
    left_open: frozenset[str]
    #: The model inside and the names of its trained weights, as values to compare, see
    #: `parameters_inside`.
    given_inside: dict[str, Any]
    #: The objective of the model inside.
    objective_inside: "SklearnObjective"
    size: TrainingSize
    loss: ScoreLoss
    penalty: WeightPenalty | None
    #: The update of the user's optimizer. None: the model decides on the optimizer.
    update: Update | None
    rate: RateChoice
    #: The solvers to choose from, the fastest first.
    solvers: list[str]
    device: "Device"
    #: The rows of a whole batch: m rows make a step of m / batch_size of the rate.
    batch_size: int
    n_iter_no_change: int | float | str
    shuffle: bool
    standardize: bool | str
    dtype: str
    is_classifier: bool
    #: Whether a validation set ends the training and chooses its weights.
    is_validated: bool
    #: The decisions so far, by matter.
    decisions: Mapping[str, Decision]
    class_weight: np.ndarray | None = None
    #: Whether calls of `partial_fit` go on with it.
    is_stream: bool = False

    @classmethod
    def of(  # noqa: PLR0913  # what is known before the model is
        cls,
        estimator: Any,
        inside: "SklearnObjective",
        size: TrainingSize,
        batch_size: int | None = None,
        dtype: str | None = None,
        *,
        is_stream: bool = False,
        is_validated: bool = False,
    ) -> "OpenPlan":
        """
        Return the plan of an estimator for a training of some size. `batch_size` and `dtype`, if
        they are given, replace those of the estimator.
        """
        device = training_device(estimator)
        given = given_parameters(estimator, device)
        left_open = names_left_open(given)

        of_optimizer = optimizer.given_optimizer(estimator)
        update = None if of_optimizer is None else _update(of_optimizer, given)
        is_full = update is not None and update.tags.is_full
        of_batches = chosen_batches(
            estimator,
            left_open,
            size.batch_size,
            are_given=batch_size is not None,
            is_stream=is_stream,
        )
        if is_full:
            optimizer.check_full(vars(estimator))
            size = size._replace(batch_size=size.n_rows)
        if update is not None and batch_size is not None:
            update.check_steps("fit_batches")

        loss = training_loss(estimator, inside)
        penalty = training_penalty(estimator, inside, size)
        rates, rate = optimizer.given_schedule(estimator, left_open, penalty)
        of_dtype = _dtype(estimator, dtype)
        solvers = _solvers(estimator, np.dtype(of_dtype.value), update, device)
        decisions = {
            "batches": of_batches,
            "loss": loss_decision(left_open, inside, loss),
            "penalty": penalty_decision(estimator, left_open, inside, penalty),
            "class weights": class_weight_decision(estimator, left_open, inside),
            "optimizer": of_optimizer,
            "learning rate": rates,
            "dtype": of_dtype,
        }
        if "max_iter" not in left_open:
            decisions["epochs"] = yours(int(estimator.max_iter), "max_iter")
        if "tol" not in left_open:
            decisions["stopping"] = yours(estimator.tol, "tol")
        if is_validated:
            decisions["validation"] = yours("ends the training", "early_stopping")

        return cls(
            given=given,
            left_open=left_open,
            given_inside=parameters_inside(estimator),
            objective_inside=inside,
            size=size,
            loss=loss,
            penalty=penalty,
            update=update,
            rate=rate,
            solvers=solvers,
            device=device,
            batch_size=of_batches.value,
            n_iter_no_change=estimator.n_iter_no_change,
            shuffle=estimator.shuffle and not is_full,
            standardize=estimator.standardize,
            dtype=of_dtype.value,
            is_classifier=isinstance(estimator, ClassifierMixin),
            is_validated=is_validated,
            decisions={name: each for name, each in decisions.items() if each is not None},
        )

    def decided(self: P, matter: str, decision: Decision, **values: Any) -> P:
        """Return the plan with one more decision, and the values that it stands for."""
        return dataclasses.replace(self, decisions={**self.decisions, matter: decision}, **values)

    def with_decisions(self: P, decisions: Mapping[str, Decision], **values: Any) -> P:
        """Return the plan with more decisions, and the values that they stand for."""
        return dataclasses.replace(self, decisions={**self.decisions, **decisions}, **values)

    def completed(self, decisions: Mapping[str, Decision], **values: Any) -> "Plan":
        """Return the whole plan. The decisions are on the optimizer, the learning rate, and others."""
        decisions = {**self.decisions, **decisions}
        schedule = decisions["learning rate"].value
        update = _update(decisions["optimizer"], self.given, largest_rate(schedule))
        known = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        known |= {"decisions": decisions, "update": update, "schedule": schedule}
        return Plan(**known | values)

    @property
    def eta0_of_schedule(self) -> float:
        """
        The first rate of a schedule that skort chooses: a number for `eta0`, or one, which
        multiplies the rate that is found.
        """
        return 1.0 if "eta0" in self.left_open else float(self.given["eta0"])

    def has_l1(self, model: "Model") -> bool:
        """Return whether the penalty has a kink for weights of a model."""
        names = model.score_graph.trained.coefficients
        return self.penalty is not None and self.penalty.has_l1(names)

    @functools.cached_property
    def is_full(self) -> bool:
        """Whether the optimizer makes its updates itself, from the gradient over all rows."""
        return self.update is not None and self.update.tags.is_full

    def check_steps(self, what: str) -> None:
        """Raise an error if the optimizer needs all rows at once, which `what` does not have."""
        of_model = ['solver="lbfgs" of the network inside'] if "optimizer" in self.left_open else []
        if self.update is not None:
            self.update.check_steps(what, *of_model)

    @property
    def leaves_steps_open(self) -> bool:
        """Whether the user leaves the optimizer, its rates and its batches to skort."""
        return self.chosen_of_steps is None

    @property
    def chosen_of_steps(self) -> str | None:
        """The first parameter by which the user decides on the steps, or None."""
        return optimizer.first_set(self.given, optimizer.DECIDE_ON_STEPS)

    def for_target(self: P, encoded: EncodedTarget) -> P:
        """
        Return the plan for a target. Several labels get a log-loss each, and the loss may take the
        class weights.
        """
        loss = self.loss.with_widths(None if encoded.outputs is None else encoded.outputs.widths)
        if loss is not self.loss:
            return self._with_loss(loss)
        if encoded.class_weight is not None and self.class_weight is None:
            return dataclasses.replace(self, class_weight=encoded.class_weight)
        if not encoded.multi_label:
            return self

        of_labels = self.loss.for_labels()
        if of_labels is None:
            raise ValueError(f'A multi-label y needs loss="log_loss", got {self.given["loss"]!r}.')

        return self if of_labels is self.loss else self._with_loss(of_labels)

    def _with_loss(self, loss):
        return self.decided("loss", self.decisions["loss"]._replace(value=loss), loss=loss)


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Plan(OpenPlan):
    """Every decision of a training, made once by pure functions: no data, and no weights."""

    update: Update
    #: The learning rates, by the number of an update.
    schedule: Any
    # A stream, which has an epoch a call and no end, keeps these three.
    max_iter: int = 0
    #: The smallest improvement, as a part of a loss. None: all epochs are made.
    tol: float | None = None
    #: Whether a training that fails may begin again at a smaller rate: the user gave none.
    can_restart: bool = False
    #: Whether the steps can multiply sparse rows as they are. The start of a training finds it.
    multiplies_sparse: bool = False

    def __repr__(self) -> str:
        return f"Plan of {len(self.decisions)} decisions: print it"

    def __str__(self) -> str:
        return as_text(self.decisions)

    def _repr_html_(self) -> str:
        return as_html(self.decisions)

    def with_optimizer(self, of_optimizer: Decision) -> "Plan":
        """Return the plan with another decision on the optimizer."""
        update = dataclasses.replace(self.update, optimizer=of_optimizer.value)
        return self.decided("optimizer", of_optimizer, update=update)

    def with_rates(self, rates: Decision, rate: RateChoice) -> "Plan":
        """Return the plan with another schedule, and with who chooses its first rate."""
        update = dataclasses.replace(self.update, largest_rate=largest_rate(rates.value))
        return self.decided("learning rate", rates, update=update, schedule=rates.value, rate=rate)

    def rows_of_batch(self, X: Any) -> int:
        """Return the largest number of rows of a batch, or of a block of a pass over all rows of X."""
        if not (self.is_full and "batch_size" in self.left_open):
            return self.batch_size

        n_rows, n_values = X.shape
        if self.multiplies_sparse and has_few_values(X):
            n_values = -(-X.nnz // n_rows)
        return block_size(n_rows, n_values)

    @property
    def factor_of_few_rows(self) -> float:
        """
        The factor of a rate that skort chooses. It is above one if all rows are fewer than
        `batch_size`: the step of a batch then takes a part of the rate, and the factor undoes that.
        """
        return self.batch_size / self.size.batch_size if self.rate.is_auto else 1.0

    @property
    def takes_start(self) -> bool:
        """Whether the penalty compares the weights with those before the training."""
        return self.penalty is not None and self.penalty.takes_start

    def stopping(self, n_batches: int, *, is_linear: bool) -> Stopping:
        """
        Return the smallest improvement, and how many epochs may lack it before the rate falls or the
        training ends.
        """
        if self.is_full:
            # The optimizer decides itself when the training ends.
            return Stopping(None)
        if not isinstance(self.n_iter_no_change, str):
            return Stopping(self.tol, self.n_iter_no_change)

        last = last_update(self.schedule)
        patience = epochs.patience(
            self.update.tags.memory,
            n_batches,
            is_linear=is_linear,
            planned_epochs=None if last is None else min(-(-last // n_batches), self.max_iter),
            is_validated=self.is_validated,
        )
        return Stopping(self.tol, patience)

    def has_parameters_of(self, estimator: Any) -> bool:
        """Return whether an estimator has the same parameters as when this plan was made."""
        try:
            return self.given == given_parameters(estimator, training_device(estimator))
        except ValueError:  # The caller validates the parameters then.
            return False

    def variables(
        self, score_graph: "ScoreGraph", standardization: Standardization | None
    ) -> Reparametrization:
        """Return the variables in which a model is trained."""
        loss = (
            self.loss if self.class_weight is None else ClassWeighted(self.loss, self.class_weight)
        )
        return Reparametrization.of(score_graph, loss, self.penalty, standardization)

    def device_for(self, score_graph: "ScoreGraph", n_rows: int) -> "Device":
        """
        Return the device of steps of so many rows. If skort chooses the threads, their number
        follows from the work of a step.
        """
        from skort.graphs.score_graph import step_work

        if "n_jobs" not in self.left_open or self.device.is_remote or not n_rows:
            return self.device
        return dataclasses.replace(
            self.device, n_threads=threads_for(step_work(score_graph, n_rows))
        )


def _update(of_optimizer, given, largest=None):
    """Return the update by an optimizer, with the user's clipping and average."""
    average = given["average"]
    if isinstance(average, str):
        average = False
    return Update(of_optimizer.value, given["max_grad_norm"], average, largest)


def _solvers(estimator, dtype, update, device):
    """Return the names of the solvers to choose from, the fastest first. Check a solver that is set."""
    from skort.solvers import SOLVERS, check_solver

    name = estimator.solver
    if name == "auto":
        return [*SOLVERS]

    # If the model decides on the optimizer, the check is that of SGD.
    check_solver(name, dtype, update or Update(SGD(), estimator.max_grad_norm), device)
    return [name]


def _dtype(estimator, dtype):
    """Return the decision on the dtype of the training."""
    if dtype is None or dtype == estimator.dtype:
        if estimator.dtype != "float32":
            return yours(estimator.dtype, "dtype")
        return Decision(estimator.dtype, "it is the default", "dtype")
    return Decision(
        dtype, f"{estimator.dtype} cannot hold the weights in the units of X and y", "dtype"
    )


def given_parameters(estimator: Any, device: Any) -> dict[str, Any]:
    """Return the parameters that a plan is made from, as values. The device is one of this machine."""
    names = [name for name in estimator._parameter_constraints if name not in _NO_SETTINGS]
    return {**_values(estimator, names), "device": device}


def names_left_open(given: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the parameters that leave their matter to skort."""
    return frozenset(
        name for name, value in given.items() if isinstance(value, str) and value == "auto"
    )


def parameters_inside(estimator: Any) -> dict[str, Any]:
    """Return the parameters that decide which weights are trained, as values."""
    return _values(estimator, ("estimator", "trainable"))


def _values(estimator, names):
    """Return some parameters of an estimator as values, by name."""
    parameters = {name: getattr(estimator, name) for name in names}
    # Most are plain values, and each call of a stream compares all of them.
    return {
        name: value if type(value) in PLAIN else snapshot(value)
        for name, value in parameters.items()
    }


def snapshot(value: Any, model: Any = None, left_out: Collection[str] = ()) -> Any:
    """
    Return a value that equals later snapshots until the original changes, in place or not. The
    parameters `left_out` of `model` do not count.
    """
    if type(value) in PLAIN or isinstance(value, np.generic):
        return _equal_to_itself(value)

    # An array is its values, and so is an Index of pandas, such as X.columns. A Series has an
    # index, too.
    if hasattr(type(value), "__array__") and not hasattr(value, "index"):
        value = np.asarray(value)
        is_object = value.dtype.kind == "O"
        values = snapshot(value.tolist(), model, left_out) if is_object else value.tobytes()
        return value.shape, value.dtype.str, values

    if isinstance(value, FrozenEstimator):
        # It is fitted, and its parameters do not describe it.
        return value.estimator

    if isinstance(value, BaseEstimator):
        names = parameter_names(type(value))  # type: ignore[arg-type]  # classes are hashable
        return type(value), {
            name: snapshot(getattr(value, name, None), model, left_out)
            for name in names
            if not (value is model and name in left_out)
        }

    if isinstance(value, dict):
        # The order of the keys counts: it decides on the columns of an output, and between two
        # patterns.
        return [(key, snapshot(part, model, left_out)) for key, part in value.items()]

    if isinstance(value, (list, tuple)):
        return [snapshot(part, model, left_out) for part in value]
    return _equal_to_itself(value)


def _equal_to_itself(value):
    """Return a value, or one that equals itself in place of NaN, NaT or the NA of pandas."""
    is_equal = value == value
    if isinstance(is_equal, (bool, np.bool_)):
        return value if is_equal else _NAN

    # NA == NA is NA.
    return type(value) if is_equal is value else value


def are_equal(snapshots: Any, others: Any) -> bool:
    """Return whether snapshots are equal. Values without a plain comparison count as different."""
    try:
        return bool(snapshots == others)
    except ValueError:
        return False
