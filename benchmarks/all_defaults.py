"""
The first fit of a newcomer: a neural network with all defaults, of skort and of scikit-learn, on all cores.

Run it with `python -m benchmarks.all_defaults` (two minutes), or with `--draw` to draw `all_defaults.png`. It prints
the wall time of `fit` and the score on a quarter of the rows, which is held out. scikit-learn's network has a
`StandardScaler` before it; skort standardizes by itself.
"""

import argparse
import statistics
import sys
import warnings
from pathlib import Path

from sklearn.base import is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_classification, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.machine import machine
from benchmarks.timing import in_turn
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
DRAWN = ("digits", "friedman, 5,000 rows", "10,000 rows, 4 classes")


def measured(load, network, repeats):
    """Return (seconds, score) of skort and of scikit-learn."""
    X, X_test, y, y_test = train_test_split(*load(), random_state=0)
    model = network(random_state=0)
    wrapper = OrtSGDClassifier if is_classifier(model) else OrtSGDRegressor
    contenders = {
        "skort": lambda: wrapper(model, random_state=0).fit(X, y),
        "scikit-learn": lambda: make_pipeline(StandardScaler(), model).fit(X, y),
    }
    times, fitted = in_turn(contenders, repeats)
    return [(statistics.median(times[name]), fitted[name].score(X_test, y_test)) for name in contenders]


def draw(rows, path):
    """Draw the time of skort as a bar, where scikit-learn's is one, a line a case."""
    from benchmarks.plots import SKORT, plt, save

    def figure():
        figure, axes = plt.subplots(figsize=(6.4, 2.4), layout="constrained")
        for i, name in enumerate(DRAWN):
            (seconds, score), (theirs, their_score) = rows[name]
            axes.barh(i, 1, color="tab:gray", alpha=0.25, height=0.6)
            axes.barh(i, seconds / theirs, color=SKORT, height=0.6)
            text = f"{seconds:.1f} s instead of {theirs:.1f} s, score {score:.2f} instead of {their_score:.2f}"
            axes.text(seconds / theirs + 0.01, i, text, va="center")
        axes.set_yticks(range(len(DRAWN)), DRAWN)
        axes.set_ylim(len(DRAWN) - 0.5, -0.5)
        axes.set_xlim(0, 1)
        axes.set_xticks([0, 0.5, 1], ["0", "half", "as long as scikit-learn"])
        axes.get_xticklabels()[-1].set_horizontalalignment("right")
        axes.set_xlabel("time to train a neural network with all defaults")
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        return figure

    save(figure, path)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.all_defaults", description=__doc__.split("\n")[1])
    parser.add_argument("--draw", action="store_true", help="draw all_defaults.png and all_defaults_dark.png")
    parser.add_argument("--repeats", type=int, default=3, help="measured fits of each; default: 3")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("\n".join(machine()))
    rows = {}
    for name, case in CASES.items():
        rows[name] = (seconds, score), (theirs, their_score) = measured(*case, options.repeats)
        print(
            f"{name:24} skort {seconds:6.2f} s, score {score:6.3f}; "
            f"scikit-learn {theirs:6.2f} s, score {their_score:6.3f}; {theirs / seconds:4.1f} times faster",
            flush=True,
        )
    if options.draw:
        draw(rows, Path(__file__).with_name("all_defaults.png"))


if __name__ == "__main__":
    sys.exit(main())
