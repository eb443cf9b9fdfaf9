"""
Categories as ids: an embedding
===============================

Each person and each film has a row of three numbers, and the product of both rows is a rating. An
ONNX model picks the rows by ids, so X has two columns of whole numbers. The rows are the weights.
"""

import matplotlib.pyplot as plt
import numpy as np
import onnx.parser
import onnxruntime
from onnx import numpy_helper

from skort import OrtSGDRegressor

# %%
# A fifth of all ratings is known.

rng = np.random.default_rng(0)
n_people, n_films, size = 200, 100, 3
true = rng.normal(size=(n_people, size)) @ rng.normal(size=(n_films, size)).T
known = rng.random(true.shape) < 0.2
ids = np.argwhere(known)
ratings = true[tuple(ids.T)] + rng.normal(scale=0.1, size=len(ids))

# %%
# The model, with small random rows to begin with.

model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    ratings (int64[N, 2] ids) => (float[N, 1] rating) {
        first = Constant <value = int64 {0}> ()
        second = Constant <value = int64 {1}> ()
        axis = Constant <value = int64[1] {1}> ()
        person = Gather <axis = 1> (ids, first)
        film = Gather <axis = 1> (ids, second)
        taste = Gather (people, person)
        kind = Gather (films, film)
        product = Mul (taste, kind)
        rating = ReduceSum (product, axis)
    }""")
for name, n in (("people", n_people), ("films", n_films)):
    rows = rng.normal(scale=0.5, size=(n, size)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(rows, name))

recommender = OrtSGDRegressor(
    model,
    optimizer="adam",
    eta0=0.02,
    learning_rate="constant",
    max_iter=60,
    tol=None,
    random_state=0,
)
recommender.fit(ids, ratings)

# %%
# The ratings that nobody gave, predicted by plain ONNX Runtime, whose input are the ids.

unknown = np.argwhere(~known)
session = onnxruntime.InferenceSession(
    recommender.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"]
)
(predicted,) = session.run(None, {"ids": unknown})
expected = true[tuple(unknown.T)]
error = np.sqrt(np.mean((predicted.ravel() - expected) ** 2))
print(f"error of unknown ratings {error:.2f}, their deviation {expected.std():.2f}")

fig, ax = plt.subplots(layout="constrained")
ax.scatter(expected[::10], predicted.ravel()[::10], s=4)
ax.set(
    xlabel="true rating",
    ylabel="predicted rating",
    title=f"{len(expected):,} ratings that nobody gave",
)
plt.show()
