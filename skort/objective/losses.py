"""The losses by name: the values of the estimators' parameter `loss`, from what their classes say."""

from skort.objective import classification, log_link, regression
from skort.objective.loss import FormulaLoss


def _named(kind: str) -> dict[str, type[FormulaLoss]]:
    """Return the losses of a kind of estimators that have a name, in the order of the modules and their lines."""
    modules = (regression, log_link, classification)
    found = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    losses = [each for each in found if issubclass(each, FormulaLoss) and kind in each.estimator_types]
    return {loss.name: loss for loss in losses if loss.name is not None}


REGRESSION_LOSSES = _named("regressor")
CLASSIFICATION_LOSSES = _named("classifier")
