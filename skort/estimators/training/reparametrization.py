"""
The variables that a training works in: standardized X and y,
and what they make of weights and objective.
"""

import contextlib
import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from skort.common.blas import one_blas_thread
from skort.estimators.planning.scaling import FAR
from skort.estimators.training.loss_scale import is_of_y, loss_unit
from skort.objective.loss import InUnits, ScoreLoss
from skort.objective.penalties import WeightPenalty, rescaled
from skort.optim.rows import RowChange, UnchangedRows, difference, stays_where_it_is
from skort.optim.standardization import Standardization

if TYPE_CHECKING:
    from skort.graphs.layers import Layer
    from skort.graphs.score_graph import ScoreGraph

# Weights of a training that are so many times larger or smaller than one have to fit into
# the model, too.
_ROOM = 2.0**20


class WeightRangeError(ValueError):
    """Weights, in the units of X and y, that the dtype of a model cannot hold."""


def _multiply(weights, names, factor):
    """Multiply those of some weights that there are in float64, in a dict that is changed."""
    for name in names:
        if name in weights:
            exact = weights[name].astype(np.float64)
            weights[name] = np.multiply(exact, factor, out=exact)


def _add(weights, name, values):
    """Add to a vector in float64, if there is one, in a dict that is changed."""
    if name in weights:
        weights[name] = weights[name].astype(np.float64) + values


def _changed(weights, changes):
    """Return weights after changes in float64, each in its own dtype."""
    changed = dict(weights)
    if not (weights and changes):
        return changed

    # A weight that is nearly zero may become zero.
    with np.errstate(under="ignore"):
        for change in changes:
            change(changed)
        return {
            name: array.astype(weights[name].dtype, copy=False) for name, array in changed.items()
        }


@dataclass(frozen=True, eq=False)
class _Inputs:
    """The first layer gets :math:`(X - mean) / scale` in the training."""

    layer: "Layer"
    #: ndarray of shape (n_features,). What the weights have to take back: zero where the model
    #: subtracts it itself.
    mean: np.ndarray
    #: ndarray of shape (n_features,).
    scale: np.ndarray
    #: ndarray of shape (n_features,). What is subtracted from rows.
    row_mean: np.ndarray

    @functools.cached_property
    def factor(self) -> float | None:
        """
        What X is multiplied by where that is one number, and nothing is subtracted;
        otherwise None.
        """
        scale = self.scale
        return None if self.row_mean.any() or (scale != scale[0]).any() else float(1 / scale[0])

    @functools.cached_property
    def factors(self):
        """
        What each coefficient of the training is multiplied by in the model:
        a number where that is the same.
        """
        if self.factor is not None:
            return self.factor
        scale = self.layer.read(self.scale)
        return 1 / scale[None] if self.layer.transposed else 1 / scale[:, None]

    def to_model(self, weights: dict[str, np.ndarray]) -> None:
        """Change the weights of the training into those of the model."""
        _multiply(weights, [self.layer.coefficient], self.factors)
        if self.layer.intercept in weights:
            _add(weights, self.layer.intercept, -self._shift(weights))

    def to_training(self, weights: dict[str, np.ndarray]) -> None:
        """Change the weights of the model into those of the training."""
        if self.layer.intercept in weights:
            _add(weights, self.layer.intercept, self._shift(weights))
        _multiply(weights, [self.layer.coefficient], 1 / self.factors)

    def _shift(self, weights):
        """Return what the layer, with the weights of the model, makes of the means."""
        coefficient = weights[self.layer.coefficient].astype(np.float64)
        with one_blas_thread(coefficient.size):
            return self.layer.read(self.mean) @ (
                coefficient.T if self.layer.transposed else coefficient
            )


@dataclass(frozen=True, eq=False)
class _Score:
    """The score of the model is that of the training times the scale, plus the shift."""

    #: The last one.
    layer: "Layer"
    scale: float
    #: ndarray of shape (n_outputs,). Less the offset.
    shift: np.ndarray
    #: The weights of the loss, which are in units of y.
    loss_weights: tuple[str, ...]
    #: Whether the loss gets the score and the target of the model, since it is not known
    #: in other units.
    is_of_y: bool
    #: ndarray of shape (n_outputs,) or number. What the model adds to its score itself.
    offset: Any = 0.0

    @functools.cached_property
    def scaled(self) -> tuple[str | None, ...]:
        """The names of the weights that are in units of y."""
        return (self.layer.coefficient, self.layer.intercept, *self.loss_weights)

    def to_model(self, weights: dict[str, np.ndarray]) -> None:
        """Change the weights of the training into those of the model."""
        _multiply(weights, self.scaled, self.scale)
        _add(weights, self.layer.intercept, self.shift)

    def to_training(self, weights: dict[str, np.ndarray]) -> None:
        """Change the weights of the model into those of the training."""
        _add(weights, self.layer.intercept, -self.shift)
        _multiply(weights, self.scaled, 1 / self.scale)


@dataclass(frozen=True, eq=False)
class Reparametrization:
    """
    The variables v of a training, of weights w = v s_out / s_in, and its objective:
    J(w) = unit J'(v) + offset.
    """

    # s_in: the scales of X in the first layer, s_out: that of y in the last layer; else one.
    #: None: the variables are those of the model.
    standardization: Standardization | None
    #: The loss in units of the standardized y.
    in_units: InUnits
    #: That of the weights of the training.
    penalty: WeightPenalty | None
    #: None: X is as it is.
    inputs: _Inputs | None = None
    #: None: y is as it is.
    score: _Score | None = None
    #: That of the training.
    dtype: Any = np.float32

    @classmethod
    def of(
        cls,
        score_graph: "ScoreGraph",
        loss: ScoreLoss,
        penalty: WeightPenalty | None,
        used: Standardization | None,
    ) -> "Reparametrization":
        """Return the variables of a training."""
        if used is None:
            return cls(None, InUnits(loss, 1.0), penalty, dtype=score_graph.dtype)

        inputs = _inputs(score_graph, used)
        score = _score(score_graph, loss, used)
        in_units = InUnits(loss, 1.0)

        if score is not None and score.is_of_y:
            unit = loss_unit(loss, score.shift + score.offset, score.scale)
            in_units = InUnits(loss, unit, weight=1 / unit)
        elif score is not None:
            in_units = _scaled(loss, used.target_scale)

        variables = cls(used, in_units, penalty, inputs, score, score_graph.dtype)
        if not (score_graph.is_linear or penalty is None or penalty.is_custom):
            # That of a network is of the weights of standardized X and y.
            return variables

        return replace(variables, penalty=rescaled(penalty, variables.factors(), in_units.unit))

    @functools.cached_property
    def loss(self) -> ScoreLoss:
        """The loss of scores and targets of the training."""
        return self.in_units.loss

    def factors(self) -> dict[str, Any]:
        """
        Return what weights of the training are multiplied by in the model, by name;
        numbers or arrays.
        """
        factors: dict[str, Any] = {}
        if self.score is not None:
            factors = {name: self.score.scale for name in self.score.scaled if name}
        if self.inputs is not None:
            name = self.inputs.layer.coefficient
            factors[name] = factors.get(name, 1.0) * self.inputs.factors

        return factors

    def check_range(self) -> None:
        """
        Raise a WeightRangeError where the dtype of the model cannot hold X,
        y, or its weights in their units.
        """
        used = self.standardization
        if used is None:
            return

        numbers = {"y": np.abs(used.target_scale)} if used.target_mean is not None else {}
        if self.inputs is not None:
            numbers |= {
                "X": self.inputs.scale,
                "the weights": np.ravel(self.factors()[self.inputs.layer.coefficient]),
            }

        limits = np.finfo(self.dtype)
        for what, sizes in numbers.items():
            lost = np.flatnonzero(~((sizes > limits.tiny * _ROOM) & (sizes < limits.max / _ROOM)))
            if len(lost):
                column = (
                    ""
                    if what == "y"
                    else f" of column {lost[0]} of X"
                    if what != "X"
                    else f", column {lost[0]},"
                )
                wider = ', or use dtype="float64"' if limits.dtype == np.float32 else ""
                raise WeightRangeError(
                    f"{limits.dtype} cannot hold {what}{column} in the units of the data: they are "
                    f"about {np.ravel(sizes)[lost[0]]:.2g}. Divide the columns of X, or y, by "
                    f"constants{wider}."
                )

    def objective(self, value: float, target_mean: float = 1.0) -> float:
        """
        Return an objective, or loss, of the training in the units of the model's;
        of rows with this mean target.
        """
        used = self.in_units
        return used.unit * value + used.offset + used.offset_by_mean * target_mean

    def target(self, target: np.ndarray) -> np.ndarray:
        """Return the targets of the training."""
        used = self.standardization
        if self.score is None or self.score.is_of_y or used is None or used.target_mean is None:
            return target.astype(self.dtype, copy=False)
        return (difference(target, used.target_mean) / used.target_scale).astype(self.dtype)

    @property
    def row_change(self) -> RowChange:
        """What makes the rows of the training of those of X."""
        if self.inputs is None:
            return RowChange(None, None, self.dtype)

        factor = self.inputs.factor
        if factor is not None:
            return RowChange(None, np.float64(factor), self.dtype)

        mean = self.inputs.row_mean if self.inputs.row_mean.any() else None
        return RowChange(mean, 1 / self.inputs.scale, self.dtype)

    def rows(self, X: Any) -> Any:
        """
        Return the rows of the training:
        an array, or `UnchangedRows` where X is better read where it is.
        """
        change = self.row_change
        if not stays_where_it_is(X, self.dtype):
            return change(X)
        return X if change.inverse is None else UnchangedRows(X, change)

    def sample_weight_scale(self, n_outputs: int) -> float:
        """Return what the sample weights of a batch sum to."""
        return self.loss.weight_scale(n_outputs) * self.in_units.weight

    @property
    def row_factor(self) -> float | None:
        """
        What the rows of X are multiplied by in the training;
        None where they change in another way.
        """
        return 1.0 if self.inputs is None else self.inputs.factor

    def graph(self, score_graph: "ScoreGraph", *, of_model_rows: bool = False) -> "ScoreGraph":
        """
        Return the model with the training's weights,
        as a function of the rows of the training, or of X.
        """
        inputs = self.inputs
        score = self.score
        if inputs is None and score is None:
            return score_graph

        from skort.graphs.layers import OFFSET, TARGET_OFFSET
        from skort.graphs.standardized import rescaled_score, standardized_graph, without_offsets

        score_graph = score_graph.with_weights(self.training_weights(score_graph.trained_arrays))
        offsets = [] if score is None else [TARGET_OFFSET]
        if inputs is not None and of_model_rows:
            score_graph = standardized_graph(score_graph, inputs.layer, inputs.mean, inputs.scale)
        elif inputs is not None:
            offsets.append(OFFSET)

        score_graph = without_offsets(score_graph, offsets)
        if score is not None and score.is_of_y:
            score_graph = rescaled_score(score_graph, score.shift + score.offset, score.scale)
        return score_graph

    def model_weights(self, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the weights of the model, from those of the training."""
        return _changed(
            weights, [part.to_model for part in (self.score, self.inputs) if part is not None]
        )

    def training_weights(self, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """
        Return the weights of the training, from those of the model;
        of the model, of the loss, or of both.
        """
        return _changed(
            weights, [part.to_training for part in (self.inputs, self.score) if part is not None]
        )


def _scaled(loss, scale):
    """
    Return the loss of a y that is divided by its scale;
    a ValueError where float64 cannot hold that of y itself.
    """
    with contextlib.suppress(OverflowError):
        in_units = loss.in_units(scale)
        if in_units.unit >= np.finfo(np.float64).tiny:
            return in_units

    raise ValueError(
        f"The standard deviation of y is {scale:.2g}, whose square float64 cannot hold. Divide "
        "y by a constant."
    )


def _inputs(score_graph, used):
    """Return what the training changes of X, or None."""
    from skort.graphs.layers import OFFSET

    layer = None if used.scale is None else score_graph.first_layer
    if layer is None:
        return None

    offset = score_graph.arrays.get(OFFSET)
    return _Inputs(
        layer, used.mean if offset is None else used.mean - offset, used.scale, used.mean
    )


def _score(score_graph, loss, used):
    """Return what the training changes of y, or None."""
    from skort.graphs.layers import TARGET_OFFSET

    layer = None if used.target_mean is None else score_graph.last_layer
    if layer is None:
        return None

    n_outputs = score_graph.n_outputs
    names = loss.weight_names
    offset = score_graph.arrays.get(TARGET_OFFSET, np.zeros(n_outputs)).astype(np.float64)
    if loss.inverse_link_function(n_outputs) is None:
        return _Score(
            layer,
            used.target_scale,
            used.target_mean - offset,
            names,
            is_of_y(loss, n_outputs),
            offset,
        )

    return _Score(layer, 1.0, np.log(used.target_scale) - offset, names, False)


def with_offsets(score_graph: "ScoreGraph", loss: ScoreLoss, used: Standardization) -> "ScoreGraph":
    """
    Return a model that subtracts means from X, or adds them to its score,
    that an intercept has no digits for.
    """
    from skort.graphs.layers import OFFSET, TARGET_OFFSET
    from skort.graphs.standardized import centred

    # An offset that is there already is that of other rows.
    if used.mean is not None and (
        used.is_offset or (OFFSET in score_graph.arrays and used.mean.any())
    ):
        score_graph = centred(score_graph, used.mean)

    mean = used.target_mean
    n_outputs = score_graph.n_outputs
    is_there = TARGET_OFFSET in score_graph.arrays
    if mean is None or not (
        np.any(np.abs(mean) > FAR * used.target_scale) or (is_there and mean.any())
    ):
        return score_graph
    if loss.inverse_link_function(n_outputs) is not None or is_of_y(loss, n_outputs):
        return score_graph

    layer = score_graph.last_layer
    return (
        score_graph
        if layer is None or layer.intercept is None
        else centred(score_graph, mean, TARGET_OFFSET)
    )
