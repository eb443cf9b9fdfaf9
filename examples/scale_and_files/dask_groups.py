"""
Rows in partitions, on a cluster
================================

A cluster of two workers on this machine stands for a real one. Two groups of partitions make their
steps at the same time and exchange what they have learned. The result is the same to the last bit,
whatever the workers do. The figure shows the loss by the steps that are made one after the other.
They take the time, and two groups need half as many.

This needs Dask: `pip install ".[dask]"` in a copy of the repository.
"""

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from sklearn.neural_network import MLPClassifier

from skort.dask import OrtSGDClassifier

# %%
# 40,000 rows in eight partitions. The label says whether two hidden scores have the same sign.

rng = np.random.default_rng(0)
X = rng.normal(size=(40_000, 10)).astype(np.float32)
y = (X @ rng.normal(size=10) > 0) == (X @ rng.normal(size=10) > 0)
X_parts, y_parts = da.from_array(X, chunks=(5000, 10)), da.from_array(y, chunks=5000)

# %%
# A fit with one group, which is that of one machine, and a fit with two.


def fitted(n_groups):
    """Return a fitted estimator."""
    model = OrtSGDClassifier(
        MLPClassifier(hidden_layer_sizes=(30,)),
        optimizer="adam",
        eta0=0.005,
        learning_rate="constant",
        max_iter=8,
        tol=None,
        n_groups=n_groups,
        random_state=0,
    )
    return model.fit(X_parts, y_parts)


def main():
    """Fit, and compare with predictions in this process."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        models = {n_groups: fitted(n_groups) for n_groups in (1, 2)}
        for n_groups, model in models.items():
            accuracy = model.score(X_parts, y_parts)
            print(
                f"n_groups={n_groups}: {model.t_} steps one after the other, "
                f"accuracy {accuracy:.3f}"
            )
        probabilities = models[2].predict_proba(X_parts).compute()
    local = models[2].to_local()
    print("the same bits without a cluster:", np.array_equal(local.predict_proba(X), probabilities))
    return models


# %%
# The workers are processes, which import this file.

if __name__ == "__main__":
    models = main()

# %%
# The loss of each round, by the steps so far.

if __name__ == "__main__":
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        print("no figure: matplotlib is not installed")
    else:
        fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
        for n_groups, model in models.items():
            n_rounds = len(model.loss_curve_)
            steps = model.t_ / n_rounds * np.arange(1, n_rounds + 1)
            ax.plot(steps, model.loss_curve_, marker="o", label=f"n_groups={n_groups}")
        ax.set(xlabel="steps one after the other", ylabel="loss")
        ax.legend()
        plt.show()
