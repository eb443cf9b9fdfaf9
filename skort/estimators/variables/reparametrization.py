"""
The variables of a training: standardized X and y, and the weights and the objective that belong to
them.
"""

import contextlib
import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from skort.common.blas import one_blas_thread
from skort.estimators.variables.score_losses import best_constant_score, loss_unit, score_units
from skort.objective.loss import InUnits, ScoreLoss, is_of_y
from skort.objective.penalties import WeightPenalty, rescaled
from skort.optim.row_change import RowChange, UnchangedRows, difference, stays_where_it_is
from skort.optim.standardization import Standardization

if TYPE_CHECKING:
    from skort.graphs.layers import Layer
    from skort.graphs.score_graph import ScoreGraph

#: A mean of more standard deviations than this would cost an intercept its digits in float32.
FAR = 1e3
# The dtype of the model must hold weights that are so many times larger or smaller than one in the
# training.
_ROOM = 2.0**20


class WeightRangeError(ValueError):
    """The dtype of a model cannot hold its weights in the units of X and y."""


def _changed(weights, changes):
    """Return weights after changes in float64. Each keeps its dtype."""
    changed = dict(weights)
    if not (weights and changes):
        return changed

    # A weight near zero may become zero.
    with np.errstate(under="ignore"):
        for change in changes:
            change(changed)
        return {
            name: array.astype(weights[name].dtype, copy=False) for name, array in changed.items()
        }


@dataclass(frozen=True, eq=False)
class _Inputs:
    """The change of X: in the training, the first layer gets :math:`(X - mean) / scale`."""

    layer: "Layer"
    #: ndarray of shape (n_features,). The mean that the weights take back. It is zero if the model
    #: subtracts the mean itself.
    mean: np.ndarray
    #: ndarray of shape (n_features,).
    scale: np.ndarray
    #: ndarray of shape (n_features,). The mean that the rows lose.
    row_mean: np.ndarray

    @functools.cached_property
    def factor(self) -> float | None:
        """The only factor of X, if nothing is subtracted and all scales are equal; otherwise None."""
        scale = self.scale
        return None if self.row_mean.any() or (scale != scale[0]).any() else float(1 / scale[0])

    @functools.cached_property
    def factors(self):
        """
        The factors from coefficients of the training to those of the model: one number if all are
        equal.
        """
        if self.factor is not None:
            return self.factor
        return self.of_columns(1 / self.scale)

    def of_columns(self, factors: np.ndarray) -> np.ndarray:
        """Return a factor for each column as factors of the coefficients."""
        factors = self.layer.read(factors)
        return factors[None] if self.layer.transposed else factors[:, None]

    def to_model(self, weights: dict[str, np.ndarray]) -> None:
        """Change the weights of the training into those of the model, in float64."""
        coefficient, intercept = self.layer.coefficient, self.layer.intercept
        if coefficient in weights:
            weights[coefficient] = np.multiply(weights[coefficient], self.factors, dtype=np.float64)
        if intercept in weights:
            shift = self._shift(weights)
            weights[intercept] = np.subtract(weights[intercept], shift, dtype=np.float64)

    def to_training(self, weights: dict[str, np.ndarray]) -> None:
        """Change the weights of the model into those of the training, in float64."""
        coefficient, intercept = self.layer.coefficient, self.layer.intercept
        if intercept in weights:
            shift = self._shift(weights)
            weights[intercept] = np.add(weights[intercept], shift, dtype=np.float64)
        if coefficient in weights:
            factors = 1 / self.factors
            weights[coefficient] = np.multiply(weights[coefficient], factors, dtype=np.float64)

    def _shift(self, weights):
        """Return the result of the layer for the means, with the weights of the model."""
        coefficient = weights[self.layer.coefficient].astype(np.float64)
        with one_blas_thread(coefficient.size):
            return self.layer.read(self.mean) @ (
                coefficient.T if self.layer.transposed else coefficient
            )


@dataclass(frozen=True, eq=False)
class _Score:
    """The change of y: the score of the model is that of the training times the scale, plus the shift."""

    #: The last layer.
    layer: "Layer"
    #: A number, or an ndarray of shape (n_outputs,).
    scale: Any
    #: ndarray of shape (n_outputs,). Without the offset.
    shift: np.ndarray
    #: The loss's own weights in units of y.
    loss_weights: tuple[str, ...]
    #: Whether the loss gets scores and targets of the model, as it has no form in other units.
    is_of_y: bool
    #: ndarray of shape (n_outputs,), or a number. The model itself adds it to its score.
    offset: Any = 0.0

    @functools.cached_property
    def scaled(self) -> set[str]:
        """The names of all weights in units of y."""
        names = (self.layer.coefficient, self.layer.intercept, *self.loss_weights)
        return {name for name in names if name is not None}

    def factor(self, name: str) -> Any:
        """Return the factor from a weight of the training to that of the model."""
        is_column = name == self.layer.coefficient and self.layer.transposed
        return self.scale[:, None] if is_column and np.ndim(self.scale) else self.scale

    def to_model(self, weights: dict[str, np.ndarray]) -> None:
        """Change the weights of the training into those of the model, in float64."""
        for name in self.scaled & weights.keys():
            weights[name] = np.multiply(weights[name], self.factor(name), dtype=np.float64)
        intercept = self.layer.intercept
        if intercept in weights:
            weights[intercept] = np.add(weights[intercept], self.shift, dtype=np.float64)

    def to_training(self, weights: dict[str, np.ndarray]) -> None:
        """Change the weights of the model into those of the training, in float64."""
        intercept = self.layer.intercept
        if intercept in weights:
            weights[intercept] = np.subtract(weights[intercept], self.shift, dtype=np.float64)
        for name in self.scaled & weights.keys():
            weights[name] = np.multiply(weights[name], 1 / self.factor(name), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Reparametrization:
    """
    The variables v of a training, with the weights w = v s_out / s_in and the objective J(w) = unit
    J'(v) + offset.
    """

    # In the first layer, s_in are the scales of X. In the last layer, s_out is the scale of y.
    # Elsewhere both are one. None: the variables are those of the model.
    standardization: Standardization | None
    #: The loss in units of the standardized y.
    in_units: InUnits
    #: The penalty of the training's weights.
    penalty: WeightPenalty | None
    #: None: X stays as it is.
    inputs: _Inputs | None = None
    #: None: y stays as it is.
    score: _Score | None = None
    #: The dtype of the training.
    dtype: Any = np.float32
    #: The factors from weights of the training to those of the model, numbers or arrays, by name.
    factors: dict[str, Any] = field(default_factory=dict)

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
        is_free = penalty is None or penalty.intercepts is None
        score = _score(score_graph, loss, used, is_free=is_free)
        in_units = InUnits(loss, 1.0)

        if score is not None and score.is_of_y:
            assert used.target_mean is not None  # `score`
            unit = loss_unit(loss, score.shift + score.offset, used.target_mean, score.scale)
            in_units = InUnits(loss, unit, weight=1 / unit)
        elif score is not None:
            in_units = _scaled(loss, used.target_scale)

        factors: dict[str, Any] = {}
        if score is not None:
            factors = {name: score.factor(name) for name in score.scaled}
        if inputs is not None:
            name = inputs.layer.coefficient
            factors[name] = factors.get(name, 1.0) * inputs.factors

        if score_graph.is_linear or penalty is None or penalty.is_custom:
            penalty = rescaled(penalty, factors, in_units.unit)
        elif inputs is not None and used.relevance is not None:
            # The penalty of a network is on the weights of standardized X and y.
            relevance = {inputs.layer.coefficient: inputs.of_columns(used.relevance)}
            penalty = rescaled(penalty, relevance, 1.0)

        return cls(used, in_units, penalty, inputs, score, score_graph.dtype, factors)

    @functools.cached_property
    def loss(self) -> ScoreLoss:
        """The loss of scores and targets in the training."""
        return self.in_units.loss

    def check_range(self) -> None:
        """
        Raise a WeightRangeError if the dtype of the model cannot hold X, y, or its weights in their
        units.
        """
        used = self.standardization
        if used is None:
            return

        numbers = {}
        if used.target_mean is not None:
            numbers["y"] = np.abs(used.target_scale)
        if self.inputs is not None:
            factors = self.factors[self.inputs.layer.coefficient]
            numbers["X, column {},"] = self.inputs.scale
            numbers["the weights of column {} of X"] = np.ravel(factors)

        limits = np.finfo(self.dtype)
        for what, sizes in numbers.items():
            lost = np.flatnonzero(~((sizes > limits.tiny * _ROOM) & (sizes < limits.max / _ROOM)))
            if len(lost):
                where = what.format(lost[0])
                wider = ', or use dtype="float64"' if limits.dtype == np.float32 else ""
                raise WeightRangeError(
                    f"{limits.dtype} cannot hold {where} in the units of the data: they are about "
                    f"{np.ravel(sizes)[lost[0]]:.2g}. Divide the columns of X, or y, by "
                    f"constants{wider}."
                )

    def objective(self, value: float, target_mean: float = 1.0) -> float:
        """
        Return an objective or a loss of the training in the units of the model. The rows have this
        mean target.
        """
        used = self.in_units
        return used.unit * value + used.offset + used.offset_by_mean * target_mean

    def target(self, target: np.ndarray) -> np.ndarray:
        """Return the targets in the variables of the training."""
        used = self.standardization
        if self.score is None or self.score.is_of_y or used is None or used.target_mean is None:
            return target.astype(self.dtype, copy=False)
        return (difference(target, used.target_mean) / used.target_scale).astype(self.dtype)

    @property
    def row_change(self) -> RowChange:
        """The change from rows of X to rows of the training."""
        if self.inputs is None:
            return RowChange(None, None, self.dtype)

        factor = self.inputs.factor
        if factor is not None:
            return RowChange(None, np.float64(factor), self.dtype)

        mean = self.inputs.row_mean if self.inputs.row_mean.any() else None
        return RowChange(mean, 1 / self.inputs.scale, self.dtype)

    def rows(self, X: Any) -> Any:
        """Return the rows of the training: an array, or `UnchangedRows` if X should stay where it is."""
        change = self.row_change
        inverse = change.inverse
        if scipy.sparse.issparse(X) and change.mean is None and isinstance(inverse, np.ndarray):
            # Steps multiply sparse rows by one number only.
            values = (X.data * inverse[X.indices]).astype(self.dtype)
            return scipy.sparse.csr_matrix((values, X.indices, X.indptr), X.shape)
        if not stays_where_it_is(X, self.dtype):
            return change(X)
        return X if change.inverse is None else UnchangedRows(X, change)

    def sample_weight_scale(self, n_outputs: int) -> float:
        """Return the sum of a batch's sample weights."""
        return self.loss.weight_scale(n_outputs) * self.in_units.weight

    @property
    def row_factor(self) -> float | None:
        """
        The factor of sparse rows in a step, after `rows` has divided columns in other units. None:
        they change in another way.
        """
        inputs = self.inputs
        if inputs is None or (inputs.factor is None and not inputs.row_mean.any()):
            return 1.0
        return inputs.factor

    def graph(self, score_graph: "ScoreGraph", *, of_model_rows: bool = False) -> "ScoreGraph":
        """
        Return the model with the training's weights: a function of the training's rows, or of X
        with `of_model_rows`.
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

        if any(name in score_graph.arrays for name in offsets):
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
        Return the weights of the training from those of the model. The loss's own weights may be
        among them.
        """
        return _changed(
            weights, [part.to_training for part in (self.inputs, self.score) if part is not None]
        )


def _scaled(loss, scale):
    """
    Return the loss of y divided by its scale. Raise a ValueError if float64 cannot hold the unit of
    the loss.
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
    """Return the change of X, or None."""
    from skort.graphs.layers import OFFSET

    layer = None if used.scale is None else score_graph.first_layer
    if layer is None:
        return None

    offset = score_graph.arrays.get(OFFSET)
    return _Inputs(
        layer, used.mean if offset is None else used.mean - offset, used.scale, used.mean
    )


def _score(score_graph, loss, used, *, is_free):
    """Return the change of y, or None."""
    from skort.graphs.layers import TARGET_OFFSET

    layer = None if used.target_mean is None else score_graph.last_layer
    if layer is None:
        return None

    n_outputs = score_graph.n_outputs
    names = loss.weight_names
    offset = score_graph.arrays.get(TARGET_OFFSET, np.zeros(n_outputs)).astype(np.float64)
    centre, scale = used.target_mean, used.target_scale
    if np.ndim(scale):
        if is_free and layer.intercept is not None:
            # Such a loss may be far from its least value at the means of y, as that of a mean and
            # a logarithm.
            centre = best_constant_score(loss, centre, scale)
        scale = score_units(loss, used.target_mean, scale)[1]
    if loss.inverse_link_function(n_outputs) is None:
        return _Score(
            layer,
            scale,
            centre - offset,
            names,
            is_of_y(loss, n_outputs),
            offset,
        )

    return _Score(layer, 1.0, np.log(used.target_scale) - offset, names, False)


def with_offsets(score_graph: "ScoreGraph", loss: ScoreLoss, used: Standardization) -> "ScoreGraph":
    """
    Return a model that subtracts means from X, or adds them to its score, if an intercept has no
    digits for them.
    """
    from skort.graphs.layers import OFFSET, TARGET_OFFSET
    from skort.graphs.standardized import centred

    # An offset in the model belongs to other rows.
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
