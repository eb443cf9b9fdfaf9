"""
The cost in accuracy of dividing every batch by its own sample weight.

Run it with `python benchmarks/sample_weight.py`. A linear regression is trained on diabetes with
lognormal sample weights. The figures are its weighted mean squared error at the end, relative to
the smallest possible one. Batches are divided by the sum of their own sample weights, as in
scikit-learn's MLP, or by the mean sample weight of all rows times the number of rows of the
batch, as in skort.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import scale


def descend(X, y, weight, batch_size, divide_by_own_weight, n_updates=60_000, seed=0):
    """Return the mean of the last half of the iterates of plain SGD in numpy."""
    rng = np.random.default_rng(seed)
    w, mean = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for t in range(n_updates):
        rows = rng.choice(len(X), batch_size, replace=False)
        share = weight[rows] / (
            weight[rows].sum() if divide_by_own_weight else batch_size * weight.mean()
        )
        w -= 0.01 * X[rows].T @ (share * (X[rows] @ w - y[rows]))
        if t >= n_updates // 2:
            mean += w / (n_updates - n_updates // 2)
    return mean


def main():
    X, y = load_diabetes(return_X_y=True)
    X, y = np.hstack([scale(X), np.ones((len(X), 1))]), scale(y)
    weight = np.random.default_rng(0).lognormal(sigma=1.5, size=len(X))

    def error(w):
        return np.average((X @ w - y) ** 2, weights=weight)

    best = error(LinearRegression(fit_intercept=False).fit(X, y, weight).coef_)
    print("batch size   own weight   mean weight")
    for batch_size in (1, 10, 50, 200):
        errors = [error(descend(X, y, weight, batch_size, own)) / best - 1 for own in (True, False)]
        print(f"{batch_size:10}   {errors[0]:10.2%}   {errors[1]:11.2%}")


if __name__ == "__main__":
    main()
