"""
Sparse X with many columns: what it trains and predicts is what the same values
in an array do.
"""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import HuberRegressor, LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from skort import OrtSGDClassifier, OrtSGDRegressor, solvers
from skort.callbacks import Checkpoint
from skort.networks import TabularNetwork
from skort.optimizers import Momentum, Nesterov
from skort.solvers import available_solvers, has_sparse_steps

N_ROWS, N_COLUMNS = 120, 1000
X = scipy.sparse.random(
    N_ROWS, N_COLUMNS, density=0.02, format="csr", random_state=0, dtype=np.float32
)
SCORE = X @ np.random.RandomState(0).normal(size=N_COLUMNS)
# Of 10 batches: 100 steps.
OPTIONS = {
    "eta0": 0.02,
    "tol": None,
    "max_iter": 10,
    "batch_size": 12,
    "random_state": 0,
    "standardize": False,
}
SOLVERS = [
    name for name in solvers.SOLVERS if has_sparse_steps(name) and name in available_solvers()
]
REGRESSION = [
    "squared_error",
    "absolute_error",
    "huber",
    "epsilon_insensitive",
    "quantile",
    "poisson",
]
CLASSIFICATION = ["log_loss", "hinge", "squared_hinge", "modified_huber", "perceptron"]
RULES = [
    {"penalty": None},
    {"penalty": "l2", "alpha": 1e-2},
    {"penalty": "l1", "alpha": 1e-3},
    {"penalty": "elasticnet", "alpha": 1e-3, "l1_ratio": 0.5},
    {"penalty": "l2", "alpha": 1e-2, "average": True},
    {"penalty": "l2", "alpha": 1e-2, "average": 30},
    {"penalty": "l2", "alpha": 1e-2, "max_grad_norm": 0.05},
    {"optimizer": "momentum", "penalty": None},
    {"optimizer": "momentum", "penalty": "l2", "alpha": 1e-2, "average": 30},
    {"optimizer": Nesterov(momentum=0.5), "penalty": "l2", "alpha": 1e-2},
    {
        "optimizer": "nesterov",
        "penalty": "l2",
        "alpha": 1e-2,
        "average": True,
        "learning_rate": "invscaling",
    },
    {"optimizer": Momentum(momentum=1.0), "penalty": None, "eta0": 1e-3},
    {"optimizer": "adam", "penalty": "l2", "alpha": 1e-2, "eta0": 1e-2},
    # Steps of this l2 term are implicit.
    {
        "optimizer": "momentum",
        "penalty": "l2",
        "alpha": 0.3,
        "eta0": 0.4,
        "learning_rate": "invscaling",
    },
]


def labels(n_classes):
    return np.digitize(SCORE, np.quantile(SCORE, np.linspace(0, 1, n_classes + 1)[1:-1]))


def assert_same(model, y, *, rtol=1e-5):
    """Fit a model to X as it is and as an array, and compare all that a training leaves."""
    dense = model.fit(X.toarray(), y)
    weights, history, predictions = dense.weights_, dense.history_, dense.predict(X.toarray())
    sparse = model.fit(X, y)
    for name, w in sparse.weights_.items():
        np.testing.assert_allclose(
            w, weights[name], atol=rtol * np.abs(weights[name]).max(), rtol=0
        )
    for column in ("objective", "loss", "gradient_norm"):
        np.testing.assert_allclose(
            sparse.history_[column], history[column], rtol=2e-5, atol=1e-6 * history[column][0]
        )
    np.testing.assert_allclose(sparse.predict(X), predictions, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", REGRESSION)
def test_every_loss_of_a_regressor(loss, solver):
    y = np.abs(SCORE) if loss == "poisson" else SCORE
    assert_same(OrtSGDRegressor(loss=loss, solver=solver, **OPTIONS), y)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", CLASSIFICATION)
def test_every_loss_of_a_classifier(loss, n_classes, solver):
    assert_same(OrtSGDClassifier(loss=loss, solver=solver, **OPTIONS), labels(n_classes))


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-11)])
def test_every_rule(rule, dtype, rtol):
    assert_same(OrtSGDClassifier(dtype=dtype, **{**OPTIONS, **rule}), labels(3), rtol=rtol)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("rule", [RULES[1], RULES[2], RULES[10]], ids=repr)
@pytest.mark.parametrize(
    "model, y",
    [
        (OrtSGDClassifier(MLPClassifier((6,), activation="tanh")), labels(3)),
        (
            OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(6, 5))),
            np.column_stack([SCORE, -SCORE]),
        ),
        (OrtSGDRegressor(HuberRegressor()), SCORE),
        (OrtSGDRegressor(LinearRegression(fit_intercept=False)), SCORE),
        (OrtSGDClassifier(make_pipeline(MaxAbsScaler(), LogisticRegression())), labels(2)),
        (
            OrtSGDClassifier(MLPClassifier((6,))),
            np.column_stack([labels(2), np.median(SCORE) < SCORE]).astype(int),
        ),
    ],
    ids=["network", "outputs", "scale", "no intercept", "pipeline", "labels"],
)
def test_every_kind_of_model(model, y, rule, solver):
    assert_same(model.set_params(solver=solver, **{**OPTIONS, **rule}), y, rtol=2e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_network_with_dropout_has_the_masks_of_its_dense_rows(solver):
    network = OrtSGDRegressor(TabularNetwork(hidden=(6,), dropout=0.3), solver=solver, **OPTIONS)
    assert_same(network, SCORE, rtol=2e-5)
    assert network._result.is_sparse


@pytest.mark.parametrize(
    "model, y",
    [
        (OrtSGDClassifier(), labels(3)),
        (OrtSGDClassifier(MLPClassifier((6,))), np.array(["no", "yes"])[labels(2)]),
        (OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(6,)), trainable="intercept*"), SCORE),
        (
            OrtSGDRegressor(make_pipeline(MaxAbsScaler(), LinearRegression())),
            np.column_stack([SCORE, -SCORE]),
        ),
    ],
    ids=["classes", "labels", "frozen", "pipeline"],
)
def test_predictions_are_those_of_arrays_whatever_rows_are_predicted_together(model, y):
    model.set_params(**OPTIONS).fit(X, y)
    for name in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        if hasattr(model, name):
            predict = getattr(model, name)
            several = predict(X)
            if several.dtype.kind == "f":
                np.testing.assert_allclose(several, predict(X.toarray()), rtol=1e-4, atol=1e-5)
            else:
                np.testing.assert_array_equal(several, predict(X.toarray()))
            np.testing.assert_array_equal(
                np.concatenate([predict(X[:1]), predict(X[1:7]), predict(X[7:])]), several
            )


def test_a_row_of_many_values_is_predicted_alone_as_among_others():
    full = scipy.sparse.vstack(
        [X, scipy.sparse.csr_matrix(np.full((2, N_COLUMNS), 0.1, np.float32))], format="csr"
    )
    model = OrtSGDClassifier(MLPClassifier((6,)), **OPTIONS).fit(X, labels(3))
    np.testing.assert_array_equal(model.predict_proba(full[-1:]), model.predict_proba(full)[-1:])


@pytest.mark.parametrize("model", [OrtSGDClassifier(), OrtSGDClassifier(MLPClassifier((6,)))])
def test_a_validation_set_is_scored_with_the_weights_of_each_epoch(model):
    y = labels(2)
    model.set_params(**OPTIONS, n_iter_no_change=3)
    X_val, y_val = X[80:], y[80:]
    dense = model.fit(
        X[:80].toarray(), y[:80], X_val=X_val.toarray(), y_val=y_val
    ).validation_scores_
    sparse = model.fit(X[:80], y[:80], X_val=X_val, y_val=y_val).validation_scores_
    np.testing.assert_allclose(sparse, dense, rtol=1e-4)
    model.set_params(early_stopping=True)
    # Its labels are drawn.
    with pytest.warns(ConvergenceWarning, match="no better than a constant prediction"):
        dense = model.fit(X.toarray(), y).validation_scores_
    with pytest.warns(ConvergenceWarning, match="no better than a constant prediction"):
        np.testing.assert_allclose(model.fit(X, y).validation_scores_, dense, rtol=1e-4)


def chunks_of(form):
    return [(form(X[rows]), labels(3)[rows]) for rows in (slice(0, 60), slice(60, 120))]


@pytest.mark.parametrize(
    "options", [{}, {"optimizer": "nesterov", "average": True}, {"optimizer": "adam"}]
)
@pytest.mark.parametrize(
    "second", [scipy.sparse.csr_matrix, scipy.sparse.csr_matrix.toarray], ids=["sparse", "dense"]
)
def test_streams_of_sparse_rows_and_of_arrays_go_on_with_each_other(options, second):
    streams = [OrtSGDClassifier(**OPTIONS, **options) for _ in range(2)]
    for stream, forms in zip(
        streams,
        ([scipy.sparse.csr_matrix, second], [scipy.sparse.csr_matrix.toarray] * 2),
        strict=True,
    ):
        for i, form in enumerate(forms):
            stream.partial_fit(*chunks_of(form)[i], classes=[0, 1, 2])
            stream.partial_fit(*chunks_of(form)[i])
    np.testing.assert_allclose(streams[0].coef_, streams[1].coef_, rtol=1e-4, atol=1e-6)


def test_weights_of_rows_and_of_classes_count():
    y, weights = labels(2), np.random.RandomState(1).randint(0, 3, N_ROWS)
    models = [
        OrtSGDClassifier(class_weight={0: 1, 1: 3}, **OPTIONS).fit(form, y, weights)
        for form in (X, X.toarray())
    ]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-4, atol=1e-6)


def test_a_warm_start_goes_on():
    models = [OrtSGDClassifier(warm_start=True, **OPTIONS) for _ in range(2)]
    for model, form in zip(models, (X, X.toarray()), strict=True):
        model.fit(form, labels(2)).fit(form, labels(2))
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "options", [{}, {"optimizer": "nesterov", "average": True}, {"penalty": "l1"}]
)
def test_a_checkpoint_goes_on_to_the_same_bytes(options, tmp_path):
    def model(max_iter, **more):
        return OrtSGDClassifier(**{**OPTIONS, "max_iter": max_iter}, **options, **more)

    whole = model(6).fit(X, labels(2))
    model(3, callbacks=[Checkpoint(tmp_path / "state.npz")]).fit(X, labels(2))
    resumed = model(6, callbacks=[Checkpoint(resume_from=tmp_path / "state.npz")]).fit(X, labels(2))
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    copied = pickle.loads(pickle.dumps(resumed))
    np.testing.assert_array_equal(copied.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize("standardize", ["auto", True])
def test_x_is_divided_by_one_number(standardize):
    model = OrtSGDClassifier(**{**OPTIONS, "standardize": standardize, "penalty": None}).fit(
        X, labels(2)
    )
    scale = model.standardization_.scale
    assert (scale == scale[0]).all()
    own = OrtSGDClassifier(**{**OPTIONS, "penalty": None}).fit(
        X.toarray() / np.float32(scale[0]), labels(2)
    )
    np.testing.assert_allclose(model.coef_, own.coef_ / scale, rtol=1e-4, atol=1e-6)


def test_columns_in_other_units_have_their_own_scales():
    # Columns of 60 values; the size of column 1 is 300 times that of the others, of column 3 1 / 50.
    rng = np.random.RandomState(1)
    unit = np.ones(400)
    unit[[1, 3]] = 300, 0.02
    plain = scipy.sparse.random(120, 400, 0.5, "csr", np.float64, random_state=rng)
    plain.data[:] = rng.choice([-1.0, 1.0], plain.nnz)
    y = labels(2)[:120]
    options = {**OPTIONS, "dtype": "float64", "penalty": None, "standardize": "auto"}
    model = OrtSGDClassifier(**options).fit(plain, y)
    other = OrtSGDClassifier(**options).fit(plain @ scipy.sparse.diags(unit), y)

    assert np.ptp(model.standardization_.scale) == 0
    np.testing.assert_allclose(
        other.standardization_.scale, unit * model.standardization_.scale, rtol=1e-12
    )
    np.testing.assert_allclose(other.coef_ * unit, model.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("inner", [Ridge(), MLPRegressor(hidden_layer_sizes=(5,))])
@pytest.mark.parametrize("train", ["fit", "partial_fit", "fit_batches"])
def test_few_columns_are_trained_as_a_dense_array(train, inner):
    # Indicators, a far mean, and another unit.
    rng = np.random.RandomState(2)
    columns = rng.randint(0, 2, (101, 5)), 2000 + rng.rand(101), 1e5 * rng.rand(101)
    dense = np.column_stack(columns).astype(np.float32)
    y = dense @ [1.0, 2, 3, 4, 5, 6, 1e-5]

    predictions = []
    for rows in (dense, scipy.sparse.csr_matrix(dense)):
        model = OrtSGDRegressor(inner, random_state=0)
        if train == "fit_batches":
            model.fit_batches([(rows[:60], y[:60]), (rows[60:], y[60:])])
        else:
            getattr(model, train)(rows, y)
        predictions.append(model.predict(dense))

    np.testing.assert_array_equal(*predictions)


@pytest.mark.parametrize(
    "form", ["csr_matrix", "csr_array", "csc_matrix", "csc_array", "coo_matrix", "coo_array"]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_form_of_sparse_x(form, dtype):
    model = OrtSGDClassifier(**OPTIONS).fit(X, labels(2))
    same = OrtSGDClassifier(**OPTIONS).fit(getattr(scipy.sparse, form)(X).astype(dtype), labels(2))
    np.testing.assert_array_equal(same.coef_, model.coef_)
    np.testing.assert_array_equal(same.predict(getattr(scipy.sparse, form)(X)), model.predict(X))


def test_a_data_frame_of_sparse_columns_is_a_sparse_matrix():
    rows, model = X.astype(np.float64)[:, :50], OrtSGDRegressor(**OPTIONS)
    frame = pd.DataFrame.sparse.from_spmatrix(rows)
    for dtype in ("float32", "float64"):
        model.set_params(dtype=dtype)
        np.testing.assert_array_equal(model.fit(frame, SCORE).coef_, model.fit(rows, SCORE).coef_)
        np.testing.assert_array_equal(model.predict(frame), model.predict(rows))
    with pytest.raises(ValueError, match="X contains infinity or a value too large for dtype"):
        OrtSGDRegressor().fit(frame * 1e300, SCORE)


def with_long_indices(X):
    X = X.copy()
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def unsorted_and_repeated(X):
    """
    Return a matrix whose values are each the sum of two halves,
    from the last column to the first.
    """
    halves = [np.tile(part, 2) for part in np.split(X.indices, X.indptr[1:-1])]
    values = [np.tile(part / 2, 2) for part in np.split(X.data, X.indptr[1:-1])]
    columns, data = (np.concatenate([part[::-1] for part in parts]) for parts in (halves, values))
    return scipy.sparse.csr_matrix((data, columns, 2 * X.indptr), X.shape)


@pytest.mark.parametrize("form", [with_long_indices, unsorted_and_repeated])
def test_indices_may_be_long_unsorted_and_repeated(form):
    other, model = form(X), OrtSGDClassifier(**OPTIONS).fit(X, labels(2))
    same = OrtSGDClassifier(**OPTIONS).fit(other, labels(2))
    np.testing.assert_allclose(same.coef_, model.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(same.predict_proba(other), model.predict_proba(X), rtol=1e-5)


def test_the_parts_of_x_may_be_memory_maps(tmp_path):
    parts = []
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(X, name))
        parts.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    mapped = scipy.sparse.csr_matrix(tuple(parts), X.shape)
    models = [OrtSGDClassifier(**OPTIONS).fit(rows, labels(2)) for rows in (mapped, X)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    np.testing.assert_array_equal(models[0].predict_proba(mapped), models[1].predict_proba(X))


def test_rows_without_values_train_the_intercept():
    empty = scipy.sparse.csr_matrix((N_ROWS, N_COLUMNS), dtype=np.float32)
    y = np.arange(N_ROWS) % 4 == 0
    model = OrtSGDClassifier(penalty=None, eta0=1.0, max_iter=200, tol=None, random_state=0).fit(
        empty, y
    )
    assert not model.coef_.any()
    np.testing.assert_allclose(model.intercept_, np.log(1 / 3), rtol=1e-3)


def broken(form, name, value):
    rows = getattr(scipy.sparse, form)(X, copy=True)
    getattr(rows, name)[-1] = value
    return rows


def with_short_indptr():
    rows = X.copy()
    rows.indptr = rows.indptr[:-1]
    return rows


BAD = [
    (broken(form, name, value), name)
    for form in ("csr_matrix", "csr_array", "csc_matrix", "bsr_matrix")
    for name, value in [("indices", 2**30), ("indices", -1), ("indptr", 2**30)]
]
BAD += [
    (broken(form, name, value), "indices")
    for form in ("coo_matrix", "coo_array")
    for name, value in [("row", 2**30), ("row", -1), ("col", 2**30), ("col", -1)]
]
BAD += [(broken("lil_matrix", "rows", [column]), "indices") for column in (2**30, -1)]
BAD += [(with_short_indptr(), "indptr")]


@pytest.mark.parametrize(
    "rows, name", BAD, ids=[f"{type(rows).__name__}-{i}" for i, (rows, _) in enumerate(BAD)]
)
def test_a_bad_index_is_an_error_that_names_x(rows, name):
    model = OrtSGDClassifier(**OPTIONS)
    with pytest.raises(ValueError, match=f"X: its {name}"):
        model.fit(rows, labels(2))
    assert not hasattr(model, "coef_")
    model.fit(X, labels(2))
    for call in (model.predict, lambda rows: model.partial_fit(rows, labels(2))):
        with pytest.raises(ValueError, match=f"X: its {name}"):
            call(rows)


@pytest.mark.skipif(
    "session" not in available_solvers(), reason="this runtime has no TrainingSession"
)
def test_solver_session_refuses_rows_of_very_many_columns():
    wide = scipy.sparse.hstack([X, scipy.sparse.csr_matrix((N_ROWS, 2**21))], format="csr")
    model = OrtSGDClassifier(solver="session", **OPTIONS)
    with pytest.raises(
        ValueError, match=r'solver="session" makes the rows of a batch dense, here 25,177,824'
    ):
        model.fit(wide, labels(2))
    model.set_params(batch_size=2).fit(X, labels(2))
    assert model.solver_ == "session"


@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict"])
def test_memory_is_that_of_a_few_vectors_of_the_weights(method):
    n_rows, n_columns = 4000, 2**20
    columns = np.random.default_rng(0).integers(0, n_columns, 40 * n_rows).astype(np.int32)
    indptr = np.arange(0, 40 * n_rows + 1, 40, dtype=np.int32)
    wide = scipy.sparse.csr_matrix(
        (np.ones(len(columns), np.float32), columns, indptr), (n_rows, n_columns)
    )
    y = (columns[::40] > n_columns // 2).astype(int)
    model = OrtSGDClassifier(max_iter=2, tol=None, random_state=0, penalty="l2").fit(
        wide[:300], y[:300]
    )
    tracemalloc.start()
    model.predict(wide) if method == "predict" else getattr(model, method)(wide, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A stream also has a mean in float64.
    vectors = 6 * 4 + (8 if method == "partial_fit" else 0)
    assert peak < wide.data.nbytes + wide.indices.nbytes + vectors * n_columns + 20e6
