"""scikit-learn's tests of SGDClassifier and SGDRegressor, run with skort's."""

from types import SimpleNamespace

import sklearn.linear_model.tests.test_sgd
from installed_tests import run_source
from sklearn_adapters import SGDClassifier, SGDOneClassSVM, SGDRegressor

adapters = {
    "SGDClassifier": SGDClassifier,
    "SGDRegressor": SGDRegressor,
    "SGDOneClassSVM": SGDOneClassSVM,
}
linear_model = SimpleNamespace(**{**vars(sklearn.linear_model), **adapters})
run_source(sklearn.linear_model.tests.test_sgd, globals(), sklearn, linear_model=linear_model)
# scikit-learn's own loss functions are not what is tested here.
sgd_fast = None
