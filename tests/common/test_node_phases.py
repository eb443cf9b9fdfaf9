"""The phase of every node of a training graph: its doc_string."""

import numpy as np
import onnx
import onnx.checker
import pytest
import scipy.sparse
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from solver_traits import makes_updates_in_numpy

from skort import OrtSGDRegressor
from skort.common.node_phases import PHASES, mark_rest, marked, phase_of
from skort.common.onnx_text import Fragment, infos, inlined
from skort.common.parametrized_graph import Program
from skort.objective import ElasticPenalty, Penalty
from skort.optimizers import Momentum
from skort.runtime.installed import training_api

PLAIN = {"max_iter": 1, "tol": None, "random_state": 0, "standardize": False, "eta0": 0.01}
LINEAR = {**PLAIN, "estimator": LinearRegression(), "penalty": None}


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)).astype(np.float32)
    return X, X @ np.array([1.0, -2.0, 0.5], np.float32)


def graphs(**options):
    return OrtSGDRegressor(**options).fit(*data()).training_graphs()


def operators(model):
    """Return the operators of each phase of a model, in their order, without constants."""
    found = {}
    for node in model.graph.node:
        if node.op_type != "Constant":
            found.setdefault(node.doc_string, []).append(node.op_type)
    return found


def phases_of(model):
    """Return the phases of the results, by their names."""
    return {name: phase_of(node) for node in model.graph.node for name in node.output}


def test_the_step_of_a_linear_model():
    assert operators(graphs(**LINEAR)["step"]) == {
        "forward": ["MatMul", "Add"],
        "loss": ["Identity", "Sub", "Mul", "Mul", "Mul", "ReduceSum"],
        # The gradient by the score, that by the intercept, that by the coefficients, and both
        # as one vector.
        "backward": [
            "Sub",
            "Mul",
            "Identity",
            "Identity",
            "ReduceSum",
            "Reshape",
            "Gemm",
            "Reshape",
            "Concat",
        ],
        "penalty": ["Identity"],
        "update": ["Mul", "Sub"],
    }


def test_the_step_of_a_network_with_both_terms_of_a_penalty_and_a_clipped_momentum():
    model = MLPRegressor(hidden_layer_sizes=(4,), alpha=0)
    options = {
        "optimizer": Momentum(),
        "max_grad_norm": 1.0,
        "penalty": ElasticPenalty(alpha=0.1, l1_ratio=0.5),
    }
    step = graphs(**PLAIN, estimator=model, **options)["step"]
    phases = phases_of(step)
    assert phases["next_activations"] == phases["add_result1"] == "forward"
    assert phases["skort_loss"] == "loss"
    assert phases["skort_score_gradient"] == phases["skort_loss_gradient"] == "backward"
    assert (
        phases["skort_gradient/coefficient/0"]
        == phases["skort_gradient/intercepts1/0"]
        == "backward"
    )
    for name in (
        "skort_l1_penalty",
        "skort_l2_penalty",
        "skort_weights_gradient",
        "skort_objective",
    ):
        assert phases[name] == "penalty", name
    for name in ("skort_clipped_gradient", "skort_weights_next", "skort_velocity_next"):
        assert phases[name] == "update", name
    # In the order of a step: what a phase computes, a later one reads.
    first = [
        list(dict.fromkeys(n.doc_string for n in step.graph.node)).index(phase) for phase in PHASES
    ]
    assert first == sorted(first)
    onnx.checker.check_model(step)


def test_the_gradient_of_an_own_penalty_is_of_the_penalty():
    own = Penalty(
        "own (weight) => (p) { s = Mul (weight, weight)  p = ReduceSum <keepdims = 0> (s) }"
    )
    phases = phases_of(graphs(**{**LINEAR, "penalty": own})["step"])
    assert phases["skort_coef_custom_penalty"] == phases["skort_coef_custom_gradient"] == "penalty"
    assert phases["skort_gradient/coef/0"] == "backward"


@pytest.mark.parametrize("inner", [LinearRegression(), MLPRegressor(hidden_layer_sizes=(4,))])
def test_every_node_of_every_solver_has_a_phase(solver, inner):
    made = graphs(**PLAIN, estimator=inner, solver=solver, penalty="l2", alpha=0.1)
    made = {name: graph for name, graph in made.items() if name not in ("start", "split")}
    found = {name: phases_of(graph) for name, graph in made.items()}
    assert all(phase in PHASES for phases in found.values() for phase in phases.values())
    main = next(phases for phases in found.values() if "backward" in phases.values())
    assert main["skort_loss"] == "loss"
    assert main["skort_objective"] == "penalty"
    assert {"forward", "loss", "backward", "penalty"} <= set(main.values())
    assert ("update" in main.values()) == (not makes_updates_in_numpy(solver))


def test_the_on_device_models():
    if "Module" not in training_api():
        pytest.skip("this runtime has no on-device API")
    made = graphs(**{**LINEAR, "penalty": "l2", "alpha": 0.1, "solver": "module"})
    phases = phases_of(made["training"])
    assert phases["skort_loss"] == "loss"
    assert phases["skort_objective"] == "penalty"
    assert phases["coef_grad.accumulation.out"] == phases["skort_gradient/coef/0"] == "backward"
    assert [(node.op_type, node.doc_string) for node in made["optimizer"].graph.node] == [
        ("Squeeze", "update"),
        ("SGDOptimizerV2", "update"),
    ]


@pytest.mark.parametrize(
    "solver, of_penalty", [("graph", []), ("agent", ["penalty"])], indirect=["solver"]
)
def test_the_gradient_of_sparse_rows(solver, of_penalty):
    X = scipy.sparse.random(30, 2000, density=0.01, format="csr", random_state=0, dtype=np.float32)
    model = OrtSGDRegressor(**{**LINEAR, "solver": solver}).fit(X, np.arange(30.0))
    phases = phases_of(model.training_graphs()["gradient"])
    assert phases["skort_loss"] == "loss"
    assert set(phases.values()) == {
        "forward",
        "loss",
        "backward",
        *of_penalty,
    }


def test_a_function_that_two_phases_call_is_marked_in_each():
    fragment, square = Fragment("float32"), "square (x) => (y) { y = Mul (x, x) }"
    with marked(fragment, "loss"):
        fragment.call(square, ["a"], ["b"])
    with marked(fragment, "penalty"):
        fragment.call(square, ["b"], ["c"])
    fragment.node("Neg", ["c"], ["d"])
    number = np.zeros((), np.float32)
    graph = onnx.helper.make_graph(
        fragment.nodes, "twice", infos({"a": number}), infos({"d": number})
    )
    model = inlined(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), fragment
    )
    assert [(node.op_type, node.doc_string) for node in model.graph.node] == [
        ("Mul", "loss"),
        ("Mul", "penalty"),
        ("Neg", ""),
    ]
    assert [phase_of(node) for node in mark_rest(model).graph.node] == [
        "loss",
        "penalty",
        "forward",
    ]


def test_a_program_writes_the_marks_that_it_took():
    program, fragment = Program("float32", 2, "example"), Fragment("float32")
    with marked(program, "loss"):
        program.node("Neg", ["a"], ["b"])
        program.call("square (x) => (y) { y = Mul (x, x) }", ["b"], ["c"])
    program.node("Neg", ["c"], ["d"])
    program.write(fragment)
    assert [node.doc_string for node in fragment.nodes] == ["loss", "loss", ""]
