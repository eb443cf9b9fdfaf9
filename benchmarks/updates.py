"""
The pieces of a step on their own, in numpy and in ONNX Runtime, by the number of weights or rows.

Run it with `python -m benchmarks.updates`: microseconds a call in the fastest of seven rounds, on
one thread, of

- numpy, in place;
- `run`: `InferenceSession.run` with a dictionary of arrays, whose results are new arrays;
- `bound`: arrays that are bound once, as the solvers have them.

A piece of its own costs a call. That is why solver "graph" makes the whole step in one.
"""

import time
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper
from scipy.special import expit

from benchmarks.timing import threads
from skort.common.onnx_text import IR_VERSION, OPSET, Fragment, infos, inlined
from skort.common.parametrized_graph import signature
from skort.objective import LogLoss, SquaredError
from skort.optimizers import SGD, Adam, Momentum, Nesterov
from skort.runtime.sessions import StepSession, compiled, next_name

__all__ = ["PIECES", "SIZES", "Piece", "loss_gradient", "main", "measured", "update"]

SIZES = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000]
_SECONDS, _ROUNDS = 2e-3, 7
_DTYPE = np.dtype("float32")


@dataclass(frozen=True)
class Piece:
    """
    One function in numpy and in ONNX, and its arrays.

    Parameters
    ----------
    in_numpy : callable
        Without arguments; changes `state`, or `outputs`.
    model : onnx.ModelProto
    inputs : dict of str to ndarray
        What a call does not change.
    state : dict of str to ndarray
        What a call changes; the model gives it under the name of `next_name`.
    outputs : dict of str to ndarray
        Other results.
    """

    in_numpy: object
    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    state: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]

    def contenders(self):
        """Return the functions that are measured, by name."""
        session = compiled(self.model.SerializeToString())
        given = {**self.inputs, **{name: array.copy() for name, array in self.state.items()}}
        names = [next_name(name) for name in self.state] + list(self.outputs)
        copies = {name: np.zeros_like(array) for name, array in self.outputs.items()}
        bound = StepSession(session, self.inputs, copies, self.state)
        return {
            "numpy": self.in_numpy,
            "run": lambda: session.run(names, given),
            "bound": bound.run,
        }


def _model(source, given, made):
    """Return the model of one function: inputs and outputs are arrays by name."""
    fragment = Fragment(_DTYPE)
    fragment.call(source, list(given), list(made))
    graph = helper.make_graph(fragment.nodes, "piece", infos(given), infos(made))
    opset = helper.make_opsetid("", OPSET)
    return inlined(helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[opset]), fragment)


def update(optimizer, n_weights):
    """Return the update of an optimizer as a piece."""
    rng = np.random.default_rng(0)
    weights, gradient = rng.normal(size=(2, n_weights)).astype(_DTYPE)
    memory = optimizer.start(n_weights, 0, _DTYPE)
    eta, scratch = np.asarray(1e-3, _DTYPE), np.empty_like(weights)
    source = optimizer.onnx_update()
    inputs, results = signature(source)
    known = {"weights": weights, "gradient": gradient, "eta": eta, **memory}
    changed = [name for name in known if f"next_{name}" in results]
    # The length of a step is a vector with Adam.
    length = weights if isinstance(optimizer, Adam) else memory.get("unit_velocity", eta)
    next_values = {f"next_{name}": (next_name(name), known[name]) for name in changed}
    made = dict(
        next_values.get(name, (name, length if name == "length" else eta)) for name in results
    )
    model = _model(source, {name: known[name] for name in inputs}, made)
    del model.graph.output[list(results).index("length")]
    state = {name: known[name].copy() for name in changed}
    fixed = {name: known[name] for name in inputs if name not in changed}

    def in_numpy():
        optimizer.update(weights, gradient, 1e-3, memory, scratch)

    return Piece(in_numpy, model, fixed, state, {})


def loss_gradient(loss, in_numpy, n_rows):
    """Return the derivative of a loss by the score of one column as a piece."""
    rng = np.random.default_rng(0)
    score, target = (
        rng.normal(size=(n_rows, 1)).astype(_DTYPE),
        rng.integers(0, 2, (n_rows, 1)).astype(_DTYPE),
    )
    out = np.zeros_like(score)
    source = loss.gradient_function(1)
    inputs, (result,) = signature(source)
    given = dict(zip(inputs, (score, target), strict=True))
    return Piece(
        lambda: in_numpy(score, target, out),
        _model(source, given, {result: out}),
        given,
        {},
        {result: out},
    )


def _log_loss(score, target, out):
    expit(score, out=out)
    np.subtract(out, target, out=out)


#: The pieces by name: size -> Piece.
PIECES = {
    "update, sgd": lambda n: update(SGD(), n),
    "update, momentum": lambda n: update(Momentum(), n),
    "update, nesterov": lambda n: update(Nesterov(), n),
    "update, adam": lambda n: update(Adam(), n),
    "gradient, squared_error": lambda n: loss_gradient(
        SquaredError(), lambda score, target, out: np.subtract(score, target, out=out), n
    ),
    "gradient, log_loss": lambda n: loss_gradient(LogLoss(), _log_loss, n),
}


def measured(piece, seconds=_SECONDS, rounds=_ROUNDS):
    """Return the microseconds of a call in the fastest round, by contender; they take turns."""
    contenders = piece.contenders()
    counts, times = {}, {name: [] for name in contenders}
    for name, call in contenders.items():
        call()
        start = time.perf_counter()
        call()
        counts[name] = max(1, min(1000, int(seconds / (time.perf_counter() - start))))
    for _ in range(rounds):
        for name, call in contenders.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                call()
            times[name].append(1e6 * (time.perf_counter() - start) / counts[name])
    return {name: min(values) for name, values in times.items()}


def main():
    print(f"{'microseconds a call':<32}" + "".join(f"{size:>11,}" for size in SIZES))
    for name, make in PIECES.items():
        table = [measured(make(size)) for size in SIZES]
        for contender in table[0]:
            row = "".join(f"{times[contender]:>11.2f}" for times in table)
            print(f"{name + ': ' + contender:<32}{row}", flush=True)


if __name__ == "__main__":
    with threads():
        main()
