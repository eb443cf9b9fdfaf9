"""Searches over local estimators on a cluster."""

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from skort import OrtSGDClassifier

pytest.importorskip("distributed")


def test_grid_search_on_a_cluster(client, rng):
    X = rng.normal(size=(300, 4)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    model = OrtSGDClassifier(
        eta0=0.1, learning_rate="constant", max_iter=3, tol=None, random_state=0
    )
    search = GridSearchCV(model, {"alpha": [1e-4, 1.0], "loss": ["log_loss", "hinge"]}, cv=2)
    with joblib.parallel_config("dask"):
        on_cluster = search.fit(X, y).cv_results_["mean_test_score"]
    with joblib.parallel_config(n_jobs=1):
        here = search.fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(on_cluster, here)


def test_partitions_one_after_the_other(client, rng):
    import dask
    import dask.array as da

    X = rng.normal(size=(300, 4)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    parts = da.from_array(X, chunks=(100, 4)), da.from_array(y, chunks=100)
    streamed, expected = (OrtSGDClassifier(eta0=0.1, random_state=0) for _ in range(2))
    for i, (part_X, part_y) in enumerate(
        zip(*(each.to_delayed().ravel() for each in parts), strict=True)
    ):
        streamed.partial_fit(*dask.compute(part_X, part_y), classes=[0, 1])
        expected.partial_fit(X[100 * i : 100 * (i + 1)], y[100 * i : 100 * (i + 1)], classes=[0, 1])
    np.testing.assert_array_equal(streamed.coef_, expected.coef_)
