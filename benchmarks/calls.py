"""
How many functions of skort a warm fit calls before its first step, and in how many files:
``python -m benchmarks.calls [--list]``.

Who reads a fit follows these calls. Comprehensions, generator expressions and code that dataclasses
write are not counted.
"""

import argparse
import collections
import sys
import warnings
from pathlib import Path

from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes

import skort
from skort import OrtSGDClassifier, OrtSGDRegressor

PACKAGE = str(Path(skort.__file__).parent)
_INNER = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
CASES = {
    "regressor": (OrtSGDRegressor(random_state=0), load_diabetes),
    "regressor, SGD": (OrtSGDRegressor(optimizer="sgd", random_state=0), load_diabetes),
    "classifier": (OrtSGDClassifier(random_state=0), load_breast_cancer),
}


def functions(call):
    """Return the functions of skort that a call enters, as (file, name), in their order."""
    entered = []

    def note(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and code.co_name not in _INNER:
            entered.append((code.co_filename[len(PACKAGE) + 1 :], code.co_name))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)

    return entered


def before_first_step(estimator, X, y):
    """Return the functions of skort that a warm fit enters before it runs a graph."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            clone(estimator).fit(X, y)
        entered = functions(lambda: clone(estimator).fit(X, y))

    first = next(
        number
        for number, (file, name) in enumerate(entered)
        if name == "run" and file.startswith("runtime")
    )
    return entered[:first]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--list", action="store_true", help="list the functions, too")
    options = parser.parse_args()

    for name, (estimator, load) in CASES.items():
        entered = before_first_step(estimator, *load(return_X_y=True))
        files = {file for file, _ in entered}
        print(f"{name}: {len(entered)} calls of {len({*entered})} functions in {len(files)} files")
        if options.list:
            for (file, function), n in collections.Counter(entered).most_common():
                print(f"{n:6} {file} {function}")


if __name__ == "__main__":
    main()
