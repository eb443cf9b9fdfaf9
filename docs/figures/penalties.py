"""Pictures of penalties, from the ONNX functions and the updates of a training."""

import numpy as np
from figures.drawing import panels
from onnx.reference import ReferenceEvaluator
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDRegressor
from skort.common.onnx_text import function_model
from skort.objective import L1, L2, ElasticPenalty
from skort.objective.objective import l1_text, l2_text
from skort.optim.optimizers import SGD
from skort.optim.update import PenaltyStrengths, Update

_SHOWN = {"l1": L1(1.0), "l2": L2(1.0), "elasticnet, l1_ratio=0.5": ElasticPenalty(1.0, l1_ratio=0.5)}


def value_and_step():
    """Draw the penalty of one weight, and where a step of length 0.5 brings the weight."""
    weights = np.linspace(-2, 2, 401)
    value, step = panels("penalty of one weight w, alpha=1", "w after a step of length 0.5")
    for label, penalty in _SHOWN.items():
        (strength,) = penalty.strengths(("coef",)).values()
        value.plot(weights, [_value(w, strength) for w in weights], label=label)
        step.plot(weights, _after_a_step(weights, strength), label=label)
    step.plot(weights, weights, color="#999999", linestyle=":", label="no penalty")
    value.set_xlabel("w")
    step.set_xlabel("w")
    value.legend(fontsize="small", frameon=False)
    step.legend(fontsize="small", frameon=False)


def _value(weight, strength):
    arrays = {"weight": np.array([[weight]]), "strength": np.zeros(())}
    total = 0.0
    for text, number in ((l1_text, strength.l1), (l2_text, strength.l2)):
        arrays["strength"] = np.array(float(number))
        model = function_model(text(by_element=False), "float64", {name: a.shape for name, a in arrays.items()})
        total += float(ReferenceEvaluator(model).run(None, arrays)[0])
    return total


def _after_a_step(weights, strength):
    """Return the weights after one update where the loss has no gradient."""
    n = len(weights)
    l1, l2 = np.full(n, float(strength.l1)), np.full(n, float(strength.l2))
    rule = Update(SGD(), largest_rate=0.5).rule(PenaltyStrengths(l1 if l1.any() else None, l2 if l2.any() else None))
    after = weights.copy()
    rule.update(after, l2 * after, 0.5, rule.start(n, 0, after.dtype), np.empty(n))
    return after


def paths():
    """Draw the coefficients of the diabetes data, on standardised columns, against alpha."""
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    alphas = np.logspace(-1, 2, 25)
    axes = panels(*("l1", "l2", "elasticnet, l1_ratio=0.5"), height=3.0, sharey=True)
    for axis, penalty in zip(axes, ("l1", "l2", "elasticnet"), strict=True):
        models = [
            OrtSGDRegressor(penalty=penalty, alpha=alpha, l1_ratio=0.5, tol=1e-6, random_state=0).fit(X, y)
            for alpha in alphas
        ]
        axis.semilogx(alphas, [model.coef_ for model in models], linewidth=1.2)
        axis.set_xlabel("alpha")
    axes[0].set_ylabel("coefficients")
