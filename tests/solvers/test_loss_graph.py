"""The loss of rows in one run, of a score and of a model."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from skort import OrtSGDRegressor
from skort.estimators.training.fitted_problem import fitted_problem
from skort.objective import Huber
from skort.objective.objective import LOSS, SAMPLE_WEIGHT, TARGET, Objective
from skort.runtime.cache import COMPILED, forget
from skort.solvers.loss_graph import ROW_LOSSES, SCORE, loss_model


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_model_and_a_score_have_the_same_loss(dtype, rng):
    X, y = rng.normal(size=(30, 3)).astype(dtype), rng.normal(size=(30, 2))
    model = OrtSGDRegressor(LinearRegression(), dtype=dtype, standardize=False, random_state=0).fit(
        X, y
    )
    graph = fitted_problem(model).model.score_graph
    objective = Objective(Huber(0.5), None, (), 2, np.dtype(dtype))
    weights = rng.uniform(size=(30, 1))
    rows = {TARGET: y.astype(dtype), SAMPLE_WEIGHT: weights.astype(dtype)}
    forget()
    whole = loss_model(objective, graph)
    loss = whole.run(LOSS, {graph.input_name: X, **graph.arrays, **rows})
    of_score = loss_model(objective).run(
        ROW_LOSSES, {SCORE: model.predict(X).astype(dtype), **rows}
    )
    r = np.abs(model.predict(X) - y)
    expected = weights * np.where(r <= 0.5, r**2 / 2, 0.5 * (r - 0.25))
    np.testing.assert_allclose(of_score, expected, rtol=1e-4, atol=1e-6)
    assert loss == pytest.approx(expected.sum(), rel=1e-5)
    # Models of one structure share a session.
    n_sessions = len(COMPILED._made)
    loss_model(objective, graph).run(LOSS, {graph.input_name: X, **graph.arrays, **rows})
    assert len(COMPILED._made) == n_sessions
