"""
Networks on real tables, all defaults: skort's, scikit-learn's, RealMLP and boosted trees.

`python -m benchmarks.tabular` fits each of them on the tables of `benchmarks.real_tables`, at most
2,000 rows of each (`--rows`), and prints scores, ranks and the time of the processor. Text of at
most 200 values is a category. RealMLP is left out with a line that says so where pytabkit is not
installed. `--full` takes all rows of the tables of 8,000 and more, also of those of
`benchmarks.epochs`. `--parts` compares parts of `skort.networks.TabularNetwork` with its defaults,
on tables with categories and on others. The fits of other packages are kept in a file (`--cache`).
"""

import argparse
import functools
import importlib.util
import json
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sklearn
from pandas.api.types import is_numeric_dtype
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.defaults import counts
from benchmarks.real_tables import complete_rows, read, table_names
from benchmarks.table_specs import MANY_ROWS
from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.networks import TabularNetwork

__all__ = ["Fit", "contenders", "main", "part_lines", "parts", "score_lines"]

OURS = "TabularNetwork()"
SCIKIT_LEARN, BOOSTING, REAL_MLP = "scikit-learn, MLP (256, 128)", "HistGradientBoosting", "RealMLP"
# The models of other packages.
THEIRS = (SCIKIT_LEARN, BOOSTING, REAL_MLP)
HIDDEN = (256, 128)
MAX_LEVELS = 200
# Scores that are so near are level; those of a part are looked at more closely.
LEVEL, LEVEL_OF_PARTS = 0.01, 0.005
# The tables of `--full` have at least so many rows.
FULL_ROWS = 8000
# A difference that is a level but for this rounding error is level, too.
ROUNDING = 1e-9

#: What `--parts` changes of `TabularNetwork()`.
PARTS = {
    "dropout=0.1": {"dropout": 0.1},
    "dropout=0.25": {"dropout": 0.25},
    "embeddings=None": {"embeddings": None},
    "embeddings=2": {"embeddings": 2},
    "embeddings=32": {"embeddings": 32},
    "activation='tanh'": {"activation": "tanh"},
    "numeric_embedding='piecewise'": {"numeric_embedding": "piecewise"},
    "numeric_embedding=None": {"numeric_embedding": None},
}


class Table(NamedTuple):
    """A table: X is a DataFrame of numbers and of text, y as in `benchmarks.real_tables`."""

    name: str
    task: str
    X: object
    y: np.ndarray

    @property
    def has_categories(self):
        return len(texts(self.X)) > 0


class Fit(NamedTuple):
    """R2 or accuracy on held-out rows, their log-loss, and the seconds of the processor."""

    score: float
    log_loss: float | None
    seconds: float


@functools.cache
def load(name, n_rows):
    """Return a table, at most so many rows of it; `ImportError` where its package is missing."""
    task, spec, frame = read(name)
    X, y = complete_rows(frame, spec.target, task, MAX_LEVELS)
    if n_rows is not None and len(y) > n_rows:
        rows = np.random.RandomState(0).permutation(len(y))[:n_rows]
        X, y = X.iloc[rows], y[rows]

    numbers = X.select_dtypes("number")
    X = X.drop(columns=numbers.columns[np.ptp(numbers.to_numpy(), axis=0) == 0])
    X = X.astype(dict.fromkeys(texts(X), str)).astype(dict.fromkeys(texts(X), object))
    X.columns = [str(name) for name in X.columns]
    return Table(name, task, X.reset_index(drop=True), y)


def texts(X):
    """Return the names of the columns of text, whose dtype is `object` in pandas 2, or `str` in 3."""
    return X.columns[[not is_numeric_dtype(dtype) for dtype in X.dtypes]]


def _columns(encoder):
    """Return an encoder of columns of text, and of no others."""
    return make_column_transformer((encoder, texts), remainder="passthrough")


def _one_hot(*steps):
    return make_pipeline(
        _columns(OneHotEncoder(handle_unknown="ignore", sparse_output=False)), *steps
    )


def _ids(*steps):
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return make_pipeline(_columns(encoder), *steps)


def _skort(task, model, seed):
    cls = OrtSGDClassifier if task == "classification" else OrtSGDRegressor
    return cls(model, random_state=seed)


def tabular_network(task, seed, **options):
    """Return skort's estimator of a `TabularNetwork` behind an encoder of ids."""
    return _skort(task, _ids(TabularNetwork(**options)), seed)


def _skort_mlp(hidden, task, seed):
    cls = MLPClassifier if task == "classification" else MLPRegressor
    return _skort(task, _one_hot(cls(hidden_layer_sizes=hidden)), seed)


def _scikit_learn(task, seed):
    if task == "classification":
        return _one_hot(
            StandardScaler(),
            MLPClassifier(hidden_layer_sizes=HIDDEN, max_iter=300, random_state=seed),
        )
    network = MLPRegressor(hidden_layer_sizes=HIDDEN, max_iter=300, random_state=seed)
    network = TransformedTargetRegressor(network, transformer=StandardScaler())
    return _one_hot(StandardScaler(), network)


def _boosting(task, seed):
    if task == "classification":
        return HistGradientBoostingClassifier(random_state=seed)
    return HistGradientBoostingRegressor(random_state=seed)


class _WithCategories:
    """A model that takes a DataFrame in which text is a category, as pandas has them."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        self.dtypes = {name: X[name].astype("category").dtype for name in texts(X)}
        self.model.fit(X.astype(self.dtypes), y)

    def __getattr__(self, name):
        method = getattr(self.model, name)
        return lambda X, *y: method(X.astype(self.dtypes), *y)


def _real_mlp(task, seed):
    import pytabkit
    import torch

    torch.set_num_threads(1)
    name = "RealMLP_TD_S_Classifier" if task == "classification" else "RealMLP_TD_S_Regressor"
    return getattr(pytabkit, name)(random_state=seed, n_threads=1, device="cpu", verbosity=0)


def contenders():
    """Return the contenders that can be fitted here: name -> function (task, seed) -> model."""
    found = {
        OURS: tabular_network,
        "skort, MLP (50,)": functools.partial(_skort_mlp, (50,)),
        "skort, MLP (256, 128)": functools.partial(_skort_mlp, HIDDEN),
        SCIKIT_LEARN: _scikit_learn,
        BOOSTING: lambda task, seed: _WithCategories(
            _boosting(task, seed).set_params(categorical_features="from_dtype")
        ),
    }
    if importlib.util.find_spec("pytabkit") is None:
        print("RealMLP: skipped, the package pytabkit is missing", file=sys.stderr)
        return found
    return {**found, REAL_MLP: lambda task, seed: _WithCategories(_real_mlp(task, seed))}


def parts():
    """Return the networks of `--parts`: name -> function (task, seed) -> model."""
    changed = {
        name: functools.partial(tabular_network, **options) for name, options in PARTS.items()
    }
    return {OURS: tabular_network, **changed}


def fit(model, table, seed):
    """Return the `Fit` of a model on a split of a table."""
    is_classes = table.task == "classification"
    X_train, X_test, y_train, y_test = train_test_split(
        table.X, table.y, stratify=table.y if is_classes else None, random_state=seed
    )
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        start = time.process_time()
        model.fit(X_train, y_train)
        seconds = time.process_time() - start
        if not is_classes:
            return Fit(float(model.score(X_test, y_test)), None, seconds)

        # A softmax in float32 may round up to 1 + 1e-7, which log_loss refuses.
        probabilities = np.clip(model.predict_proba(X_test), 1e-7, 1.0)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        labels = np.arange(probabilities.shape[1])
        loss = float(log_loss(y_test, probabilities, labels=labels))
        return Fit(float(model.score(X_test, y_test)), loss, seconds)


class Cache:
    """Fits in a file of a JSON line each: those of other packages, which do not change with skort."""

    def __init__(self, path):
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.fits = {key: Fit(*values) for key, values in map(json.loads, lines)}

    def get(self, key, make):
        """Return a fit that is kept, or make it, and keep it if it is of another package."""
        if not key.endswith(THEIRS):
            return make()
        if key not in self.fits:
            self.fits[key] = make()
            with self.path.open("a") as file:
                file.write(json.dumps((key, self.fits[key])) + "\n")
        return self.fits[key]


def _fit_of(make, table, seed):
    return fit(make(table.task, seed), table, seed)


def loaded(names, n_rows):
    """Yield the tables of these names whose packages are installed, and a line for each other one."""
    for name in names:
        try:
            yield load(name, n_rows)
        except ImportError as error:
            print(f"{name}: skipped, the package {error.name} is missing", file=sys.stderr)


def full_tables(names):
    """Yield those tables of these names that have many rows, with all of them."""
    return (table for table in loaded(names, None) if len(table.y) >= FULL_ROWS)


def run(models, tables, n_splits, cache):
    """Return the fits: (table, split) -> name of a model -> `Fit`."""
    results = {}
    for table in tables:
        for seed in range(n_splits):
            fits = results[table.name, seed] = {}
            for model, make in models.items():
                key = f"{table.name} {table.X.shape} {seed} {model}"
                fits[model] = cache.get(key, functools.partial(_fit_of, make, table, seed))
    return results


def _counts(differences, level):
    """Return wins, ties and losses; a rounding beyond the level is a tie."""
    return counts(differences, level + ROUNDING)


def _ranks(results):
    """Return the mean rank of each model by its score."""
    names = list(next(iter(results.values())))
    ranks = {name: [] for name in names}
    for fits in results.values():
        for name in names:
            ahead = [fits[other].score - fits[name].score for other in names]
            better = sum(d > LEVEL + ROUNDING for d in ahead)
            ranks[name].append(1 + better)
    return {name: statistics.mean(values) for name, values in ranks.items()}


def score_lines(task, results):
    """Yield the lines of a table of scores, a line a model."""
    ranks = _ranks(results)
    has_loss = task == "classification"
    score = "accuracy" if has_loss else "R2"
    columns = ["", f"mean {score}", "mean rank", f"{OURS} at {LEVEL}", "CPU s"]
    columns += ["median log-loss", f"{OURS} at 2 % of log-loss"] * has_loss
    yield f"\n{task}, {len(results)} fits"
    yield f"| {' | '.join(columns)} |"
    yield "| --- " * len(columns) + "|"

    for name, rank in ranks.items():
        pairs = [(fits[OURS], fits[name]) for fits in results.values()]
        cells = [
            name,
            f"{statistics.mean(theirs.score for _, theirs in pairs):.3f}",
            f"{rank:.2f}",
            "" if name == OURS else _counts([o.score - t.score for o, t in pairs], LEVEL),
            f"{sum(theirs.seconds for _, theirs in pairs):.0f}",
        ]
        if has_loss:
            better = [1 - ours.log_loss / theirs.log_loss for ours, theirs in pairs]
            cells += [
                f"{statistics.median(theirs.log_loss for _, theirs in pairs):.3f}",
                "" if name == OURS else _counts(better, 0.02),
            ]
        yield f"| {' | '.join(cells)} |"


def part_lines(task, results, *, what):
    """Yield the lines of a table of parts next to the defaults, a line a part."""
    yield f"\n{task}, {what}, {len(results)} fits: next to {OURS}"
    yield f"| | mean score | at {LEVEL_OF_PARTS} | at 2 % of log-loss | CPU time |"
    yield "| --- " * 5 + "|"
    for name in list(next(iter(results.values())))[1:]:
        pairs = [(fits[name], fits[OURS]) for fits in results.values()]
        differences = [part.score - default.score for part, default in pairs]
        losses = [1 - part.log_loss / default.log_loss for part, default in pairs if part.log_loss]
        time_of = [sum(each.seconds for each in column) for column in zip(*pairs, strict=True)]
        cells = [
            name,
            f"{statistics.mean(differences):+.4f}",
            _counts(differences, LEVEL_OF_PARTS),
            _counts(losses, 0.02) if losses else "",
            f"{time_of[0] / time_of[1]:.2f}",
        ]
        yield f"| {' | '.join(cells)} |"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--parts", action="store_true", help="parts of TabularNetwork only")
    parser.add_argument("--rows", type=int, default=2000, help="at most so many (%(default)s)")
    parser.add_argument("--splits", type=int, default=1, help="of each table (%(default)s)")
    parser.add_argument(
        "--full", action="store_true", help=f"all rows of the tables of {FULL_ROWS:,} and more"
    )
    parser.add_argument("--tables", nargs="+", metavar="NAME", help="these tables only")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these models only, and ours")
    file = Path(tempfile.gettempdir()) / f"skort-tabular-fits-{sklearn.__version__}.jsonl"
    parser.add_argument(
        "--cache", type=Path, default=file, help="file of the fits of others (%(default)s)"
    )
    options = parser.parse_args(arguments)

    models = parts() if options.parts else contenders()
    if options.only:
        models = {name: models[name] for name in (OURS, *options.only)}
    names = options.tables or table_names()
    if options.full:
        many_rows = () if options.tables else (spec.item for _, spec in MANY_ROWS)
        tables = list(full_tables([*names, *many_rows]))
    else:
        tables = list(loaded(names, options.rows))
    results = run(models, tables, options.splits, Cache(options.cache))
    for task in ("regression", "classification"):
        of_task = [table for table in tables if table.task == task]
        for lines in _lines(task, of_task, results, is_of_parts=options.parts):
            print("\n".join(lines), flush=True)
    return 0


def _lines(task, tables, results, *, is_of_parts):
    """Yield the lines of each table that is printed."""
    if not is_of_parts:
        if tables:
            yield score_lines(task, _of(results, tables))
        return

    for what, has in (("tables with categories", True), ("other tables", False)):
        group = [table for table in tables if table.has_categories == has]
        if group:
            yield part_lines(task, _of(results, group), what=what)


def _of(results, tables):
    """Return the fits of some tables."""
    names = {table.name for table in tables}
    return {key: fits for key, fits in results.items() if key[0] in names}


if __name__ == "__main__":
    sys.exit(main())
