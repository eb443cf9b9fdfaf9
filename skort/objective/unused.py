"""Which of scikit-learn's own training parameters have no effect, and what says the same in skort."""

import functools
import inspect

from sklearn import neural_network

__all__ = ["unused_parameters"]

#: Parameters that say how a model is trained -> the parameter of skort's estimators that says the same.
_TRAINING = {
    "average": "average",
    "batch_size": "batch_size",
    "beta_1": "optimizer",
    "beta_2": "optimizer",
    "early_stopping": "early_stopping",
    "eta0": "eta0",
    "learning_rate": "learning_rate",
    "learning_rate_init": "eta0",
    "max_fun": "max_iter",
    "max_iter": "max_iter",
    "momentum": "optimizer",
    "n_iter_no_change": "n_iter_no_change",
    "n_jobs": "n_jobs",
    "nesterovs_momentum": "optimizer",
    "power_t": "power_t",
    "selection": "shuffle",
    "shuffle": "shuffle",
    "solver": "optimizer",
    "solver_options": "optimizer",
    "tol": "tol",
    "validation_fraction": "validation_fraction",
    "verbose": "verbose",
    "warm_start": "warm_start",
}


def unused_parameters(model):
    """
    Return the training parameters of a model that are not at their defaults.

    Parameters
    ----------
    model : estimator
        One of scikit-learn's linear models or neural networks.

    Returns
    -------
    unused : dict of str to str
        Name of the parameter -> the parameter of skort's estimators that says the same.

    Examples
    --------
    >>> from sklearn.neural_network import MLPClassifier
    >>> from skort.objective.unused import unused_parameters
    >>> unused_parameters(MLPClassifier((10,), alpha=0.1, learning_rate_init=0.01, max_iter=50))
    {'learning_rate_init': 'eta0', 'max_iter': 'max_iter'}
    """
    training = _TRAINING | _of_this_model(model)
    of_type = _defaults(type(model))  # type: ignore[arg-type]  # classes are hashable
    defaults = {name: default for name, default in of_type.items() if name in training}
    changed = {name: getattr(model, name) for name, default in defaults.items() if getattr(model, name) != default}
    if changed.get("solver") == "liblinear":
        del changed["solver"]  # it has an effect: intercepts have the penalty
    return {name: training[name] for name in changed}


@functools.cache
def _defaults(model_type):
    """Return the defaults of the parameters of a type of models, by name."""
    return {name: parameter.default for name, parameter in inspect.signature(model_type).parameters.items()}


def _of_this_model(model):
    """Return the training parameters whose names are of the objective in other models."""
    if isinstance(model, (neural_network.MLPRegressor, neural_network.MLPClassifier)):
        return {"epsilon": "optimizer"}  # Adam's
    # The longest step of PassiveAggressive*.
    return {"C": "eta0"} if type(model).__name__.startswith("PassiveAggressive") else {}
