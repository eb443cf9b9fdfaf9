"""
The pieces of a step: numpy and ONNX Runtime
============================================

A gradient step is a model, a loss, their gradients and an update of the weights. Each of them can
be a small ONNX graph, which ONNX Runtime runs beside the model. The figure shows how long such a
piece takes by its size, and so how a step should be made. `python -m benchmarks.updates` prints a
table of all optimizers.
"""

import timeit

import matplotlib.pyplot as plt
import numpy as np
import onnx
import onnx.parser
import onnxruntime
from scipy.special import expit

# %%
# Two pieces: the update :math:`w - \eta g`, and the gradient of the log-loss by the score,
# :math:`\sigma(s) - y`.

UPDATE = """<ir_version: 8, opset_import: ["" : 17]>
update (float[N] w, float[N] g, float eta) => (float[N] result) {
    step = Mul (g, eta)  result = Sub (w, step)
}"""
LOG_LOSS = """<ir_version: 8, opset_import: ["" : 17]>
log_loss (float[N] s, float[N] y) => (float[N] result) { p = Sigmoid (s)  result = Sub (p, y) }"""


def update_in_numpy(result, w, g, eta):
    np.multiply(g, eta, out=result)
    np.subtract(w, result, out=result)


def log_loss_in_numpy(result, s, y):
    expit(s, out=result)
    np.subtract(result, y, out=result)


# %%
# Each piece is computed in three ways: by numpy, in place; by a session that takes arrays and
# returns new ones; and by a session whose arrays are bound once, as in a solver.


def callers(text, in_numpy, arrays):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = onnx.parser.parse_model(text).SerializeToString()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    result, bound_result = np.zeros((2, len(next(iter(arrays.values())))), np.float32)
    binding, values = session.io_binding(), []
    for name, array in {**arrays, "result": bound_result}.items():
        # The value borrows the memory of the array: both have to live as long as the binding.
        values.append(onnxruntime.OrtValue.ortvalue_from_numpy(array))
        bind = binding.bind_ortvalue_output if name == "result" else binding.bind_ortvalue_input
        bind(name, values[-1])
    return {
        "numpy, in place": lambda: (in_numpy(result, **arrays), result)[1],
        "session.run": lambda: session.run(None, arrays)[0],
        "bound arrays": lambda: (session.run_with_iobinding(binding), bound_result, values)[1],
    }


# %%
# A call of ONNX Runtime costs a few microseconds, whatever it computes. Up to a thousand numbers,
# the call takes hardly more time than that. With more numbers, the work counts: ONNX Runtime's
# sigmoid is vectorized, that of scipy is not.

sizes = [1, 10, 100, 1000, 10_000, 100_000]
rng = np.random.default_rng(0)
times, results = {}, {}
for n in sizes:
    a, b = rng.normal(size=(2, n)).astype(np.float32)
    pieces = {
        "update of weights": (
            UPDATE,
            update_in_numpy,
            {"w": a, "g": b, "eta": np.array(0.1, np.float32)},
        ),
        "gradient of the log-loss": (
            LOG_LOSS,
            log_loss_in_numpy,
            {"s": a, "y": (b > 0).astype(np.float32)},
        ),
    }
    for piece, given in pieces.items():
        for way, call in callers(*given).items():
            results[piece, n, way] = call()
            n_calls = max(1, int(2e-3 / max(timeit.timeit(call, number=1), 1e-6)))
            best = min(timeit.repeat(call, number=n_calls, repeat=5)) / n_calls
            times.setdefault((piece, way), []).append(1e6 * best)

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for (piece, way), microseconds in times.items():
    axis = axes[list(pieces).index(piece)]
    axis.plot(sizes, microseconds, marker=".", label=way)
    axis.set(xscale="log", yscale="log", xlabel="numbers", title=piece)
axes[0].set(ylabel="microseconds per call")
axes[0].legend()
for (piece, way), microseconds in times.items():
    print(f"{piece:<26} {way:<16}", *(f"{t:9.2f}" for t in microseconds))

# %%
# A step in pieces pays for many calls: the loss, its gradient, the penalty, and the update of each
# weight. So the solver "graph" writes the whole step as one graph, with all weights in one vector,
# and the solver "agent" leaves the update to numpy.

plt.show()
