"""The losses by name: the values of the estimators' parameter `loss`, from what their classes say."""

from skort.objective import classification, label_losses, log_link, log_losses, regression
from skort.objective.loss import TextLoss


def _named(kind: str) -> dict[str, type[TextLoss]]:
    """Return the losses of a kind of estimators that have a name, in the order of the modules and their lines."""
    modules = (regression, log_link, log_losses, classification, label_losses)
    found = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    losses = [each for each in found if issubclass(each, TextLoss) and kind in each.estimator_types]
    return {loss.name: loss for loss in losses if loss.name is not None}


REGRESSION_LOSSES = _named("regressor")
CLASSIFICATION_LOSSES = _named("classifier")
