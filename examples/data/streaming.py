"""
A stream of chunks
==================

Rows come from a generator in chunks, as they would from files or a database. `partial_fit` takes
one chunk after the other. The means and scales of the columns are those of the first chunk. After
half of the chunks, the estimator is pickled and loaded, and goes on as if nothing had happened.
"""

import pickle

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from skort import OrtSGDClassifier

# %%
# Chunks have 500 rows. The label says whether a hidden linear score is positive.

coef = np.random.default_rng(0).normal(size=20)


def chunks(n_chunks, seed=1):
    """Yield (X, y)."""
    rng = np.random.default_rng(seed)
    for _ in range(n_chunks):
        X = 50 + 10 * rng.normal(size=(500, 20))
        yield X, np.where((X - 50) @ coef > 0, "yes", "no")


# %%
# The accuracy is measured on rows before the model trains on them.

model = OrtSGDClassifier(optimizer="momentum", random_state=0)
accuracies = []
for i, (X, y) in enumerate(chunks(100)):
    if i > 0:
        accuracies.append(model.score(X, y))
    if i % 20 == 0 and i > 0:
        print(f"after {i} chunks: accuracy {accuracies[-1]:.3f} on the next one")
    if i == 50:
        model = pickle.loads(pickle.dumps(model))
    model.partial_fit(X, y, classes=["no", "yes"])

# %%
# The same without the pickle.

unbroken = clone(model)
for X, y in chunks(100):
    unbroken.partial_fit(X, y, classes=["no", "yes"])
print("the same model:", model.onnx_.SerializeToString() == unbroken.onnx_.SerializeToString())

# %%
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.plot(500 * np.arange(1, 100), accuracies, marker=".", label="on the next chunk")
axis.axvline(25_000, color="black", linestyle="--", linewidth=1, label="pickled and loaded")
axis.set(xlabel="rows that the model was trained on", ylabel="accuracy", ylim=(0.9, 1.002))
axis.legend(loc="lower right")
plt.show()
