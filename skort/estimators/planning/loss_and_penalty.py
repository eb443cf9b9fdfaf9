"""The objective of a training: the terms of the model inside, or the user's terms in their place."""

from collections.abc import Set
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin, clone

from skort.common.component import for_training
from skort.estimators.data.nesting import layers, model_inside
from skort.estimators.data.sample_weight import ClassWeight
from skort.estimators.planning.decision import Decision, rule, yours
from skort.estimators.planning.epochs import TrainingSize
from skort.objective.combined import OutputLosses
from skort.objective.loss import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, ScoreLoss, as_loss
from skort.objective.penalties import (
    LARGEST_STRENGTH,
    PENALTIES,
    ModelPenalty,
    Strength,
    UnitFreeL2,
    WeightPenalty,
    as_penalty,
)

if TYPE_CHECKING:
    # It imports scikit-learn's models, which take most of the time of `import skort`.
    from skort.objective.sklearn_objectives import SklearnObjective

# The defaults of SGDRegressor, if nothing else decides.
_ALPHA = 1e-4
_L1_RATIO = 0.15
# They set the strength of a penalty in scikit-learn's models.
_STRENGTHS = ("alpha", "C")


def objective_inside(estimator: Any, model: Any) -> "SklearnObjective":
    """Return the objective of the model inside an estimator. The default model has that of SGD."""
    # It imports scikit-learn's models, which take most of the time of `import skort`.
    from skort.objective.sklearn_objectives import sklearn_objective

    given = None if estimator.estimator is None else model
    return sklearn_objective(given, is_classifier=isinstance(estimator, ClassifierMixin))


def training_loss(estimator: Any, inside: "SklearnObjective") -> ScoreLoss:
    """
    Return the loss of a training. Raise a ValueError if a regressor has a loss of classifiers, or
    the other way round.
    """
    loss = as_loss(for_training(chosen_loss(estimator, inside), estimator.loss, "loss"))
    assert loss is not None  # The parameter was validated: it has the method.
    kind = "classifier" if isinstance(estimator, ClassifierMixin) else "regressor"
    if kind not in loss.estimator_types:
        names = ", ".join(repr(name) for name in losses_of(estimator))
        cure = loss.for_others or f"Use one of {names}."
        raise ValueError(f"loss={type(loss).__name__} is not a loss of a {kind}. {cure}")

    return loss


def chosen_loss(estimator: Any, inside: "SklearnObjective") -> ScoreLoss:
    """Return the loss of a training, not validated: the user's, or the one of the model inside."""
    if isinstance(estimator.loss, dict):
        return OutputLosses(
            {name: named_loss(estimator, inside, x) for name, x in estimator.loss.items()}
        )
    if estimator.loss is None:
        from skort.graphs.onnx_models.graph_loss import graph_loss

        model = None if estimator.estimator is None else model_inside(estimator.estimator)
        return graph_loss(model, is_classifier=isinstance(estimator, ClassifierMixin))
    return named_loss(estimator, inside, estimator.loss)


def named_loss(estimator: Any, inside: "SklearnObjective", loss: Any) -> Any:
    """Return the loss with a name. Return any other value as it is."""
    if not isinstance(loss, str):
        return loss

    losses = losses_of(estimator)
    default = "log_loss" if isinstance(estimator, ClassifierMixin) else "squared_error"

    if loss == "auto":
        named = losses[default]() if inside.loss is None else clone(inside.loss)
    elif loss not in losses:
        raise ValueError(f"loss: {loss!r} is none of {', '.join(losses)}.")
    else:
        named = losses[loss]()

    values = {name: getattr(estimator, name, "auto") for name in named.shared_parameters}
    return named.set_params(
        **{name: value for name, value in values.items() if not isinstance(value, str)}
    )


def losses_of(estimator: Any) -> dict[str, type]:
    """Return the losses of an estimator, by name."""
    return CLASSIFICATION_LOSSES if isinstance(estimator, ClassifierMixin) else REGRESSION_LOSSES


@rule("loss")
def loss_decision(left_open: Set[str], inside: "SklearnObjective", loss: ScoreLoss) -> Decision:
    """
    The loss is the one that the model inside minimises; without a model, the squared error or the
    log-loss.
    """
    if "loss" not in left_open:
        return yours(loss, "loss")
    because = "it is the default" if inside.loss is None else "the model inside minimises it"
    return Decision(loss, because, "loss")


def training_penalty(
    estimator: Any, inside: "SklearnObjective", size: TrainingSize
) -> WeightPenalty | None:
    """Return the penalty of a training."""
    chosen = chosen_penalty(estimator, inside, size)
    return as_penalty(for_training(chosen, estimator.penalty, "penalty"))


def chosen_penalty(
    estimator: Any, inside: "SklearnObjective", size: TrainingSize
) -> WeightPenalty | None:
    """Return the penalty of a training, not validated."""
    name = estimator.penalty
    alpha = estimator.alpha
    if not (name is None or isinstance(name, str)):
        return name

    is_inside = name == "auto" and inside.penalty is not None
    if name == "auto":
        name = inside.penalty or (None if isinstance(alpha, str) else "l2")
    if name is None:
        return None

    if isinstance(alpha, str) and inside.penalty is None:
        alpha = _ALPHA
    elif isinstance(alpha, str):
        alpha = np.minimum(alpha_inside(estimator, inside, size), LARGEST_STRENGTH)
        # A plain number is not validated twice.
        alpha = alpha if np.ndim(alpha) else float(alpha)

    if is_inside and inside.is_unit_free:
        return UnitFreeL2(alpha=alpha)

    ratio = {"l1": 1.0, "l2": 0.0}.get(name)
    if ratio is None:
        ratio = estimator.l1_ratio
    if isinstance(ratio, str):
        ratio = inside.l1_ratio if inside.penalty == "elasticnet" else _L1_RATIO
    if not (is_inside and inside.penalizes_intercept) and np.ndim(ratio) == 0:
        return PENALTIES[name](
            **{"alpha": alpha} | ({"l1_ratio": ratio} if name == "elasticnet" else {})
        )

    coefficients = Strength(alpha * ratio, alpha * (1 - ratio))
    return ModelPenalty(
        coefficients,
        inside.of_intercepts(coefficients) if is_inside and inside.penalizes_intercept else None,
    )


def alpha_inside(estimator: Any, inside: "SklearnObjective", size: TrainingSize) -> Any:
    """Return the alpha with which skort has the penalty of the model inside."""
    if estimator.n_total is not None:
        size = size._replace(weight_sum=estimator.n_total * size.mean_weight)
    return inside.skort_alpha(*size[:4])


def counts_rows(estimator: Any, inside: "SklearnObjective") -> bool:
    """
    Return whether the penalty of the model inside depends on the number of all rows, which no
    parameter says.
    """
    is_inside = (
        isinstance(estimator.penalty, str)
        and isinstance(estimator.alpha, str)
        and inside.penalty is not None
    )
    return is_inside and inside.alpha_per == "sum" and estimator.n_total is None


@rule("penalty")
def penalty_decision(
    estimator: Any, left_open: Set[str], inside: "SklearnObjective", penalty: WeightPenalty | None
) -> Decision:
    """
    The penalty is that of the model inside, rescaled to a loss that is a mean over the rows;
    without a model, it is an L2 penalty of 1e-4 on standardised columns.
    """
    if not left_open >= {"penalty", "alpha"}:
        return yours(penalty, "penalty, alpha")
    if estimator.estimator is None:
        because = "it is the default"
    else:
        because = (
            "the model inside has none" if inside.penalty is None else "the model inside has it"
        )
    return Decision(penalty, because, "penalty, alpha")


def chosen_class_weight(
    estimator: Any, inside: "SklearnObjective", *, is_stream: bool
) -> ClassWeight | None:
    """Return the class weights of a training, or None if all classes count the same."""
    if not isinstance(estimator, ClassifierMixin):
        return None
    class_weight = estimator.class_weight
    if isinstance(class_weight, str) and class_weight == "auto":
        class_weight = inside.class_weight
    if is_stream and class_weight == "balanced":
        raise ValueError(
            # scikit-learn's own words, which people search for, and then the code.
            "class_weight 'balanced' is not supported for partial_fit. In order to use 'balanced' "
            "weights, use compute_class_weight('balanced', classes=classes, y=y). In place of y "
            "you can use a large enough sample of the full training set target to properly "
            "estimate the class frequency distributions. Pass the resulting weights as the "
            "class_weight parameter. In code: labels = np.unique(y); class_weight = dict(zip(labels, "
            "compute_class_weight('balanced', classes=labels, y=y))). Import it from "
            "sklearn.utils.class_weight."
        )
    if class_weight is None:
        return None

    loss = as_loss(chosen_loss(estimator, inside))
    of_positives = inside.weighs_positives and loss is not None and loss.one_against_rest
    return ClassWeight(class_weight, of_positives, inside.balances_rows)


@rule("class weights")
def class_weight_decision(
    estimator: Any, left_open: Set[str], inside: "SklearnObjective"
) -> Decision | None:
    """
    The weights of classes are those of the model inside; if it has none, all classes count the
    same.
    """
    if not isinstance(estimator, ClassifierMixin):
        return None
    if "class_weight" not in left_open:
        return yours(estimator.class_weight, "class_weight")
    if inside.class_weight is None:
        return None
    return Decision(inside.class_weight, "the model inside has them", "class_weight")


def loss_before_fit(estimator: Any) -> ScoreLoss | None:
    """Return the loss that a fit would have, or None if a parameter is not valid."""
    try:
        model = None if estimator.estimator is None else model_inside(estimator.estimator)
        return as_loss(chosen_loss(estimator, objective_inside(estimator, model)))
    except (ValueError, KeyError):  # fit raises it
        return None


def strengths_inside(estimator: Any) -> list[str]:
    """Return the names of the parameters that set the strength of the penalty of the model inside."""
    from skort.objective.sklearn_objectives import OBJECTIVES

    if estimator.estimator is None:
        return []
    try:
        inside, is_fitted = list(layers(estimator.estimator))[-1]
    except ValueError:  # The fit raises it.
        return []
    if is_fitted or type(inside) not in OBJECTIVES:
        return []
    return [name for name in _STRENGTHS if hasattr(inside, name)]
