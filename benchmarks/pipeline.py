"""
The cost of a pipeline inside an estimator, on one thread:
its transformers run once per fit, not once per batch.

Run it with `python benchmarks/pipeline.py`. 100,000 rows of a DataFrame, ColumnTransformer with
OneHotEncoder and StandardScaler, 20 epochs: the time of `fit` with the pipeline inside over that of
`fit_transform` of the transformers alone plus that of `fit` on the dense array that comes out. In
turn, five times; the figures are medians.
"""

import statistics
import warnings

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from timing import in_turn, show, threads

from skort import OrtSGDClassifier

N_ROWS = 100_000
CATEGORIES = {"city": 100, "job": 20, "plan": 5}


def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"number{i}": rng.normal(size=N_ROWS) for i in range(5)})
    for name, n_categories in CATEGORIES.items():
        X[name] = [f"{name} {i}" for i in rng.integers(n_categories, size=N_ROWS)]
    return X, X["number0"] + (X["plan"] == "plan 0") + rng.normal(size=N_ROWS) > 0


def compare(X, y, *, sparse):
    numbers = [name for name in X if name not in CATEGORIES]
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=sparse), list(CATEGORIES)),
        (StandardScaler(), numbers),
        sparse_threshold=float(sparse),
    )
    options = {"optimizer": "sgd", "max_iter": 20, "tol": None, "random_state": 0}
    whole = OrtSGDClassifier(make_pipeline(columns, LogisticRegression()), **options)
    alone = OrtSGDClassifier(**options)
    transformed = columns.fit_transform(X)
    array = (transformed.toarray() if sparse else transformed).astype(np.float32)
    print(f"{'Sparse' if sparse else 'Dense'} output of the transformers, {array.shape[1]} columns")
    times, _ = in_turn(
        {
            "fit, pipeline inside": lambda: whole.fit(X, y),
            "fit_transform alone": lambda: columns.fit_transform(X),
            "fit on the array": lambda: alone.fit(array, y),
        }
    )
    show(times)
    together, transforming, training = map(statistics.median, times.values())
    print(f"  ratio {together / (transforming + training):.2f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, y = data()
    with threads():
        compare(X, y, sparse=False)
        compare(X, y, sparse=True)
