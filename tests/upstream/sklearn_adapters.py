"""
scikit-learn's SGD and MLP classes, with skort inside: what scikit-learn's own tests run.

An adapter translates parameters and the names of attributes. It computes nothing: what skort does
not have, it does not have either.
"""

import inspect
import math

import numpy as np
from sklearn import linear_model, neural_network
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

import skort
from skort.optimizers import Adam, Momentum, Nesterov
from skort.schedules import Adaptive

__all__ = ["MLPClassifier", "MLPRegressor", "SGDClassifier", "SGDOneClassSVM", "SGDRegressor"]


def parameters_of(original):
    """Return an `__init__` that takes the parameters of a scikit-learn class, and stores them."""
    signature = inspect.signature(original.__init__)

    def __init__(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        (_, *parameters) = bound.arguments.items()
        vars(self).update(parameters)

    __init__.__signature__ = signature
    return __init__


def adaptive(eta0):
    """Return the schedule that ends at the first rate of 1e-6 or less, as in scikit-learn."""
    return Adaptive(eta0, max_falls=max(0, math.ceil(math.log(eta0 / 1e-6, 5))))


class Adapter(BaseEstimator):
    """
    A skort estimator behind the parameters of a scikit-learn class.

    Subclasses bring `_skort_class` and `_skort_parameters(n_rows)`. Public attributes and methods
    are those of the skort estimator.
    """

    _skort = None

    def _configured(self, X=((),)):
        """
        Return the skort estimator with the parameters of this one:
        the fitted one, where there is one.
        """
        # scikit-learn trains float32 in float32, all else in float64.
        dtype = "float32" if getattr(X, "dtype", None) == np.float32 else "float64"
        parameters = {
            "dtype": dtype,
            "standardize": False,
            **self._skort_parameters(np.shape(X)[0]),
        }
        if parameters["learning_rate"] == "adaptive":
            # It reads no power_t, and an object says so where a name does not.
            parameters |= {"learning_rate": adaptive(parameters["eta0"]), "power_t": 0.25}
        return (
            self._skort_class(**parameters)
            if self._skort is None
            else self._skort.set_params(**parameters)
        )

    def _of_skort(self, name):
        return getattr(self._configured() if self._skort is None else self._skort, name)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self._of_skort(name)

    def fit(self, X, y, **kwargs):
        self._skort = self._configured(X).fit(X, y, **kwargs)
        return self

    def partial_fit(self, X, y, **kwargs):
        self._skort = self._configured(X).partial_fit(X, y, **kwargs)
        return self


class SGD(Adapter):
    """What SGDClassifier and SGDRegressor share: one row a batch."""

    def _skort_parameters(self, n_rows):
        parameters = self.get_params(deep=False)
        estimator = self._linear_model(fit_intercept=parameters.pop("fit_intercept"))
        return {**parameters, "estimator": estimator, "batch_size": 1}


class SGDClassifier(ClassifierMixin, SGD):
    _skort_class = skort.OrtSGDClassifier
    _linear_model = linear_model.SGDClassifier
    loss_functions = linear_model.SGDClassifier.loss_functions
    __init__ = parameters_of(linear_model.SGDClassifier)

    # For subclasses in the tests, which call those of `super()`.

    def decision_function(self, X):
        return self._of_skort("decision_function")(X)

    @property
    def predict_proba(self):
        return self._of_skort("predict_proba")


class SGDRegressor(RegressorMixin, SGD):
    _skort_class = skort.OrtSGDRegressor
    _linear_model = linear_model.LinearRegression
    __init__ = parameters_of(linear_model.SGDRegressor)


class SGDOneClassSVM(Adapter):
    """Not in skort."""

    __init__ = parameters_of(linear_model.SGDOneClassSVM)

    def _skort_parameters(self, n_rows):
        raise NotImplementedError("SGDOneClassSVM")


class MLP(Adapter):
    """What MLPClassifier and MLPRegressor share."""

    _same = (
        "loss",
        "power_t",
        "batch_size",
        "max_iter",
        "tol",
        "n_iter_no_change",
        "early_stopping",
        "validation_fraction",
        "shuffle",
        "random_state",
        "warm_start",
        "verbose",
    )

    def _skort_parameters(self, n_rows):
        n_held_out = math.ceil(self.validation_fraction * n_rows) if self.early_stopping else 0
        batch_size = 200 if self.batch_size == "auto" else self.batch_size
        return {
            **{
                name: value
                for name, value in self.get_params(deep=False).items()
                if name in self._same
            },
            "estimator": self._network(
                hidden_layer_sizes=self.hidden_layer_sizes, activation=self.activation
            ),
            "optimizer": self._optimizer_of_solver(),
            "eta0": self.learning_rate_init,
            "learning_rate": self.learning_rate if self.solver == "sgd" else "constant",
            # scikit-learn divides the penalty, too, by the rows of a batch.
            "alpha": self.alpha / max(1, min(batch_size, n_rows - n_held_out)),
        }

    def _optimizer_of_solver(self):
        if self.solver == "adam":
            return Adam(beta_1=self.beta_1, beta_2=self.beta_2, epsilon=self.epsilon)
        if self.solver == "sgd":
            return (Nesterov if self.nesterovs_momentum else Momentum)(momentum=self.momentum)
        raise NotImplementedError(f"solver={self.solver!r}")

    @property
    def coefs_(self):
        return self.to_sklearn().coefs_

    @property
    def intercepts_(self):
        return self.to_sklearn().intercepts_


class MLPClassifier(ClassifierMixin, MLP):
    _skort_class = skort.OrtSGDClassifier
    _network = neural_network.MLPClassifier
    __init__ = parameters_of(neural_network.MLPClassifier)


class MLPRegressor(RegressorMixin, MLP):
    _skort_class = skort.OrtSGDRegressor
    _network = neural_network.MLPRegressor
    __init__ = parameters_of(neural_network.MLPRegressor)
