"""The update of the weights: an optimizer, and the transformations around it."""

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skort.optim.optimizers import OnnxOptimizer, Optimizer, OptimizerTags, State, optimizer_tags
from skort.optim.transforms import (
    AccumulatedL1,
    Averaging,
    Clipping,
    Decorrelation,
    ImplicitL2,
    Recent,
    StepLength,
    Transformation,
    WeightDecay,
)

if TYPE_CHECKING:
    from skort.common.onnx_text import Fragment

#: In epochs of unknown length, weights owe at most the l1 penalty of so many rows.
MANY_ROWS = 131_072


class UpdateRule:
    """
    An optimizer and the transformations around it, as one update. The outermost ones are an average
    and the implicit steps of the l2 term.
    """

    def __init__(
        self,
        optimizer: Any,
        transformations: list[Transformation],
        averaging: Averaging | None = None,
        implicit: ImplicitL2 | None = None,
    ):
        self._optimizer = optimizer
        # The l2 term is outside the l1 term: the proximal step of both divides the threshold, too.
        outer = [part for part in (averaging, implicit) if part is not None]
        #: From the outermost to the innermost.
        self.transformations: list[Transformation] = [*outer, *transformations]
        self._inner_first = self.transformations[::-1]

        #: See `Optimizer.step_length`.
        self.step_length: StepLength = optimizer.step_length
        #: The mean that is the result. None: the weights are.
        self.averaging = averaging
        #: The implicit steps of the l2 term. None: no weight may need them.
        self.implicit = implicit

    def start(self, n_coefficients: int, n_others: int, dtype: Any) -> State:
        """Return the state before the first update: see `Optimizer.start`."""
        state = self._optimizer.start(n_coefficients, n_others, dtype)
        for part in self._inner_first:
            state = state | part.start(n_coefficients, n_others, dtype)
        return state

    def update(
        self,
        weights: np.ndarray,
        gradient: np.ndarray,
        eta: float,
        state: State,
        scratch: np.ndarray,
    ) -> None:
        """Make one update in place: see `Optimizer.update`."""
        for part in self.transformations:
            gradient = part.before(weights, gradient, eta, state, scratch)
        self._optimizer.update(weights, gradient, eta, state, scratch)
        for part in self._inner_first:
            part.after(weights, eta, state, scratch, self.step_length)

    def add_nodes(self, fragment: "Fragment", names: dict[str, str]) -> dict[str, str]:
        """
        Add the nodes of one update. Return the names of "weights", "length" and the changed arrays
        after it.
        """
        known = dict(names)
        for part in self.transformations:
            for name, array in part.constants.items():
                fragment.constant(name, array)
                known[name] = name
            if part.onnx_before:
                known |= _call(part.onnx_before, fragment, known)

        source = self._optimizer.onnx_update()
        results = _call(source, fragment, {name: known[name] for name in names}, self._optimizer)

        for part in self._inner_first:
            if part.onnx_after:
                results |= _call(part.onnx_after, fragment, known | results)

        return results

    def result(self, weights: np.ndarray, state: State) -> np.ndarray:
        """Return the trained weights as a new vector."""
        return weights.copy() if self.averaging is None else self.averaging.mean(weights, state)

    def held(self, weights: np.ndarray, state: State) -> np.ndarray:
        """Return the array that has the trained weights, maybe in float64."""
        return weights if self.averaging is None else self.averaging.held(weights, state)


def _call(source: str, fragment, names, optimizer: OnnxOptimizer | None = None):
    """
    Add a call to the ONNX function of a transformation or of the optimizer. Return the names of its
    results.
    """
    from skort.common.parametrized_graph import signature

    given, made = signature(source)
    if optimizer is not None:
        possible = ["length", *(f"next_{name}" for name in names)]
        if not (
            set(given) <= names.keys() and {"next_weights", "length"} <= set(made) <= set(possible)
        ):
            raise ValueError(
                f"optimizer={optimizer!r}: onnx_update has the inputs {given} and the results "
                f"{made}. Its inputs may be {list(names)}, its results {possible}; next_weights "
                "and length are required."
            )

    prefix = "optimizer" if optimizer is not None else source.split(maxsplit=1)[0]
    results = {
        name.removeprefix("next_"): f"skort_{prefix}_{name.removeprefix('next_')}" for name in made
    }
    fragment.call(source, [names[name] for name in given], list(results.values()))

    return results


@dataclass(frozen=True, eq=False)
class PenaltyStrengths:
    """The strengths of the penalty of an update, for each weight. None: there is no such term."""

    # The gradients have the l2 term, but not the l1 term. A weight owes at most the l1 penalty of
    # `n_steps` steps.

    l1: np.ndarray | None = None
    l2: np.ndarray | None = None
    n_steps: int = 1


@dataclass(frozen=True)
class Update:
    """
    How a gradient changes the weights: the optimizer, and the parameters of the
    transformations around it.
    """

    optimizer: Optimizer | OnnxOptimizer
    #: The largest Euclidean norm of a gradient. A longer one is shortened to it.
    max_grad_norm: float | None = None
    #: The first update whose weights count in the mean that is the result, True for 1; or a mean of
    #: `Recent` weights. False and 0 mean no average.
    average: bool | int | Recent = False
    #: An upper bound of the learning rate. None: it is not known.
    largest_rate: float | None = None

    @functools.cached_property
    def tags(self) -> OptimizerTags:
        """The traits of the optimizer."""
        return optimizer_tags(self.optimizer)

    @property
    def is_plain(self) -> bool:
        """Whether no transformation but those of the penalty is around the optimizer."""
        return self.max_grad_norm is None and not self.average and self.tags.weight_decay == 0

    def check_steps(self, what: str, asked: str = 'optimizer="lbfgs"') -> None:
        """
        Raise an error if the optimizer, from the parameter `asked`, needs all rows, which `what`
        does not have.
        """
        if self.tags.is_full:
            raise ValueError(
                f"{asked} reads all rows for every update: fit can do it, but not {what}. Use "
                'another optimizer, such as "adam".'
            )

    def rule(
        self,
        strengths: PenaltyStrengths | None = None,
        optimizer: Any = None,
        decorrelation: Decorrelation | None = None,
    ) -> UpdateRule:
        """
        Return the update: decay, clip, decorrelate, optimize, the penalty's terms, average. An
        `optimizer` replaces the own one.
        """
        tags = self.tags
        strengths = strengths or PenaltyStrengths()
        parts: list[Transformation] = []

        if strengths.l1 is not None:
            parts.append(AccumulatedL1(strengths.l1, strengths.n_steps))
        if tags.weight_decay > 0:
            parts.append(WeightDecay(tags.weight_decay))
        if self.max_grad_norm is not None:
            parts.append(Clipping(self.max_grad_norm))
        if decorrelation is not None:
            parts.append(decorrelation)
        averaging = Averaging(self.average) if self.average else None
        implicit = None
        if self.is_stiff(strengths):
            assert strengths.l2 is not None and tags.gain is not None
            implicit = ImplicitL2(strengths.l2, tags.gain, self.largest_rate or 0.0)
        optimizer = self.optimizer if optimizer is None else optimizer

        return UpdateRule(optimizer, parts, averaging, implicit)

    def is_stiff(self, strengths: PenaltyStrengths) -> bool:
        """Return whether the l2 term of any weight may need an implicit step, see `ImplicitL2`."""
        gain = self.tags.gain
        if strengths.l2 is None or gain is None:
            return False
        return self.largest_rate is None or bool(strengths.l2.max() * gain * self.largest_rate > 1)
