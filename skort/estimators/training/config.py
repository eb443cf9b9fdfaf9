"""What the parameters of an estimator stand for: each name, instance and number resolved once a fit."""

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator

from skort.common.component import PLAIN, check_parameters, parameter_names
from skort.estimators.data.targets import EncodedTarget
from skort.estimators.training.hardware import threads_for, training_device
from skort.estimators.training.network import LATER, planned_decay, planned_epochs
from skort.estimators.training.reparametrization import Reparametrization
from skort.estimators.training.terms import TrainingSize, chosen_loss, chosen_penalty, losses_of
from skort.objective.combined import ClassWeighted
from skort.objective.loss import ScoreLoss, as_loss
from skort.objective.penalties import WeightPenalty, as_penalty
from skort.optim.batches import block_size
from skort.optim.optimizers import LBFGS, OPTIMIZERS, SGD, Adam, optimizer_tags
from skort.optim.schedules import SCHEDULES, Constant, Cosine, largest_rate, may_fall, rate
from skort.optim.standardization import Standardization
from skort.optim.state import TrainState
from skort.optim.update import Update, check_full, full_obstacle

if TYPE_CHECKING:
    from skort.estimators.model.model import Model
    from skort.graphs.score_graph import ScoreGraph
    from skort.objective.sklearn_objectives import SklearnObjective
    from skort.runtime.device import Device
    from skort.solvers.base import Problem

# Those of the constructor that say nothing about the steps.
_NO_SETTINGS = ("estimator", "trainable", "callbacks", "client", "n_groups")
# Without an improvement in so many updates of a linear model, and epochs, the rate falls: see `benchmarks.defaults`.
_LINEAR_UPDATES, _LEAST_EPOCHS = 30, 5
# With `early_stopping`: the values of few rows move by chance.
_VALIDATED_EPOCHS = 10
# Where nothing else is given: the largest number of epochs, and the smallest fall of the objective, as a part of it.
_MAX_ITER, _TOL = 1000, 1e-3
# That of the gradient of all rows: its largest entry.
_FULL_TOL = {"float32": 2e-6, "float64": 1e-8}


@dataclasses.dataclass(frozen=True, eq=False)
class TrainConfig:
    """Every parameter of a training resolved once: no data, and no weights."""

    given: dict[str, Any]
    inside: dict[str, Any]
    #: What the model inside minimises.
    own: "SklearnObjective"
    size: TrainingSize
    loss: ScoreLoss
    penalty: WeightPenalty | None
    update: Update
    schedule: Callable[[int], float]
    #: Whether the first rate is found from the data.
    is_rate_auto: bool
    #: Whether a training that fails may begin again at a smaller rate: the user gave none.
    can_restart: bool
    #: Those that can do all this, the fastest first.
    solvers: list[str]
    device: "Device"
    #: The number of rows that make a step at the whole rate, and the largest of a batch.
    batch_size: int
    n_iter_no_change: int | float | str
    shuffle: bool
    standardize: bool | str
    dtype: str
    is_classifier: bool
    class_weight: np.ndarray | None = None
    #: The largest number of epochs, and the smallest improvement, of losses relative; None: all epochs are made.
    max_iter: int = _MAX_ITER
    tol: float | None = _TOL
    #: Whether the learning rate is the cosine of a network, which comes to zero with the last epoch.
    is_planned: bool = False

    @classmethod
    def of(
        cls,
        estimator,
        own: "SklearnObjective",
        size: TrainingSize,
        batch_size: int | None = None,
        dtype: str | None = None,
    ) -> "TrainConfig":
        """Return what the parameters of an estimator mean for rows of a size; None: its own batch size and dtype."""
        from skort.solvers import usable

        optimizer = _optimizer(estimator)
        is_full = optimizer_tags(optimizer).is_full
        n_rows_of_a_step = size.batch_size if estimator.batch_size == "auto" else int(estimator.batch_size)
        if is_full:
            check_full(vars(estimator))
            size = size._replace(batch_size=size.n_rows)
        penalty = chosen_penalty(estimator, own, size)
        penalty = as_penalty(resolved(penalty, "penalty") if penalty is estimator.penalty else validated(penalty))
        schedule, is_rate_auto = (Constant(1.0), False) if is_full else _schedule(estimator, penalty)
        update = Update(optimizer, estimator.max_grad_norm, estimator.average, largest_rate(schedule))
        if batch_size is not None:
            update.check_steps("fit_batches")
        device, dtype = training_device(estimator), dtype or estimator.dtype
        solvers = usable(estimator.solver, np.dtype(dtype), update, device)
        return cls(
            given=_given(estimator, device),
            inside=what_is_inside(estimator),
            own=own,
            size=size,
            loss=_loss(estimator, own),
            penalty=penalty,
            update=update,
            schedule=schedule,
            is_rate_auto=is_rate_auto,
            can_restart=is_rate_auto,
            solvers=solvers,
            device=device,
            batch_size=n_rows_of_a_step,
            n_iter_no_change=estimator.n_iter_no_change,
            shuffle=estimator.shuffle and not is_full,
            standardize=estimator.standardize,
            dtype=dtype,
            is_classifier=isinstance(estimator, ClassifierMixin),
            max_iter=_MAX_ITER if isinstance(estimator.max_iter, str) else int(estimator.max_iter),
            tol=_tol(estimator, dtype, is_full=is_full),
        )

    def renewed(self, estimator) -> "TrainConfig":
        """Return the settings that changed parameters make of the same model and the same size."""
        renewed = TrainConfig.of(estimator, self.own, self.size, dtype=self.dtype)
        # Batches of the user may have given it.
        size = self.batch_size if estimator.batch_size == self.given["batch_size"] else renewed.batch_size
        renewed = dataclasses.replace(renewed, batch_size=size)
        # What skort chose is that of the first call, whose memory it goes on with.
        optimizer, schedule, is_auto = renewed.update.optimizer, renewed.schedule, renewed.is_rate_auto
        if self.is_open("optimizer") and renewed.is_open("optimizer"):
            optimizer = self.update.optimizer
        is_same = all(self.given[name] == renewed.given[name] for name in ("optimizer", "learning_rate", "eta0"))
        if is_same and self.is_open("learning_rate"):
            schedule, is_auto = self.schedule, self.is_rate_auto
        return renewed._with_steps(optimizer, schedule, is_rate_auto=is_auto)

    def is_open(self, *names: str) -> bool:
        """Return whether the user leaves all of some parameters to skort."""
        return all(isinstance(self.given[name], str) and self.given[name] == "auto" for name in names)

    def for_model(self, model: "Model", *, in_memory: bool = False) -> "TrainConfig":
        """Return the parameters for a model: what the user leaves open of a network is that of its plan."""
        is_own = self.is_open("optimizer") and self.own.is_full and full_obstacle(self.given) is None
        if in_memory and is_own and model.inner.draws_weights and self._is_smooth(model):
            return self._of_all_rows()
        return self if model.score_graph.is_linear or self.is_full else self._of_network()

    def _of_network(self):
        """Return the parameters of a network: each that is open is chosen for itself."""
        n_batches, max_iter = self.size.n_batches, self.max_iter
        if self.is_open("max_iter"):
            max_iter = planned_epochs(self.size.n_rows, n_batches)
        n_updates, optimizer = max_iter * n_batches, self.update.optimizer
        if self.is_open("optimizer"):
            # The decay is that of the plan at any rate: a smaller one would not learn against a larger decay.
            optimizer = Adam(weight_decay=planned_decay(n_updates, Adam().tags.first_rates[1]))
        eta0, schedule = self._first_rate(optimizer), self.schedule
        is_planned, has_gain = self.is_open("learning_rate"), optimizer_tags(optimizer).gain is not None
        if is_planned:
            schedule = Cosine(n_updates, eta0)
        elif self.is_rate_auto:
            schedule = clone(schedule).set_params(eta0=eta0)
        config = self._with_steps(optimizer, schedule, is_rate_auto=self.is_rate_auto and has_gain)
        # The score of a validation set may end it, and the objective where the user says after how many epochs, or
        # where its rate falls by it.
        runs_out = self.is_open("tol", "n_iter_no_change") and not (self.given["early_stopping"] or may_fall(schedule))
        return dataclasses.replace(config, max_iter=max_iter, tol=None if runs_out else self.tol, is_planned=is_planned)

    def _first_rate(self, optimizer):
        """Return the rate of a network's first update; 1 where it is multiplied by one that is found from the data."""
        if not self.is_open("eta0"):
            return float(self.given["eta0"])
        tags = optimizer_tags(optimizer)
        return tags.first_rates[1] if tags.gain is None else 1.0

    def _is_smooth(self, model):
        strengths = {} if self.penalty is None else self.penalty.strengths(model.score_graph.trained.coefficients)
        return self.loss.smooth_instead is None and not any(np.any(strength.l1) for strength in strengths.values())

    def _of_all_rows(self):
        """Return the parameters for the optimizer that a network inside names."""
        full = self._with_steps(LBFGS(), Constant(1.0))
        tol = _FULL_TOL[self.dtype] if self.is_open("tol") else self.tol
        return dataclasses.replace(full, shuffle=False, tol=tol, can_restart=False)

    def _with_steps(self, optimizer, schedule, *, is_rate_auto=False):
        from skort.solvers import usable

        update = dataclasses.replace(self.update, optimizer=optimizer, largest_rate=largest_rate(schedule))
        solvers = usable(self.given["solver"], np.dtype(self.dtype), update, self.device)
        return dataclasses.replace(self, update=update, schedule=schedule, is_rate_auto=is_rate_auto, solvers=solvers)

    def of_stream(self, model: "Model") -> "TrainConfig":
        """Return the parameters of a stream from its first call on: a network is trained by Adam, unless told."""
        if model.score_graph.is_linear or not self.is_open("optimizer"):
            return self
        return self._with_steps(Adam(), self.schedule, is_rate_auto=self.is_rate_auto)

    def for_stream(self) -> "TrainConfig":
        """Return the parameters of epochs after a plan, or instead: their rate is a constant part of its first."""
        if not self.is_planned:
            return self
        cosine: Any = self.schedule
        steps = self._with_steps(self.update.optimizer, Constant(LATER * cosine.eta0), is_rate_auto=self.is_rate_auto)
        return dataclasses.replace(steps, is_planned=False)

    @property
    def is_full(self) -> bool:
        """Whether the optimizer makes its updates itself, from the gradient over all rows."""
        return self.update.tags.is_full

    def check_steps(self, what: str) -> None:
        """Raise an error where the optimizer makes its updates itself, as `what` has no place for that."""
        of_model = ['solver="lbfgs" of the network inside'] if self.is_open("optimizer") else []
        self.update.check_steps(what, *of_model)

    def rows_of_batch(self, n_rows: int, n_features: int) -> int:
        """Return the largest number of rows of a batch, or of a block of a pass over all rows."""
        is_free = self.is_full and isinstance(self.given["batch_size"], str)
        return block_size(n_rows, n_features) if is_free else self.batch_size

    @property
    def whole_rate(self) -> float:
        """By how much eta0="auto" is larger than the rate of the largest batch there is, which may be a short one."""
        is_short = self.is_open("eta0") and not self.is_full
        return self.batch_size / self.size.batch_size if is_short else 1.0

    @property
    def takes_start(self) -> bool:
        """Whether the penalty compares weights with those before the training."""
        return self.penalty is not None and self.penalty.takes_start

    def for_target(self, encoded: EncodedTarget) -> "TrainConfig":
        """Return the parameters for a target: several labels have a log-loss each; class weights may be of the loss."""
        loss = self.loss.with_widths(None if encoded.outputs is None else encoded.outputs.widths)
        if loss is not self.loss:
            return dataclasses.replace(self, loss=loss)
        if encoded.class_weight is not None and self.class_weight is None:
            return dataclasses.replace(self, class_weight=encoded.class_weight)
        if not encoded.multi_label:
            return self
        of_labels = self.loss.for_labels()
        if of_labels is None:
            raise ValueError(f'A multi-label y needs loss="log_loss", got {self.given["loss"]!r}.')
        return self if of_labels is self.loss else dataclasses.replace(self, loss=of_labels)

    def patience(self, n_batches: int, *, is_linear: bool) -> int | float:
        """Return how many epochs without improvement end a training, or let its learning rate fall."""
        # "auto": so many that the objective can improve. A linear model gets as many as 30 updates take, and momentum
        # twice the updates that a gradient counts in, as fewer may be part of one oscillation.
        if not isinstance(self.n_iter_no_change, str):
            return self.n_iter_no_change
        n_updates = max(2 * self.update.tags.memory, _LINEAR_UPDATES if is_linear else 1)
        least = _LEAST_EPOCHS
        if self.given["early_stopping"]:
            # Most of what a plan gains comes near its end, where the rate is small.
            least = max(_VALIDATED_EPOCHS, math.ceil(self.max_iter / 2) if self.is_planned else 0)
        return max(least, math.ceil(n_updates / n_batches))

    def hold(self, estimator) -> bool:
        """Return whether an estimator has the parameters, to their last part, that these settings were made from."""
        try:
            return self.given == _given(estimator, training_device(estimator))
        except ValueError:  # The caller validates the parameters then.
            return False

    def check_same_model(self, estimator) -> None:
        """Raise an error where the parameters that say what is trained are others than these."""
        for name, value in what_is_inside(estimator).items():
            if value != self.inside[name]:
                raise ValueError(
                    f"{name} was changed since the last fit, and partial_fit goes on with the model of that fit. Call "
                    "fit, or set it back."
                )
        if estimator.dtype != (given := self.given["dtype"]):
            raise ValueError(
                f"dtype={estimator.dtype!r}, but earlier calls had dtype={given!r}. Call fit, or set it back."
            )

    def variables(self, score_graph: "ScoreGraph", standardization: Standardization | None) -> Reparametrization:
        """Return the variables in which a model is trained."""
        loss = self.loss if self.class_weight is None else ClassWeighted(self.loss, self.class_weight)
        return Reparametrization.of(score_graph, loss, self.penalty, standardization)

    def sparse_solvers(self, model: "Model", variables: Reparametrization) -> list[str]:
        """Return the names of the solvers that multiply sparse rows as they are, if the model allows it."""
        from skort.graphs.standardized import product_layer
        from skort.solvers import has_sparse_steps

        is_own = self.penalty is not None and self.penalty.is_custom
        if self.device.is_remote or variables.row_factor is None or model.score_graph.dropout or is_own:
            return []
        layer = product_layer(model.score_graph)
        if layer is None or layer.coefficient != model.score_graph.trainable[0]:
            return []
        return [name for name in self.solvers if has_sparse_steps(name)]

    def device_for(self, score_graph: "ScoreGraph", n_rows: int) -> "Device":
        """Return the device of steps of so many rows: where skort chooses, with the threads that they are worth."""
        from skort.graphs.score_graph import step_work

        if not self.is_open("n_jobs") or self.device.is_remote or not n_rows:
            return self.device
        return dataclasses.replace(self.device, n_threads=threads_for(step_work(score_graph, n_rows)))

    def problem(
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
        """Return what a solver is made from, of the training's rows or of X; an epoch has `n_batches`, if known."""
        from skort.graphs.training_mode import masked
        from skort.objective.objective import Objective
        from skort.solvers.base import Problem

        graph = masked(variables.graph(model.score_graph, of_model_rows=of_model_rows), batch_size)
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
        largest, update = self.update.largest_rate, self.update
        if largest is not None:
            update = dataclasses.replace(update, largest_rate=state.rate_scale * largest)
        row_factor = variables.row_factor if is_sparse else None
        # Sparse rows leave little of the first product.
        device = self.device_for(model.score_graph, 0 if is_sparse else batch_size)
        return Problem(graph, objective, update, batch_size, device, n_batches, loss_weights, row_factor)


def resolved(component, name="component"):
    """Return a component as training uses it."""
    validated(component, name)
    return clone(component) if isinstance(component, BaseEstimator) else component


def validated(component, name="component"):
    """Return a component that is nobody else's; raise the errors of `resolved`."""
    for part in (component, *(component.get_params().values() if isinstance(component, BaseEstimator) else ())):
        if isinstance(part, type):
            raise ValueError(f"{name}: {part.__name__} is a class: give an instance of it, {part.__name__}().")
        check_parameters(part)
    return component


def _loss(estimator, own):
    given = chosen_loss(estimator, own)
    loss = as_loss(resolved(given, "loss") if given is estimator.loss else validated(given))
    assert loss is not None  # The parameter was validated: it has the method.
    kind = "classifier" if isinstance(estimator, ClassifierMixin) else "regressor"
    if kind not in loss.estimator_types:
        names = ", ".join(repr(name) for name in losses_of(estimator))
        raise ValueError(f"loss={type(loss).__name__} is not a loss of a {kind}. Use one of {names}.")
    return loss


def _tol(estimator, dtype, *, is_full):
    """Return the smallest improvement; that of a validation loss may be any: the best weights come back."""
    if not isinstance(estimator.tol, str):
        return estimator.tol
    if is_full:
        return _FULL_TOL[dtype]
    return 0.0 if estimator.early_stopping and estimator.scoring is None else _TOL


def _optimizer(estimator):
    """Return the optimizer, by name with its own defaults: its epsilon is not that of a loss."""
    optimizer = estimator.optimizer
    if not isinstance(optimizer, str):
        return resolved(optimizer, "optimizer")
    return validated(SGD() if optimizer == "auto" else OPTIMIZERS[optimizer]())


def _schedule(estimator, penalty):
    """Return the schedule, by name with the parameters of the estimator, and whether its rate comes from the data."""
    is_auto, name = False, estimator.learning_rate
    if isinstance(name, str):
        component = SCHEDULES["adaptive" if name == "auto" else name]
        of_penalty = 0.0 if penalty is None else penalty.alpha
        alpha = of_penalty if isinstance(estimator.alpha, str) else estimator.alpha
        if "alpha" in component.shared_parameters and not (np.ndim(alpha) == 0 and alpha > 0):
            raise ValueError(
                f'learning_rate="{name}" divides by alpha, got alpha={alpha}. Set alpha > 0 (with '
                'penalty=None it is no penalty), or another learning_rate, such as "invscaling".'
            )
        values = {name: getattr(estimator, name) for name in component.shared_parameters} | {"alpha": alpha}
        is_auto = isinstance(values.get("eta0"), str)
        values |= {"eta0": 1.0} if is_auto else {}
        schedule = validated(component(**{name: values[name] for name in component.shared_parameters}))
    else:
        schedule = resolved(name, "learning_rate")
    # Raises an error where the first rate is none.
    rate(schedule, 1)
    return schedule, is_auto


def what_is_inside(estimator) -> dict[str, Any]:
    """Return the parameters that say what is trained, as values."""
    return {"estimator": snapshot(estimator.estimator), "trainable": snapshot(estimator.trainable)}


def _given(estimator, device):
    """Return the parameters that settings are made from, as a value, and the device that they mean here."""
    names = [name for name in estimator._parameter_constraints if name not in _NO_SETTINGS]
    return {**{name: snapshot(getattr(estimator, name)) for name in names}, "device": device}


def snapshot(value):
    """Return what is equal to a later snapshot of the same value unless it was changed, in place too."""
    if type(value) in PLAIN:
        return value
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tolist() if value.dtype.kind == "O" else value.tobytes()
    if isinstance(value, FrozenEstimator):
        # It is fitted: its parameters do not say what it is.
        return value.estimator
    if isinstance(value, BaseEstimator):
        names = parameter_names(type(value))  # type: ignore[arg-type]  # classes are hashable
        return type(value), {name: snapshot(getattr(value, name, None)) for name in names}
    if isinstance(value, dict):
        # Their order says which columns are of which output, and which of two patterns counts.
        return [(key, snapshot(part)) for key, part in value.items()]
    return [snapshot(part) for part in value] if isinstance(value, (list, tuple)) else value
