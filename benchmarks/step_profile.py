"""Profiles of a step of solver "graph": where its time goes."""

import math
import statistics
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.cases import CASES
from benchmarks.contenders import estimator, scikit_learn_model
from benchmarks.jax_process import COMPILED, jax_contenders
from benchmarks.timing import in_turn
from skort.runtime.installed import load
from skort.runtime.sessions import StepSession, compiled, inference_session, session_options

__all__ = ["StepProfile", "products", "profile", "profile_cells", "step_profiles"]

_PRODUCTS = ("Gemm", "MatMul")
# Of fixed shapes.
_CONSTANT = ("Constant", "Shape")


@dataclass(frozen=True)
class StepProfile:
    """
    Median times of a step and of its parts, in microseconds.

    Parameters
    ----------
    name : str
    step : float
        A step inside `fit`, including the copy of its rows.
    run : float
        The run of its graph alone.
    products : float
        Its matrix products alone, as one graph.
    n_nodes : int
        Number of nodes that ONNX Runtime runs.
    gigaflops : float
        The speed of the matrix products, in 10^9 floating-point operations per second.
    peer : float
        A step of scikit-learn.
    jax : float or None, default=None
        A step of JAX, if it is installed.
    """

    name: str
    step: float
    run: float
    products: float
    n_nodes: int
    gigaflops: float
    peer: float
    jax: float | None = None


def profile(name, problem, repeats=5):
    """Return the profile of the steps of a problem."""
    model = estimator(problem, "graph").fit(problem.X, problem.y)
    graph = _optimised(model.training_graphs()["step"])
    alone, flops = products(graph)
    n_runs = -(-len(problem.X) // problem.batch_size)
    n_steps = problem.n_epochs * n_runs
    contenders = {
        "step": lambda: model.fit(problem.X, problem.y),
        "run": partial(_runner(graph), n_runs),
        "products": partial(_runner(alone), n_runs),
        "peer": lambda: scikit_learn_model(problem).fit(problem.X, problem.y),
    }
    peers = jax_contenders(problem)
    if COMPILED in peers:
        contenders["jax"] = peers[COMPILED]
    times, _ = in_turn(contenders, repeats)
    of = {"step": n_steps, "run": n_runs, "products": n_runs, "peer": n_steps, "jax": n_steps}
    microseconds = {
        what: 1e6 * statistics.median(values) / of[what] for what, values in times.items()
    }
    gigaflops = 1e-3 * flops / microseconds["products"]
    return StepProfile(name, **microseconds, n_nodes=len(graph.graph.node), gigaflops=gigaflops)


def products(model):
    """
    Return a model of the matrix products of a model, each with inputs of its own, and their
    floating-point operations.

    Products with constants are left out: they compute sums.

    Parameters
    ----------
    model : onnx.ModelProto
        With fixed shapes.

    Returns
    -------
    alone : onnx.ModelProto
    flops : int
    """
    inferred = onnx.shape_inference.infer_shapes(model).graph
    shapes = {v.name: _shape(v) for v in [*inferred.input, *inferred.value_info, *inferred.output]}
    shapes |= {i.name: list(i.dims) for i in inferred.initializer}
    constants = _constants(inferred)
    nodes, inputs, outputs, flops = [], [], [], 0
    of_results = [
        n for n in inferred.node if n.op_type in _PRODUCTS and constants.isdisjoint(n.input)
    ]
    for i, node in enumerate(of_results):
        alone = onnx.NodeProto()
        alone.CopyFrom(node)
        alone.input[:] = [f"{name}_{i}" for name in node.input]
        inputs += [
            _info(new, shapes[old]) for new, old in zip(alone.input, node.input, strict=True)
        ]
        outputs.append(_info(node.output[0], shapes[node.output[0]]))
        nodes.append(alone)
        # Each number of the first factor is multiplied by and added for each column of the second.
        flops += 2 * math.prod(shapes[node.input[0]]) * [1, *shapes[node.output[0]]][-1]
    graph = helper.make_graph(nodes, "products", inputs, outputs)
    return helper.make_model(
        graph, ir_version=model.ir_version, opset_imports=model.opset_import
    ), flops


def _constants(graph):
    """
    Return the names of what is the same for all inputs,
    what is computed of constants alone included.
    """
    names = {i.name for i in graph.initializer}
    for node in graph.node:
        read = {name for name in node.input if name}
        if node.op_type in _CONSTANT or (read and read <= names):
            names.update(node.output)
    return names


def _shape(value_info):
    return [d.dim_value for d in value_info.type.tensor_type.shape.dim]


def _info(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _optimised(model):
    """Return a model as ONNX Runtime optimises it before it runs."""
    options = session_options()
    # The level of the sessions of a fit.
    options.graph_optimization_level = load().GraphOptimizationLevel.ORT_ENABLE_BASIC
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        options.optimized_model_filepath = str(path)
        inference_session(model.SerializeToString(), options=options)
        return onnx.load(path)


def _runner(model):
    """Return the function that runs a model a number of times on the same arrays."""
    # No product of these numbers is zero or denormal, which would change the time.
    inputs = {value.name: np.full(_shape(value), 0.01, np.float32) for value in model.graph.input}
    outputs = {value.name: np.zeros(_shape(value), np.float32) for value in model.graph.output}
    session = StepSession(compiled(model.SerializeToString()), inputs, outputs, {})

    def run(n_runs):
        for _ in range(n_runs):
            session.run()

    return run


def profile_cells(profiles):
    """Return a header, and the profiles as rows of text."""
    header = [
        "training",
        "us / step",
        "its graph",
        "products",
        "GFLOP/s",
        "step / products",
        "scikit-learn's",
        "JAX's",
    ]
    rows = [
        [
            p.name,
            f"{p.step:.1f}",
            f"{p.run:.1f} ({p.n_nodes} nodes)",
            f"{p.products:.1f}",
            f"{p.gigaflops:.0f}",
            *(
                "" if step is None else f"{step / p.products:.1f}"
                for step in (p.step, p.peer, p.jax)
            ),
        ]
        for p in profiles
    ]
    return header, rows


def step_profiles(*, quick=False, only="", repeats=5):
    """Return the profiles of the neural networks among the cases whose names contain a text."""
    cases = [case for case in CASES if only in case.name]
    problems = {case.name: case.make(case.n_quick if quick else case.n_rows) for case in cases}
    return [
        profile(name, problem, repeats)
        for name, problem in problems.items()
        if not problem.is_linear
    ]
