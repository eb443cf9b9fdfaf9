"""Writes the page of what skort decides by itself, from the docstrings of the rules."""

import importlib
import pkgutil
from pathlib import Path

from skort.estimators import planning
from skort.estimators.planning.decision import RULES, sentence

TITLE = """What skort decides by itself
============================

A parameter at ``"auto"`` leaves its matter to a rule. Each rule is one sentence, and one function in
`skort/estimators/planning`. A parameter that you set decides its own matter and no other.

`model.plan_` says what was decided, why, and which parameter changes it:

>>> from sklearn.datasets import load_diabetes
>>> from skort import OrtSGDRegressor
>>> X, y = load_diabetes(return_X_y=True)
>>> model = OrtSGDRegressor(max_iter=500, random_state=0).fit(X, y)
>>> print(model.plan_)
decision      value                     because                         change it with
loss          SquaredError()            it is the default               loss
penalty       UnitFreeL2()              it is the default               penalty, alpha
weights       zeros                     no FrozenEstimator gives others coef_init,
                                                                        warm_start
scaling       columns of X and y, made  it makes the training shorter;  standardize
              uncorrelated              at the end, the weights are
                                        changed to those of X and y
optimizer     LBFGS()                   the objective is smooth, and    optimizer
                                        the rows are dense and in
                                        memory
learning rate none                      a line search finds the length  optimizer
                                        of each step
first rate    none                      a line search finds the length  optimizer
                                        of each step
batches       all rows                  the optimizer reads all rows    optimizer
epochs        at most 500               you set it                      max_iter
stopping      tol=2e-06                 gradients in float32 tell no    tol
                                        more
solver        graph                     it is the fastest here that     solver
                                        makes these steps
threads       1                         a step has too little work for  n_jobs
                                        more, or no other core is free
dtype         float32                   it is the default               dtype
>>> model.plan_.decisions["batches"].value
'all rows'

``verbose=2`` begins with this table, and a notebook shows it with the fitted estimator. Decisions that a training makes
later are part of it: restarts at a lower rate, and which weights it ended with.

"""

# The parameters that change a matter
PARAMETERS = {
    "loss": "`loss`",
    "penalty": "`penalty`, `alpha`",
    "class weights": "`class_weight`",
    "weights": "`warm_start`, `coef_init`",
    "scaling": "`standardize`",
    "optimizer": "`optimizer`",
    "learning rate": "`learning_rate`",
    "first rate": "`eta0`",
    "batches": "`batch_size`",
    "epochs": "`max_iter`",
    "stopping": "`tol`, `n_iter_no_change`, `early_stopping`",
    "restarts": "`eta0`",
    "stream": "`eta0`, `batch_size`, `standardize`",
    "threads": "`n_jobs`",
}

TABLE = """.. list-table::
    :header-rows: 1
    :widths: 16 60 24

    * - matter
      - what skort does
      - change it with
"""

EVIDENCE = """
What the rules bring
--------------------

``python -m benchmarks.rules`` fits about 60 real tables with each rule, and with the plainest thing that can take its
place. It prints wins, ties and losses of the held-out score at 0.01 and of the log-loss at 2 %, the processor time with
the rule as a multiple of that without, and the lines of code of the rule. Commit 6d483d2 printed this table, 0fcc8f54
the lines of networks in `fit`, and 7d90c14f those of linear streams. The rules of rates, schedules and patience of
linear models are those of SGD.

Six rules stay although the tables hardly tell them from what could take their place. The falling rate ends nearer to
the optimum of the objective, which a held-out score does not show. A constant rate serves networks about as well as the
cosine, but their weights then still move with the last batches. Without a mean of recent weights, a stream ends about
as well, but a single call lowers its score more often. Adam trains networks in `fit`, and a stream goes on with its
memory after one. The rate of a fitted network matters where its weights are not compared: in an ONNX file, and with
``early_stopping=False``. A fitted model is compared for the sake of few rows and of changed ones, as :doc:`fine_tuning`
shows: here, the new rows are as many as the old ones, and like them.

.. literalinclude:: ../benchmarks/rules.txt
    :language: text

"""


def page() -> str:
    """Return the page, in reStructuredText."""
    for module in pkgutil.iter_modules(planning.__path__):
        importlib.import_module(f"{planning.__name__}.{module.name}")
    assert PARAMETERS.keys() == RULES.keys(), PARAMETERS.keys() ^ RULES.keys()
    rows = ""
    for matter, parameters in PARAMETERS.items():
        texts = "\n".join(f"        | {sentence(each)}" for each in RULES[matter]).lstrip()
        rows += f"    * - {matter}\n      - {texts}\n      - {parameters}\n"
    return f"{TITLE}{TABLE}{rows}{EVIDENCE}"


if __name__ == "__main__":
    Path(__file__).with_name("rules.rst").write_text(page())
