"""
Every automatic rule on and off, on real tables: does it earn its place?

`python -m benchmarks.rules` fits two splits of each table of `benchmarks.real_tables` of up to
3,000 rows, `--quick` one split of the ten tables of `benchmarks.defaults --quick`; `--only TEXT`
takes the rules with a text in their name. For each rule it prints wins, ties and losses against the
plainest thing that can be said in its place: of the held-out score (R2 or accuracy) at 0.01, of the
log-loss at 2 %; the processor time with the rule as a multiple of that without, and the lines of
code that the rule has.
"""

import argparse
import contextlib
import inspect
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from threadpoolctl import threadpool_limits

from benchmarks.defaults import QUICK
from benchmarks.real_tables import load, real_tables
from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.data.noise import noise_of
from skort.estimators.data.relevance import explained_parts
from skort.estimators.planning import epochs, fine_tuning, optimizer, rate, scaling, stream
from skort.estimators.training import cross_validation, start
from skort.estimators.training import run_stream as streams
from skort.graphs.score_graph import ScoreGraph
from skort.optim.standardization import half_decorrelation
from skort.optim.transforms import Averaging, Recent

SCORE, LOG_LOSS, MOST_ROWS, HIDDEN, WIDE = 0.01, 0.02, 3000, (50,), (256, 128)
# The rows of the calls of a stream, and of one whose calls are single rows after the first.
CALLS = (37, 2, 200)
FIRST_CALL = 20
FEW_EPOCHS = 15
NETWORKS = (
    "network",
    "wide network",
    "wide network of tanh",
    "wide network of few epochs",
    "fitted",
    "other units",
    "stream of a network",
    "short calls of a network",
)
STREAMS = (
    "stream",
    "single rows",
    "stream in order",
    "stream of a network",
    "short calls of a network",
)


class Rule(NamedTuple):
    """
    A rule in one sentence; `kind` are the fits that it changes,
    `parameters` and `patches` say it is off.
    """

    name: str
    sentence: str
    kind: str
    parameters: dict[str, Any] = {}
    #: (module, attribute, value)
    patches: tuple[tuple[Any, str, Any], ...] = ()
    #: The functions that are the rule.
    code: tuple[Callable[..., Any], ...] = ()


RULES = (
    Rule(
        "L-BFGS",
        "A linear model with a smooth objective and dense rows in memory is trained by L-BFGS.",
        "linear",
        {"optimizer": "sgd"},
        code=(optimizer.linear_optimizer, optimizer.asks_for_steps),
    ),
    Rule(
        "scales",
        "X and y are standardised inside of the fit.",
        "linear by SGD",
        {"standardize": False},
    ),
    Rule(
        "first rate",
        "The first rate of a linear model is the largest stable one of a batch.",
        "linear by SGD",
        {"eta0": 0.01},
        code=(rate.first_rate, rate.linear_rate, rate.stiffness),
    ),
    Rule(
        "falling rate",
        "The rate is divided by five when the objective no longer falls.",
        "linear by SGD",
        {"learning_rate": "constant"},
    ),
    Rule(
        "patience",
        "A linear model waits for as many epochs as 30 updates take, at least five.",
        "linear by SGD",
        {"n_iter_no_change": 5},
    ),
    Rule(
        "scales of networks",
        "X and y are standardised inside of the fit.",
        "network",
        {"standardize": False},
    ),
    *(
        Rule(
            name,
            "The variance of a column grows with the part of y that it explains alone.",
            kind,
            {"standardize": True},
            code=(scaling.column_relevance, scaling.at_relevance, explained_parts),
        )
        for name, kind in (("relevance", "network"), ("relevance, wide", "wide network"))
    ),
    Rule(
        "decay",
        "A network's weights shrink by about the same factor, however long it is trained.",
        "network",
        {"optimizer": "adam"},
        code=(optimizer.planned_decay,),
    ),
    Rule(
        "decay, wide",
        "The decay grows in proportion to the weights a row, from 2 to 8 of them.",
        "wide network",
        patches=((optimizer, "decay_growth", lambda weights_per_row: 1.0),),
        code=(optimizer.decay_growth,),
    ),
    *(
        Rule(
            name,
            "The rate falls with the root of the weights a row, from 8 to 32 of them.",
            kind,
            patches=((optimizer, "planned_rate", lambda *of_network, is_short: 0.02),),
            code=(optimizer.planned_rate,),
        )
        for name, kind in (("rate", "network"), ("rate, wide", "wide network"))
    ),
    Rule(
        "rate, few epochs",
        "That of a classifier does not, with less than half of the planned epochs.",
        "wide network of few epochs",
        patches=((optimizer, "is_short", lambda *epochs, is_classifier: False),),
        code=(optimizer.is_short,),
    ),
    Rule(
        "decay, curved",
        "In regression by tanh units, neither depends on the weights a row.",
        "wide network of tanh",
        patches=((optimizer, "counts_weights", lambda is_curved: True),),
        code=(optimizer.counts_weights, ScoreGraph.has_curved_units.func),
    ),
    *(
        Rule(
            name,
            "The decay is 2.5 times the noise of y, from 0.4 to 2.5, times as large.",
            kind,
            patches=((optimizer, "noise_growth", lambda noise: 1.0),),
            code=(optimizer.noise_growth, noise_of),
        )
        for name, kind in (("decay, noise", "network"), ("decay, noise, wide", "wide network"))
    ),
    Rule(
        "cosine",
        "A network's rate comes to zero along a cosine.",
        "network",
        {"learning_rate": "constant"},
    ),
    Rule(
        "epochs",
        (
            "A network is trained for a number of updates that grows with the rows to "
            "the power of 0.6."
        ),
        "network",
        {"max_iter": 200},
        code=(epochs.network_epochs,),
    ),
    Rule(
        "fitted rate",
        "A fitted network has a twentieth of the rate of a new one.",
        "fitted",
        patches=((start, "fitted_part", lambda share, is_fitted: 1.0),),
        code=(fine_tuning.fitted_part,),
    ),
    Rule(
        "fitted weights",
        "A fitted model keeps its weights unless others are better in cross-validation.",
        "fitted",
        {"early_stopping": False},
        code=(
            fine_tuning.best_weights,
            fine_tuning.says_nothing,
            cross_validation.chosen_weights,
            cross_validation.rise,
        ),
    ),
    Rule(
        "new weights",
        "A fitted network that knows little of the rows is compared with new weights.",
        "other units",
        patches=((cross_validation, "knows_little", lambda share: False),),
        code=(fine_tuning.knows_little,),
    ),
    Rule(
        "batches of a stream",
        "A stream has batches of the rows of its first call, at most 16.",
        "stream",
        {"batch_size": 200},
    ),
    Rule(
        "rate of a stream",
        "A linear stream begins at the largest stable rate, which falls with the rows.",
        "stream",
        {"eta0": 0.01, "learning_rate": "constant"},
        code=(stream.stream_rates, stream._stream_rate, stream.stable_rate, stream.falling_part),
    ),
    Rule(
        "columns of a stream",
        "The steps of a linear stream are made in columns that are half decorrelated.",
        "stream",
        patches=((start, "decorrelation", lambda basis: None),),
        code=(stream.decorrelation, stream._may_decorrelate, stream._is_stiff, half_decorrelation),
    ),
    Rule(
        "mean of a stream",
        "The weights of a linear stream are a mean of recent ones.",
        "stream in order",
        {"average": False},
        code=(stream.recent_updates, Averaging, Recent),
    ),
    Rule(
        "curvature of a stream",
        "The rate of a log-loss in a stream is that for half the largest curvature, or less.",
        "stream",
        patches=((stream, "curvature_factor", lambda largest, usual: 1.0),),
        code=(stream.curvature_factor,),
    ),
    Rule(
        "first rows",
        "The first rows of a stream wait until there are 20.",
        "single rows",
        patches=((streams, "is_waiting", lambda plan, n_rows: n_rows < 1),),
        code=(streams._waiting, streams._constant),
    ),
    Rule(
        "rate of a call",
        "A call for which the rate is not stable takes the largest rate that is.",
        "stream in order",
        patches=((stream, "stable_part", lambda *given: 1.0),),
        code=(stream.stable_part,),
    ),
    Rule(
        "short calls",
        "Adam makes a step of (m / 16)^(2/3) of its rate in a call of m < 16 rows.",
        "short calls of a network",
        patches=((stream, "_SHORT", 1.0),),
        code=(stream.declared_rate,),
    ),
    Rule(
        "Adam in streams",
        "A network's stream is trained by Adam.",
        "stream of a network",
        {"optimizer": "sgd"},
    ),
)


def estimator(table, kind, seed, parameters):
    """Return an unfitted estimator for fits of a kind."""
    is_regression = table.task == "regression"
    inner = None
    if kind == "linear by SGD":
        parameters = {"optimizer": "sgd", **parameters}
    if kind == "wide network of few epochs":
        parameters = {"max_iter": FEW_EPOCHS, **parameters}
    if kind in NETWORKS:
        inner = (MLPRegressor if is_regression else MLPClassifier)(
            hidden_layer_sizes=WIDE if kind.startswith("wide") else HIDDEN,
            activation="tanh" if kind.endswith("tanh") else "relu",
            random_state=seed,
        )
    return (OrtSGDRegressor if is_regression else OrtSGDClassifier)(
        inner, random_state=seed, **parameters
    )


def trained(model, table, kind, train, seed):
    """Return a model after the training of a kind, and the processor's seconds that it took."""
    X, y = table.X[train], table.y[train]
    if kind in ("fitted", "other units"):
        half = len(X) // 2
        old = model.fit(X[:half], y[:half])
        X, y = (16.0 * X[half:], y[half:]) if kind == "other units" else (X[half:], y[half:])
        model = clone(model).set_params(estimator=FrozenEstimator(old.to_sklearn()))
    if kind not in STREAMS:
        begin = time.process_time()
        return model.fit(X, y), time.process_time() - begin

    if kind == "stream in order":
        order = np.argsort(X[:, 0], kind="stable")
        X, y = X[order], y[order]
    first = {} if table.task == "regression" else {"classes": np.unique(table.y)}
    begin = time.process_time()
    for rows in np.split(np.arange(len(X)), starts(kind, len(X))):
        model.partial_fit(X[rows], y[rows], **first)
    return model, time.process_time() - begin


def starts(kind, n_rows):
    """Return the first rows of the second call of a stream, and of the later ones."""
    if kind == "single rows":
        return np.arange(1, n_rows)
    if kind == "short calls of a network":
        return np.arange(FIRST_CALL, n_rows)

    ends = np.cumsum(np.resize(CALLS, n_rows))
    return ends[ends < n_rows]


def measured(table, rule, seed, *, is_on):
    """
    Return score, log-loss or NaN, and seconds of one fit with a rule on or off;
    a failed one has the worst.
    """
    is_regression = table.task == "regression"
    rows = np.arange(len(table.y))
    train, test = train_test_split(
        rows, random_state=seed, stratify=None if is_regression else table.y
    )
    patches = () if is_on else rule.patches
    model = estimator(table, rule.kind, seed, {} if is_on else rule.parameters)
    with contextlib.ExitStack() as stack, warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for module, name, value in patches:
            stack.enter_context(mock.patch.object(module, name, value))
        try:
            model, seconds = trained(model, table, rule.kind, train, seed)
        except ValueError:
            return -np.inf, np.inf, np.nan
    X = 16.0 * table.X[test] if rule.kind == "other units" else table.X[test]
    loss = np.nan
    if not is_regression:
        loss = log_loss(table.y[test], model.predict_proba(X), labels=model.classes_)
    return model.score(X, table.y[test]), loss, seconds


def counts(here, there, least):
    """Return wins, ties and losses of `here` above `there`."""
    wins, losses = int(np.sum(here > there + least)), int(np.sum(here < there - least))
    return f"{wins}/{len(here) - wins - losses}/{losses}"


def line(rule, tables, n_splits):
    """Return the line of a rule."""
    fits = [
        [measured(table, rule, seed, is_on=is_on) for is_on in (True, False)]
        for table in tables
        for seed in range(n_splits)
    ]
    (scores, losses, seconds), (other_scores, other_losses, other_seconds) = np.moveaxis(
        fits, 0, -1
    )
    known = np.isfinite(losses) | np.isfinite(other_losses)
    log_losses = counts(-np.log(losses[known]), -np.log(other_losses[known]), LOG_LOSS)
    ratio = np.nanmedian(seconds / other_seconds)
    n_lines = sum(len(inspect.getsourcelines(each)[0]) for each in rule.code)
    score = counts(scores, other_scores, SCORE)
    return f"{rule.name:20} {score:>10} {log_losses:>10} {ratio:6.2f} {n_lines:5}  {rule.sentence}"


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="ten tables, one split")
    parser.add_argument("--only", default="", help="the rules with this text in their name")
    options = parser.parse_args(arguments)
    tables = [load(name) for name in QUICK] if options.quick else real_tables()
    tables = [table for table in tables if len(table.y) <= MOST_ROWS]
    print(f"{'rule':20} {'score':>10} {'log-loss':>10} {'time':>6} {'lines':>5}")
    for rule in RULES:
        if options.only in rule.name:
            print(line(rule, tables, 1 if options.quick else 2), flush=True)


if __name__ == "__main__":
    main()
