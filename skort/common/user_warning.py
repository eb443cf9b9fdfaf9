"""Warnings that point at the user's own line."""

import sys
import warnings

# The frames between the user's line and the line that warns are of these packages only. joblib runs
# the fits of a grid search.
_INSIDE = ("skort", "sklearn", "joblib")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """
    Warn of what the user did, at the line of the innermost function outside skort,
    scikit-learn and joblib.
    """
    frame = sys._getframe(1)
    level = 2
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE
    ):
        frame = frame.f_back
        level = level + 1

    warnings.warn(message, category, stacklevel=level)
