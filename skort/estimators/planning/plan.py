"""The plan of a training: every decision, made once, before the training runs."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin

from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.data.targets import EncodedTarget
from skort.estimators.planning import batches, optimizer, stopping, stream
from skort.estimators.planning.batches import TrainingSize
from skort.estimators.planning.decision import Decision, yours
from skort.estimators.planning.given import given_parameters, left_open, parameters_inside
from skort.estimators.planning.objective import (
    class_weight_decision,
    counts_rows,
    loss_decision,
    penalty_decision,
    training_loss,
    training_penalty,
)
from skort.estimators.planning.rate import GIVEN_RATE, RateChoice
from skort.estimators.planning.table import as_html, as_text
from skort.estimators.planning.threads import threads_for, training_device
from skort.estimators.variables.reparametrization import Reparametrization
from skort.objective.combined import ClassWeighted
from skort.objective.loss import ScoreLoss, known_curvature
from skort.objective.penalties import WeightPenalty
from skort.optim.batches import block_size
from skort.optim.optimizers import optimizer_tags
from skort.optim.schedules import largest_rate, last_update, may_fall
from skort.optim.standardization import Standardization
from skort.optim.state import TrainState
from skort.optim.update import Update, check_full, first_set, full_obstacle

if TYPE_CHECKING:
    from skort.estimators.model.model import Model
    from skort.graphs.score_graph import ScoreGraph
    from skort.objective.sklearn_objectives import SklearnObjective
    from skort.runtime.device import Device
    from skort.solvers.base import Problem


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Every decision of a training, made once by pure functions: no data, and no weights."""

    #: The parameters of the estimator, as values to compare, see `given_parameters`.
    given: dict[str, Any]
    #: The names of the parameters that the user leaves to skort.
    left_open: frozenset[str]
    #: The model inside and its trained weights, as values to compare, see `parameters_inside`.
    given_inside: dict[str, Any]
    #: The objective of the model inside.
    objective_inside: "SklearnObjective"
    size: TrainingSize
    loss: ScoreLoss
    penalty: WeightPenalty | None
    update: Update
    schedule: Callable[[int], float]
    rate: RateChoice
    #: Whether a training that fails may begin again at a smaller rate: the user gave none.
    can_restart: bool
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
    max_iter: int
    #: The smallest improvement, as a part of a loss. None: all epochs are made.
    tol: float | None
    #: Whether a validation set ends the training and chooses its weights.
    is_validated: bool
    #: The decisions so far, by matter. Those that need the data follow when the training starts.
    decisions: Mapping[str, Decision]
    class_weight: np.ndarray | None = None
    #: Whether calls of `partial_fit` go on with it.
    is_stream: bool = False

    def __repr__(self) -> str:
        return f"Plan of {len(self.decisions)} decisions: print it"

    def __str__(self) -> str:
        return as_text(self.decisions)

    def _repr_html_(self) -> str:
        return as_html(self.decisions)

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
    ) -> "Plan":
        """
        Return the plan of an estimator for a training of some size. `batch_size` and `dtype`, if
        they are given, replace those of the estimator.
        """
        device = training_device(estimator)
        given = given_parameters(estimator, device)
        is_open = left_open(given)

        of_optimizer = optimizer.chosen_optimizer(estimator, is_stream=is_stream)
        is_full = optimizer_tags(of_optimizer.value).is_full
        of_batches = batches.chosen_batches(
            estimator,
            is_open,
            size.batch_size,
            are_given=batch_size is not None,
            is_stream=is_stream,
        )
        if is_full:
            check_full(vars(estimator))
            size = size._replace(batch_size=size.n_rows)

        objective = _objective(estimator, is_open, inside, size)
        penalty = objective.values["penalty"]
        steps = _steps(estimator, is_open, of_optimizer, penalty, is_full=is_full)
        update = steps.values["update"]
        if batch_size is not None:
            update.check_steps("fit_batches")

        solver = _solver(estimator, dtype, update, device)
        end = _end(
            estimator,
            is_open,
            solver.values["dtype"],
            is_full=is_full,
            is_validated=is_validated,
        )

        return cls(
            given=given,
            left_open=is_open,
            given_inside=parameters_inside(estimator),
            objective_inside=inside,
            size=size,
            device=device,
            batch_size=of_batches.value,
            shuffle=estimator.shuffle and not is_full,
            standardize=estimator.standardize,
            is_classifier=isinstance(estimator, ClassifierMixin),
            **(objective.values | steps.values | solver.values | end.values),
            decisions={
                "batches": of_batches,
                **objective.decisions,
                **steps.decisions,
                **solver.decisions,
                **end.decisions,
            },
        )

    def renewed(self, estimator: Any) -> "Plan":
        """Return the plan after a change of parameters, for the same model and the same size."""
        renewed = Plan.of(
            estimator, self.objective_inside, self.size, dtype=self.dtype, is_stream=True
        )
        # The size of a batch may be that of the user's batches.
        if estimator.batch_size == self.given["batch_size"]:
            renewed = renewed.decided(
                "batches", self.decisions["batches"], batch_size=self.batch_size
            )

        # What skort chose in the first call stays.
        is_same = all(
            self.given[name] == renewed.given[name]
            for name in ("optimizer", "learning_rate", "eta0")
        )
        chosen = self if is_same else renewed
        rates = chosen.decisions["learning rate"]

        renewed = renewed._with_steps(self._optimizer_after(renewed), rates, chosen.rate)
        if not self.is_stream:
            return renewed

        renewed = renewed._without_end()
        n_rows = self.rate.rows_of_a_step
        if n_rows is None or renewed.update.tags.gain is None:
            return renewed
        return renewed._of_rows(n_rows, falls=self.rate.falls)

    def _optimizer_after(self, plan):
        """Return the decision on the optimizer of a plan that follows this one, and has its memory."""
        is_open = "optimizer" in self.left_open & plan.left_open
        # After a fit over all rows, a linear model goes on by steps of SGD.
        makes_steps = self.objective_inside.is_full or not self.is_full
        return (self if is_open and makes_steps else plan).decisions["optimizer"]

    def decided(self, matter: str, decision: Decision, **values: Any) -> "Plan":
        """Return the plan with one more decision, and the values that it stands for."""
        return dataclasses.replace(self, decisions={**self.decisions, matter: decision}, **values)

    def with_decisions(self, decisions: Mapping[str, Decision], **values: Any) -> "Plan":
        """Return the plan with more decisions, and the values that they stand for."""
        return dataclasses.replace(self, decisions={**self.decisions, **decisions}, **values)

    def for_model(self, model: "Model", rows: TrainingData | None = None) -> "Plan":
        """
        Return the plan for a model. The rules of linear models, or those of networks, decide what
        the user leaves open. `rows` are all rows, or None if they are not in memory.
        """
        is_open = "optimizer" in self.left_open
        if model.score_graph.is_linear:
            return self._of_linear_model(model, rows) if is_open else self

        if is_open and rows is not None and self._goes_over_all_rows(model):
            return self._of_all_rows(optimizer.full_optimizer())
        return self if self.is_full else self._of_network(model)

    def _goes_over_all_rows(self, model):
        """Return whether the solver of a new network inside is "lbfgs", and nothing asks for steps."""
        return (
            self.objective_inside.is_full
            and model.inner.draws_weights
            and full_obstacle(self.given) is None
            and self._is_smooth(model)
        )

    def _of_linear_model(self, model, rows):
        """Return the plan of a linear model whose optimizer is open."""
        obstacle = self._obstacle(model, rows)
        of_optimizer = optimizer.linear_optimizer(obstacle)
        if obstacle is None:
            return self._of_all_rows(of_optimizer)
        return self.decided("optimizer", of_optimizer)

    def _obstacle(self, model, rows):
        """Return why no optimizer over all rows trains a linear model, or None if one does."""
        if rows is None:
            return "its rows are not in memory as a whole"
        if rows.is_sparse:
            return "its rows are sparse"

        of_parameter = optimizer.asks_for_steps(self.given)
        if of_parameter is not None:
            return of_parameter
        if not self._is_smooth(model):
            return "its objective has a kink"

        is_custom = self.penalty is not None and self.penalty.is_custom
        if is_custom or known_curvature(self.loss, model.score_graph.n_outputs) is None:
            return "its objective has a part that may have a kink"
        return None

    def _of_network(self, model):
        """Return the plan of a network: a rule decides each matter that is open."""
        plan = self
        n_batches = self.size.n_batches

        if "max_iter" in self.left_open:
            of_epochs = stopping.network_epochs(
                self.size.n_rows, n_batches, model.score_graph.n_features
            )
            plan = plan.decided("epochs", of_epochs, max_iter=of_epochs.value)

        n_updates = plan.max_iter * n_batches

        of_optimizer = plan.decisions["optimizer"]
        if "optimizer" in self.left_open:
            # A fitted network keeps what it knows.
            n_weights = model.score_graph.n_weights[0] if model.is_drawn else 0
            growth = optimizer.decay_growth(
                n_weights / self.size.n_rows,
                is_curved=model.score_graph.has_curved_units and not self.is_classifier,
            )
            of_optimizer = optimizer.network_optimizer(n_updates, growth)

        eta0 = self._eta0_of_network(of_optimizer.value)
        rates = plan.decisions["learning rate"]
        if "learning_rate" in self.left_open:
            rates = optimizer.network_schedule(n_updates, eta0)
        elif self.rate.is_found:
            rates = rates._replace(value=optimizer.at_rate(rates.value, eta0))

        has_gain = optimizer_tags(of_optimizer.value).gain is not None
        rate = self.rate._replace(is_found=self.rate.is_found and has_gain)
        plan = plan._with_steps(of_optimizer, rates, rate)

        # Not only max_iter may end the training: so may a validation set, a tol or n_iter_no_change
        # of the user, or an objective by which the rate falls.
        runs_out = self.left_open >= {"tol", "n_iter_no_change"}
        if runs_out and not (self.is_validated or may_fall(rates.value)):
            plan = plan.decided("stopping", stopping.no_tolerance(), tol=None)
        return plan

    def at_noise(self, model: "Model", statistics: DataStatistics) -> "Plan":
        """Return the plan with the decay of a new network for the noise of y, if the rows tell it."""
        is_open = "optimizer" in self.left_open and model.is_drawn and not self.is_full
        # Ids are not near each other.
        noise = statistics.noise if is_open and not model.score_graph.reads_ids else None
        if noise is None:
            return self

        of_optimizer = optimizer.at_noise(self.decisions["optimizer"], noise)
        return self._with_steps(of_optimizer, self.decisions["learning rate"], self.rate)

    def _eta0_of_network(self, of_network):
        """
        Return the first rate of a network's schedule. It is 1 if the schedule multiplies a rate
        that is found from the data.
        """
        if "eta0" not in self.left_open:
            return float(self.given["eta0"])
        tags = optimizer_tags(of_network)
        return tags.first_rates[1] if tags.gain is None else 1.0

    def has_l1(self, model: "Model") -> bool:
        """Return whether the penalty has a kink for weights of a model."""
        names = model.score_graph.trained.coefficients
        return self.penalty is not None and self.penalty.has_l1(names)

    def _is_smooth(self, model):
        return self.loss.smooth_instead is None and not self.has_l1(model)

    def _of_all_rows(self, of_optimizer):
        """Return the plan with an optimizer over all rows, which makes its updates itself."""
        rates = optimizer.searched_rates()
        of_stopping = self.decisions["stopping"]
        if "tol" in self.left_open:
            of_stopping = stopping.full_tolerance(self.dtype)

        return self.with_decisions(
            {"optimizer": of_optimizer, "learning rate": rates, "stopping": of_stopping},
            update=dataclasses.replace(
                self.update, optimizer=of_optimizer.value, largest_rate=None
            ),
            schedule=rates.value,
            rate=GIVEN_RATE,
            can_restart=False,
            tol=of_stopping.value,
            shuffle=False,
        )

    def _with_steps(self, of_optimizer, rates, rate):
        """Return the plan with other decisions on the optimizer and on its learning rate."""
        update = dataclasses.replace(
            self.update, optimizer=of_optimizer.value, largest_rate=largest_rate(rates.value)
        )
        return self.with_decisions(
            {"optimizer": of_optimizer, "learning rate": rates},
            update=update,
            schedule=rates.value,
            rate=rate,
        )

    def of_stream(self, model: "Model") -> "Plan":
        """Return the plan of a stream from its first call on."""
        is_linear = model.score_graph.is_linear
        plan = self._without_end()

        # The numbers of a function of the update belong to batches.
        has_first_rate = bool(optimizer.first_rates_of(self.schedule))
        if is_linear and has_first_rate and self.update.tags.gain is not None:
            is_open = "batch_size" in self.left_open
            n_rows = stream.rows_of_a_step() if is_open else self.batch_size
            return plan._of_rows(n_rows, falls=model.is_drawn)
        if is_linear or "optimizer" not in self.left_open:
            return plan

        return plan._with_steps(
            optimizer.stream_optimizer(), self.decisions["learning rate"], self.rate
        )

    def _of_rows(self, n_rows, *, falls):
        """
        Return the plan of a linear stream. A step of so many rows has the whole rate. `falls`: rows
        seen lower it.
        """
        rate = stream.rate_of_rows(self, n_rows, falls=falls)
        rates = self.decisions["learning rate"]
        if rate.bound is not None:
            rates = rates._replace(value=optimizer.at_rate(rates.value, 1.0))
        return self._with_steps(self.decisions["optimizer"], rates, rate)

    def _without_end(self):
        one = Decision("one for each call", "partial_fit makes one epoch")
        never = Decision("never", "a stream has no end")
        return self.with_decisions({"epochs": one, "stopping": never}, is_stream=True)

    def going_on(self, estimator: Any, n_rows: int) -> "Plan":
        """Return the plan of a stream that goes on from a fit. Its first call has so many rows."""
        plan = Plan.of(
            estimator, self.objective_inside, self.size, dtype=self.dtype, is_stream=True
        )
        plan = plan._without_end()

        # The size of the fit's batches stays if they are the user's, or if the user's rate is that of
        # a batch.
        kept = self.decisions["batches"]
        if kept.because == batches.YOUR_BATCHES or not plan.rate.is_auto:
            plan = plan.decided("batches", kept, batch_size=self.batch_size)
        elif "batch_size" in plan.left_open:
            plan = plan._with_batches_of(n_rows)

        return plan._with_steps(
            self._optimizer_after(plan), plan.decisions["learning rate"], plan.rate
        )

    def of_first_rows(self, n_rows: int) -> "Plan":
        """Return the plan of a stream for the first call in which rows count: so many."""
        because = self.decisions["batches"].because
        plan = self._with_batches_of(n_rows) if because == batches.OF_FIRST_CALL else self
        size = self.size._replace(batch_size=min(plan.batch_size, n_rows))
        return dataclasses.replace(plan, size=size)

    def of_seen_rows(self, estimator: Any, n_rows: int) -> "Plan":
        """
        Return the plan of a stream after so many rows. A penalty that the model inside weighs
        against a sum over rows counts the rows so far, anew whenever they have doubled.
        """
        if not counts_rows(estimator, self.objective_inside) or n_rows < 2 * self.size.n_rows:
            return self

        size = self.size._replace(weight_sum=n_rows * self.size.mean_weight)
        penalty = training_penalty(estimator, self.objective_inside, size)
        decision = penalty_decision(estimator, self.left_open, self.objective_inside, penalty)
        return self.decided("penalty", decision, penalty=penalty, size=size)

    def _with_batches_of(self, n_rows):
        """Return the plan with the batches of a stream whose first call has so many rows."""
        n_rows = min(batches.batch_rows(is_stream=True), n_rows)
        of_batches = batches.batch_decision(n_rows, is_stream=True)
        return self.decided("batches", of_batches, batch_size=n_rows)

    @functools.cached_property
    def is_full(self) -> bool:
        """Whether the optimizer makes its updates itself, from the gradient over all rows."""
        return self.update.tags.is_full

    def in_steps(self) -> "Plan":
        """Return the plan for single steps: SGD trains a linear model whose optimizer is open."""
        if not self.is_full or self.objective_inside.is_full or "optimizer" not in self.left_open:
            return self

        chosen = optimizer.linear_optimizer("single steps are made")
        update = dataclasses.replace(self.update, optimizer=chosen.value, largest_rate=None)
        return self.decided("optimizer", chosen, update=update)

    def check_steps(self, what: str) -> None:
        """Raise an error if the optimizer needs all rows at once, which `what` does not have."""
        of_model = ['solver="lbfgs" of the network inside'] if "optimizer" in self.left_open else []
        self.update.check_steps(what, *of_model)

    def rows_of_batch(self, n_rows: int, n_features: int) -> int:
        """Return the largest number of rows of a batch, or of a block of a pass over all rows."""
        is_free = self.is_full and "batch_size" in self.left_open
        return block_size(n_rows, n_features) if is_free else self.batch_size

    @property
    def leaves_steps_open(self) -> bool:
        """Whether the user leaves the optimizer, its rates and its batches to skort."""
        return self.chosen_of_steps is None

    @property
    def chosen_of_steps(self) -> str | None:
        """The first parameter by which the user decides on the steps, or None."""
        return first_set(self.given, optimizer.DECIDE_ON_STEPS)

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

    def for_target(self, encoded: EncodedTarget) -> "Plan":
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

    def patience(self, n_batches: int, *, is_linear: bool) -> int | float:
        """
        Return the patience: how many epochs without improvement let the rate fall or end the
        training.
        """
        if not isinstance(self.n_iter_no_change, str):
            return self.n_iter_no_change

        last = last_update(self.schedule)
        return stopping.patience(
            self.update.tags.memory,
            n_batches,
            is_linear=is_linear,
            planned_epochs=None if last is None else min(-(-last // n_batches), self.max_iter),
            is_validated=self.is_validated,
        )

    def has_parameters_of(self, estimator: Any) -> bool:
        """Return whether an estimator still has the parameters that this plan was made from."""
        try:
            return self.given == given_parameters(estimator, training_device(estimator))
        except ValueError:  # The caller validates the parameters then.
            return False

    def check_same_model(self, estimator: Any) -> None:
        """
        Raise an error if the model, its trained weights or the dtype is no longer that of this
        plan.
        """
        for name, value in parameters_inside(estimator).items():
            if value != self.given_inside[name]:
                raise ValueError(
                    f"{name} was changed since the last fit, and partial_fit goes on with the "
                    "model of that fit. Call fit, or set it back."
                )

        if estimator.dtype != (given := self.given["dtype"]):
            raise ValueError(
                f"dtype={estimator.dtype!r}, but earlier calls had dtype={given!r}. Call "
                "fit, or set it back."
            )

    def variables(
        self, score_graph: "ScoreGraph", standardization: Standardization | None
    ) -> Reparametrization:
        """Return the variables in which a model is trained."""
        loss = (
            self.loss if self.class_weight is None else ClassWeighted(self.loss, self.class_weight)
        )
        return Reparametrization.of(score_graph, loss, self.penalty, standardization)

    def sparse_solvers(self, model: "Model", variables: Reparametrization) -> list[str]:
        """Return the names of the solvers that can multiply the sparse rows of this model as they are."""
        from skort.graphs.standardized import product_layer
        from skort.solvers import has_sparse_steps

        has_own_penalty = self.penalty is not None and self.penalty.is_custom
        if self.device.is_remote or variables.row_factor is None or has_own_penalty:
            return []

        layer = product_layer(model.score_graph)
        if layer is None or layer.coefficient != model.score_graph.trainable[0]:
            return []

        return [name for name in self.solvers if has_sparse_steps(name)]

    def device_for(self, score_graph: "ScoreGraph", n_rows: int) -> "Device":
        """
        Return the device of steps of so many rows. If skort chooses the threads, there are as many
        as the work is worth.
        """
        from skort.graphs.score_graph import step_work

        if "n_jobs" not in self.left_open or self.device.is_remote or not n_rows:
            return self.device
        return dataclasses.replace(
            self.device, n_threads=threads_for(step_work(score_graph, n_rows))
        )

    def problem(  # noqa: PLR0913  # what steps depend on
        self,
        model: "Model",
        variables: Reparametrization,
        state: TrainState,
        batch_size: int,
        n_batches: int | None = None,
        *,
        is_sparse: bool = False,
        of_model_rows: bool = False,
    ) -> "Problem":
        """
        Return the problem that a solver is made from: in the variables of the training, or of X
        itself. `n_batches=None`: the batches of an epoch are not known.
        """
        from skort.graphs.training_mode import masked
        from skort.objective.objective import Objective
        from skort.solvers.base import Problem

        graph = variables.graph(model.score_graph, of_model_rows=of_model_rows)
        if graph.has_dropout:
            graph = masked(graph, batch_size)
        objective = Objective(
            loss=variables.loss,
            penalty=variables.penalty,
            coefficients=model.score_graph.coefficients,
            n_outputs=model.score_graph.n_outputs,
            dtype=graph.dtype,
            intercepts=model.score_graph.trained.intercepts,
            start=state.penalty_start or {},
        )
        loss_weights = variables.training_weights(model.loss_weights)
        largest = self.update.largest_rate
        update = self.update
        if largest is not None:
            steps = self.batch_size / (self.rate.rows_of_a_step or self.batch_size)
            update = dataclasses.replace(update, largest_rate=steps * state.rate_scale * largest)
        row_factor = variables.row_factor if is_sparse else None

        # The first product of sparse rows is little work.
        device = self.device_for(model.score_graph, 0 if is_sparse else batch_size)
        return Problem(
            graph, objective, update, batch_size, device, n_batches, loss_weights, row_factor
        )


class _Part(NamedTuple):
    """A part of a plan: its decisions, by matter, and the values that they stand for."""

    decisions: dict[str, Decision]
    #: The values of fields of the plan, by name.
    values: dict[str, Any]


def _objective(estimator, is_open, inside, size):
    """Return the part that says what is minimised."""
    loss = training_loss(estimator, inside)
    penalty = training_penalty(estimator, inside, size)
    decisions = {
        "loss": loss_decision(is_open, inside, loss),
        "penalty": penalty_decision(estimator, is_open, inside, penalty),
    }

    if isinstance(estimator, ClassifierMixin):
        of_classes = class_weight_decision(estimator, is_open, inside)
        if of_classes is not None:
            decisions["class weights"] = of_classes

    return _Part(decisions, {"loss": loss, "penalty": penalty})


def _steps(estimator, is_open, of_optimizer, penalty, *, is_full):
    """Return the part that says how a step changes the weights."""
    if is_full:
        rates = optimizer.searched_rates()
        rate = GIVEN_RATE
    else:
        rates, rate = optimizer.chosen_schedule(estimator, is_open, penalty)

    update = Update(
        of_optimizer.value,
        estimator.max_grad_norm,
        estimator.average,
        largest_rate(rates.value),
    )

    return _Part(
        {"optimizer": of_optimizer, "learning rate": rates},
        {
            "update": update,
            "schedule": rates.value,
            "rate": rate,
            "can_restart": stopping.may_restart(is_rate_found=rate.is_found),
        },
    )


def _solver(estimator, dtype, update, device):
    """Return the part that says what computes the steps, and in which dtype."""
    of_dtype = _dtype(estimator, dtype)
    solvers = _solvers(estimator.solver, np.dtype(of_dtype.value), update, device)
    return _Part({"dtype": of_dtype}, {"dtype": of_dtype.value, "solvers": solvers})


def _end(estimator, is_open, dtype, *, is_full, is_validated):
    """Return the part that says when the training ends."""
    of_epochs = stopping.chosen_epochs(estimator, is_open)
    of_stopping = stopping.chosen_tolerance(
        estimator, is_open, dtype, is_full=is_full, is_validated=is_validated
    )
    decisions = {"epochs": of_epochs, "stopping": of_stopping}
    if is_validated:
        decisions["validation"] = stopping.chosen_validation(estimator)

    return _Part(
        decisions,
        {
            "max_iter": of_epochs.value,
            "tol": of_stopping.value,
            "n_iter_no_change": estimator.n_iter_no_change,
            "is_validated": is_validated,
        },
    )


def _solvers(name, dtype, update, device):
    """Return the names of the solvers to choose from, the fastest first. Check a solver that is set."""
    from skort.solvers import SOLVERS, check_solver

    if name == "auto":
        return [*SOLVERS]
    check_solver(name, dtype, update, device)
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
