"""The axes of a display: matplotlib is imported here, when something is drawn."""

from collections.abc import Mapping
from typing import Any


def axes_for(display: Any, ax: Any = None) -> Any:
    """Return the axes that a display draws on."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{type(display).__name__}.plot needs matplotlib ({error}). Install it: pip install matplotlib."
        ) from error
    return plt.subplots(layout="constrained")[1] if ax is None else ax


def line_style(given: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
    """Return keywords of matplotlib's `plot`: those that a user gave, by any of their names, before the defaults."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return {**defaults, **normalize_kwargs(dict(given), Line2D)}


def whole_numbers(axis: Any) -> None:
    """Put the ticks of an axis at whole numbers, but for ticks or a scale that the user has chosen."""
    from matplotlib.ticker import MaxNLocator

    locator = axis.get_major_locator()
    if isinstance(locator, MaxNLocator):
        locator.set_params(integer=True)
