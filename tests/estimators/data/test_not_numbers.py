"""Errors for text in X, and for what is no target in y."""

import fractions
import pathlib
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.networks import TabularNetwork

SIZES = np.linspace(-1, 1, 20)
FRAME = pd.DataFrame(
    {"size": SIZES, "city": ["Rome", "Oslo"] * 10, "kind": ["a"] * 10 + ["b"] * 10}
)
IN_ROME = (FRAME["city"] == "Rome").to_numpy()
NETWORK = MLPRegressor(hidden_layer_sizes=(3,))
TEXTS = ["a warm city", "a cold city"] * 10
SENTENCES = [f"{text} {i}{i}" for i, text in enumerate(TEXTS)]


def product(n_features):
    """Return an ONNX model with n_features columns."""
    node = make_node("MatMul", ["X", "W"], ["score"])
    columns = [
        make_tensor_value_info(name, 1, [None, n]) for name, n in (("X", n_features), ("score", 1))
    ]
    graph = make_graph(
        [node],
        "product",
        columns[:1],
        columns[1:],
        [from_array(np.ones((n_features, 1), "f"), "W")],
    )
    return make_model(graph, opset_imports=[make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    "model, X, beginning",
    [
        (
            OrtSGDRegressor(),
            FRAME,
            "X has text in columns 'city', 'kind', such as 'Rome', but the model takes numbers.",
        ),
        (
            OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(3,))),
            FRAME[["size", "city"]],
            "X has text in column 'city', such as 'Rome',",
        ),
        (OrtSGDClassifier(), FRAME.to_numpy(), "X has text in columns 1, 2, such as 'Rome',"),
        (
            OrtSGDClassifier(),
            FRAME.astype({"city": "category", "kind": "category"}),
            "X has text in columns 'city', ",
        ),
        (
            OrtSGDRegressor(),
            FRAME[["size", "city"]].to_numpy().tolist(),
            "X has text in column 1, such as 'Rome',",
        ),
        (
            OrtSGDRegressor(product(3)),
            FRAME[["size", "city"]],
            "X has text in column 'city', such as 'Rome',",
        ),
        (OrtSGDClassifier(), TEXTS, "X has text, such as 'a warm city', but the model takes"),
        (
            OrtSGDClassifier(),
            FRAME.assign(note=SENTENCES),
            "X has text in columns 'city', 'kind', ",
        ),
        (
            OrtSGDClassifier(),
            FRAME.assign(note=SENTENCES).to_numpy(),
            "X has text in columns 1, 2, 3",
        ),
    ],
    ids=[
        "frame",
        "network",
        "objects",
        "categories",
        "list",
        "onnx",
        "texts",
        "sentences",
        "sentences as objects",
    ],
)
def test_the_lines_that_an_error_for_text_shows_work(model, X, beginning):
    model.set_params(optimizer="sgd", max_iter=60, tol=None, random_state=0)
    y = IN_ROME if isinstance(model, OrtSGDClassifier) else SIZES + IN_ROME
    with pytest.raises(ValueError) as raised:
        model.fit(X, y)
    first, *lines = str(raised.value).split("\n    ")
    assert first.startswith(beginning) and len(lines) == 3
    names = {"X": X, "y": y, "model": model}
    exec("\n".join(lines), globals() | names, names)
    assert names["model"].score(X, y) > 0.9


@pytest.mark.parametrize(
    "values, encoder",
    [
        (SENTENCES, r"\[\(\"words 1\", TfidfVectorizer\(\), 'note'\)\]"),
        (TEXTS, r"OneHotEncoder\(.*\), \['note'\]"),
        ([text.replace(" ", "-") for text in SENTENCES], r"OneHotEncoder\(.*\), \['note'\]"),
        ([*SENTENCES[:-1], None], r"OneHotEncoder\(.*\), \['note'\]"),
    ],
    ids=["sentences", "few", "words", "nineteen"],
)
def test_different_sentences_are_no_categories(values, encoder):
    with pytest.raises(ValueError, match=encoder):
        OrtSGDClassifier().fit(pd.DataFrame({"note": values}), IN_ROME)


def test_a_step_that_refuses_text_is_told_from_one_that_takes_it():
    encode = ColumnTransformer(
        [("city", OneHotEncoder(), ["city"]), ("rest", StandardScaler(), ["size", "kind"])]
    )
    with pytest.raises(
        ValueError,
        match="X has text in column 'kind', such as 'a', and a step of the pipeline inside",
    ):
        OrtSGDRegressor(make_pipeline(encode, LinearRegression())).fit(FRAME, SIZES)
    vectors = make_pipeline(TfidfVectorizer(), StandardScaler(), LogisticRegression())
    with pytest.raises(ValueError, match="Cannot center sparse matrices"):
        OrtSGDClassifier(vectors).fit(TEXTS, IN_ROME)


def test_text_is_named_in_predictions_and_batches_too():
    model = OrtSGDRegressor(random_state=0).partial_fit(FRAME[["size"]], SIZES)
    texts = FRAME[["city"]].rename(columns={"city": "size"})
    message = "X has text in column 'size', such as 'Rome', but the model takes numbers. Encode X"
    with pytest.raises(ValueError, match=message):
        model.predict(texts)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(texts, SIZES)
    with pytest.raises(ValueError, match="X has text in column 'city', such as 'Rome'"):
        OrtSGDRegressor().fit_batches([(FRAME[["size", "city"]], SIZES)])


def test_a_list_of_texts_is_named_by_its_first_one():
    model = OrtSGDClassifier(random_state=0).fit(TfidfVectorizer().fit_transform(TEXTS), IN_ROME)
    message = f"X has text, such as {TEXTS[0]!r}, but the model takes numbers. Encode X in the same"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        model.predict(TEXTS)


MIXED = ["a", 1] * 10
WITH_NONE = [1.0] * 7 + [None] + [2.0] * 12
NO_LABEL = "each row needs a label"


@pytest.mark.parametrize(
    "form", [list, lambda y: np.array(y, object), lambda y: pd.Series(y, dtype=object)]
)
@pytest.mark.parametrize(
    "estimator_class, y, message",
    [
        (
            OrtSGDRegressor,
            WITH_NONE,
            "y has None in row 7: each row needs a number. Leave out rows without one.",
        ),
        (
            OrtSGDRegressor,
            MIXED,
            "y has 'a' in row 0: a regressor takes numbers. OrtSGDClassifier takes labels.",
        ),
        (OrtSGDRegressor, [0, {}] * 10, "y has {} in row 1: a regressor takes numbers."),
        (OrtSGDClassifier, ["a"] * 7 + [None] + ["b"] * 12, f"y has None in row 7: {NO_LABEL}"),
        (OrtSGDClassifier, WITH_NONE, f"y has None in row 7: {NO_LABEL}"),
        (OrtSGDClassifier, ["a"] * 19 + [np.nan], f"y has nan in row 19: {NO_LABEL}"),
        (
            OrtSGDClassifier,
            [*MIXED[1:], "a"],
            "y has 1 in row 0: Unknown label type int, and other labels are text. Make all",
        ),
    ],
)
def test_what_is_no_target_is_named_with_its_row(estimator_class, y, message, form):
    if estimator_class is OrtSGDClassifier and form is list and np.nan in y:
        message = "y has nan in row 19"
    X = SIZES[:, None]
    options = {} if estimator_class is OrtSGDRegressor else {"classes": ["a", "b"]}
    for fit in (
        lambda: estimator_class().fit(X, form(y)),
        lambda: estimator_class().partial_fit(X, form(y), **options),
        lambda: estimator_class().fit_batches([(X, form(y))]),
    ):
        with pytest.raises(ValueError) as raised:
            fit()
        assert message in str(raised.value)


def test_numbers_as_objects():
    X, y = SIZES[:, None], 2 * SIZES
    expected = OrtSGDRegressor(random_state=0).fit(X, y).coef_
    for given in (y.astype(object), [str(value) for value in y], pd.Series(y, dtype="Float64")):
        np.testing.assert_array_equal(OrtSGDRegressor(random_state=0).fit(X, given).coef_, expected)
    with pytest.raises(
        ValueError, match="y has 1 in row 0: Unknown label type int, and y is an array of objects"
    ):
        OrtSGDClassifier().fit(X, np.array([1, 2] * 10, object))


def test_the_parts_of_y_and_validation_targets_have_their_names():
    X = SIZES[:, None]
    with pytest.raises(ValueError, match=r"y_val has None in row 7"):
        OrtSGDRegressor().fit(X, SIZES, X_val=X, y_val=WITH_NONE)
    with pytest.raises(ValueError, match=r"y has 'a' in row 1: "):
        OrtSGDRegressor().fit(X, np.array([[1, 2], [3, "a"]] * 10, object))
    with pytest.raises(ValueError, match=r"y\['score'\] has None in row 7"):
        OrtSGDRegressor(product(1), loss={"score": "squared_error"}).fit(X, {"score": WITH_NONE})


DAYS = pd.date_range("2024-01-01", periods=20)
DATES = pd.DataFrame(
    {"size": SIZES, "day": DAYS, "took": DAYS - DAYS[0], "zone": DAYS.tz_localize("UTC")}
)
OF_DATES = "but the model takes numbers. Convert them to numbers before, such as the days since the first one"


@pytest.mark.parametrize(
    ("X", "place"),
    [
        (DATES, " in columns 'day', 'took', 'zone'"),
        (DATES[["size", "day"]], " in column 'day'"),
        (DATES[["zone"]], " in column 'zone'"),
        (DATES[["size"]].assign(day=DAYS.date), " in column 'day'"),
        (DATES[["day"]].to_numpy(), ""),
    ],
)
def test_dates_are_no_numbers(X, place):
    message = f"^X has dates or times{place}, {OF_DATES}"
    with pytest.raises(ValueError, match=message):
        OrtSGDRegressor().fit(X, SIZES)
    with pytest.raises(ValueError, match=message):
        OrtSGDRegressor().partial_fit(X, SIZES)
    fitted = OrtSGDRegressor().fit(SIZES[:, None].repeat(X.shape[1], axis=1), SIZES)
    with pytest.raises(ValueError, match=message), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has feature names")
        fitted.predict(X)


def test_a_scaler_refuses_a_duration_by_its_column():
    scaled = make_column_transformer((StandardScaler(), ["size", "took"]))
    model = OrtSGDRegressor(make_pipeline(scaled, LinearRegression()))
    with pytest.raises(
        ValueError, match=r"^X has dates or times in column.* 'took'.* takes numbers"
    ):
        model.fit(DATES[["size", "took"]], SIZES)


@pytest.mark.parametrize(
    "steps",
    [
        FunctionTransformer(),
        StandardScaler(),
        SimpleImputer(),
        ColumnTransformer([("number", StandardScaler(), ["size"])], remainder="passthrough"),
        ColumnTransformer([("all", StandardScaler(), ["day", "size"])]),
        ColumnTransformer([("all", "passthrough", ["day", "size"])]).set_output(transform="pandas"),
    ],
    ids=["same", "scaler", "imputer", "remainder", "scaled columns", "frame"],
)
def test_dates_in_a_pipeline_are_named_by_their_columns(steps):
    dates = DATES[["size", "day"]]
    message = r"X has dates or times in column 'day', .* takes numbers\. Convert them to numbers"
    model = OrtSGDRegressor(make_pipeline(steps, LinearRegression()), random_state=0)
    with pytest.raises(ValueError, match=f"^{message}"):
        model.fit(dates, SIZES)

    days = dates.assign(day=(dates["day"] - DAYS[0]).dt.days)
    model.fit(days, SIZES)
    assert model.score(days, SIZES) > 0.999
    with pytest.raises(ValueError, match=f"^{message}"):
        model.predict(dates)
    with pytest.raises(ValueError, match=f"^X_val: {message}"):
        model.fit(days, SIZES, X_val=dates, y_val=SIZES)


@pytest.mark.parametrize("step", [SimpleImputer(), StandardScaler()], ids=str)
def test_a_step_makes_no_nanoseconds_of_a_table_of_dates(step):
    message = (
        r"^X has dates or times in column 'day', and a step of .* takes numbers\. Convert them"
    )
    model = OrtSGDRegressor(make_pipeline(step, LinearRegression()))
    with pytest.raises(ValueError, match=message):
        model.fit(DATES[["day"]], SIZES)
    frozen = FrozenEstimator(step.fit(DATES[["day"]]))
    with pytest.raises(ValueError, match=message):
        OrtSGDRegressor(make_pipeline(frozen, LinearRegression())).partial_fit(
            DATES[["day"]], SIZES
        )


COLUMN_OF_DATES = " in column 'day'"


@pytest.mark.parametrize(
    ("X", "place"),
    [
        (DATES[["took"]].rename(columns={"took": "day"}), COLUMN_OF_DATES),
        (DATES[["took"]].rename(columns={"took": "day"}).astype("timedelta64[s]"), COLUMN_OF_DATES),
        (DATES[["day"]], COLUMN_OF_DATES),
        (DATES[["took"]].to_numpy(), ""),
        (DATES[["day"]].to_numpy(), ""),
    ],
    ids=["durations", "in seconds", "dates", "array of durations", "array of dates"],
)
@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        SimpleImputer(),
        ColumnTransformer([("fill", SimpleImputer(), [0])], remainder="passthrough"),
    ],
    ids=["scaler", "imputer", "columns"],
)
def test_no_step_takes_dates_or_durations_for_numbers_in_any_method(step, X, place):
    message = f"^X has dates or times{place}, and a step of the pipeline inside takes numbers"
    days = X.assign(day=SIZES) if hasattr(X, "columns") else SIZES[:, None]
    with pytest.raises(ValueError, match=message):
        OrtSGDRegressor(make_pipeline(step, LinearRegression())).fit(X, SIZES)
    fitted = OrtSGDRegressor(make_pipeline(step, LinearRegression())).fit(days, SIZES)
    with pytest.raises(ValueError, match=message):
        fitted.predict(X)
    assert fitted.score(days, SIZES) > 0.999
    frozen = FrozenEstimator(clone(step).fit(days))
    stream = OrtSGDRegressor(make_pipeline(frozen, LinearRegression()))
    with pytest.raises(ValueError, match=message):
        stream.partial_fit(X, SIZES)
    stream.partial_fit(days, SIZES)
    with pytest.raises(ValueError, match=message):
        stream.partial_fit(X, SIZES)


def test_a_step_may_make_numbers_of_durations():
    in_days = FunctionTransformer(lambda X: X.assign(day=X["day"].dt.days))
    X = DATES[["took"]].rename(columns={"took": "day"})
    model = OrtSGDRegressor(make_pipeline(in_days, StandardScaler(), LinearRegression()))
    with pytest.warns(UserWarning, match="cannot be part of an ONNX model"):
        model.fit(X, SIZES)
    assert model.score(X, SIZES) == pytest.approx(1)


def test_dates_in_a_list_or_an_array_of_objects_are_named():
    rows = DATES[["size", "day"]].to_numpy()
    for X in (rows, rows.tolist()):
        for model in (None, make_pipeline(StandardScaler(), LinearRegression())):
            with pytest.raises(ValueError, match=r"^X has dates or times in column 1, "):
                OrtSGDRegressor(model).fit(X, SIZES)


def test_dates_that_are_text_are_read_before_they_are_numbers():
    read = re.escape("in column 'day': pandas.to_datetime(X['day']) reads them. Convert them to")
    texts = DATES[["size"]].assign(day=DAYS.strftime("%Y-%m-%d %H:%M"))
    for model in (None, make_pipeline(StandardScaler(), LinearRegression())):
        with pytest.raises(
            ValueError, match=f"^X has text in column 'day', .*There are dates {read}"
        ):
            OrtSGDRegressor(model).fit(texts, SIZES)
    days = (pd.to_datetime(texts["day"]) - DAYS[0]).dt.days
    assert OrtSGDRegressor().fit(texts.assign(day=days), SIZES).score(
        texts.assign(day=days), SIZES
    ) == pytest.approx(1)


def test_a_step_may_make_numbers_of_dates():
    days = FunctionTransformer(lambda X: (X["day"] - DAYS[0]).dt.days.to_frame())
    model = OrtSGDRegressor(make_pipeline(days, LinearRegression()), random_state=0)
    with pytest.warns(UserWarning, match="FunctionTransformer"):
        model.fit(DATES[["day"]], SIZES)
    assert model.score(DATES[["day"]], SIZES) > 0.999


def test_images_are_flattened():
    images = np.random.RandomState(0).normal(size=(30, 1, 2, 2))
    y = (images[:, 0, 0, 0] > 0).astype(int)
    advice = r"dim 4[.,] .* give X\.reshape\(len\(X\), -1\)"
    with pytest.raises(ValueError, match=advice):
        OrtSGDClassifier(random_state=0).fit(images, y)

    fitted = OrtSGDClassifier(random_state=0).fit(images.reshape(len(images), -1), y)
    with pytest.raises(ValueError, match=advice):
        fitted.predict(images)


FEW_TEXTS = TEXTS[:5]
LIKED = [1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    "X, advice",
    [
        (np.array(FEW_TEXTS)[:, None], r"X has two dimensions.*give X\[:, 0\]\. .*\(\), 0\)"),
        ([*TEXTS[:4], None], r"X has a value that is no text, NoneType.*Write a missing text"),
        (
            [*TEXTS[:4], 3],
            r"X has a value that is no text, int, .* X = \[str\(value\) for value in X\]",
        ),
        (
            [{"text": text} for text in FEW_TEXTS],
            r"X has dicts in place of .*pandas\.DataFrame\(X\)",
        ),
        ({"text": FEW_TEXTS}, r"^X is a dict, and no table: give pandas\.DataFrame\(X\)\.$"),
        ([*TEXTS[:4], np.nan], r"X has a value that is no text, NaN"),
    ],
)
def test_a_vectorizer_that_gets_no_text_names_the_cure(X, advice):
    model = OrtSGDClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression()), random_state=0)
    with pytest.raises(ValueError, match=advice):
        model.fit(X, LIKED)
    model.fit(FEW_TEXTS, LIKED)
    with pytest.raises(ValueError, match=advice):
        model.predict(X)


@pytest.mark.parametrize(
    "made, kind",
    [
        (lambda matrix: matrix, "a csr_matrix"),
        (lambda matrix: scipy.sparse.csc_array(matrix), "a csr_array"),
        (lambda matrix: matrix.toarray(), "an array"),
        (lambda matrix: matrix.toarray().tolist(), "an array"),
    ],
)
@pytest.mark.parametrize("lowercase", [True, False])
def test_texts_that_are_vectorized_already_are_told(made, kind, lowercase):
    vectorizer = CountVectorizer(lowercase=lowercase)
    matrix = vectorizer.fit_transform(FEW_TEXTS)
    message = re.escape(f"X is {kind} of numbers, of the shape {matrix.shape}, where a step takes")
    model = OrtSGDClassifier(make_pipeline(vectorizer, LogisticRegression()), random_state=0)
    with pytest.raises(ValueError, match=f"^{message}"):
        model.fit(made(matrix), LIKED)
    with pytest.raises(ValueError, match=f"^X_val: {message}"):
        model.fit(FEW_TEXTS, LIKED, X_val=made(matrix), y_val=LIKED)
    model.fit(FEW_TEXTS, LIKED)
    with pytest.raises(ValueError, match=f"^{message}"):
        model.predict(made(matrix))


@pytest.mark.parametrize("container", [list, tuple])
@pytest.mark.parametrize("in_frame", [False, True])
def test_words_in_place_of_a_text_are_joined_by_the_cure(container, in_frame):
    given = [text + " again" * i for i, text in enumerate(FEW_TEXTS)]
    words = [container(text.split()) for text in given]
    first = TfidfVectorizer()
    X, texts, cure = words, given, 'X = [" ".join(words) for words in X]'
    if in_frame:
        first = ColumnTransformer([("text", first, "note")])
        X, texts = (pd.DataFrame({"size": 1.0, "note": each}) for each in (words, given))
        cure = """X['note'] = X['note'].map(" ".join)"""

    model = OrtSGDClassifier(make_pipeline(first, LogisticRegression()), random_state=0)
    place = r" in column 'note'," if in_frame else ""
    message = rf"^X has a {container.__name__} of words in place of a text,{place} where .* Join"
    with pytest.raises(ValueError, match=message) as raised:
        model.fit(X, LIKED)
    assert str(raised.value).endswith(f"Join them: {cure}.")

    cured = {"X": X}
    exec(cure, cured)
    coef = model.fit(cured["X"], LIKED).coef_
    np.testing.assert_array_equal(coef, model.fit(texts, LIKED).coef_)


def test_an_iterator_of_rows_is_refused_and_not_read():
    rows = iter([[1.0], [2.0]])
    message = r"is an iterator \(list_iterator\), which gives its rows only once: give list\({}\)\."
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match="^X " + message.format("X") + " .* fit_batches"):
            getattr(OrtSGDRegressor(), method)(rows, [1.0, 2.0])
    with pytest.raises(ValueError, match="^y " + message.format("y") + "$"):
        OrtSGDRegressor().fit([[1.0], [2.0]], rows)
    model = OrtSGDRegressor().fit([[1.0], [2.0]], [1.0, 2.0], X_val=[[1.0]], y_val=[1.0])
    with pytest.raises(ValueError, match="^X_val " + message.format("X_val") + "$"):
        model.fit([[1.0], [2.0]], [1.0, 2.0], X_val=rows, y_val=[1.0])
    with pytest.raises(ValueError, match="^X " + message.format("X")):
        model.predict(rows)
    assert list(rows) == [[1.0], [2.0]]


@pytest.mark.parametrize("to_pandas", [False, True])
@pytest.mark.parametrize("model", [None, make_pipeline(StandardScaler(), LinearRegression())])
def test_a_lazy_table_names_the_method_that_reads_it(model, to_pandas):
    class LazyFrame:
        columns = property()
        collect = toPandas = lambda self: None

    if not to_pandas:
        del LazyFrame.toPandas
    X, y, lazy = [[1.0], [2.0]], [1.0, 2.0], LazyFrame()
    message = "{0} is a LazyFrame, whose rows are not in memory. Give {0}.%s()."
    message %= "toPandas" if to_pandas else "collect"
    estimator = OrtSGDRegressor(model).fit(X, y)
    for name, call in {
        "X": lambda: estimator.fit(lazy, y),
        "y": lambda: estimator.fit(X, lazy),
        "X_val": lambda: estimator.fit(X, y, X_val=lazy, y_val=y),
    }.items():
        with pytest.raises(TypeError, match=f"^{re.escape(message.format(name))}$"):
            call()
    with pytest.raises(TypeError, match=f"^{re.escape(message.format('X'))}$"):
        estimator.predict(lazy)


def test_a_vectorizer_that_reads_the_name_of_a_column_as_a_text_is_no_model():
    frame = pd.DataFrame({"notes": FEW_TEXTS})
    in_brackets = ColumnTransformer([("text", TfidfVectorizer(), ["notes"])])
    for first in (TfidfVectorizer(), in_brackets):
        model = OrtSGDClassifier(make_pipeline(first, LogisticRegression()))
        with pytest.raises(
            ValueError, match=r"than X has: 1, not 5\. .*X\['notes'\].*out brackets: .*, 'notes'\)"
        ):
            model.fit(frame, LIKED)

    # A name of one letter is no text, either.
    for first in (TfidfVectorizer(), ColumnTransformer([("text", TfidfVectorizer(), ["r"])])):
        model = OrtSGDClassifier(make_pipeline(first, LogisticRegression()))
        with pytest.raises(ValueError, match=r"^empty vocabulary.* without brackets"):
            model.fit(frame.rename(columns={"notes": "r"}), LIKED)


N_ROWS = 23
WORDS = ["good", "bad", "warm", "cold", "city", "bus", "red"]
NOTES = [" ".join(np.random.RandomState(i).choice(WORDS, 5)) for i in range(N_ROWS)]
MIXED_TABLE = pd.DataFrame(
    {
        "amount": np.linspace(-1, 1, N_ROWS),
        "channel": (["web", "shop"] * N_ROWS)[:N_ROWS],
        "note": NOTES,
    }
)
IS_LARGE = (MIXED_TABLE["amount"] > 0).to_numpy()


def of_mixed_table(number=None, category=None, note=None):
    """Return a classifier of a mixed table, with a transformer and its columns in place of one."""
    encode = ColumnTransformer(
        [
            ("number", *(number or (StandardScaler(), ["amount"]))),
            ("category", *(category or (OneHotEncoder(handle_unknown="ignore"), ["channel"]))),
            ("note", *(note or (TfidfVectorizer(), "note"))),
        ]
    )
    return OrtSGDClassifier(make_pipeline(encode, LogisticRegression()), random_state=0)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_text_is_named_by_its_column_and_its_cure_works(missing):
    X = MIXED_TABLE.copy()
    X["note"] = [*NOTES[:4], missing, *NOTES[5:]]
    cure = """X['note'] = X['note'].fillna("")"""
    with pytest.raises(
        ValueError, match=r"that is no text, \w+, in column 'note', where a"
    ) as raised:
        of_mixed_table().fit(X, IS_LARGE)
    assert str(raised.value).endswith(f"Write a missing text as the empty text: {cure}.")
    exec(cure, {"X": X})
    assert of_mixed_table().fit(X, IS_LARGE).score(X, IS_LARGE) > 0.9


def test_a_missing_category_stays_where_a_missing_text_is_cured():
    X = MIXED_TABLE.copy()
    X.loc[3, ["channel", "note"]] = np.nan
    X = X.astype({"channel": "category", "note": "category"})
    cure = """X['note'] = X['note'].astype(object).fillna("")"""
    with pytest.raises(ValueError, match="in column 'note', .*" + re.escape(cure)):
        of_mixed_table().fit(X, IS_LARGE)
    exec(cure, {"X": X})
    assert X["channel"].isna().sum() == 1
    assert of_mixed_table().fit(X, IS_LARGE).score(X, IS_LARGE) > 0.9


def test_a_number_among_texts_is_no_missing_text():
    X = MIXED_TABLE.assign(note=[*NOTES[:-1], 7])
    with pytest.raises(
        ValueError,
        match=r"no text, int, in column 'note', .* text: X\['note'\] = X\['note'\]\.astype\(str\)\.$",
    ):
        of_mixed_table().fit(X, IS_LARGE)
    X["note"] = X["note"].astype(str)
    of_mixed_table().fit(X, IS_LARGE)


def test_a_missing_number_in_a_mixed_table_is_filled_in_its_own_columns():
    X = MIXED_TABLE.copy()
    X.loc[3, ["amount", "channel"]] = np.nan
    message = (
        "Input X contains NaN in column 'amount'. No step before the model fills them: put "
        "make_pipeline(SimpleImputer(), transformer) in place of the transformer of these columns. "
        "partial_fit and fit_batches take fitted steps: FrozenEstimator(steps.fit(X))."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        of_mixed_table().fit(X, IS_LARGE)

    filled = make_pipeline(SimpleImputer(), StandardScaler())
    model = of_mixed_table(number=(filled, ["amount"])).fit(X, IS_LARGE)
    assert model.score(X, IS_LARGE) > 0.9
    steps = FrozenEstimator(model.estimator[0].fit(X))
    OrtSGDClassifier(make_pipeline(steps, LogisticRegression())).partial_fit(
        X, IS_LARGE, classes=[0, 1]
    )

    of_numbers = make_pipeline(StandardScaler(), LogisticRegression())
    with pytest.raises(
        ValueError, match=r"in column 'amount'\. .*begin the pipeline with SimpleImp"
    ):
        OrtSGDClassifier(of_numbers).fit(X[["amount"]], IS_LARGE)


LEFT_BY_ENCODER = (
    "Input X contains NaN in column 'channel'. OrdinalEncoder leaves them: take "
    "OrdinalEncoder(encoded_missing_value=-1), or put "
    'SimpleImputer(strategy="most_frequent") before it. '
    "partial_fit and fit_batches take fitted steps: FrozenEstimator(steps.fit(X))."
)


def of_channels(category, number=None, model=None, first=()):
    """Return a classifier with transformers of the text columns, and of the number column."""
    number = number or make_pipeline(SimpleImputer(), StandardScaler())
    encode = make_column_transformer((category, ["channel", "Code"]), (number, ["amount"]))
    inside = make_pipeline(*first, encode, model or LogisticRegression())
    return OrtSGDClassifier(inside, random_state=0)


def channels():
    """Return MIXED_TABLE with a second text column, and with a missing text and a missing number."""
    X = MIXED_TABLE.assign(Code=(["x", "y", "z"] * N_ROWS)[:N_ROWS])
    X.loc[3, "channel"] = np.nan
    X.loc[5, "amount"] = np.nan
    return X


@pytest.mark.parametrize("model", [LogisticRegression(), TabularNetwork((33,))], ids=type)
@pytest.mark.parametrize(
    "category", [OrdinalEncoder(), make_pipeline(OrdinalEncoder())], ids=["encoder", "pipeline"]
)
def test_a_missing_category_that_an_encoder_leaves_is_named_and_its_cures_work(category, model):
    X = channels()
    with pytest.raises(ValueError, match=f"^{re.escape(LEFT_BY_ENCODER)}$"):
        of_channels(category, model=model).fit(X, IS_LARGE)

    cures = (
        OrdinalEncoder(encoded_missing_value=-1),
        make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder()),
    )
    for cure in cures:
        cured = of_channels(cure, model=model).fit(X, IS_LARGE)
        assert cured.score(X, IS_LARGE) > 0.8
        steps = FrozenEstimator(cured.estimator[0].fit(X))
        OrtSGDClassifier(make_pipeline(steps, model)).partial_fit(X, IS_LARGE, classes=[0, 1])


def test_nan_of_an_encoder_behind_another_step_or_in_a_frozen_one_are_named():
    X = channels()
    same = FunctionTransformer(lambda rows: rows.copy())
    for first in (["passthrough"], [same]):
        with pytest.raises(ValueError, match=re.escape(LEFT_BY_ENCODER)):
            of_channels(OrdinalEncoder(), first=first).fit(X, IS_LARGE)

    frozen = FrozenEstimator(of_channels(OrdinalEncoder()).estimator[:-1].fit(X))
    with pytest.raises(ValueError, match=re.escape(LEFT_BY_ENCODER)):
        OrtSGDClassifier(make_pipeline(frozen, LogisticRegression())).fit(X, IS_LARGE)

    alone = make_pipeline(OrdinalEncoder(), LogisticRegression())
    with pytest.raises(ValueError, match=re.escape(LEFT_BY_ENCODER)):
        OrtSGDClassifier(alone).fit(X[["channel", "Code"]], IS_LARGE)


@pytest.mark.filterwarnings("ignore:The fitted model will have no ONNX")
@pytest.mark.parametrize("is_alone", [False, True])
def test_none_that_an_imputer_leaves_has_its_cure(is_alone):
    """To scikit-learn, None is not NaN."""
    X = pd.DataFrame({"amount": np.arange(60.0), "member": [True, True, False, None] * 15})
    large = X["amount"] > 30

    def estimator(**missing):
        imputer = SimpleImputer(strategy="most_frequent", **missing)
        columns = make_column_transformer((imputer, ["member"]), remainder="passthrough")
        steps = imputer if is_alone else columns
        return OrtSGDClassifier(make_pipeline(steps, LogisticRegression()))

    told = (
        "Input X contains None in column 'member'. SimpleImputer fills NaN, and leaves None: take "
        "SimpleImputer(missing_values=None, ...), or write NaN in place of None, as X.fillna(numpy.nan) "
        "does. "
        "partial_fit and fit_batches take fitted steps: FrozenEstimator(steps.fit(X))."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(told)}$"):
        estimator().fit(X, large)
    assert estimator(missing_values=None).fit(X, large).score(X, large) > 0.9
    filled = X.fillna(np.nan)
    assert estimator().fit(filled, large).score(filled, large) > 0.9


@pytest.mark.filterwarnings("ignore:The fitted model will have no ONNX")
@pytest.mark.parametrize("in_one_column", [True, False])
def test_none_beside_nan_has_only_the_cure_that_fills_both(in_one_column):
    amount = np.arange(60.0)
    large = amount > 30
    nan = np.nan if in_one_column else False
    X = pd.DataFrame({"amount": amount, "member": [True, True, True, False, nan, None] * 10})
    if not in_one_column:
        X.loc[3, "amount"] = np.nan
    told = (
        "Input X contains None in {}. SimpleImputer fills NaN, and leaves None: {}. "
        "partial_fit and fit_batches take fitted steps: FrozenEstimator(steps.fit(X))."
    )

    imputer = SimpleImputer(strategy="most_frequent")
    model = OrtSGDClassifier(make_pipeline(imputer, LogisticRegression()))
    of_frame = told.format(
        "column 'member'", "write NaN in place of None, as X.fillna(numpy.nan) does"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(of_frame)}$"):
        model.fit(X, large)
    filled = X.fillna(np.nan)
    assert model.fit(filled, large).score(filled, large) > 0.9

    rows = X.to_numpy(object)
    of_rows = told.format("column 1", "write NaN in place of None")
    with pytest.raises(ValueError, match=f"^{re.escape(of_rows)}$"):
        model.fit(rows, large)
    rows[[value is None for value in rows[:, 1]], 1] = np.nan
    assert model.fit(rows, large).score(rows, large) > 0.9


def test_nan_that_an_imputer_leaves_is_not_called_none():
    X = pd.DataFrame({"amount": np.where(np.arange(60) % 7, np.arange(60.0), np.nan)})
    columns = make_column_transformer((SimpleImputer(missing_values=-1.0), ["amount"]))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        OrtSGDClassifier(make_pipeline(columns, LogisticRegression())).fit(X, np.arange(60) > 30)


def test_nan_of_an_encoder_and_of_numbers_have_a_cure_each():
    both = (
        "Input X contains NaN in column 'amount'. No step before the model fills them: put "
        "make_pipeline(SimpleImputer(), transformer) in place of the transformer of these columns. "
    )
    with pytest.raises(ValueError, match=f"^{re.escape(both + LEFT_BY_ENCODER)}$"):
        of_channels(OrdinalEncoder(), StandardScaler()).fit(channels(), IS_LARGE)


def test_nan_that_a_transformer_makes_are_not_those_of_another_column():
    X = channels().fillna({"amount": 1.0})
    lose = FunctionTransformer(lambda rows: rows.where(rows > 0))
    encoder = OneHotEncoder(handle_unknown="ignore")
    with pytest.raises(
        ValueError, match=r"NaN\. FunctionTransformer made it of column 'amount'\.$"
    ):
        of_channels(encoder, lose).fit(X, IS_LARGE)

    no_columns = make_pipeline(lose, LogisticRegression())
    with pytest.raises(ValueError, match=r"NaN\. A step before the model made it: X itself has no"):
        OrtSGDClassifier(no_columns).fit(X[["amount"]], IS_LARGE)


@pytest.mark.parametrize("columns", [["note"], ["channel", "note"]])
@pytest.mark.parametrize("threshold", [0.0, 1.0], ids=["dense", "sparse"])
def test_a_vectorizer_in_brackets_beside_other_transformers_names_the_cure(columns, threshold):
    model = of_mixed_table(note=(TfidfVectorizer(), columns))
    model.set_params(estimator__columntransformer__sparse_threshold=threshold)
    with pytest.raises(
        ValueError, match=r"another number of rows .*brackets: \(TfidfVectorizer\(\), 'note'\)"
    ):
        model.fit(MIXED_TABLE, IS_LARGE)
    cured = of_mixed_table().fit(MIXED_TABLE, IS_LARGE)
    assert cured.score(MIXED_TABLE, IS_LARGE) > 0.9


def test_a_vectorizer_in_brackets_is_told_its_own_column():
    X = MIXED_TABLE.assign(code=[f"code {i}" for i in range(len(MIXED_TABLE))])
    with pytest.raises(ValueError, match=r"give X\['note'\]\. .*\(TfidfVectorizer\(\), 'note'\)"):
        of_mixed_table(note=(TfidfVectorizer(), ["note"])).fit(X, IS_LARGE)


def test_a_step_that_loses_rows_of_numbers_keeps_its_error():
    lose = ColumnTransformer(
        [("some", FunctionTransformer(lambda X: X[:5]), [0]), ("all", StandardScaler(), [0])]
    )
    with pytest.raises(ValueError, match=r"^all the input array dimensions"):
        OrtSGDRegressor(make_pipeline(lose, LinearRegression())).fit(SIZES[:, None], SIZES)


def one_hot(columns=("city",)):
    encode = ColumnTransformer([("text", OneHotEncoder(), list(columns))], remainder="passthrough")
    return make_pipeline(encode, LinearRegression())


@pytest.mark.parametrize(
    "cities, kinds, cure",
    [
        (pd.array(["Rome", pd.NA] * 10, "string"), "NAType, str", "X['city'].fillna(\"\")"),
        (["Rome", 7] * 10, "int, str", "X['city'].astype(str)"),
    ],
    ids=["NA", "numbers"],
)
def test_a_column_of_several_types_is_named_with_the_cure(cities, kinds, cure):
    X = FRAME[["size"]].assign(city=cities)
    message = re.escape(f"X has values of several types in column 'city', {kinds}, and an encoder")
    with pytest.raises(ValueError, match=f"^{message}.*{re.escape(cure)}"):
        OrtSGDRegressor(one_hot()).fit(X, SIZES)
    cured = X["city"].fillna("") if "NA" in kinds else X["city"].astype(str)
    assert OrtSGDRegressor(one_hot()).fit(X.assign(city=cured), SIZES).score(
        X.assign(city=cured), SIZES
    ) == pytest.approx(1)

    # Without names of columns.
    numbered = make_pipeline(OneHotEncoder(), LinearRegression())
    if "int" in kinds:
        with pytest.raises(
            ValueError, match=r"several types in column 1, int, str, .*as X\.astype\(str"
        ):
            OrtSGDRegressor(numbered).fit(X.to_numpy(), SIZES)


def test_a_column_that_an_imputer_fills_with_text_is_named_with_the_cure():
    code = np.where(np.arange(20) % 4 == 0, np.nan, np.arange(20) % 3)
    X = FRAME[["size", "city"]].assign(code=code, flag=np.arange(20) % 2 == 0)
    X.loc[3, "size"] = np.nan
    categories = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="none"),
        OneHotEncoder(handle_unknown="ignore"),
    )
    columns = ColumnTransformer(
        [
            ("text", categories, ["code", "city"]),
            ("number", SimpleImputer(), ["size"]),
            ("flag", "passthrough", ["flag"]),
        ]
    )
    model = OrtSGDRegressor(make_pipeline(columns, LinearRegression()))
    cure = "X['code'] = X['code'].astype(str).str.removesuffix(\".0\")"
    message = re.escape(
        "X has values of several types in column 'code', float, str, and an encoder takes one type. "
        f"Make all of them text: {cure}."
    )
    with pytest.raises(ValueError, match=f"^{message}$"):
        model.fit(X, SIZES)
    X["code"] = X["code"].astype(str).str.removesuffix(".0")
    assert model.fit(X, SIZES).score(X, SIZES) > 0.9
    # Rows without a missing value have ints.
    ints = pd.Series(np.arange(20) % 3).astype(str)
    assert {*ints} <= {*X["code"]}


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "1.25.0",
    reason="it compares no array that has pandas.NA, as SimpleImputer does",
)
def test_text_beside_a_column_with_na_is_named_before_it():
    flag = pd.array([True, None] * 10, "boolean")
    X = FRAME[["size"]].assign(a=["True", "False"] * 10, flag=flag)

    def model():
        columns = ColumnTransformer(
            [
                ("fill", SimpleImputer(strategy="most_frequent"), ["a", "flag"]),
                ("number", StandardScaler(), ["size"]),
            ]
        )
        return OrtSGDRegressor(make_pipeline(columns, LinearRegression()))

    with pytest.raises(ValueError, match=r"^X has text in column 'a', such as 'True', and a step"):
        model().fit(X, SIZES)
    X["a"] = X["a"] == "True"
    assert model().fit(X, SIZES).score(X, SIZES) > 0.99


def test_a_new_category_is_named_by_its_column_with_the_cure():
    X = FRAME[["size", "city"]]
    new = X.assign(city=["Lima"] * 20)
    model = OrtSGDRegressor(one_hot()).fit(X, SIZES)
    with pytest.raises(
        ValueError, match=r"\['Lima'\] .*, column 'city' of X\. OneHotEncoder\(handle_"
    ):
        model.predict(new)
    frozen = make_pipeline(FrozenEstimator(one_hot()[0].fit(X)), LinearRegression())
    with pytest.raises(ValueError, match=r"column 'city' of X\. OneHotEncoder\(handle_unknown"):
        OrtSGDRegressor(frozen).partial_fit(new, SIZES)


def test_the_cure_for_text_in_a_stream_is_a_fitted_encoder():
    with pytest.raises(
        ValueError, match=r"partial_fit takes encode fitted: FrozenEstimator\(encode"
    ):
        OrtSGDRegressor().partial_fit(FRAME, SIZES)
    encode = ColumnTransformer(
        [("text", OneHotEncoder(handle_unknown="ignore"), ["city", "kind"])],
        remainder="passthrough",
    )
    fitted = FrozenEstimator(encode.fit(FRAME))
    stream = OrtSGDRegressor(make_pipeline(fitted, LinearRegression())).partial_fit(FRAME, SIZES)
    assert stream.n_features_in_ == 3


@pytest.mark.parametrize(
    "X, message",
    [
        (None, r"X is None: give the rows\."),
        (
            "rows.csv",
            r"X is 'rows\.csv', and no table\. .* read the file: pandas\.read_csv\(path\)\.",
        ),
        (pathlib.Path("rows.csv"), r"X is 'rows\.csv', and no table\."),
        ({"size": [1.0, 2.0]}, r"X is a dict, and no table: give pandas\.DataFrame\(X\)\."),
        ([{"size": 1.0}, {"size": 2.0}], r"X is a list of dicts, .*give pandas\.DataFrame\(X\)\."),
    ],
)
def test_what_is_no_table_is_named_with_the_cure(X, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        OrtSGDRegressor().fit(X, [1.0, 2.0])
    with pytest.raises(ValueError, match=f"^{message}"):
        OrtSGDRegressor().fit([[1.0], [2.0]], [1.0, 2.0]).predict(X)


@pytest.mark.parametrize("price", ["1,5", "1.000,50", "10 %", "$ 7", "-3,25", "1 000"])
def test_numbers_in_another_form_are_no_categories(price):
    prices = pd.DataFrame({"size": SIZES, "price": [price] * 20})
    message = (
        r"There seem to be numbers in column 'price': make them float before\. pandas\.read_csv"
    )
    for model in (None, make_pipeline(StandardScaler(), LinearRegression())):
        with pytest.raises(ValueError, match=message):
            OrtSGDRegressor(model).fit(prices, SIZES)


def test_a_word_with_a_number_is_a_category():
    rooms = pd.DataFrame({"rooms": ["3 rooms", "4 rooms"] * 10})
    with pytest.raises(ValueError, match="OneHotEncoder"):
        OrtSGDRegressor().fit(rooms, SIZES)


@pytest.mark.parametrize("form", [scipy.sparse.dok_matrix, scipy.sparse.dok_array])
def test_a_sparse_matrix_of_keys_is_a_table(form):
    X = np.column_stack([SIZES, SIZES**2])
    given = OrtSGDRegressor(optimizer="sgd", random_state=0).fit(form(X), SIZES)
    rows = OrtSGDRegressor(optimizer="sgd", random_state=0).fit(scipy.sparse.csr_matrix(X), SIZES)
    np.testing.assert_array_equal(given.coef_, rows.coef_)
    np.testing.assert_array_equal(given.predict(form(X)), rows.predict(X))


@pytest.mark.parametrize(
    "values, error_type, cure",
    [
        (
            pd.cut(SIZES, 3),
            TypeError,
            "not '.*Interval'. X has such values in column 'v': encode them",
        ),
        (
            [fractions.Fraction] * 20,
            TypeError,
            "not 'ABCMeta'. X has such values in column 'v': enc",
        ),
        ([[1.0, 2.0]] * 20, ValueError, r"column 'v': make .*pandas.DataFrame\(X\['v'\].tolist"),
        ([np.ones(2)] * 20, ValueError, r"column 'v': make .*pandas.DataFrame\(X\['v'\].tolist"),
    ],
    ids=["intervals", "classes", "lists", "arrays"],
)
def test_values_that_are_no_numbers_are_named_by_their_column(values, error_type, cure):
    X = pd.DataFrame({"size": SIZES}).assign(v=list(values))
    for model in (None, make_pipeline(StandardScaler(), LinearRegression())):
        with pytest.raises(error_type, match=cure):
            OrtSGDRegressor(model).fit(X, SIZES)
    fitted = OrtSGDRegressor().fit(X.assign(v=0.0), SIZES)
    with pytest.raises(error_type, match=cure):
        fitted.predict(X)


def test_a_column_of_vectors_becomes_columns():
    vectors = pd.DataFrame({"v": [[size, size**2] for size in SIZES]})
    columns = pd.DataFrame(vectors["v"].tolist())
    assert OrtSGDRegressor().fit(columns, SIZES).score(columns, SIZES) == pytest.approx(1)


ROWS = np.column_stack([SIZES, SIZES**2, np.cos(SIZES)])
TABLE = pd.DataFrame(ROWS, columns=["a", "b", "c"])
LARGE = ROWS * [1, 1e200, 1]
SCIKIT_LEARN = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
TWICE = pd.DataFrame(ROWS, columns=["a", "a", "b"])


@pytest.mark.parametrize(
    "X, told",
    [
        (LARGE, 'in column 1. Use dtype="float64", or divide the column by a constant.'),
        (TABLE.assign(c=1e200), "in column 'c'. Use dtype=\"float64\", or divide the column by"),
        (TABLE.assign(c=np.inf), "in column 'c'. Leave out these rows, or write NaN and fill it."),
        (
            TABLE.assign(a=1j),
            "Complex data not supported in column 'a' of X. Give the real and the",
        ),
        (ROWS + 1j, "Complex data not supported in columns 0, 1, 2 of X. Give the real and"),
        (
            TABLE.assign(b=b"x"),
            "X has bytes in column 'b'. Make them text, X['b'] = [value.decode()",
        ),
        (SIZES, "Expected 2D array, got 1D array instead. Reshape your data either using"),
        pytest.param(
            TWICE,
            "X has several columns of one name: column 'a'. Rename them.",
            marks=pytest.mark.skipif(
                SCIKIT_LEARN < (1, 9), reason="this scikit-learn takes several columns of one name"
            ),
        ),
        (np.ma.masked_greater(ROWS, 0.5), "X has masked values. Give X.filled(numpy.nan), with an"),
        (TABLE.to_records(index=False), "X is a structured array, and no matrix: give pandas.Data"),
        (
            np.array(TABLE.to_records(index=False)),
            "X is a structured array, and no matrix: give pandas.Data",
        ),
        (
            TABLE.assign(a=pd.Series([1.0] * 19 + [pd.Timestamp(2020, 1, 1)], dtype=object)),
            "X has dates or times in column 'a', but the model takes numbers. Convert them",
        ),
        (
            TABLE.assign(a=[{"x": 1}] * 20),
            "make a column of each of their values, pandas.DataFrame(X['a'].tolist()).",
        ),
    ],
    ids=range(13),
)
def test_what_is_no_table_of_numbers_is_named_with_a_cure(X, told):
    with pytest.raises((ValueError, TypeError)) as raised:
        OrtSGDRegressor().fit(X, SIZES)
    assert told in str(raised.value) and len(str(raised.value)) < 300


MASKED = np.arange(20) % 5 == 0
WITH_MASK = {
    "y": "y has masked values, and each row needs a number. Leave out rows without one: known = "
    "~numpy.ma.getmaskarray(y), then X[known] and y[known].",
    "y of two columns": "getmaskarray(y).any(axis=1), then X[known] and y[known].",
    "labels": "y has masked values, and each row needs a label. Leave out rows without one: known = ",
    "y_val": "known = ~numpy.ma.getmaskarray(y_val), then X_val[known] and y_val[known].",
    "sample_weight": "sample_weight has masked values. With sample_weight.filled(0), these rows do ",
}


@pytest.mark.parametrize(
    ("place", "method"),
    [
        (place, method)
        for place in WITH_MASK
        for method in ("fit", "partial_fit", "fit_batches")
        if (place, method) != ("y_val", "partial_fit")
    ],
)
def test_masked_targets_and_weights_are_refused_with_the_cure(place, method):
    y, weights, options = np.array(SIZES), np.ones(20), {}
    if place == "labels":
        y = y > np.median(y)
    if place == "y_val":
        options = {"X_val": ROWS, "y_val": np.ma.array(y, mask=MASKED)}
    elif place == "sample_weight":
        weights = np.ma.array(weights, mask=MASKED)
    elif place == "y of two columns":
        y = np.ma.array(np.column_stack([y, y]), mask=np.column_stack([MASKED, MASKED]))
    else:
        y = np.ma.array(y, mask=MASKED)

    model = OrtSGDClassifier() if place == "labels" else OrtSGDRegressor()
    if method == "partial_fit" and place == "labels":
        options = {"classes": [False, True]}
    with pytest.raises(ValueError, match=re.escape(WITH_MASK[place])):
        if method == "fit_batches":
            model.fit_batches([(ROWS, y, weights)], **options)
        else:
            getattr(model, method)(ROWS, y, sample_weight=weights, **options)


def test_masked_arrays_without_masked_values_and_the_cures_train():
    y, weights = np.ma.array(SIZES, mask=MASKED), np.ma.array(np.ones(20), mask=MASKED)
    known = ~np.ma.getmaskarray(y)
    model = OrtSGDRegressor(random_state=0, dtype="float64")
    usual = model.fit(ROWS[known], y.data[known]).coef_
    np.testing.assert_array_equal(model.fit(ROWS[known], y[known]).coef_, usual)
    without = model.fit(ROWS, y.data, sample_weight=weights.filled(0)).coef_
    np.testing.assert_allclose(without, usual, rtol=1e-6)


def test_a_column_may_have_the_name_of_an_attribute_of_numpy():
    X = TABLE.set_axis(["_mask", "dtype", "mask"], axis=1)
    model, usual = (OrtSGDRegressor(random_state=0, max_iter=5) for _ in range(2))
    assert np.array_equal(model.fit(X, SIZES).coef_, usual.fit(TABLE, SIZES).coef_)


def test_one_row_of_a_table_is_told_to_be_no_table():
    table = FRAME[["size", "city"]].fillna({"size": 1.0})
    model = OrtSGDRegressor(one_hot()).fit(table, SIZES)
    told = r"is a table as table\.iloc\[\[i\]\], .* X\.to_frame\(\)\.T\.$"
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(ValueError, match=told),
    ):
        model.predict(table.iloc[3])
    expected = model.predict(table)[3:4]
    np.testing.assert_allclose(model.predict(table.iloc[[3]]), expected, rtol=1e-5)
    np.testing.assert_allclose(model.predict(table.iloc[3].to_frame().T), expected, rtol=1e-5)
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(ValueError, match=r"^X is a list of dicts, and no table: give pandas\."),
    ):
        model.predict(table.to_dict("records"))


def test_x_and_y_in_the_place_of_each_other_are_told():
    with pytest.raises(
        ValueError, match=r"2D array, got 1D .* y has two: are they in each other's place\?$"
    ):
        OrtSGDRegressor().fit(SIZES, ROWS)


def test_rows_of_several_lengths_are_named():
    told = r"^X has rows of several lengths: row 0 has 2 values, and row 3 has 1\. A table needs"
    with pytest.raises(ValueError, match=told):
        OrtSGDRegressor().fit([[1.0, 2.0]] * 3 + [[3.0]], [0.0, 1.0, 2.0, 3.0])


def test_lists_of_as_many_words_are_joined_by_the_cure():
    words = [text.split()[:2] for text in FEW_TEXTS]
    model = OrtSGDClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression()), random_state=0)
    with pytest.raises(ValueError, match=r'X = \[" "\.join\(words\) for words in X\]\.$'):
        model.fit(words, LIKED)


def test_infinity_before_a_step_names_the_column():
    inside = make_pipeline(StandardScaler(), LinearRegression())
    told = (
        r"^Input X contains infinity .* in column 'c'\. Leave out these rows, or write NaN and fill"
    )
    with pytest.raises(ValueError, match=told):
        OrtSGDRegressor(inside).fit(TABLE.assign(c=np.inf), SIZES)


def test_columns_by_their_names_after_a_step_that_gives_none_are_told():
    named = make_column_transformer((StandardScaler(), ["a"]))
    told = (
        r"^A step of the pipeline inside takes columns by their names, and the step before it gives "
        r'none: call set_output\(transform="pandas"\) on the step before'
    )
    with pytest.raises(ValueError, match=told):
        OrtSGDRegressor(make_pipeline(StandardScaler(), named, LinearRegression())).fit(
            TABLE, SIZES
        )


def test_columns_of_one_name_are_refused_before_steps_too():
    pytest.importorskip("sklearn", "1.9")
    inside = make_pipeline(StandardScaler(), LinearRegression())
    told = r"^X has several columns of one name: column 'a'\. Rename them\.$"
    with pytest.raises(ValueError, match=told):
        OrtSGDRegressor(inside).fit(TWICE, SIZES)
    model = OrtSGDRegressor(inside, random_state=0).fit(TABLE, SIZES)
    with pytest.raises(ValueError, match=told):
        model.predict(TWICE)


def test_bools_that_an_imputer_refuses_are_named():
    X = TABLE.assign(b=SIZES > 0, c=SIZES > 0.5)
    imputed = make_column_transformer((SimpleImputer(strategy="most_frequent"), ["b"]))
    told = (
        r"^SimpleImputer takes no bools: columns 'b', 'c'\. .*: X\['b'\] = X\['b'\]\.astype\(float"
    )
    with pytest.raises(ValueError, match=told):
        OrtSGDRegressor(make_pipeline(imputed, LinearRegression())).fit(X, SIZES)


@pytest.mark.parametrize("has_steps", [False, True])
@pytest.mark.parametrize(
    "y, told",
    [
        (
            np.where(SIZES > 0.8, np.nan, SIZES),
            r"Input y contains NaN in row 18 and 1 more\. Leave out",
        ),
        (
            np.where(SIZES > 0.9, np.inf, SIZES),
            r"dtype\('float64'\) in row 19\. Leave out rows without",
        ),
        (SIZES[:7], r"numbers of samples: \[20, 7\]: X has 20 rows, and y has 7\.$"),
        (
            SIZES + 1j,
            r"^Complex data not supported in y\. Give its real and imaginary parts as two",
        ),
        (1e300 * SIZES, r"dtype='float32'\. Use dtype=\"float64\", or divide y by a constant\.$"),
    ],
    ids=range(5),
)
def test_an_error_of_y_names_the_row_and_the_cure(y, told, has_steps):
    inside = make_pipeline(StandardScaler(), LinearRegression()) if has_steps else None
    with pytest.raises(ValueError, match=told):
        OrtSGDRegressor(inside).fit(ROWS, y)


def test_durations_are_no_sample_weights():
    weights = pd.to_timedelta(np.ones(20), unit="D")
    with pytest.raises(
        ValueError, match=r"sample_weight must have a number for each row, got values"
    ):
        OrtSGDRegressor().fit(ROWS, SIZES, sample_weight=weights)


@pytest.mark.parametrize(
    "columns, X, told",
    [
        ([7], TABLE, "by a number that its rows do not have: X has 3 columns, 0 to 2."),
        (["a"], ROWS, "takes columns by their names, and X has no names: give a DataFrame."),
        ([], TABLE, "The steps before the model leave no column of X."),
    ],
    ids=["number", "name", "none"],
)
def test_columns_of_a_transformer_that_x_lacks_are_told(columns, X, told):
    steps = make_column_transformer((StandardScaler(), columns))
    with pytest.raises(ValueError, match=f"{re.escape(told)}$"):
        OrtSGDRegressor(make_pipeline(steps, LinearRegression())).fit(X, SIZES)


def test_a_number_of_a_column_that_the_step_before_does_not_leave_is_told():
    steps = (
        make_column_transformer((StandardScaler(), [0, 1])),
        make_column_transformer(("drop", [2])),
    )
    told = "its rows do not have: the step before leaves 2 columns, 0 to 1."
    with pytest.raises(ValueError, match=f"{re.escape(told)}$"):
        OrtSGDRegressor(make_pipeline(*steps, LinearRegression())).fit(TABLE, SIZES)


def test_a_pipeline_without_a_model_and_a_model_of_other_outputs_say_what_to_do():
    told = r"Got 'passthrough'\. Put a model after the steps, such as LinearRegression\(\)\.$"
    with pytest.raises(ValueError, match=told):
        OrtSGDRegressor(make_pipeline(StandardScaler(), "passthrough")).fit(ROWS, SIZES)
    two = FrozenEstimator(LinearRegression().fit(ROWS, np.column_stack([SIZES, SIZES])))
    with pytest.raises(ValueError, match=r"LinearRegression does not have: it has 2\.$"):
        OrtSGDRegressor(two).fit(ROWS, SIZES)


@pytest.mark.parametrize("scaler", [None, StandardScaler()])
def test_a_category_beside_a_bool_is_named(scaler):
    X = FRAME[["size"]].assign(
        town=pd.Series(["Lima", "Oslo"] * 10, dtype="category"), flag=[True, False] * 10
    )
    inside = scaler and make_pipeline(scaler, LinearRegression())
    with pytest.raises(ValueError, match=r"^X has text in column .town., such as .Lima.,"):
        OrtSGDRegressor(inside).fit(X, SIZES)


AGES = pd.DataFrame({"age": pd.Series([20, 30, pd.NA, 50] * 5, dtype=object)})


@pytest.mark.parametrize(
    "inside",
    [
        make_pipeline(SimpleImputer(), LogisticRegression()),
        make_pipeline(OneHotEncoder(), LogisticRegression()),
    ],
    ids=["imputer", "encoder"],
)
def test_na_among_numbers_has_the_cure_that_makes_numbers(inside):
    y = [0, 0, 1, 1] * 5
    with pytest.raises((TypeError, ValueError), match="in column 'age'") as raised:
        OrtSGDClassifier(inside).fit(AGES, y)
    assert str(raised.value).endswith("""X['age'] = X['age'].astype("Float64").""")
    assert (
        OrtSGDClassifier(inside).fit(AGES.astype("Float64"), y).score(AGES.astype("Float64"), y)
        == 1
    )


REVIEWS = pd.DataFrame({"text": ["good day", "bad day"] * 10, "age": [1.0, 2, np.nan, 4] * 5})


@pytest.fixture(scope="module")
def of_reviews():
    columns = make_column_transformer((TfidfVectorizer(), "text"), (SimpleImputer(), ["age"]))
    model = OrtSGDClassifier(make_pipeline(columns, LogisticRegression()))
    return model.fit(REVIEWS, ["good", "bad"] * 10)


def test_a_row_whose_text_is_missing_has_the_cure_for_its_column(of_reviews):
    row = pd.DataFrame({"text": [np.nan], "age": [np.nan]})
    cure = """X['text'] = X['text'].astype(object).fillna("")."""
    with pytest.raises(ValueError, match=re.escape(cure)):
        of_reviews.predict(row)
    row["text"] = row["text"].astype(object).fillna("")
    assert of_reviews.predict(row) in ("good", "bad")


def test_text_beside_documents_names_the_column_of_numbers(of_reviews):
    row = pd.DataFrame({"text": [""], "age": [""]}, dtype=object)
    message = "X has text in column 'age', such as '', .* as in the rows of the fit.$"
    with pytest.raises(ValueError, match=message):
        of_reviews.predict(row)


def test_a_text_among_numbers_is_read_as_missing():
    X = pd.DataFrame({"a": [1, 2, "n/a", 4] * 5, "b": SIZES})
    cure = re.escape("""pandas.to_numeric(X['a'], errors="coerce") makes NaN""")
    with pytest.raises(ValueError, match=f"X has text in column 'a', such as 'n/a', .* {cure}"):
        OrtSGDClassifier(make_pipeline(SimpleImputer(), LogisticRegression())).fit(X, SIZES > 0)


def test_records_are_no_table_for_steps_either():
    X = pd.DataFrame({"a": SIZES, "b": SIZES})
    records = X.to_dict("records")
    scale = make_column_transformer((StandardScaler(), ["a"]))
    model = OrtSGDClassifier(make_pipeline(scale, LogisticRegression()))
    message = re.escape("X is a list of dicts, and no table: give pandas.DataFrame(X).")
    with pytest.raises(ValueError, match=message):
        model.fit(records, SIZES > 0)
    model.fit(X, SIZES > 0)
    with warnings.catch_warnings():
        # scikit-learn warns that a list has no names.
        warnings.simplefilter("ignore", UserWarning)
        with pytest.raises(ValueError, match=message):
            model.predict(records)


def test_rows_of_y_of_several_lengths_are_named():
    with pytest.raises(
        ValueError, match=r"several lengths: 2 in row 0, and 1 in row 3\. Give each"
    ):
        OrtSGDRegressor().fit(np.ones((5, 2)), [[1, 2], [1, 2], [1, 2], [1], [1, 2]])


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value")
@pytest.mark.parametrize(
    "value, step", [(1e38, PolynomialFeatures(2)), (1e200, StandardScaler())], ids=["1e38", "1e200"]
)
def test_values_whose_squares_are_infinite_have_their_column_named(value, step):
    sizes = np.tile(SIZES, 3)
    X = pd.DataFrame({"a": sizes, "b": np.where(np.arange(60) == 3, value, sizes)})
    X = X.astype(np.float32) if value < 1e39 else X
    with pytest.raises(ValueError, match="Check column 'b' of X, whose squares are no float32"):
        OrtSGDClassifier(make_pipeline(step, LogisticRegression())).fit(X, sizes > 0)
