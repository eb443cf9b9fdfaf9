"""`training_graphs` shows what ran: the nodes and the inputs of the session."""

import numpy as np
import onnx
import pytest
import scipy.sparse
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDRegressor
from skort.objective import Huber, Penalty
from skort.runtime import sessions
from skort.runtime.cache import forget

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
Y = X[:, 0] - X[:, 1] ** 2
OPTIONS = {"max_iter": 2, "tol": None, "batch_size": 10, "random_state": 0, "eta0": 0.01}
OWN = "own (weight) => (p) { s = Mul (weight, weight)  p = ReduceSum <keepdims = 0> (s) }"
FITS = {
    "linear": (LinearRegression(), {"penalty": None}),
    "network": (
        MLPRegressor(hidden_layer_sizes=(5,)),
        {"penalty": "elasticnet", "optimizer": "adam", "max_grad_norm": 1.0},
    ),
    "own terms": (
        MLPRegressor(hidden_layer_sizes=(5,)),
        {"loss": Huber(0.5), "penalty": Penalty(OWN)},
    ),
    "frozen": (
        MLPRegressor(hidden_layer_sizes=(5,)),
        {"trainable": ["coefficient1"], "average": 3},
    ),
}


@pytest.fixture
def ran(monkeypatch):
    """The models of the sessions that are made."""
    models, make = [], sessions.inference_session

    def watched(graph, *args, **options):
        models.append(onnx.load_from_string(graph))
        return make(graph, *args, **options)

    monkeypatch.setattr(sessions, "inference_session", watched)
    monkeypatch.setattr("skort.solvers.agent.inference_session", watched)
    forget()
    return models


def described(model):
    return [(n.op_type, list(n.input), list(n.output)) for n in model.graph.node], [
        i.name for i in model.graph.input
    ]


@pytest.mark.parametrize("rows", ["dense", "sparse"])
@pytest.mark.parametrize("name", FITS)
def test_the_graph_shown_is_the_graph_that_ran(name, rows, solver, ran, run_onnx):
    if solver not in ("graph", "agent"):
        pytest.skip("its sessions are not made of one graph")
    if rows == "sparse" and name == "frozen":
        pytest.skip("the first layer is trained there")
    inner, options = FITS[name]
    data = (
        X
        if rows == "dense"
        else scipy.sparse.random(40, 2000, density=0.01, format="csr", random_state=0)
    )
    model = OrtSGDRegressor(inner, solver=solver, standardize=False, **OPTIONS, **options).fit(
        data, Y
    )
    trained = [described(model) for model in ran if "skort_loss" in str(model.graph.node)]
    graphs = model.training_graphs()
    shown = graphs["step" if "step" in graphs else "gradient"]
    assert trained and all(each == described(shown) for each in trained)
    assert len(shown.graph.node) == len(trained[0][0])
    # "start" gives what a batch and a rate are not.
    batch = {"X", "skort_target", "skort_sample_weight", "skort_learning_rate", "skort_product"}
    assert run_onnx(graphs["start"]).keys() == {i.name for i in shown.graph.input} - batch
