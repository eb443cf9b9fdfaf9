"""
The fits that `benchmarks.defaults` compares: skort with all defaults,
and scikit-learn's of the same objective.
"""

import time
import warnings
from collections.abc import Callable
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Ridge,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skort import OrtSGDClassifier, OrtSGDRegressor

__all__ = [
    "CONTENDERS",
    "EARLY",
    "NINE_TENTHS",
    "OLD",
    "OURS",
    "RAW",
    "REFERENCES",
    "Contender",
    "Fit",
    "fit",
    "fit_all",
]

RAW, OURS, OLD = "skort, raw", "skort, standardised", "skort 0.1, standardised"
# The second is fitted on the rows that the first trains on, to the last epoch.
EARLY, NINE_TENTHS = "skort, raw, early_stopping", "skort, raw, nine tenths of the rows"
HIDDEN = (50,)
# What the networks of skort are compared with by groups of rows: on standardised X, and y
# in regression.
REFERENCES = {"regression": "MLPRegressor, y too", "classification": "MLPClassifier, standardised"}
# A regression is useless below this R2, a classification above this multiple of the log-loss of the
# classes' shares.
USELESS_R2, USELESS_LOG_LOSS = -0.05, 1.05
# What the messages of fits that ended in infinite or NaN weights have in them: skort's and
# scikit-learn's.
DIVERGED = ("diverged", "overflow", "non-finite", "infinity")


class Contender(NamedTuple):
    name: str
    make: Callable[[int], BaseEstimator]
    is_peer: bool = True


class Fit(NamedTuple):
    """
    What came out of one fit.

    `score` is R2 or accuracy on the held-out rows, as `log_loss` is of them, and `seconds` the time
    of the processor: a fit has one thread, and other processes on the machine do not count.
    """

    score: float
    diverged: bool
    useless: bool
    useless_on_training: bool
    warned: bool
    n_epochs: float | None
    seconds: float
    n_rows: int
    log_loss: float | None = None


def _standardised(make):
    return lambda seed: make_pipeline(StandardScaler(), make(seed))


def _both(name, make):
    return [
        Contender(f"{name}, raw", make),
        Contender(f"{name}, standardised", _standardised(make)),
    ]


def _ours(make, old_defaults):
    def old(seed):
        # The change of variables inside of fit is younger than these defaults.
        estimator = make(seed)
        younger = {"standardize": False} if "standardize" in estimator.get_params() else {}
        return estimator.set_params(**old_defaults, **younger)

    return [
        Contender(RAW, make, False),
        Contender(OURS, _standardised(make), False),
        Contender(OLD, _standardised(old), False),
        Contender(EARLY, lambda seed: make(seed).set_params(early_stopping=True), False),
        Contender(NINE_TENTHS, make, False),
    ]


REGRESSOR_0_1 = {"optimizer": "sgd", "learning_rate": "constant", "eta0": 0.01}
REGRESSOR_0_1 |= {"max_iter": 1000, "tol": 1e-4, "n_iter_no_change": 5}
CLASSIFIER_0_1 = REGRESSOR_0_1 | {"eta0": 0.1}


def _mlp_regressor(seed):
    return MLPRegressor(hidden_layer_sizes=HIDDEN, max_iter=300, random_state=seed)


def _mlp_classifier(seed):
    return MLPClassifier(hidden_layer_sizes=HIDDEN, max_iter=300, random_state=seed)


CONTENDERS = {
    ("regression", "linear"): [
        *_ours(lambda seed: OrtSGDRegressor(random_state=seed), REGRESSOR_0_1),
        *_both("Ridge", lambda seed: Ridge()),
        *_both("LinearRegression", lambda seed: LinearRegression()),
        *_both("SGDRegressor", lambda seed: SGDRegressor(random_state=seed)),
    ],
    ("classification", "linear"): [
        *_ours(lambda seed: OrtSGDClassifier(random_state=seed), CLASSIFIER_0_1),
        *_both("LogisticRegression", lambda seed: LogisticRegression()),
        *_both("SGDClassifier", lambda seed: SGDClassifier(loss="log_loss", random_state=seed)),
    ],
    ("regression", "MLP"): [
        *_ours(
            lambda seed: OrtSGDRegressor(
                MLPRegressor(hidden_layer_sizes=HIDDEN), random_state=seed
            ),
            REGRESSOR_0_1,
        ),
        *_both("MLPRegressor", _mlp_regressor),
        Contender(
            "MLPRegressor, y too",
            _standardised(
                lambda seed: TransformedTargetRegressor(
                    _mlp_regressor(seed), transformer=StandardScaler()
                )
            ),
        ),
    ],
    ("classification", "MLP"): [
        *_ours(
            lambda seed: OrtSGDClassifier(
                MLPClassifier(hidden_layer_sizes=HIDDEN), random_state=seed
            ),
            CLASSIFIER_0_1,
        ),
        *_both("MLPClassifier", _mlp_classifier),
    ],
}


def _n_epochs(model):
    last = model[-1] if hasattr(model, "steps") else model
    n_iter = getattr(getattr(last, "regressor_", last), "n_iter_", None)
    return None if n_iter is None else float(np.max(n_iter))


def _is_useless(model, X, y, shares):
    """Return whether the model predicts these rows worse than a constant does."""
    if not is_classifier(model):
        predicted = model.predict(X)
        return not (np.isfinite(predicted).all() and model.score(X, y) >= USELESS_R2)
    prior = log_loss(y, np.tile(shares, (len(y), 1)), labels=np.arange(len(shares)))
    return not _log_loss(model, X, y, shares) <= USELESS_LOG_LOSS * prior


def _log_loss(model, X, y, shares):
    # A softmax in float32 may round up to 1 + 1e-7, which log_loss refuses.
    probabilities = np.minimum(model.predict_proba(X), 1.0)
    is_finite = np.isfinite(probabilities).all()
    return float(log_loss(y, probabilities, labels=np.arange(len(shares)))) if is_finite else np.inf


def fit(model, X_train, X_test, y_train, y_test):
    """Return the `Fit` of a model on one split."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        try:
            model.fit(X_train, y_train)
        except ValueError as error:
            if not any(word in str(error) for word in DIVERGED):
                raise
            return Fit(
                -np.inf, True, False, False, False, None, time.process_time() - start, len(X_train)
            )
        seconds = time.process_time() - start
        warned = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
        shares = np.bincount(y_train) / len(y_train) if is_classifier(model) else None
        useless = _is_useless(model, X_test, y_test, shares)
        useless_on_training = _is_useless(model, X_train, y_train, shares)
        score = model.score(X_test, y_test) if np.isfinite(model.predict(X_test)).all() else -np.inf
        loss = None if shares is None else _log_loss(model, X_test, y_test, shares)
    known = (
        bool(useless),
        bool(useless_on_training),
        warned,
        _n_epochs(model),
        seconds,
        len(X_train),
        loss,
    )
    return Fit(float(score), False, *known)


def _warm_up(contenders, split):
    """
    Make one epoch, so that no contender alone pays for imports and
    for what is kept between fits.
    """
    (model,) = [contender.make(0) for contender in contenders if contender.name == OLD]
    fit(model.set_params(**{f"{model.steps[-1][0]}__max_iter": 1}), *split)


def _with_network(model, network):
    """Set parameters of the networks inside, such as `activation`."""
    names = {name: name.split("__")[-1] for name in model.get_params()}
    return model.set_params(
        **{name: network[last] for name, last in names.items() if last in network}
    )


def fit_all(table, family, seed, names, network=MappingProxyType({})):
    """
    Return the fits of the contenders of these names on a table's split,
    a dict of name to `Fit`.
    """
    y = table.y
    is_classes = table.task == "classification"
    X_train, X_test, y_train, y_test = split = train_test_split(
        table.X, y, stratify=y if is_classes else None, random_state=seed
    )
    # Those that `early_stopping` does not hold out.
    stratify = y_train if is_classes else None
    X, _, y, _ = train_test_split(
        X_train, y_train, test_size=0.1, stratify=stratify, random_state=seed
    )
    splits = {NINE_TENTHS: (X, X_test, y, y_test)}
    with threadpool_limits(1):
        if OLD in names:
            _warm_up(CONTENDERS[table.task, family], split)
        return {
            contender.name: fit(
                _with_network(contender.make(seed), network), *splits.get(contender.name, split)
            )
            for contender in CONTENDERS[table.task, family]
            if contender.name in names
        }
