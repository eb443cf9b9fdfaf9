"""Helpers of displays: matplotlib's axes, and the fitted estimators inside a given object."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from skort.estimators.fitted_mixin import FittedAttributes

# Attributes in which estimators of scikit-learn keep a fitted estimator.
_INSIDE = ("best_estimator_", "regressor_", "estimator_")


def axes_for(display: Any, ax: Any = None) -> Any:
    """Return the axes that a display draws on."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{type(display).__name__}.plot needs matplotlib ({error}). Install it: pip "
            "install matplotlib."
        ) from error

    return plt.subplots(layout="constrained")[1] if ax is None else ax


def line_style(given: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
    """
    Return keywords of matplotlib's `plot`. Keywords that a user gave replace the defaults.

    A user may give a keyword by any of its names.
    """
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return {**defaults, **normalize_kwargs(dict(given), Line2D)}


def whole_numbers(axis: Any) -> None:
    """Put the ticks of an axis at integers, unless the user has chosen ticks or a scale."""
    from matplotlib.ticker import MaxNLocator

    locator = axis.get_major_locator()
    if isinstance(locator, MaxNLocator):
        locator.set_params(integer=True)


class _Found(NamedTuple):
    """A fitted estimator of skort, its name, and the pipelines around it, from the outermost on."""

    name: str
    estimator: Any
    pipelines: tuple[Any, ...]


def fitted_estimators(estimator: Any) -> dict[str, Any]:
    """Return the fitted estimators of skort inside an estimator, a list or a dict, by name."""
    return {found.name: found.estimator for found in _all_found(estimator)}


def the_fitted_estimator(estimator: Any) -> tuple[Any, Sequence[str] | None]:
    """Return the only fitted estimator of skort inside an object, and the names of its columns."""
    one, *others = _all_found(estimator)
    if others:
        names = [found.name for found in (one, *others)]
        raise ValueError(
            f"estimator has several fitted estimators of skort, {names}: give one of them."
        )

    return one.estimator, _columns_behind(one.pipelines)


def _all_found(estimator: Any) -> list[_Found]:
    named = dict(enumerate(estimator)) if isinstance(estimator, list | tuple) else estimator
    named = named if isinstance(named, Mapping) else {"": named}
    found = [one for key, value in named.items() for one in _within(value, str(key))]
    if not found:
        raise ValueError(f"estimator has no fitted estimator of skort inside, got {estimator!r}.")

    return found


def _within(estimator: Any, name: str, pipelines: tuple[Any, ...] = ()) -> Iterator[_Found]:
    """Yield the fitted estimators of skort in an estimator."""
    if isinstance(estimator, FittedAttributes):
        check_is_fitted(estimator)
        yield _Found(name or type(estimator).__name__, estimator, pipelines)
    elif isinstance(estimator, FrozenEstimator):
        yield from _within(estimator.estimator, name, pipelines)
    elif hasattr(estimator, "steps"):
        yield from _within(estimator.steps[-1][1], name, (*pipelines, estimator))
    elif parts := _parts(estimator):
        # An ensemble may give each part other columns, so the pipelines around it do not count.
        for key, one in parts.items():
            yield from _within(one, f"{name} {key}".strip())
    elif hasattr(estimator, "get_params"):
        check_is_fitted(estimator)
        if hasattr(estimator, "cv_results_") and estimator.refit is False:
            raise ValueError(
                f"estimator: {type(estimator).__name__} keeps no fitted estimator with refit=False."
            )

        inside = next((getattr(estimator, a) for a in _INSIDE if hasattr(estimator, a)), None)
        best = getattr(estimator, "best_params_", None) or {}
        name = name or ", ".join(f"{parameter}={value!r}" for parameter, value in best.items())
        yield from _within(inside, name, pipelines)


def _parts(estimator: Any) -> dict[str, Any]:
    """Return the fitted estimators of an ensemble, by name or number."""
    if hasattr(estimator, "calibrated_classifiers_"):
        return {str(i): one.estimator for i, one in enumerate(estimator.calibrated_classifiers_)}
    numbered = {str(i): one for i, one in enumerate(getattr(estimator, "estimators_", ()))}
    last = {"final": estimator.final_estimator_} if hasattr(estimator, "final_estimator_") else {}
    return {**getattr(estimator, "named_estimators_", numbered), **last}


def _columns_behind(pipelines: Sequence[Any]) -> Sequence[str] | None:
    """
    Return the names of the columns that the last step of the pipelines gets.

    Return None if the steps before it do not know the names.
    """
    names = None
    for pipeline in pipelines:
        try:
            names = pipeline[:-1].get_feature_names_out(names) if len(pipeline) > 1 else names
        except (AttributeError, ValueError):
            names = None

    return names
