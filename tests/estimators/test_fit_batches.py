"""Trainings on the user's own batches: those of fit on the same rows."""

import math
import pickle
import re

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.fixes import parse_version

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.callbacks import Checkpoint
from skort.estimators.data import first_pass

SIZE = 10


def rows(n=95, n_features=3):
    rng = np.random.default_rng(0)
    X = 5 + 2 * rng.normal(size=(n, n_features))
    return X, 100 + X @ np.arange(1.0, n_features + 1) + rng.normal(size=n)


def divided(*arrays, size=SIZE):
    return [tuple(a[i : i + size] for a in arrays) for i in range(0, arrays[0].shape[0], size)]


def identical(model, other):
    assert model.loss_curve_ == other.loss_curve_
    assert list(model.weights_) == list(other.weights_)
    for name, array in model.weights_.items():
        np.testing.assert_array_equal(array, other.weights_[name])


MODELS = [
    OrtSGDRegressor(eta0="auto"),
    OrtSGDRegressor(Ridge(2.0), loss="huber", eta0=0.1, optimizer="adam"),
    OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(4,)), eta0="auto", average=True),
    OrtSGDRegressor(
        MLPRegressor(hidden_layer_sizes=(4,)), eta0=0.01, standardize=False, max_grad_norm=1.0
    ),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_batches_of_fit_give_the_model_of_fit(model):
    X, y = rows()
    model = model.set_params(shuffle=False, batch_size=SIZE, max_iter=8, tol=None, random_state=0)
    fitted = clone(model).fit(X, y)
    identical(clone(model).fit_batches(divided(X, y)), fitted)
    # Larger batches are divided, and "auto" is the size of the largest.
    identical(clone(model).fit_batches(divided(X, y, size=4 * SIZE)), fitted)
    identical(
        clone(model).set_params(batch_size="auto").fit_batches(lambda: iter(divided(X, y))), fitted
    )


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.3, 1: 2.0}])
@pytest.mark.parametrize("is_weighted", [True, False])
def test_weights_give_the_bits_of_fit(class_weight, is_weighted):
    rng = np.random.RandomState(0)
    X, labels, weights = rng.randn(73, 3), rng.randint(0, 2, 73), rng.uniform(0.01, 2, 73)
    rows = (X, labels, weights) if is_weighted else (X, labels)
    model = OrtSGDClassifier(
        LinearSVC(),
        optimizer="adam",
        shuffle=False,
        batch_size=20,
        max_iter=8,
        tol=None,
        dtype="float64",
    ).set_params(class_weight=class_weight, random_state=0)
    identical(clone(model).fit_batches(divided(*rows, size=20)), model.fit(*rows))


def test_each_solver_trains_on_batches(solver):
    X, y = rows()
    model = OrtSGDRegressor(
        solver=solver, eta0=0.1, shuffle=False, batch_size=SIZE, max_iter=5, tol=None
    )
    identical(clone(model).fit_batches(divided(X, y)), model.fit(X, y))


@pytest.mark.parametrize("class_weight", ["balanced", {"no": 1.0, "yes": 3.0}, None])
@pytest.mark.parametrize(
    "inside", [LogisticRegression(), MLPClassifier((4,))], ids=["linear", "network"]
)
def test_labels_and_weights_of_all_rows_count(class_weight, inside):
    X, y = rows()
    # All rows of a class come last: the first batches lack it.
    labels = np.sort(np.where(y > y.mean() + 10, "yes", "no"))
    model = OrtSGDClassifier(
        inside,
        class_weight=class_weight,
        eta0=0.1,
        shuffle=False,
        batch_size=SIZE,
        max_iter=5,
        tol=None,
        random_state=0,
    )
    for weights in ((), (np.linspace(1, 3, len(y)),)):
        fitted = clone(model).fit(X, labels, *weights)
        ours = clone(model).fit_batches(divided(X, labels, *weights))
        np.testing.assert_array_equal(ours.classes_, ["no", "yes"])
        np.testing.assert_allclose(ours.loss_curve_, fitted.loss_curve_, rtol=1e-5)
        for name, array in ours.weights_.items():
            np.testing.assert_allclose(array, fitted.weights_[name], rtol=1e-4, atol=1e-5)


def test_a_column_of_labels_counts_as_a_row_of_them(monkeypatch):
    X, y = rows()
    labels = np.where(y > y.mean() + 2, "yes", "no")
    # Few rows stand for all, and do not have the right share of the classes.
    monkeypatch.setattr(first_pass, "_MANY_VALUES", 60)
    model = OrtSGDClassifier(
        class_weight="balanced", standardize=False, eta0=0.01, max_iter=5, tol=None
    )
    flat = clone(model).fit_batches(divided(X, labels))
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        identical(clone(model).fit_batches(divided(X, labels[:, np.newaxis])), flat)


def test_batches_of_rows_that_do_not_count_change_nothing():
    X, y = rows()
    model = OrtSGDRegressor(standardize=False, eta0=0.01, shuffle=False, max_iter=5, tol=None)
    weights = np.linspace(1, 3, len(y))
    batches = divided(X, y, weights)
    ours = clone(model).fit_batches([batches[0], (*batches[1][:2], np.zeros(SIZE)), *batches[2:]])
    identical(ours, clone(model).fit_batches([batches[0], *batches[2:]]))


def test_classes_may_be_more_than_those_in_the_batches():
    X, y = rows()
    labels = (y > y.mean()).astype(int)
    model = OrtSGDClassifier(eta0=0.1, max_iter=2, tol=None).fit_batches(
        divided(X, labels), classes=[2, 1, 0]
    )
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    with pytest.raises(
        ValueError, match=r"y has the labels \[1\], and the known classes are \[0, 2\]"
    ):
        model.fit_batches(divided(X, labels), classes=[0, 2])
    with pytest.raises(ValueError, match="classes is for classifiers"):
        OrtSGDRegressor().fit_batches(divided(X, y), classes=[0, 2])


@pytest.mark.filterwarnings("ignore:y has no row of the class 2, which the fitted")
def test_a_fitted_model_inside_keeps_its_classes():
    X, y = rows()
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    fitted = LogisticRegression().fit(X, labels)
    two = labels < 2
    tuned = OrtSGDClassifier(FrozenEstimator(fitted), eta0=0.01, max_iter=2, tol=None)
    tuned.fit_batches(divided(X[two], labels[two]))
    np.testing.assert_array_equal(tuned.classes_, [0, 1, 2])


def test_validation_stopping_and_history_are_those_of_fit():
    X, y = rows(195)
    X_val, y_val = X[95:], y[95:]
    model = OrtSGDRegressor(
        MLPRegressor(hidden_layer_sizes=(4,)), early_stopping=True, eta0=0.05, shuffle=False,
        batch_size=SIZE, tol=1e-4, random_state=0,
    )  # fmt: skip
    fitted = clone(model).fit(X[:95], y[:95], X_val=X_val, y_val=y_val)
    ours = clone(model).fit_batches(divided(X[:95], y[:95]), X_val=X_val, y_val=y_val)
    identical(ours, fitted)
    assert ours.validation_scores_ == fitted.validation_scores_
    assert sorted(ours.history_) == sorted(fitted.history_)
    with pytest.raises(ValueError, match="early_stopping=True cannot hold out rows of batches"):
        clone(model).fit_batches(divided(X, y))


def test_a_checkpoint_resumes_to_the_last_bit(tmp_path):
    X, y = rows()
    path = tmp_path / "training.npz"
    model = OrtSGDRegressor(eta0=0.1, tol=None, random_state=0, optimizer="momentum")
    whole = clone(model).set_params(max_iter=6).fit_batches(divided(X, y))
    clone(model).set_params(max_iter=3, callbacks=[Checkpoint(path)]).fit_batches(divided(X, y))
    rest = (
        clone(model)
        .set_params(max_iter=6, callbacks=[Checkpoint(resume_from=path)])
        .fit_batches(divided(X, y))
    )
    identical(rest, whole)


def test_a_stream_goes_on_after_batches():
    X, y = rows()
    model = OrtSGDRegressor(eta0=0.1, max_iter=3, tol=None, random_state=0).fit_batches(
        divided(X, y)
    )
    model = pickle.loads(pickle.dumps(model))
    assert model.partial_fit(X, y).n_iter_ == 4
    assert model.t_ == 3 * 10 + 10


@pytest.mark.parametrize("is_pickled", [False, True])
def test_a_stream_keeps_the_size_of_the_batches(is_pickled):
    X, y = rows(400)
    model = OrtSGDRegressor(eta0=0.01, max_iter=3, tol=None, random_state=0).fit_batches(
        divided(X, y, size=50)
    )
    if is_pickled:
        model = pickle.loads(pickle.dumps(model))
    for parameters, n_updates in (
        ({}, 8),
        ({"tol": 0.1}, 8),
        ({"batch_size": 100}, 4),
        ({"batch_size": 40}, 10),
    ):
        before = model.t_
        assert model.set_params(**parameters).partial_fit(X, y).t_ - before == n_updates


def test_sparse_rows_and_frames():
    X, y = rows()
    model = OrtSGDRegressor(eta0=0.1, shuffle=False, batch_size=SIZE, max_iter=3, tol=None)
    sparse = scipy.sparse.csr_matrix(X)
    identical(clone(model).fit_batches(divided(sparse, y)), clone(model).fit(sparse, y))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    ours = clone(model).fit_batches(divided(frame, y))
    identical(ours, clone(model).fit(frame, y))
    assert ours.feature_names_in_.tolist() == ["a", "b", "c"]


def test_steps_that_need_no_fit_transform_each_batch():
    X, y = rows()
    scaler = StandardScaler().fit(X)
    model = OrtSGDRegressor(
        make_pipeline(FrozenEstimator(scaler), LinearRegression()), eta0=0.1, shuffle=False,
        batch_size=SIZE, max_iter=3, tol=None,
    )  # fmt: skip
    identical(clone(model).fit_batches(divided(X, y)), clone(model).fit(X, y))
    imputed = make_pipeline(FrozenEstimator(SimpleImputer().fit(X)), LinearRegression())
    missing = np.where(X < 1, np.nan, X)
    model = model.set_params(estimator=imputed)
    identical(clone(model).fit_batches(divided(missing, y)), clone(model).fit(missing, y))
    with pytest.raises(ValueError, match="fit_batches does not fit the step 'standardscaler'"):
        OrtSGDRegressor(make_pipeline(StandardScaler(), LinearRegression())).fit_batches(
            divided(X, y)
        )


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.7"),
    reason="scikit-learn 1.6 takes a pipeline that ends in a HashingVectorizer for unfitted",
)
def test_texts_in_batches():
    texts, labels = (
        np.array(["good", "bad", "very good", "very bad"] * 10, dtype=object),
        np.tile([1, 0], 20),
    )
    pipeline = make_pipeline(HashingVectorizer(n_features=2**8), LogisticRegression())
    model = OrtSGDClassifier(pipeline, eta0=0.5, max_iter=20, tol=None)
    with pytest.warns(UserWarning, match="will have no ONNX"):
        model.fit_batches(divided(texts, labels))
    assert model.score(texts, labels) == 1


def test_rows_that_stand_for_all_are_few(monkeypatch):
    X, y = rows(400)
    monkeypatch.setattr(first_pass, "_MANY_VALUES", 60)
    first = first_pass.FirstPass.over(divided(X, y), has_labels=False)
    np.testing.assert_array_equal(first.X, X[::32])
    np.testing.assert_array_equal(first.y, y[::32])
    assert sum(first.sizes) == 400
    # Also of batches that have none of these rows, of sparse rows, and of frames.
    frame = pytest.importorskip("pandas").DataFrame(X)
    wide = scipy.sparse.csr_matrix((y, np.arange(400), np.arange(401)), (400, 1000))
    first = first_pass.FirstPass.over(divided(wide, y), has_labels=False)
    np.testing.assert_array_equal(first.X.toarray(), wide[::8].toarray())
    for given in (X, scipy.sparse.csr_matrix(X), frame):
        first = first_pass.FirstPass.over(divided(given, y, size=3), has_labels=False)
        kept = first.X.toarray() if scipy.sparse.issparse(first.X) else np.asarray(first.X)
        np.testing.assert_array_equal(kept, X[::32])
        np.testing.assert_array_equal(first.y, y[::32])
    model = OrtSGDRegressor(LinearRegression(), eta0="auto", tol=1e-4, max_iter=200).fit_batches(
        divided(X, y)
    )
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, atol=0.02)


class Batches:
    """A re-iterable that gives another list at every pass."""

    def __init__(self, *passes):
        self._passes = iter(passes)

    def __iter__(self):
        return iter(next(self._passes))


X, y = rows(40)
GOOD = divided(X, y)
BAD = [
    (iter(GOOD), "batches is an iterator, which gives its batches only once"),
    (lambda: None, "batches: the function returned None, which cannot be iterated over"),
    (3, "batches must be something to iterate over, got int"),
    ([], "batches is empty"),
    (X, r"batch 0 is a ndarray, and not \(X, y\) or"),
    ([*GOOD, (X,)], "batch 4 is a tuple of 1"),
    ([(1, 2)], r"batch 0: X has the shape \(\), but y has \(\)"),
    ([*GOOD, (X, y[:5])], r"batch 4: X has the shape \(40, 3\), but y has \(5,\)"),
    ([*GOOD, (X[:, :2], y)], r"batch 4: X has the shape \(40, 2\), the first one \(10, 3\)"),
    ([*GOOD, (np.full((10, 3), np.nan), y[:10])], "batch 4: Input X contains NaN"),
    ([*GOOD, (X[:10], np.full(10, np.inf))], "batch 4: Input y contains infinity"),
    ([(X, y, np.full(40, np.nan))], "batch 0: Input sample_weight contains NaN"),
    (
        [(X, {"price": y})],
        "y is a dict of the outputs price: give loss as a dict by the same names",
    ),
    ([*GOOD, (X, {"price": y})], "batch 4 has X, y of price, and the first one X, y"),
    ([(X, {"price": np.full(40, np.nan)})], "batch 0: Input y of price contains NaN"),
    ([*GOOD, (X, y, np.ones(40))], "batch 4: either all batches have a sample_weight, or none"),
    (
        Batches(GOOD, GOOD, GOOD[1:], GOOD),
        "batches gave 30 rows of positive sample weight in an epoch, and 40 when",
    ),
    (Batches(GOOD, GOOD, [*GOOD, GOOD[0]], GOOD), "batches gave 50 rows"),
    (
        Batches(GOOD, [*GOOD[1:], (np.full((10, 3), np.nan), y[:10])]),
        "batch 3: Input X contains NaN",
    ),
    (
        Batches(GOOD, [(X[:, :2], y)]),
        "batch 0: X has 2 features, but OrtSGDRegressor is expecting 3",
    ),
    (Batches(GOOD, [(X, np.c_[y, y])]), "batch 0: y has 2 outputs, but the model has 1"),
]


@pytest.mark.parametrize("batches, message", BAD, ids=[message[:30] for _, message in BAD])
def test_bad_batches_are_named_and_the_estimator_stays(batches, message):
    model = OrtSGDRegressor(eta0=0.1, max_iter=3, tol=None).fit(X, y)
    before = pickle.dumps(model.weights_)
    with pytest.raises(ValueError, match=message):
        model.fit_batches(batches)
    assert pickle.dumps(model.weights_) == before


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    "inside, X_bad, y_bad, told",
    [
        (None, np.full((10, 3), "a", object), y[:10], "X has text in columns 0, 1, 2"),
        (None, np.full((10, 3), 1e300), y[:10], "Input X contains infinity or a value too large"),
        (None, X[:10], np.full(10, 1e300), "y contains values too large for dtype='float32'"),
        (PoissonRegressor(), X[:10], -np.abs(y[:10]), 'loss="poisson" needs y >= 0'),
        (
            make_pipeline(FrozenEstimator(StandardScaler().fit(X)), LinearRegression()),
            np.full((10, 3), "a", object),
            y[:10],
            "X has text in column 0, such as 'a', and a step of the pipeline",
        ),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_an_error_of_values_names_the_batch_also_if_it_is_the_first(
    inside, X_bad, y_bad, told, number
):
    batches = [(X, np.abs(y)), (X, np.abs(y))]
    batches[number] = (X_bad, y_bad)
    with pytest.raises(ValueError, match=rf"^batches: batch {number}: {re.escape(told)}"):
        OrtSGDRegressor(inside).fit_batches(batches)


def test_errors_of_all_batches_name_no_single_one():
    labels = np.zeros(40, int)
    told = r"^batches: The number of classes has to be greater than one; got 1 class, \[0\]\."
    with pytest.raises(ValueError, match=told):
        OrtSGDClassifier().fit_batches([(X, labels), (X, labels)])
    weights = np.ones(40)
    with pytest.raises(
        ValueError, match=r"^batches: batch 1: Negative values in data passed to `sa"
    ):
        OrtSGDRegressor().fit_batches([(X, y, weights), (X, y, -weights)])


def test_an_error_of_the_users_own_is_theirs():
    def failing():
        yield GOOD[0]
        raise OSError("no such file")

    with pytest.raises(OSError, match="no such file"):
        OrtSGDRegressor().fit_batches(failing)


def test_a_training_that_diverges_or_does_not_end_says_so():
    with pytest.raises(ValueError, match="Training diverged"):
        OrtSGDRegressor(standardize=False, eta0=100.0, tol=None).fit_batches(GOOD)
    with pytest.warns(ConvergenceWarning, match="Maximum number of epochs"):
        OrtSGDRegressor(
            eta0=1e-6, learning_rate="constant", tol=0, n_iter_no_change=math.inf, max_iter=2
        ).fit_batches(GOOD)


def test_tensors_of_a_data_loader():
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(y))
    loader = torch.utils.data.DataLoader(data, batch_size=SIZE)
    model = OrtSGDRegressor(eta0=0.1, shuffle=False, batch_size=SIZE, max_iter=3, tol=None)
    identical(clone(model).fit_batches(loader), clone(model).fit(X, y))


def counted(X, y):
    """Return a function of batches, and a list that grows by one for each that is read."""
    read = []

    def batches():
        for batch in divided(X, y):
            read.append(len(batch[0]))
            yield batch

    return batches, read


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"optimizer": "lbfgs"}, 'optimizer="lbfgs" reads all rows'),
        ({"solver": "session", "dtype": "float64"}, "trains in float32 only"),
        ({"callbacks": [3]}, "3 is not a callback"),
        ({"estimator": RandomForestRegressor()}, "cannot be trained"),
        ({"estimator": LogisticRegression()}, "is not a regressor"),
        ({"estimator": Ridge(alpha=-1)}, "'alpha' parameter of Ridge"),
    ],
    ids=["optimizer", "dtype", "callbacks", "forest", "kind", "alpha"],
)
def test_an_error_of_a_parameter_reads_no_batch(parameters, told):
    batches, read = counted(*rows())
    with pytest.raises(ValueError, match=told):
        OrtSGDRegressor(**parameters).fit_batches(batches)
    assert read == []


def test_an_error_of_trainable_reads_each_batch_once():
    batches, read = counted(*rows())
    told = r"^trainable=\['zz'\] matches no weight\. The weights are \['coef', 'intercept'\]\.$"
    with pytest.raises(ValueError, match=told):
        OrtSGDRegressor(trainable=["zz"]).fit_batches(batches)
    assert sum(read) == 95 and len(read) == 10


def test_a_dict_of_one_array_is_no_batch():
    with pytest.raises(ValueError, match=r"is a dict, and not \(X, y\) or .*weight\)\.$"):
        OrtSGDRegressor().fit_batches([{"X": np.ones((3, 1))}])
