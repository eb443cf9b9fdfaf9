"""scikit-learn's tests of MLPClassifier and MLPRegressor, run with skort's."""

import sklearn.neural_network.tests.test_mlp
from installed_tests import run_source
from sklearn_adapters import MLPClassifier, MLPRegressor

run_source(
    sklearn.neural_network.tests.test_mlp,
    globals(),
    sklearn.neural_network,
    MLPClassifier=MLPClassifier,
    MLPRegressor=MLPRegressor,
)
