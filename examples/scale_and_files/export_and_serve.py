"""
Export a model, and serve it
============================

A fitted pipeline becomes one ONNX file: the scaler, the network and the names of the labels. A
server needs onnxruntime and numpy to answer with it, and nothing of scikit-learn or skort.
"""

# sphinx_gallery_thumbnail_number = 2

import tempfile
import timeit
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnx
import onnxruntime
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skort import OrtSGDClassifier
from skort.plotting import GraphDisplay

# %%
# Train and save.

wine = load_wine()
names = wine.target_names[wine.target]
X_train, X_test, y_train, y_test = train_test_split(
    wine.data, names, stratify=names, random_state=0
)
model = OrtSGDClassifier(
    make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=(100, 100))), random_state=0
)
model.fit(X_train, y_train)
path = Path(tempfile.mkdtemp(prefix="skort-"), "wine.onnx")
model.save_onnx(path)
print(f"accuracy {model.score(X_test, y_test):.3f}; {path.stat().st_size:,} bytes")
print("operators:", ", ".join(node.op_type for node in onnx.load(path).graph.node))

# %%
# The file as a graph: the scaler, the layers, and the labels at the end. A box names an operator
# and the constants that it reads.

GraphDisplay.from_estimator(model).plot()
plt.show()

# %%
# Serve. The names of inputs and outputs, their types and their shapes are in the file.

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
for kind, arguments in (("input", session.get_inputs()), ("output", session.get_outputs())):
    for argument in arguments:
        print(f"{kind} {argument.name!r}: {argument.type}, shape {argument.shape}")

labels, probabilities = session.run(["label", "probabilities"], {"X": X_test.astype(np.float32)})
difference = np.abs(probabilities - model.predict_proba(X_test)).max()
print(
    f"the same labels: {(labels == model.predict(X_test)).all()}, "
    f"largest difference: {difference:.1e}"
)

# %%
# How long does an answer take, for one row or for many? ONNX Runtime's session is called directly,
# without skort. The plain scikit-learn pipeline with the same weights is beside it. Both use one
# thread. The time is the least of many calls, after some calls that do not count. The machine
# decides the times; compare the two lines.


def seconds_per_call(call, n_calls=200):
    """Return the seconds of the fastest of many calls."""
    with threadpool_limits(1):
        for _ in range(20):
            call()
        return min(timeit.repeat(call, number=1, repeat=n_calls))


plain = model.to_sklearn()
sizes = [1, 10, 100, 1000]
milliseconds = {"scikit-learn": [], "onnxruntime": []}
for n in sizes:
    rows = np.resize(X_test, (n, X_test.shape[1]))
    rows_as_float32 = rows.astype(np.float32)
    calls = {
        "scikit-learn": lambda rows=rows: plain.predict_proba(rows),
        "onnxruntime": lambda rows=rows_as_float32: session.run(["probabilities"], {"X": rows}),
    }
    for server, call in calls.items():
        milliseconds[server].append(1e3 * seconds_per_call(call))
ratios = [theirs / ours for theirs, ours in zip(*milliseconds.values(), strict=True)]
for n, ratio in zip(sizes, ratios, strict=True):
    rows = "row: " if n == 1 else "rows:"
    print(f"{n:4} {rows} scikit-learn takes {ratio:.1f} times as long as onnxruntime")

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for server, times in milliseconds.items():
    axis.plot(sizes, times, marker="o", label=server)
axis.set(xscale="log", yscale="log", xlabel="rows of a request", ylabel="milliseconds per answer")
axis.legend()
plt.show()
