"""The objective, as ONNX nodes that a solver adds to the graph of a raw score."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx.helper import make_tensor_value_info

from skort.common.formulas import function_text
from skort.common.node_phases import marked
from skort.common.onnx_text import Fragment, onnx_dtype
from skort.objective.custom import CustomTerm
from skort.objective.loss import ScoreLoss, source_key
from skort.objective.penalties import Strength, WeightPenalty, checked_strengths, is_any

# The names of the inputs and results that the nodes add to a graph.
TARGET = "skort_target"
SAMPLE_WEIGHT = "skort_sample_weight"
LOSS = "skort_loss"
# The objective without its l1 terms.
SMOOTH = "skort_smooth"
OBJECTIVE = "skort_objective"
SCORE_GRADIENT = "skort_score_gradient"

# A stronger penalty leaves no weight, and float32 cannot hold the square of its gradient.
_STRONGEST = 1e15
_SUM = "sum_of_all (loss) => (sum) { sum = ReduceSum <keepdims = 0> (loss) }"
# The weights of a loss are expanded to the shape of the score: operators on equal shapes are
# faster.
_REPEATED = function_text(
    "repeated (weight, score) => (repeated)", "repeated = Expand(weight, Shape(score))"
)
_COLUMN_SUMS = function_text(
    "column_sums (gradient) => (sums)", "sums = ReduceSum(gradient, [0], keepdims=0)"
)


def _bounded(strength):
    """Return a strength, reduced to the strongest one if it is larger."""
    is_larger = any(np.max(each, initial=0.0) > _STRONGEST for each in strength)
    return Strength(*(np.minimum(each, _STRONGEST) for each in strength)) if is_larger else strength


@dataclass(frozen=True)
class Objective:
    """J(w) = sum_i v_i loss(y_i, score_i) + penalty(w) over m rows, v_i = s_i / (mean(s) m)."""

    # The sum is over the m rows of a batch, and mean(s) is the mean over all rows. The sample
    # weights of a batch are v_i times `sample_weight_scale`.

    loss: ScoreLoss
    penalty: WeightPenalty | None
    #: Names of the weights that multiply inputs.
    coefficients: tuple[str, ...]
    n_outputs: int
    dtype: np.dtype
    #: Names of the weights that are added to a product.
    intercepts: tuple[str, ...] = ()
    #: The weights of the model before the training, which a custom penalty may take.
    start: dict[str, np.ndarray] = field(default_factory=dict)

    @functools.cached_property
    def strengths(self) -> dict[str, Strength]:
        """The strengths by the names of the weights; a ValueError if the penalty names another."""
        if self.penalty is None:
            return {}
        strengths = checked_strengths(self.penalty, self.coefficients)
        strengths |= self.penalty.intercept_strengths(self.intercepts)
        return {name: _bounded(strength) for name, strength in strengths.items()}

    @functools.cached_property
    def custom_terms(self) -> dict[str, CustomTerm]:
        """The terms of a custom penalty, by name of the weight; a ValueError if it is not valid."""
        return (
            {}
            if self.penalty is None
            else self.penalty.custom_terms(self.coefficients, self.intercepts)
        )

    @property
    def sample_weight_scale(self) -> float:
        """The sum of the sample weights of a batch if all rows count the same."""
        return self.loss.weight_scale(self.n_outputs)

    @functools.cached_property
    def loss_key(self) -> tuple[Any, ...]:
        """A hashable value of everything that the value of the loss depends on."""
        loss = self.loss
        n_outputs = self.n_outputs
        value = source_key(loss.value_function(n_outputs))
        return value, loss.takes_weight, loss.weight_names, n_outputs, np.dtype(self.dtype).str

    @functools.cached_property
    def gradient_source(self) -> Any:
        """The gradient of the loss as a hashable value; None if it has none."""
        return source_key(self.loss.gradient_function(self.n_outputs))

    @property
    def weight_gradients(self) -> dict[str, str]:
        """The names of the loss's own weights -> the names of the gradients by them."""
        return {name: f"{name}_grad" for name in self.loss.weight_names}

    def weight_infos(self, names: Iterable[str]) -> list[onnx.ValueInfoProto]:
        """Return inputs or outputs of a graph with the shape of the loss's own weights."""
        return [
            make_tensor_value_info(name, onnx_dtype(self.dtype), [self.n_outputs]) for name in names
        ]

    def inputs(self, batch_size: int | str | None) -> list[onnx.ValueInfoProto]:
        """Return the graph inputs `TARGET` and `SAMPLE_WEIGHT` of a batch."""
        widths = {TARGET: self.n_outputs, SAMPLE_WEIGHT: 1}
        return [
            make_tensor_value_info(name, onnx_dtype(self.dtype), [batch_size, n])
            for name, n in widths.items()
        ]

    def output(self, name: str = OBJECTIVE) -> onnx.ValueInfoProto:
        """Return the graph output `OBJECTIVE` or `LOSS`."""
        return make_tensor_value_info(name, onnx_dtype(self.dtype), [])

    def add_loss(self, fragment: Fragment, score: str, result: str) -> None:
        """
        Add the nodes that compute `result`,
        the weighted sum of the loss over the batch, from `score`.
        """
        self.add_losses(fragment, score, "skort_weighted_losses")
        fragment.call(_SUM, ["skort_weighted_losses"], [result])

    def add_losses(self, fragment: Fragment, score: str, result: str) -> None:
        """Add the nodes that compute `result`, the weighted losses of the rows, from `score`."""
        value = self.loss.value_function(self.n_outputs)
        if self.loss.takes_weight:
            self._call(fragment, value, [score, TARGET, SAMPLE_WEIGHT], [result])
        else:
            self._call(fragment, value, [score, TARGET], ["skort_losses"])
            fragment.node("Mul", ["skort_losses", SAMPLE_WEIGHT], [result])

    def add_value(self, fragment: Fragment, score: str) -> None:
        """
        Add the nodes that compute the scalars `LOSS`, `SMOOTH` and `OBJECTIVE`
        from the result named `score`.
        """
        with marked(fragment, "loss"):
            self.add_loss(fragment, score, LOSS)
        with marked(fragment, "penalty"):
            self.add_penalty(fragment)

    def add_penalty(self, fragment: Fragment) -> None:
        """
        Add the nodes that compute the scalars `SMOOTH` and `OBJECTIVE`
        from the scalar `LOSS`.
        """
        with_custom = self.add_custom_value(fragment, LOSS)
        for norm, text, before, after in (
            ("l2", l2_text, with_custom, SMOOTH),
            ("l1", l1_text, SMOOTH, OBJECTIVE),
        ):
            value = before
            for name, strength in self.with_term(norm).items():
                term = f"skort_{name}_{norm}"
                fragment.constant(f"{term}_strength", np.asarray(strength, self.dtype))
                called = text(by_element=np.ndim(strength) > 0)
                fragment.call(called, [name, f"{term}_strength"], [f"{term}_penalty"])
                fragment.node("Add", [value, f"{term}_penalty"], [f"{term}_sum"])
                value = f"{term}_sum"

            fragment.node("Identity", [value], [after])

    def add_custom_value(self, fragment: Fragment, value: str) -> str:
        """
        Add the nodes that add a custom penalty to the scalar `value`;
        return the name of the sum.
        """
        for name, term in self.custom_terms.items():
            result = f"skort_{name}_custom"
            fragment.call(
                term.value, self.custom_inputs(fragment, name, "of_value"), [f"{result}_value"]
            )
            fragment.constant(f"{result}_strength", np.asarray(term.strength, self.dtype))
            fragment.node("Mul", [f"{result}_value", f"{result}_strength"], [f"{result}_penalty"])
            fragment.node("Add", [value, f"{result}_penalty"], [f"{result}_sum"])
            value = f"{result}_sum"

        return value

    def custom_inputs(self, fragment: Fragment, name: str, use: str) -> list[str]:
        """
        Add the nodes for the inputs of a custom penalty of a weight, and return their names.

        `use` is a part of these names.
        """
        term = self.custom_terms[name]
        data = f"skort_{name}_{use}"
        fragment.constant(f"{data}_factor", np.asarray(term.factor, self.dtype))
        fragment.node("Mul", [name, f"{data}_factor"], [data])
        if len(term.inputs) == 1:
            return [data]

        fragment.constant(f"{data}_start", self.start[name].astype(self.dtype))
        return [data, f"{data}_start"]

    def with_term(self, norm: str) -> dict[str, float | np.ndarray]:
        """Return the strengths of the "l1" or "l2" term, by the names of its weights."""
        strengths = {name: getattr(strength, norm) for name, strength in self.strengths.items()}
        return {name: strength for name, strength in strengths.items() if is_any(strength)}

    def add_score_gradient(
        self, fragment: Fragment, score: str, sample_weight: str = SAMPLE_WEIGHT
    ) -> None:
        """Add the nodes for `SCORE_GRADIENT` and `weight_gradients`, the gradients of `LOSS`."""
        gradient = self.loss.gradient_function(self.n_outputs)
        by_row = [f"{name}_by_row" for name in self.weight_gradients.values()]
        weighted = [SCORE_GRADIENT, *by_row]

        if self.loss.takes_weight:
            self._call(fragment, gradient, [score, TARGET, sample_weight], weighted)
        else:
            plain = ["skort_gradient", *(f"{name}_unweighted" for name in by_row)]
            self._call(fragment, gradient, [score, TARGET], plain)
            for name, result in zip(plain, weighted, strict=True):
                fragment.node("Mul", [name, sample_weight], [result])

        for name, result in zip(by_row, self.weight_gradients.values(), strict=True):
            fragment.call(_COLUMN_SUMS, [name], [result])

    def _call(self, fragment, source, inputs, results):
        """Add a call of a function of the loss. The loss's own weights follow after `inputs`."""
        repeated = [f"{name}/{results[0]}" for name in self.loss.weight_names]
        for name, result in zip(self.loss.weight_names, repeated, strict=True):
            fragment.call(_REPEATED, [name, inputs[0]], [result])
        fragment.call(source, [*inputs, *repeated], results, self.n_outputs)

    def add_l2_gradients(self, fragment: Fragment) -> dict[str, str]:
        """
        Add the nodes that compute the derivatives of the l2 terms;
        return their names, by weight.
        """
        results = {}
        for name, strength in self.with_term("l2").items():
            term = f"skort_{name}_data"
            fragment.constant(f"{term}_strength", np.asarray(strength, self.dtype))
            results[name] = f"{term}_penalty_gradient"
            fragment.call(L2_GRADIENT, [name, f"{term}_strength"], [results[name]])

        return results


def l1_text(*, by_element: bool) -> str:
    """
    Return the l1 function `(weight, strength) => (penalty)`.

    The strength is one number, or with `by_element` an array of the shape of the weight.
    """
    # One number is multiplied after the sum, which is faster.
    total = (
        "ReduceSum(strength * terms, keepdims=0)"
        if by_element
        else "strength * ReduceSum(terms, keepdims=0)"
    )
    return function_text(
        "l1 (weight, strength) => (penalty)", f"terms = Abs(weight)\npenalty = {total}"
    )


def l2_text(*, by_element: bool) -> str:
    """
    Return the l2 function `(weight, strength) => (penalty)`.

    The strength is one number, or with `by_element` an array of the shape of the weight.
    """
    total = (
        "ReduceSum(factor * terms, keepdims=0)"
        if by_element
        else "factor * ReduceSum(terms, keepdims=0)"
    )
    formula = f"factor = 0.5 * strength\nterms = weight * weight\npenalty = {total}"
    return function_text("l2 (weight, strength) => (penalty)", formula)


#: The derivative of `l2_text` by `weight`.
L2_GRADIENT = "l2_gradient (weight, strength) => (gradient) { gradient = Mul (strength, weight) }"
