"""
Every regressor and classifier of scikit-learn as `estimator`:
trained or refused, and what comes out of it.

Run it with `python benchmarks/models.py`. Each model follows a StandardScaler in a pipeline that is
trained on diabetes (the target divided by its mean) or wine, 20 epochs with each solver. The
figures are the milliseconds that its graphs and sessions take to build, and the largest differences
of `predict` from the ONNX file under onnxruntime and from the model that `to_sklearn` returns,
relative to the largest number predicted. Classifiers are compared by their probabilities, and with
scikit-learn by their raw scores if it has them.
"""

import inspect
import re
import time
import warnings
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import is_classifier
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import all_estimators

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.training.result import result_of
from skort.estimators.training.run import problem_of
from skort.graphs.trainable import check_trainable
from skort.objective.sklearn_objectives import sklearn_objective
from skort.runtime.device import CPU
from skort.runtime.installed import load
from skort.solvers import available_solvers, make_step


@dataclass
class Outcome:
    """
    The result for a model.

    Why it was refused; or as what it is trained where it has no objective that gradient descent
    could follow, and milliseconds and differences, one for each solver.
    """

    name: str
    refusal: str | None = None
    trained_as: str | None = None
    milliseconds: list[float] = field(default_factory=list)
    from_onnx: list[float] = field(default_factory=list)
    from_sklearn: list[float] = field(default_factory=list)


def scikit_learn_models(kind):
    """Yield the name and an instance of each of scikit-learn's "regressor"s or "classifier"s."""
    inner = LinearRegression() if kind == "regressor" else LogisticRegression()
    for name, cls in all_estimators(kind):
        parameters = inspect.signature(cls).parameters
        inside = {
            "estimator": inner,
            "regressor": inner,
            "estimators": [("a", inner), ("b", inner)],
        }
        yield name, cls(**{key: value for key, value in inside.items() if key in parameters})
        if name == "MLPRegressor" and "loss" in parameters:
            yield 'MLPRegressor(loss="poisson")', MLPRegressor(loss="poisson")


def outcome(name, model):
    """Train a model with every solver that works here, unless it is refused."""
    result = Outcome(name)
    try:
        check_trainable(model)
        result.trained_as = sklearn_objective(model).trained_as
    except ValueError as error:
        # "estimator=LassoCV chooses alpha by ..." or "estimator=SVC cannot be trained by
        # gradient descent: ..."
        result.refusal = re.sub(r"^estimator=\w+ (cannot[^:]*: )?", "", str(error))
        return result
    X, y = _data(model)
    for solver in available_solvers():
        cls = OrtSGDClassifier if is_classifier(model) else OrtSGDRegressor
        pipeline = make_pipeline(StandardScaler(), model)
        trained = cls(pipeline, solver=solver, max_iter=20, tol=None, random_state=0).fit(X, y)
        start = time.perf_counter()
        fit = result_of(trained)
        variables = fit.plan.variables(fit.model.score_graph, trained.standardization_)
        problem = problem_of(fit.plan, fit.model, variables, fit.state, 200)
        make_step(problem, solver=solver, device=CPU)
        result.milliseconds.append(1e3 * (time.perf_counter() - start))
        # The last output of the ONNX model: probabilities where the loss has them,
        # otherwise labels.
        head = "predict_proba" if hasattr(trained, "predict_proba") else "predict"
        result.from_onnx.append(_difference(_served(trained, X), _numbers(trained, head, X)))
        plain = trained.to_sklearn()
        method = "decision_function" if hasattr(plain, "decision_function") else "predict_proba"
        result.from_sklearn.append(
            _difference(_numbers(plain, method, X), _numbers(trained, method, X))
        )
    return result


def _data(model):
    X, y = load_wine(return_X_y=True) if is_classifier(model) else load_diabetes(return_X_y=True)
    if not is_classifier(model):
        y = y / y.mean()
    return X, np.column_stack([y, y**2]) if type(model).__name__.startswith("Multi") else y


def _served(trained, X):
    session = load().InferenceSession(
        trained.onnx_.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"X": X.astype(np.float32)})[-1]


def _numbers(model, method, X):
    return getattr(model, method if is_classifier(model) else "predict")(X)


def _difference(numbers, others):
    others = others.reshape(numbers.shape)
    return np.abs(numbers - others).max() / np.abs(others).max()


def main():
    print(f"{'':30} {'ms to build':>16} {'from ONNX':>17} {'from to_sklearn':>17}")
    print(f"{'':30}" + 3 * f" {' '.join(f'{solver:>8}' for solver in available_solvers())}")
    for kind in ("regressor", "classifier"):
        for name, model in scikit_learn_models(kind):
            result = outcome(name, model)
            times = " ".join(f"{value:8.1f}" for value in result.milliseconds)
            differences = " ".join(
                f"{value:8.1e}" for value in result.from_onnx + result.from_sklearn
            )
            print(
                f"{name:30} "
                + (f"refused: {result.refusal}" if result.refusal else f"{times} {differences}")
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
