"""Text and categories with many levels inside an estimator: what trains, and what becomes ONNX."""

import inspect
import os
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder
from sklearn.utils.fixes import parse_version

from skort import OrtSGDClassifier
from skort.exceptions import NotExportableError
from skort.graphs.sklearn.raw_inputs import feeds, raw_inputs
from skort.runtime.installed import load

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
HAS_NO_ONNX = "ignore:The fitted model will have no ONNX"


def documentation(module):
    """Return the docstrings of a module: a real text."""
    texts = (inspect.getdoc(getattr(module, name)) for name in dir(module))
    return [text[:800] for text in dict.fromkeys(texts) if text and len(text) > 100]


SOURCES = {"arrays": np, "matrices": scipy.sparse, "tables": pd}
TEXTS = [text for module in SOURCES.values() for text in documentation(module)[:120]]
LABELS = np.array([name for name, module in SOURCES.items() for _ in documentation(module)[:120]])
FRAME = pd.DataFrame(
    {
        "text": TEXTS,
        "first": [text.split()[0] for text in TEXTS],
        "length": [len(text) / 1000 for text in TEXTS],
    }
)
DICTS = [{word: text.count(word) for word in text.split()[:10]} for text in TEXTS]
FEW = {"max_features": 2**10}

# name -> (steps before the model, X); those in the second table have no ONNX.
WITH_ONNX = {
    "CountVectorizer": (CountVectorizer(**FEW), TEXTS),
    "TfidfVectorizer": (TfidfVectorizer(sublinear_tf=True, **FEW), TEXTS),
    "stop words and n-grams": (
        TfidfVectorizer(stop_words="english", ngram_range=(1, 2), **FEW),
        TEXTS,
    ),
    "characters": (TfidfVectorizer(analyzer="char", ngram_range=(1, 3), **FEW), TEXTS),
    "characters of words": (TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), **FEW), TEXTS),
    "TfidfTransformer": (make_pipeline(CountVectorizer(**FEW), TfidfTransformer()), TEXTS),
    "SelectKBest": (make_pipeline(TfidfVectorizer(), SelectKBest(chi2, k=200)), TEXTS),
    "TruncatedSVD": (
        make_pipeline(TfidfVectorizer(**FEW), TruncatedSVD(20, random_state=0)),
        TEXTS,
    ),
    "union": (make_union(CountVectorizer(**FEW), TfidfVectorizer(analyzer="char", **FEW)), TEXTS),
    "OneHotEncoder": (OneHotEncoder(handle_unknown="ignore"), FRAME[["first"]]),
    "ColumnTransformer": (
        make_column_transformer(
            (TfidfVectorizer(**FEW), "text"),
            (OneHotEncoder(handle_unknown="ignore"), ["first"]),
            (MaxAbsScaler(), ["length"]),
        ),
        FRAME,
    ),
}
WITHOUT_ONNX = {
    "HashingVectorizer": (
        HashingVectorizer(n_features=2**12),
        TEXTS,
        "hashingvectorizer",
        "keeps no vocabulary",
    ),
    "DictVectorizer": (DictVectorizer(), DICTS, "dictvectorizer", "takes dicts"),
    "hashed and weighted": (
        make_column_transformer(
            (make_pipeline(HashingVectorizer(n_features=2**12), TfidfTransformer()), "text")
        ),
        FRAME,
        "columntransformer",
        "HashingVectorizer: it keeps no vocabulary",
    ),
    "accents": (
        TfidfVectorizer(strip_accents="unicode", **FEW),
        TEXTS,
        "tfidfvectorizer",
        "removes accents",
    ),
    "tokenizer": (
        TfidfVectorizer(tokenizer=str.split, token_pattern=None, **FEW),
        TEXTS,
        "tfidfvectorizer",
        "tokenizer is a Python function",
    ),
}


OPTIONS = {"max_iter": 3, "tol": None, "eta0": 0.1, "random_state": 0}


def classifier(steps, model=None, **options):
    return OrtSGDClassifier(
        make_pipeline(clone(steps), model or LogisticRegression()), **{**OPTIONS, **options}
    )


def served(model, X, dtype="float32"):
    """Return the labels and the probabilities of an ONNX model."""
    session = load().InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["label", "probabilities"], feeds(X, raw_inputs(X), dtype))


def check_predictions(model, steps, X):
    """Check a model against one of the rows that scikit-learn transformed before."""
    rows = clone(steps).fit_transform(X, LABELS)
    outside = OrtSGDClassifier(LogisticRegression(), **OPTIONS).fit(rows, LABELS)
    np.testing.assert_allclose(model.predict_proba(X), outside.predict_proba(rows), atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), outside.predict(rows))
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X)
    )
    np.testing.assert_allclose(
        model.to_sklearn().predict_proba(X), model.predict_proba(X), atol=1e-5
    )


@pytest.mark.parametrize("name", WITH_ONNX)
def test_a_step_trains_and_is_in_the_file(name, tmp_path):
    steps, X = WITH_ONNX[name]
    model = classifier(steps).fit(X, LABELS)
    check_predictions(model, steps, X)
    model.save_onnx(tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == model.onnx_.SerializeToString()
    some = X[::4]
    for proto in (model.onnx_, model.to_onnx(target_opset=15), model.to_onnx(target_opset=19)):
        labels, probabilities = served(proto, some)
        np.testing.assert_allclose(probabilities, model.predict_proba(some), atol=1e-5)
        np.testing.assert_array_equal(labels, model.predict(some))


def skip_where_it_counts_as_unfitted(step):
    if isinstance(step, HashingVectorizer) and parse_version(sklearn.__version__) < parse_version(
        "1.7"
    ):
        pytest.skip(
            "scikit-learn 1.6 takes a pipeline that ends in a HashingVectorizer for unfitted"
        )


@pytest.mark.parametrize("name", WITHOUT_ONNX)
def test_a_step_without_onnx_trains_and_its_export_gives_the_reason(name, tmp_path):
    steps, X, step, reason = WITHOUT_ONNX[name]
    skip_where_it_counts_as_unfitted(steps)
    with pytest.warns(
        UserWarning, match=f"no ONNX: estimator: the step '{step}' cannot .*{reason}"
    ):
        model = classifier(steps).fit(X, LABELS)
    check_predictions(model, steps, X)
    exports = (lambda: model.onnx_, model.to_onnx, lambda: model.save_onnx(tmp_path / "model.onnx"))
    for export in exports:
        with pytest.raises(NotExportableError, match=f"the step '{step}' cannot .*{reason}"):
            export()
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "container",
    [
        *(tuple, iter, np.array, lambda texts: np.array(texts, dtype=object)),
        *(
            pd.Series,
            lambda texts: pd.Series(texts).array,
            lambda texts: [text.encode() for text in texts],
        ),
    ],
    ids=[
        "tuple",
        "iterator",
        "array of str",
        "array of objects",
        "Series",
        "array of pandas",
        "bytes",
    ],
)
def test_texts_come_in_any_container(container):
    expected = classifier(TfidfVectorizer(**FEW)).fit(TEXTS, LABELS)
    model = classifier(TfidfVectorizer(**FEW)).fit(container(TEXTS), LABELS)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(
        model.predict_proba(container(TEXTS[:9])), expected.predict_proba(TEXTS[:9])
    )
    np.testing.assert_allclose(served(model.onnx_, TEXTS)[1], model.predict_proba(TEXTS), atol=1e-5)


def test_rows_are_held_out_of_an_iterator_of_texts():
    models = [
        classifier(TfidfVectorizer(**FEW)).set_params(early_stopping=True).fit(texts, LABELS)
        for texts in (TEXTS, iter(TEXTS))
    ]
    np.testing.assert_array_equal(*(model.coef_ for model in models))


@pytest.mark.parametrize(
    "texts, message",
    [
        ("one text", "X is 'one text', and no rows: give a list of texts"),
        ([], "0 sample"),
        (["text", None], "a value that is no text, NoneType"),
    ],
    ids=["str", "no text", "None"],
)
def test_what_is_no_list_of_texts_is_refused(texts, message):
    model = classifier(TfidfVectorizer(**FEW)).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match=message):
        model.predict(texts)


@pytest.mark.filterwarnings(HAS_NO_ONNX)
def test_dicts_come_in_a_list_an_array_or_a_column():
    expected = classifier(DictVectorizer()).fit(DICTS, LABELS)
    for container in (tuple, np.array, pd.Series):
        model = classifier(DictVectorizer()).fit(container(DICTS), LABELS)
        np.testing.assert_array_equal(
            model.predict_proba(container(DICTS)), expected.predict_proba(DICTS)
        )
    column = make_column_transformer((DictVectorizer(), "words"))
    frame = pd.DataFrame({"words": DICTS})
    model = classifier(column).fit(frame, LABELS)
    np.testing.assert_array_equal(model.predict_proba(frame), expected.predict_proba(DICTS))


@pytest.mark.parametrize(
    "steps",
    [
        TfidfVectorizer(max_features=300),
        make_column_transformer((TfidfVectorizer(max_features=300), "text")),
    ],
)
def test_a_search_over_n_grams(steps):
    X, name = (
        (TEXTS, "tfidfvectorizer")
        if isinstance(steps, TfidfVectorizer)
        else (FRAME, "columntransformer")
    )
    path = name if X is TEXTS else f"{name}__tfidfvectorizer"
    grid = {
        f"estimator__{path}__ngram_range": [(1, 1), (1, 2)],
        f"estimator__{path}__lowercase": [True, False],
    }
    search = GridSearchCV(classifier(steps, eta0=1.0), grid, cv=2, error_score="raise").fit(
        X, LABELS
    )
    assert search.best_score_ > 0.6
    best = search.best_estimator_
    np.testing.assert_allclose(served(best.onnx_, X)[1], best.predict_proba(X), atol=1e-5)


def test_early_stopping_and_more_rows():
    early = classifier(TfidfVectorizer(**FEW), early_stopping=True)
    assert len(early.fit(TEXTS, LABELS).validation_scores_) == early.n_iter_
    given = early.fit(TEXTS, LABELS, X_val=TEXTS[:9], y_val=LABELS[:9])
    assert given.best_validation_score_ == pytest.approx(
        -log_loss(LABELS[:9], given.predict_proba(TEXTS[:9]), labels=given.classes_)
    )
    steps = {
        "shuffle": False,
        "average": False,
        "eta0": 0.5,
        "batch_size": 50,
        "n_total": len(TEXTS),
    }
    whole = classifier(TfidfVectorizer(**FEW), **steps).fit(TEXTS, LABELS)
    stream = classifier(FrozenEstimator(TfidfVectorizer(**FEW).fit(TEXTS)), **steps)
    for _ in range(OPTIONS["max_iter"]):
        stream.partial_fit(TEXTS, LABELS, classes=list(SOURCES))
    np.testing.assert_array_equal(stream.coef_, whole.coef_)


def test_the_idf_can_be_trained():
    pipeline = make_pipeline(CountVectorizer(**FEW), TfidfTransformer(), LogisticRegression())
    options, names = (
        {**OPTIONS, "optimizer": "sgd", "eta0": 1.0, "max_iter": 12},
        ["coef", "intercept"],
    )
    fixed = OrtSGDClassifier(pipeline, trainable=names, **options).fit(TEXTS, LABELS)
    model = OrtSGDClassifier(pipeline, trainable=[*names, "tfidftransformer/scale"], **options).fit(
        TEXTS, LABELS
    )
    idf = clone(pipeline[:-1]).fit(TEXTS)[-1].idf_
    np.testing.assert_allclose(fixed.weights_["tfidftransformer/scale"], idf, rtol=1e-6)
    assert np.abs(model.weights_["tfidftransformer/scale"] - idf).max() > 1e-3
    assert model.loss_curve_[-1] < model.loss_curve_[0]
    np.testing.assert_allclose(served(model.onnx_, TEXTS)[1], model.predict_proba(TEXTS), atol=1e-5)


def test_the_file_of_many_words_is_small():
    words = [f"word{i}" for i in range(2**14)]
    model = classifier(TfidfVectorizer(vocabulary=words), max_iter=1).fit(
        [*TEXTS[:8], " ".join(words)], [0, 1, 0] * 3
    )
    # A word takes its letters, an integer for its code and for its column, its IDF and its weight.
    assert model.coef_.size == 2**14
    assert len(model.onnx_.SerializeToString()) < 30 * 2**14


def test_a_network_in_float64_behind_text():
    model = classifier(TfidfVectorizer(**FEW), MLPClassifier((8,)), dtype="float64").fit(
        TEXTS, LABELS
    )
    np.testing.assert_allclose(
        served(model.onnx_, TEXTS, "float64")[1], model.predict_proba(TEXTS), atol=1e-13
    )


def with_one_more(text):
    """Return 400 texts, one of which is special, and their labels."""
    texts = ["boats and trains", "roads and trains"] * 200
    texts[123] = text
    return texts, ["sea", "land"] * 200


def test_a_text_whose_small_letters_onnx_takes_otherwise_is_found_and_named():
    texts, y = with_one_more("trains to über\u00c4rger")
    with pytest.warns(
        UserWarning,
        match=(
            r"the step 'tfidfvectorizer' gives .* of a feature \('überärger'\)\. .* the text "
            r"'trains to überÄrger': ONNX does not change 'Ä' \(U\+00C4\) to small .* "
            r"\(str\.lower\)\.$"
        ),
    ):
        model = classifier(TfidfVectorizer()).fit(texts, y)
    differences = np.abs(served(model.onnx_, texts)[1] - model.predict_proba(texts)).max(axis=1)
    assert np.flatnonzero(differences > 1e-6).tolist() == [123]


def test_one_text_in_place_of_rows_is_named_before_their_number():
    with pytest.raises(ValueError, match=r"^X is 'reviews\.csv', and no rows: .* read the file if"):
        classifier(TfidfVectorizer()).fit("reviews.csv", LABELS)


def test_a_word_of_old_german_capitals_is_found_in_the_file():
    texts, y = with_one_more("größer am See")
    model = classifier(TfidfVectorizer()).fit(texts, y)
    capitals = ["GRÖßER AM SEE", "Größer am See"]
    expected = model.predict_proba(capitals)
    np.testing.assert_array_equal(expected[0], expected[1])
    np.testing.assert_allclose(served(model.onnx_, capitals)[1], expected, atol=1e-6)


def test_a_letter_that_becomes_two_is_served_as_python_splits_it():
    # The small letter of this capital is two characters, one of which is no part of a word.
    texts, y = with_one_more("trains to \u0130zmir")
    model = classifier(TfidfVectorizer()).fit(texts, y)
    assert "zmir" in TfidfVectorizer().fit(texts).vocabulary_
    np.testing.assert_allclose(served(model.onnx_, texts)[1], model.predict_proba(texts), atol=1e-6)


FIT_AND_SERVE = """
import numpy as np, onnxruntime
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from skort import OrtSGDClassifier
texts = ["H\\u00e4user am See", "Boot im Wald", "der See", "das Boot",
"\\u00c4RGER am H\\u00c4USERMEER"] * 10
y = np.array(["house", "boat", "house", "boat", "house"] * 10)
model = OrtSGDClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression()),
random_state=0).fit(texts, y)
file = model.to_onnx().SerializeToString()
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
labels, probabilities = session.run(None, {"X": np.array(texts, dtype=object).reshape(-1, 1)})
np.testing.assert_allclose(probabilities, model.predict_proba(texts), atol=1e-6)
print((labels == y).mean())
"""


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {}], ids=["C", "none"])
def test_text_needs_no_locale(locale):
    variables = {
        name: value
        for name, value in os.environ.items()
        if name != "LANG" and not name.startswith("LC_")
    }
    run = subprocess.run(
        [sys.executable, "-c", FIT_AND_SERVE],
        env=variables | locale,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (run.stdout.strip(), run.stderr) == ("1.0", "")


def test_one_long_text_does_not_make_all_texts_long():
    texts = ["short text", "another one"] * 1000
    texts[-1] = "very long " * 10_000
    tracemalloc.start()
    try:
        classifier(CountVectorizer(), max_iter=1).fit(texts, ["a", "b"] * 1000).predict(texts)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # As an array of str they have 800 MB.
    assert peak < 20e6


@pytest.mark.filterwarnings(HAS_NO_ONNX)
@pytest.mark.parametrize("steps", [HashingVectorizer(n_features=2**17), MaxAbsScaler()])
def test_no_large_part_of_x_is_dense(steps):
    skip_where_it_counts_as_unfitted(steps)
    texts = [f"{text} {i}" for i, text in enumerate(TEXTS[:64])]
    X = (
        texts
        if isinstance(steps, HashingVectorizer)
        else HashingVectorizer(n_features=2**17).transform(texts)
    )
    y = np.arange(64) % 2
    # As batches and blocks are dense, they are small here.
    model = classifier(steps, batch_size=4, max_iter=1, early_stopping=True)
    tracemalloc.start()
    try:
        model.fit(X, y).predict_proba(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # X has 34 MB in float32 and 67 MB in float64; blocks have 1 to 2 MB.
    assert peak < 30e6
