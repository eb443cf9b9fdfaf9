"""The warnings of a fitted model and its rows, before the first step."""

from collections.abc import Sequence
from typing import Any

from skort.common.user_warning import warn_user
from skort.estimators.data.columns import first_of
from skort.estimators.planning.fine_tuning import Knowledge

# New networks on raw columns of wine begin at 35 to 64 times the loss of a constant, and learn.
# Weights that were fitted in other units begin at 220 times (wine) or 610 times (breast cancer),
# and do not learn.
_FAR_START = 100.0
CHECK_OF_FITTED = (
    "Check that X and y have the columns, units and labels of the rows that it was fitted on."
)


def warn_of_fitted(known: Knowledge) -> None:
    """Warn if a fitted model is worse than the best constant prediction of the new rows."""
    warn_user(
        "On these rows, the fitted model is worse than a constant prediction: its loss is "
        f"{known.loss:.4g}, that of the best constant {known.constant:.4g}. "
        "Training begins from its weights all the same. "
        f"{CHECK_OF_FITTED}"
    )


def warn_of_far_start(share: float) -> None:
    """
    Warn if the loss at the first weights of a model is many times that of a constant: `share`
    times.
    """
    if share > _FAR_START:
        warn_user(
            f"The model in estimator begins at {share:.3g} times the loss of a constant prediction on "
            "these rows. Its weights seem to be for other units, and a training may not recover "
            "from that: scale X and y as they were where the weights were made."
        )


def warn_of_absent(labels: Sequence[Any]) -> None:
    """Warn of labels of a fitted model that no row of its training has."""
    if not len(labels):
        return
    several = len(labels) > 1
    warn_user(
        f"y has no row of the class{'es' if several else ''} {first_of(labels)}, which the fitted "
        f"model knows: training on these rows alone forgets {'them' if several else 'it'}. Give some old "
        f"rows of {'these classes' if several else 'this class'}, too, or train less: lower "
        "max_iter, or call partial_fit less often."
    )


def warn_of_one_target() -> None:
    """Warn if all rows that a fitted network is to train on have the same target."""
    warn_user(
        "y is the same in all rows: a fitted network that trains on them alone forgets the rest. "
        "Give rows with other values of y, too, or call partial_fit once, which forgets less."
    )
