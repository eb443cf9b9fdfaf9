"""
Sparse rows: 100,000 ratings of 6,000 users and items
=====================================================

Each row has two values that are not zero: one for the user, one for the item. As an array the rows
would take 2.4 GB. As a sparse matrix they take 2 MB, and a step multiplies only what is there.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse
from sklearn.linear_model import Ridge

from skort import OrtSGDRegressor
from skort.schedules import Cosine

n_users, n_items, n_ratings = 5000, 1000, 100_000
rng = np.random.default_rng(0)
kindness, quality = rng.normal(scale=0.5, size=n_users), rng.normal(scale=0.5, size=n_items)
user, item = rng.integers(n_users, size=n_ratings), rng.integers(n_items, size=n_ratings)
rating = 3 + kindness[user] + quality[item] + rng.normal(scale=0.3, size=n_ratings)

columns = np.column_stack([user, n_users + item]).ravel().astype(np.int32)
X = scipy.sparse.csr_array(
    (np.ones(len(columns), np.float32), columns, np.arange(0, len(columns) + 1, 2, dtype=np.int32)),
    shape=(n_ratings, n_users + n_items),
)
size = sum(part.nbytes for part in (X.data, X.indices, X.indptr)) / 1e6
print(
    f"{X.shape[0]:,} rows, {X.shape[1]:,} columns: {size:.1f} MB, "
    f"as an array {4e-6 * np.prod(X.shape):,.0f} MB"
)

# %%
# `fit` takes the sparse matrix as it is. Adam gives each column a step of its own, however rare it
# is. The strength of the penalty is the variance of the noise divided by that of the effects.

train, test = slice(None, 80_000), slice(80_000, None)
n_epochs = 40
model = OrtSGDRegressor(
    Ridge(alpha=0.36),
    optimizer="adam",
    learning_rate=Cosine(n_updates=80 * n_epochs, eta0=0.03),
    batch_size=1000,
    max_iter=n_epochs,
    tol=None,
    standardize=False,
    random_state=0,
)
model.fit(X[train], rating[train])
score = model.score(X[test], rating[test])
explained = 1 - 0.3**2 / rating[test].var()
print(f"{n_epochs} epochs: R² {score:.3f} on other ratings; with the true effects {explained:.3f}")

# %%
# The weights are what the ratings were made of: how kind a user is, how good an item is. An item
# has 80 ratings and a user has 16, so the items are known better.

found = {"users": model.coef_[:n_users], "items": model.coef_[n_users:]}
truth = {"users": kindness, "items": quality}
correlations = {name: np.corrcoef(found[name], truth[name])[0, 1] for name in found}
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharex=True, sharey=True)
for axis, name in zip(axes, found, strict=True):
    axis.axline((0, 0), slope=1, color="black", linewidth=1)
    axis.plot(truth[name], found[name] - found[name].mean(), ".", markersize=2)
    axis.set(
        xlabel="true effect, points",
        title=f"{len(truth[name]):,} {name}: correlation {correlations[name]:.2f}",
    )
axes[0].set(ylabel="weight less the mean, points")
plt.show()

# %%
# The sparse rows and the same rows as an array train the same weights, up to rounding.

few = X[:2000, :].toarray()
options = {"standardize": False, "eta0": 0.5, "max_iter": 5, "tol": None, "random_state": 0}
weights = [OrtSGDRegressor(**options).fit(rows, rating[:2000]).coef_ for rows in (X[:2000], few)]
print("largest difference of a weight:", np.abs(weights[0] - weights[1]).max())
