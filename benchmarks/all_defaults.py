"""
The first fit of a newcomer: a neural network with all defaults, of skort and of scikit-learn, on one thread.

Run it with `python -m benchmarks.all_defaults` (two minutes), or with `--draw` to draw
`all_defaults.png`. It prints the CPU time of `fit`, which other programs change little, and the
score on a quarter of the rows, which is held out. scikit-learn's network has a `StandardScaler`
before it; skort standardizes by itself. The score of a linear model of scikit-learn is there to
judge by: if it is better, as on the few rows of diabetes, a network is the wrong model.
"""

import argparse
import statistics
import sys
import time
import warnings
from pathlib import Path

from sklearn.base import clone, is_classifier
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    make_classification,
    make_friedman1,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.machine import machine
from benchmarks.timing import in_turn, threads
from skort import OrtSGDClassifier, OrtSGDRegressor

CASES = {
    "digits": (lambda: load_digits(return_X_y=True), MLPClassifier),
    "breast cancer": (lambda: load_breast_cancer(return_X_y=True), MLPClassifier),
    "10,000 rows, 4 classes": (
        lambda: make_classification(10_000, 50, n_informative=20, n_classes=4, random_state=0),
        MLPClassifier,
    ),
    "diabetes": (lambda: load_diabetes(return_X_y=True), MLPRegressor),
    "friedman, 5,000 rows": (lambda: make_friedman1(5000, noise=1, random_state=0), MLPRegressor),
}


def measured(load, network, repeats):
    """Return (seconds, score) of skort and of scikit-learn, and the score of a linear model."""
    X, X_test, y, y_test = train_test_split(*load(), random_state=0)
    model = network(random_state=0)
    wrapper = OrtSGDClassifier if is_classifier(model) else OrtSGDRegressor
    contenders = {
        "skort": lambda: wrapper(model, n_jobs=None, random_state=0).fit(X, y),
        "scikit-learn": lambda: make_pipeline(StandardScaler(), clone(model)).fit(X, y),
    }
    with threads():
        times, fitted = in_turn(contenders, repeats, clock=time.process_time)
    linear = LogisticRegression(max_iter=1000) if is_classifier(model) else LinearRegression()
    reference = make_pipeline(StandardScaler(), linear).fit(X, y).score(X_test, y_test)
    networks = [
        (statistics.median(times[name]), fitted[name].score(X_test, y_test)) for name in contenders
    ]

    return [*networks, reference]


def draw(rows, path):
    """Draw the time of skort as a bar, where scikit-learn's is one, a line a case."""
    from benchmarks.plots import SKORT, plt, save

    def figure():
        figure, axes = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
        for i, name in enumerate(CASES):
            (seconds, score), (theirs, their_score), _ = rows[name]
            axes.barh(i, 1, color="tab:gray", alpha=0.25, height=0.5)
            axes.barh(i, seconds / theirs, color=SKORT, height=0.5)
            axes.text(0, i - 0.28, name, va="bottom", weight="bold")
            axes.text(
                seconds / theirs + 0.01, i, f"skort {seconds:.2f} s, {score:.2f}", va="center"
            )
            axes.text(
                0.99, i, f"scikit-learn {theirs:.2f} s, {their_score:.2f}", va="center", ha="right"
            )
        axes.set_ylim(len(CASES) - 0.7, -0.7)
        axes.set_xlim(0, 1)
        axes.set_axis_off()
        axes.set_title("Time to train a neural network, and its score", fontsize="medium")
        return figure

    save(figure, path)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.all_defaults", description=__doc__.split("\n")[1]
    )
    parser.add_argument(
        "--draw", action="store_true", help="draw all_defaults.png and all_defaults_dark.png"
    )
    parser.add_argument("--repeats", type=int, default=3, help="measured fits of each; default: 3")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("\n".join(machine()))
    rows = {}
    for name, case in CASES.items():
        rows[name] = measured(*case, options.repeats)
        (seconds, score), (theirs, their_score), linear = rows[name]
        is_wrong = linear > max(score, their_score)
        remark = ": a network is the wrong model here" if is_wrong else ""
        print(
            f"{name:24} skort {seconds:6.2f} s, score {score:6.3f}; "
            f"scikit-learn {theirs:6.2f} s, score {their_score:6.3f}; "
            f"{theirs / seconds:4.1f} times faster; a linear model {linear:6.3f}{remark}",
            flush=True,
        )
    if options.draw:
        draw(rows, Path(__file__).with_name("all_defaults.png"))


if __name__ == "__main__":
    sys.exit(main())
