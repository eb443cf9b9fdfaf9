"""What is said of values of X and y that lose digits, or are far from all others."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(503, 5))
Y = X @ [0.0, 1, 2, 3, 4] + 2 + rng.normal(size=503)


@pytest.mark.parametrize("inner", [None, MLPRegressor(hidden_layer_sizes=(5,))])
@pytest.mark.parametrize("rows, value", [([7], 1e9), ([7], -1e5), ([7, 9], 1e9)])
def test_a_y_far_from_all_others_is_told(inner, rows, value):
    y = Y.copy()
    y[rows] = value
    spread = (np.quantile(y, 0.75) - np.quantile(y, 0.25)) / 1.349
    with pytest.warns(ConvergenceWarning, match=r"y has the value .* loss=\"huber\"") as caught:
        OrtSGDRegressor(inner, random_state=0).fit(X, y)
    text = str(caught[0].message)
    assert text.startswith(
        f"y has the value {value:.4g}, which is "
        f"{abs(value - np.median(y)) / spread:.2g} times as far"
    )
    # A row without weight is no row.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = OrtSGDRegressor(inner, random_state=0)
        model.fit(X, y, sample_weight=(~np.isin(np.arange(503), rows)).astype(float))


def test_a_y_far_from_all_others_is_told_without_tol():
    y = np.where(np.arange(503) == 7, 1e9, Y)
    with pytest.warns(ConvergenceWarning, match=r"y has the value 1e\+09"):
        OrtSGDRegressor(tol=None, max_iter=3, random_state=0).fit(X, y)


def test_columns_of_y_in_units_that_are_far_apart_are_told_of_a_network():
    both = np.column_stack([Y, Y[::-1]]) / Y.std()
    inner = MLPRegressor(hidden_layer_sizes=(5,))
    model = OrtSGDRegressor(inner, random_state=0, max_iter=3, tol=None)
    far = both * [1e3, 1e-2]
    with pytest.warns(UserWarning, match=r"deviations from 0\.01 to 1e\+03: the loss of the large"):
        model.fit(X, far)

    # Warnings are errors.
    model.fit(X, both * [50.0, 1.0])
    OrtSGDRegressor(random_state=0).fit(X, far)
    scaled = TransformedTargetRegressor(inner, transformer=StandardScaler())
    cured = model.set_params(estimator=scaled).fit(X, far)
    expected = clone(cured).fit(X, both).predict(X)
    np.testing.assert_allclose(cured.predict(X) / [1e3, 1e-2], expected, rtol=1e-4, atol=1e-4)


def test_a_warning_of_lost_digits_names_five_columns(rng):
    X = rng.normal(size=(100, 7)) + 1e6
    model = OrtSGDRegressor(random_state=0)
    told = "^The means of columns 0, 1, 2, 3, 4 and 2 more of X are more than 16,384"
    with pytest.warns(UserWarning, match=told):
        model.fit(X, X[:, 0] - 1e6)
    with pytest.warns(UserWarning, match="^The means of column 0 of X and y are more than 16,384"):
        model.fit(X[:, :1], X[:, 0])
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    with pytest.warns(UserWarning, match="^The means of columns 'a', 'b' of X are more than"):
        model.fit(frame, X[:, 0] - 1e6)
