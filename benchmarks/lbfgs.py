"""
Compare default fits of linear models, by L-BFGS, with scikit-learn: `python -m benchmarks.lbfgs`.

On raw columns with the penalty of the model inside, everything at its default: the CPU time of a
fit, median of some alternating runs on one thread, beside that of scikit-learn's model behind a
StandardScaler; the iterations; and the relative gap of the objective to its optimum, which a fit in
float64 finds. scikit-learn's penalty is then one of scaled columns, so that its optimum is another.

`--classes` prints the same for tables of several classes and for more and less penalty.
`--networks` and `--kinks` print objectives, iterations and times of networks by L-BFGS, and of
linear models with kinks, which begin with SGD.

`--correlations` prints how far predictions are from those of the exact optimum, `--searches`
compares grid searches, and `--texts` compares L-BFGS with SGD on sparse rows: TF-IDF and counts.
"""

import argparse
import importlib
import inspect
import itertools
import pkgutil
import time
import warnings

import numpy as np
from scipy.special import logsumexp
from sklearn.base import clone, is_classifier
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.model_selection import OrtGridSearchCV


def cases():
    """Yield the name, X, y and the model of each case."""
    logistic = LogisticRegression(max_iter=1000)
    yield "breast cancer", *load_breast_cancer(return_X_y=True), logistic
    yield "digits", *load_digits(return_X_y=True), logistic
    yield "diabetes", *load_diabetes(return_X_y=True), Ridge()

    X, y = make_classification(20_000, 50, n_informative=25, random_state=0)
    yield "20,000 x 50", X, y, logistic
    yield "20,000 x 50, mixed columns", _mixed(X), y, logistic

    X, y = make_classification(100_000, 100, n_informative=50, random_state=0)
    yield "100,000 x 100", X, y, logistic
    noise = np.random.default_rng(0).normal(size=len(X))
    yield "100,000 x 100, Ridge", X, X.sum(axis=1) + 5 * noise, Ridge()


def classes():
    """Yield the name, X, y and the model of each case of several classes."""
    for strength in (0.01, 1.0, 100.0):
        model = LogisticRegression(C=strength, max_iter=1000)
        for load in (load_iris, load_wine, load_digits):
            yield f"{load.__name__[5:]}, C={strength}", *load(return_X_y=True), model
        for n_rows, n_columns, n_classes in ((2000, 20, 5), (20_000, 50, 5), (1000, 95, 10)):
            X, y = make_classification(
                n_rows,
                n_columns,
                n_informative=15,
                n_classes=n_classes,
                n_clusters_per_class=1,
                random_state=0,
            )
            yield f"{n_rows:,} x {n_columns}, {n_classes}, C={strength}", X, y, model


def _mixed(X):
    """Return columns that are sums of others, of very different scales."""
    random = np.random.default_rng(0)
    mixed = X @ random.normal(size=(X.shape[1], X.shape[1]))
    return mixed * np.exp(2 * random.normal(size=X.shape[1]))


def _ours(model, **parameters):
    """Return the estimator of skort that trains a model."""
    kind = OrtSGDClassifier if is_classifier(model) else OrtSGDRegressor
    return kind(clone(model), **parameters)


def cpu_times(models, X, y, repeats):
    """Return the median CPU time of some fits of each model, made in turn, in milliseconds."""
    times = [[] for _ in models]
    for _ in range(repeats):
        for model, taken in zip(models, times, strict=True):
            begin = time.process_time()
            model.fit(X, y)
            taken.append(time.process_time() - begin)

    return [1e3 * float(np.median(taken)) for taken in times]


def objective(model, X, y, fitted):
    """Return the objective of a model of scikit-learn, a mean over rows, at fitted weights."""
    coef = np.atleast_2d(fitted.coef_).astype(np.float64)
    scores = X @ coef.T + fitted.intercept_
    n_rows = len(y)

    if not is_classifier(model):
        return 0.5 * np.mean((scores[:, 0] - y) ** 2) + 0.5 * model.alpha / n_rows * np.sum(coef**2)

    scores = np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores
    of_row = scores[np.arange(n_rows), np.searchsorted(fitted.classes_, y)]
    loss = np.mean(logsumexp(scores, axis=1) - of_row)
    return loss + 0.5 / (model.C * n_rows) * np.sum(coef**2)


def compare_fits(cases, repeats):
    """Print a line for each case."""
    for name, X, y, model in cases:
        ours = _ours(model)
        behind_scaler = make_pipeline(StandardScaler(), clone(model))
        ours.fit(X, y)  # The first fit converts the model.
        theirs, taken = cpu_times([behind_scaler, ours], X, y, repeats)

        exact = _ours(model, optimizer="lbfgs", dtype="float64", tol=1e-11, max_iter=20_000)
        least = objective(model, X, y, exact.fit(X, y))
        gap = objective(model, X, y, ours) / least - 1
        print(
            f"{name:27} {taken:7.1f} ms, scaler + scikit-learn {theirs:7.1f} ms: "
            f"{taken / theirs:5.2f}; {ours.n_iter_} iterations, gap {gap:.0e}",
            flush=True,
        )


def compare_correlations():
    """Print how far predictions are from those of the exact optimum, in their deviations."""
    random = np.random.default_rng(0)
    first, second, noise = random.normal(size=(3, 20_001))

    for correlation in (0.0, 0.9, 0.99, 0.999, 0.9999, 0.99999):
        other = correlation * first + np.sqrt(1 - correlation**2) * second
        X = np.column_stack([first, 100 * other + 1000])
        y = first + second + noise

        exact = LinearRegression().fit(X, y).predict(X)
        model = OrtSGDRegressor(LinearRegression()).fit(X, y)
        distance = np.sqrt(np.mean((model.predict(X) - exact) ** 2)) / exact.std()
        print(
            f"correlation {correlation:<8} {distance:.0e} of a deviation, {model.n_iter_} iterations"
        )


def compare_searches():
    """Print the CPU time of searches over 20 strengths of the penalty, five folds each."""
    strengths = np.logspace(-4, 4, 20)

    for name, X, y, model in cases():
        if name not in ("breast cancer", "digits", "20,000 x 50"):
            continue
        _ours(model).fit(X, y)  # The first fit converts the model.
        behind_scaler = make_pipeline(StandardScaler(), clone(model))
        searches = {
            "scaler + scikit-learn": GridSearchCV(
                behind_scaler, {"logisticregression__C": strengths}
            ),
            "GridSearchCV": GridSearchCV(_ours(model), {"estimator__C": strengths}),
            "OrtGridSearchCV": OrtGridSearchCV(_ours(model), {"estimator__C": strengths}),
        }
        theirs = None
        for what, search in searches.items():
            begin = time.process_time()
            search.fit(X, y)
            taken = time.process_time() - begin
            theirs = theirs or taken
            print(f"{name:15} {what:22} {taken:6.2f} s, {taken / theirs:5.2f}", flush=True)


def networks():
    """Yield the name, X, y and the estimator of each network."""
    random = np.random.default_rng(0)
    X = random.normal(size=(1001, 11))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * random.normal(size=1001)

    def layers(*sizes, **parameters):
        return {"hidden_layer_sizes": sizes, **parameters}

    for name, parameters in (
        ("tanh", layers(10, activation="tanh")),
        ("relu", layers(10)),
        ("two layers of relu", layers(10, 10)),
    ):
        yield name, X, y, _ours(MLPRegressor(**parameters), optimizer="lbfgs")
    diabetes = load_diabetes(return_X_y=True)
    yield "diabetes", *diabetes, _ours(MLPRegressor(**layers(10)), optimizer="lbfgs")
    for name, load in (("breast cancer", load_breast_cancer), ("wine", load_wine)):
        model = MLPClassifier(**layers(10, alpha=0.1))
        yield name, *load(return_X_y=True), _ours(model, optimizer="lbfgs")


def kinks():
    """Yield the name, X, y and the estimator of each linear model whose loss has a kink."""
    for load in (load_breast_cancer, load_digits, load_iris, load_wine):
        yield f"hinge, {load.__name__[5:]}", *load(return_X_y=True), OrtSGDClassifier(loss="hinge")

    diabetes = load_diabetes(return_X_y=True)
    for loss in ("absolute_error", "epsilon_insensitive"):
        yield f"{loss}, diabetes", *diabetes, OrtSGDRegressor(loss=loss)
    for quantile in (0.001, 0.1, 0.9, 0.999):
        model = OrtSGDRegressor(loss="quantile", quantile=quantile)
        yield f"quantile {quantile}, diabetes", *diabetes, model


def compare_seeds(fits, n_seeds=8):
    """Print objectives, iterations and CPU times of fits over random seeds."""
    for name, X, y, model in fits:
        ends = []
        for seed in range(n_seeds):
            begin = time.process_time()
            model.set_params(random_state=seed).fit(X, y)
            taken = 1e3 * (time.process_time() - begin)
            ends.append((model.history_["objective"][-1], model.n_iter_, taken))

        objectives, iterations, times = zip(*ends, strict=True)
        print(
            f"{name:30} objective {np.median(objectives):.4g}, from {min(objectives):.4g} to "
            f"{max(objectives):.4g}; {np.mean(iterations):.0f} iterations, {np.mean(times):.0f} ms",
            flush=True,
        )


def texts():
    """Yield the name, the texts and the labels of each case: what Python itself brings."""
    packages = ("numpy", "scipy", "sklearn", "onnx", "joblib", "email", "json", "unittest", "xml")
    docstrings, lines = [], []

    for package in packages:
        for module in _modules(package):
            docstrings += [(each, package) for each in _docstrings(module)]
            lines += [(each, package) for each in _lines(module)]

    yield "docstrings, by package", *zip(*docstrings, strict=True)
    yield "lines of code, by package", *zip(*lines[::8], strict=True)
    named = [(text, text.split()[0].lower()) for text, _ in docstrings if text.split()]
    words, counts = np.unique([word for _, word in named], return_counts=True)
    common = set(words[np.argsort(counts)[-24:]])
    yield (
        "docstrings, by first word",
        *zip(
            *[(text.split(None, 1)[-1], word) for text, word in named if word in common],
            strict=True,
        ),
    )


def _modules(package):
    """Return the modules of a package that can be imported."""
    root = importlib.import_module(package)
    modules = [root]
    for info in pkgutil.iter_modules(getattr(root, "__path__", []), f"{package}."):
        if not info.name.rpartition(".")[2].startswith("_"):
            try:
                modules.append(importlib.import_module(info.name))
            except Exception:  # of modules for other systems
                continue

    return modules


def _docstrings(module):
    members = [value for value in vars(module).values() if callable(value)]
    found = {inspect.getdoc(value) or "" for value in members}
    return sorted(text for text in found if len(text) > 40)


def _lines(module):
    try:
        source = inspect.getsource(module)
    except (OSError, TypeError):
        return []
    return [line for line in source.splitlines() if len(line.strip()) > 30]


def compare_texts():
    """Print objectives, scores and CPU times of L-BFGS and SGD on sparse rows."""
    for vectorizer, (name, documents, labels) in itertools.product(
        (TfidfVectorizer(), CountVectorizer(dtype=np.float32)), texts()
    ):
        rows = vectorizer.fit_transform(documents)
        X, X_test, y, y_test = train_test_split(rows, labels, random_state=0)
        kind = type(vectorizer).__name__
        print(f"{name}, {kind}: {X.shape[0]:,} x {X.shape[1]:,}, {len(set(labels))} classes")

        theirs = LogisticRegression(C=1e5 / X.shape[0], max_iter=1000)
        models = {
            "default": _ours(theirs, random_state=0),
            "SGD": _ours(theirs, optimizer="sgd", random_state=0),
            "L-BFGS": _ours(theirs, optimizer="lbfgs"),
            "LogisticRegression": theirs,
        }
        lines = []
        for what, model in models.items():
            begin = time.process_time()
            model.fit(X, y)
            taken = time.process_time() - begin
            value = objective(theirs, X, y, model)
            lines.append((what, taken, model.score(X_test, y_test), value))

        least = min(value for *_, value in lines)
        for what, taken, score, value in lines:
            print(
                f"  {what:20} {taken:6.2f} s, accuracy {score:.3f}, "
                f"objective {100 * (value / least - 1):.1f} % above the least",
                flush=True,
            )


def main():
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--classes", action="store_true")
    parser.add_argument("--correlations", action="store_true")
    parser.add_argument("--networks", action="store_true")
    parser.add_argument("--kinks", action="store_true")
    parser.add_argument("--searches", action="store_true")
    parser.add_argument("--texts", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")

    if asked.correlations:
        compare_correlations()
    elif asked.networks:
        compare_seeds(networks())
    elif asked.kinks:
        compare_seeds(kinks())
    elif asked.searches:
        compare_searches()
    elif asked.texts:
        compare_texts()
    else:
        compare_fits(classes() if asked.classes else cases(), asked.repeats)


if __name__ == "__main__":
    main()
