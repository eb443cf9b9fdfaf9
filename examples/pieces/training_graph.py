"""
A training graph written by hand
================================

The documents about `TrainingSession` and onnxcustom write a linear regression node by node, with
its loss: a graph that takes X and the labels, and gives the loss and the predictions. skort trains
such a graph as it is, with `loss=None`: the loss is the one that the graph computes.
"""

# sphinx_gallery_thumbnail_number = 1

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import make_regression
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from skort import OrtSGDRegressor, Step
from skort.onnx_models import objective_graph
from skort.plotting import GraphDisplay

X, y = make_regression(n_samples=100, n_features=2, bias=2, random_state=0)
X, y = X.astype(np.float32), y.astype(np.float32)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
reference = LinearRegression().fit(X_train, y_train)

# %%
# Two nodes predict, three compute the loss. The loss is a sum over the rows, of shape (1, 1).


def linear_regression_with_loss(coefs, intercept):
    """Return the graph (X, label) -> (loss, Y)."""
    X = helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, coefs.shape[0]])
    label = helper.make_tensor_value_info("label", TensorProto.FLOAT, [None, coefs.shape[1]])
    Y = helper.make_tensor_value_info("Y", TensorProto.FLOAT, [None, coefs.shape[1]])
    loss = helper.make_tensor_value_info("loss", TensorProto.FLOAT, [1, 1])

    nodes = [
        helper.make_node("MatMul", ["X", "coefs"], ["y1"], name="N1"),
        helper.make_node("Add", ["y1", "intercept"], ["Y"], name="N2"),
        helper.make_node("Sub", ["Y", "label"], ["diff"], name="L1"),
        helper.make_node("Mul", ["diff", "diff"], ["diff2"], name="L2"),
        helper.make_node("ReduceSum", ["diff2"], ["loss"], name="L3"),
    ]
    weights = [
        numpy_helper.from_array(coefs, name="coefs"),
        numpy_helper.from_array(intercept, name="intercept"),
    ]
    graph = helper.make_graph(nodes, "lrt", [X, label], [loss, Y], weights)
    return helper.make_model(graph, ir_version=7, opset_imports=[helper.make_operatorsetid("", 14)])


rng = np.random.default_rng(0)
coefs = rng.normal(size=(2, 1)).astype(np.float32)
model = linear_regression_with_loss(coefs, np.zeros(1, np.float32))
GraphDisplay.from_model(model).plot()
plt.show()

# %%
# One step on a batch of 10 rows, and the same by hand. The sum of a batch is 10 times the mean loss
# of its rows, and this mean is what a step minimises.

step = Step(model, loss=None, batch_size=10)
print("loss of a row:", step.step(X_train[:10], y_train[:10], eta=0.01))
error = X_train[:10] @ coefs - y_train[:10, None]
print("by hand:      ", np.mean(error**2))
print("coefs:  ", step.weights()["coefs"].ravel())
print("by hand:", (coefs - 0.01 * 2 * X_train[:10].T @ error / 10).ravel())

# %%
# The estimator trains the graph to the end. Its scores are those of `LinearRegression`.

trained = OrtSGDRegressor(model, loss=None, random_state=0).fit(X_train, y_train)
print("R2:              ", trained.score(X_test, y_test))
print("LinearRegression:", reference.score(X_test, y_test))
print("coefs:           ", trained.weights_["coefs"].ravel(), trained.weights_["intercept"])
print("LinearRegression:", reference.coef_, reference.intercept_)

# %%
# `to_onnx` gives the predictions alone. With `original=True`, it is the graph above with the trained
# weights: it still computes the loss.

for given in (trained.to_onnx(), trained.to_onnx(original=True)):
    session = onnxruntime.InferenceSession(
        given.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    inputs = {"X": X_test, "label": y_test[:, None]}
    results = session.run(None, {i.name: inputs[i.name] for i in session.get_inputs()})
    print([o.name for o in session.get_outputs()], [result.shape for result in results])

# %%
# A loss of skort makes such a graph, too, from a graph that only predicts.

predicting = trained.to_onnx()
with_loss = objective_graph(predicting, "squared_error")
print([i.name for i in with_loss.graph.input], [o.name for o in with_loss.graph.output])
