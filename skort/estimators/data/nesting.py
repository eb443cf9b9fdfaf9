"""The layers of an estimator: pipelines, frozen estimators, transformed targets and the model."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skort.common.own_graph import makes_graph

#: The advice for a step before the model that a training cannot fit.
FIT_STEP_FIRST = (
    "Fit it on rows that are typical of all rows, and put "
    "FrozenEstimator(fitted_step) in its place."
)


def layers(estimator: Any, *, is_fitted: bool = False) -> Iterator[tuple[Any, bool]]:
    """Yield (layer, whether it is fitted), from the estimator down to the model."""
    estimator = _best(estimator) if is_fitted else estimator
    yield estimator, is_fitted
    if isinstance(estimator, FrozenEstimator):
        yield from layers(estimator.estimator, is_fitted=True)
    elif isinstance(estimator, Pipeline) and estimator.steps:
        yield from layers(estimator.steps[-1][1], is_fitted=is_fitted)
    elif _transforms_target(estimator):
        yield from layers(_regressor(estimator, is_fitted), is_fitted=is_fitted)


def target_of(estimator: Any) -> tuple[Any, bool]:
    """
    Return the estimator that transforms y, or None, and whether all steps are inside it.

    If it is fitted, it is returned in a `FrozenEstimator`.
    """
    whole = list(layers(estimator))
    places = [i for i, (layer, _) in enumerate(whole) if _transforms_target(layer)]
    if not places:
        return None, False

    outside, inside = (
        any(isinstance(layer, Pipeline) and len(layer.steps) > 1 for layer, _ in part)
        for part in (whole[: places[0]], whole[places[0] :])
    )
    if len(places) > 1 or (outside and inside):
        raise ValueError(
            "estimator: a TransformedTargetRegressor is between steps or inside another one. Use "
            "one, and put all steps inside it, or all before it."
        )

    target, is_fitted = whole[places[0]]
    return FrozenEstimator(target) if is_fitted else target, inside


def split(
    estimator: Any, *, is_fitted: bool = False
) -> tuple[list[tuple[str, Any]], Any, bool, str]:
    """Split an estimator into the steps before the model and the model."""
    estimator = _best(estimator) if is_fitted else estimator
    if _transforms_target(estimator):
        return split(_regressor(estimator, is_fitted), is_fitted=is_fitted)
    if isinstance(estimator, FrozenEstimator):
        steps, model, _, name = split(estimator.estimator, is_fitted=True)
        for _, fitted in [*steps, (name, model)]:
            # An ONNX model needs no fit. Other objects without `fit` are refused later.
            if hasattr(fitted, "fit"):
                check_is_fitted(fitted)
            elif makes_graph(fitted):
                raise NotFittedError(
                    f"estimator: a {type(fitted).__name__} holds no weights that a FrozenEstimator could "
                    "keep. Freeze the fitted estimator of skort around it, or leave FrozenEstimator out "
                    "to begin at new weights."
                )

        return [(key, FrozenEstimator(step)) for key, step in steps], model, True, name
    if is_fitted and hasattr(estimator, "__skort_apart__"):
        # An estimator of skort has steps of its own.
        steps, model = estimator.__skort_apart__()
        return steps, model, True, type(model).__name__.lower()
    if not isinstance(estimator, Pipeline):
        return [], estimator, False, type(estimator).__name__.lower()
    if not estimator.steps:
        raise ValueError("estimator: the Pipeline has no steps.")

    *before, (name, last) = estimator.steps
    steps, model, model_is_fitted, inner_name = split(last, is_fitted=is_fitted)

    if steps:
        memory = last.memory if isinstance(last, Pipeline) else None
        before = [*before, (name, Pipeline(steps, memory=memory))]
        name = inner_name

    return (
        [(k, s) for k, s in before if s is not None and s != "passthrough"],
        model,
        model_is_fitted,
        name,
    )


def _best(estimator):
    """Return the best estimator of a fitted search, or any other estimator as it is."""
    return getattr(estimator, "best_estimator_", estimator)


def model_inside(estimator: Any) -> Any:
    """Return the innermost model of an estimator, not cloned."""
    return list(layers(estimator))[-1][0]


def steps_to_fit(estimator: Any) -> list[str]:
    """Return the names of the steps that need a fit: those before the model, and the one of y."""
    steps, *_ = split(estimator)
    target, _ = target_of(estimator)
    # All of a frozen one is fitted.
    if not isinstance(target, FrozenEstimator) and getattr(target, "transformer", None) is not None:
        steps = [*steps, ("transformer", target.transformer)]
    return [
        key
        for key, step in steps
        if not isinstance(step, FrozenEstimator) and get_tags(step).requires_fit
    ]


def can_partial_fit(estimator: Any) -> bool:
    """
    Raise an AttributeError if a step before the model of an estimator of skort needs a fit:
    `fit` has fitted the steps, `partial_fit` does not.
    """
    if "_result" in vars(estimator):
        return True

    for name in steps_to_fit(estimator.estimator):
        advice = (
            "Put FrozenEstimator(fitted_step) in its place, fitted on rows that are typical of all "
            "rows. Or call fit first: partial_fit then keeps its steps, and trains a network at a "
            "tenth of the rate."
        )
        if is_fitted(estimator.estimator):
            advice = (
                "The pipeline inside is fitted. To continue from it, freeze it: "
                f"{type(estimator).__name__}(FrozenEstimator(pipeline))."
            )
        raise AttributeError(
            f"partial_fit does not fit the step {name!r} before the model. {advice}"
        )
    return True


def is_fitted(estimator: Any) -> bool:
    """Return whether an estimator is fitted; False for what has no `fit`."""
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):
        return False
    return True


def input_tags(estimator: Any) -> Any:
    """Return the input tags of the first step of a pipeline, fitted or not; None without steps."""
    estimator = getattr(estimator, "regressor", estimator)
    (_, first), *_ = getattr(estimator, "steps", None) or [(None, None)]
    if not hasattr(first, "__sklearn_tags__") or isinstance(first, type):
        return None

    whole = get_tags(estimator).input_tags
    return dataclasses.replace(
        get_tags(first).input_tags, sparse=whole.sparse, allow_nan=whole.allow_nan
    )


def thawed(step: Any) -> Any:
    """Return a step without its `FrozenEstimator`."""
    return step.estimator if isinstance(step, FrozenEstimator) else step


def _transforms_target(estimator):
    """Return whether an estimator is a `TransformedTargetRegressor`."""
    # Imported only when needed: the import would take most of the time of `import skort`.
    from sklearn.compose import TransformedTargetRegressor

    return isinstance(estimator, TransformedTargetRegressor)


def _regressor(estimator, is_fitted):
    """Return the regressor inside a `TransformedTargetRegressor`."""
    from sklearn.linear_model import LinearRegression

    if is_fitted:
        check_is_fitted(estimator)
        return estimator.regressor_
    return LinearRegression() if estimator.regressor is None else estimator.regressor
