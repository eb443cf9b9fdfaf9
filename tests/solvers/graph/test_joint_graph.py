"""The scores of several models at once."""

import numpy as np
import onnx.checker
import onnx.helper
import pytest

from skort.common.onnx_text import IR_VERSION, OPSET
from skort.graphs.chain import Link
from skort.runtime.sessions import compiled
from skort.solvers.graph.joint_graph import chain_graph, parts_of

CHAINS = {
    "linear": ((Link("V0", "c0"),), [5, 1]),
    "no intercept": ((Link("V0"),), [5, 1]),
    "several outputs": ((Link("V0", "c0", ("Exp",)),), [5, 3]),
    "one layer": ((Link("V0", "c0", ("Relu",)), Link("V1", "c1")), [5, 4, 1]),
    "two layers": ((Link("V0", "c0", ("Tanh",)), Link("V1", None, ("Relu",)), Link("V2", "c2")), [5, 4, 3, 2]),
}
FUNCTIONS = {"Exp": np.exp, "Tanh": np.tanh, "Relu": lambda x: np.maximum(x, 0)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CHAINS)
def test_scores_are_those_of_each_model(name, dtype, rng):
    chain, sizes = CHAINS[name]
    X, n_lanes = rng.normal(size=(6, 5)).astype(dtype), 3
    models, scores = [], []
    for _ in range(n_lanes):
        weights, result = {}, X
        for link, n_in, n_out in zip(chain, sizes, sizes[1:], strict=False):
            weights[link.coefficient] = rng.normal(size=(n_in, n_out)).astype(dtype)
            result = result @ weights[link.coefficient]
            if link.intercept is not None:
                weights[link.intercept] = rng.normal(size=(1, n_out)).astype(dtype)
                result = result + weights[link.intercept]
            for activation in link.activations:
                result = FUNCTIONS[activation](result)
        models.append(weights)
        scores.append(result)
    parts = [parts_of(chain, weights) for weights in models]
    shapes = {f"part{i}": part.shape for i, part in enumerate(parts[0])}
    graph = chain_graph(chain, shapes, ("X", 6), "score", n_lanes, dtype)
    opset = onnx.helper.make_opsetid("", OPSET)
    model = onnx.helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[opset])
    rows = np.hstack([X, np.ones((6, 1), dtype)]) if chain[0].intercept else X
    given = {f"part{i}": np.stack([part[i].ravel() for part in parts]) for i in range(len(shapes))}
    onnx.checker.check_model(model, full_check=True)
    # With all optimizations, ONNX Runtime makes one node of a product and its activation, which it has in float32 only.
    (result,) = compiled(model.SerializeToString()).run(None, {"X": rows, **given})
    np.testing.assert_allclose(result, np.concatenate(scores), rtol=1e-5, atol=1e-5)
