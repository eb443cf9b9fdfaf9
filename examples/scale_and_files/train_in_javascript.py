"""
Training in JavaScript
======================

onnxruntime-web runs the step of `training_graphs()` in browsers, and here in Node.js.
`train_in_javascript.cjs`, beside this script, starts from the same weights as skort, makes steps on
the same batches, and reaches the same weights.

This needs `node`, and `npm install onnxruntime-web` in some FOLDER. Set the environment variable
NODE_PATH to `FOLDER/node_modules`.
"""

# sphinx_gallery_thumbnail_path = 'static/gallery/train_in_javascript.png'

import json
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnx
from sklearn.datasets import load_diabetes
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import scale

from skort import OrtSGDRegressor

N_EPOCHS, BATCH_SIZE, LEARNING_RATE = 20, 40, 0.01

# %%
# A first training of two epochs makes the graphs.

X, y = (scale(array)[:440].astype(np.float32) for array in load_diabetes(return_X_y=True))
options = {
    "optimizer": "adam",
    "eta0": LEARNING_RATE,
    "batch_size": BATCH_SIZE,
    "shuffle": False,
    "tol": None,
    "early_stopping": False,
}
# The weights of the graph are those of X and y as they are.
options |= {"learning_rate": "constant", "standardize": False}
first = OrtSGDRegressor(
    MLPRegressor(hidden_layer_sizes=(20,)), **options, max_iter=2, random_state=0
).fit(X, y)

# %%
# The files for JavaScript: the graphs, and the batches.

folder = tempfile.mkdtemp(prefix="skort-")
for name, graph in first.training_graphs().items():
    onnx.save(graph, Path(folder, f"{name}.onnx"))
batches = [slice(begin, begin + BATCH_SIZE) for begin in range(0, len(X), BATCH_SIZE)]
data = {
    "n_epochs": N_EPOCHS,
    "learning_rate": LEARNING_RATE,
    "batches": [{"X": X[batch].tolist(), "target": y[batch, None].tolist()} for batch in batches],
}
Path(folder, "batches.json").write_text(json.dumps(data))

# %%
# Node.js trains and writes the weights that it reaches.

subprocess.run(["node", Path(__file__).with_suffix(".cjs"), folder], check=True)
outside = json.loads(Path(folder, "weights.json").read_text())
print(
    "loss of the first and the last epoch, in JavaScript:",
    outside["losses"][0],
    outside["losses"][-1],
)

# %%
# skort makes the same steps.

inside = OrtSGDRegressor(FrozenEstimator(first.to_sklearn()), **options, max_iter=N_EPOCHS).fit(
    X, y
)
print(
    "the same with skort:                                ",
    inside.loss_curve_[0],
    inside.loss_curve_[-1],
)
weights = np.concatenate([w.ravel() for w in inside.weights_.values()])
print(
    "largest difference between the weights:", np.abs(np.array(outside["weights"]) - weights).max()
)

# %%
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
epochs = np.arange(1, N_EPOCHS + 1)
axis.plot(epochs, outside["losses"], linewidth=6, alpha=0.35, label="onnxruntime-web in Node.js")
axis.plot(epochs, inside.loss_curve_, color="C0", label="skort")
axis.set(xlabel="epoch", ylabel="loss with penalty", yscale="log")
axis.xaxis.get_major_locator().set_params(integer=True)
axis.legend()
plt.show()
