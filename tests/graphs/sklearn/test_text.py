"""Vectorizers of text as ONNX: the numbers of scikit-learn, on texts that they have seen and others."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

from skort.exceptions import NotExportableError
from skort.graphs.sklearn.conversion import to_onnx
from skort.graphs.sklearn.raw_inputs import RawInput, feeds, raw_inputs

TEXTS = [
    "The house of the rising sun, a house by the sea.",
    "Häuser am See und HÄUSER am Meer: Überall Häuser!",
    "A house is not a home; the house at no. 7 is.",
    "Дом на море. ДОМ, дом! Санкт-Петербург",
    "naïve café_9, NAÏVE Café\n\nthe  sea \t sun",
    "日本語 の テキスト, 日本語",
    "",
    "x y z . !",
]
NEW = ["the Rising SUN", "ÜBERALL ein Haus", "МОРЯ море", "  ", "café\u00a0\u00a0café", "nothing known"]

VECTORIZERS = {
    "counts": CountVectorizer(),
    "TF-IDF": TfidfVectorizer(),
    "capitals": CountVectorizer(lowercase=False),
    "0 or 1": CountVectorizer(binary=True),
    "one or two words": CountVectorizer(ngram_range=(1, 2)),
    "two or three words": CountVectorizer(ngram_range=(2, 3)),
    "no three words are frequent": CountVectorizer(ngram_range=(1, 3), max_features=5),
    "stop words": CountVectorizer(stop_words=["the", "häuser", "of"]),
    "stop words between two words": CountVectorizer(stop_words="english", ngram_range=(1, 2)),
    "a vocabulary": CountVectorizer(vocabulary=["sea", "House", "the", "häuser", "C++"]),
    "one letter": CountVectorizer(token_pattern=r"(?u)\b\w+\b"),
    "three letters": CountVectorizer(token_pattern=r"\b\w{3,}\b"),
    "ASCII": CountVectorizer(token_pattern=r"(?u)\b[a-z]{2,}\b"),
    "words with points": CountVectorizer(token_pattern=r"[\w.]+"),
    "digits": CountVectorizer(token_pattern=r"\d"),
    "between spaces": CountVectorizer(token_pattern=r"\S+"),
    "characters": CountVectorizer(analyzer="char"),
    "several characters": CountVectorizer(analyzer="char", ngram_range=(2, 3)),
    "characters and capitals": CountVectorizer(analyzer="char", ngram_range=(1, 2), lowercase=False),
    "characters of words": CountVectorizer(analyzer="char_wb", ngram_range=(2, 4)),
    "many characters of words": CountVectorizer(analyzer="char_wb", ngram_range=(5, 5)),
    "few characters of words": CountVectorizer(analyzer="char_wb", ngram_range=(2, 3), max_features=5, lowercase=False),
    "logarithms of counts": TfidfVectorizer(sublinear_tf=True),
    "norm l1": TfidfVectorizer(norm="l1", ngram_range=(1, 2)),
    "no norm": TfidfVectorizer(norm=None, smooth_idf=False),
    "no IDF": TfidfVectorizer(use_idf=False, binary=True),
    "transformer": make_pipeline(CountVectorizer(), TfidfTransformer(sublinear_tf=True)),
}


@pytest.mark.filterwarnings("ignore:Upper case characters found in vocabulary")
@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-6), ("float64", 1e-14)])
@pytest.mark.parametrize("name", VECTORIZERS)
def test_values_are_scikit_learns(name, dtype, rtol, run_onnx):
    vectorizer = VECTORIZERS[name].fit(TEXTS)
    inputs = raw_inputs(TEXTS)
    model = to_onnx(vectorizer, inputs, dtype)
    for texts in (TEXTS, NEW, [""], ["", ""], ["house"]):
        (values,) = run_onnx(model, **feeds(texts, inputs, dtype)).values()
        assert values.dtype == dtype
        np.testing.assert_allclose(values, vectorizer.transform(texts).toarray(), rtol=rtol)


def test_the_characters_of_long_words_take_no_more_memory_than_others(run_onnx):
    """Words as rows of a table, each as long as the longest, would have a billion characters here."""
    texts = ["word " * 10_000 + "x" * 100_000]
    vectorizer = CountVectorizer(analyzer="char_wb", ngram_range=(2, 3)).fit(texts)
    inputs = raw_inputs(texts)
    (values,) = run_onnx(to_onnx(vectorizer, inputs, "float32"), **feeds(texts, inputs, "float32")).values()
    np.testing.assert_array_equal(values, vectorizer.transform(texts).toarray())


def test_counts_of_a_matrix_are_weighted(rng, run_onnx):
    X = scipy.sparse.random(20, 6, density=0.4, random_state=0, format="csr")
    for transformer in (TfidfTransformer(), TfidfTransformer(sublinear_tf=True, norm="l1")):
        model = to_onnx(transformer.fit(X), (RawInput("X", False, 6),), "float64")
        (values,) = run_onnx(model, X=X.toarray()).values()
        np.testing.assert_allclose(values, transformer.transform(X).toarray(), rtol=1e-13)


@pytest.mark.parametrize(
    "vectorizer, reason",
    [
        (HashingVectorizer(), "HashingVectorizer: it keeps no vocabulary"),
        (TfidfVectorizer(analyzer="char_wb"), "written as ONNX for n-grams of two characters and more only"),
        (TfidfVectorizer(strip_accents="ascii"), "strip_accents='ascii': no ONNX operator removes accents"),
        (TfidfVectorizer(preprocessor=str.upper), "preprocessor is a Python function"),
        (TfidfVectorizer(tokenizer=str.split, token_pattern=None), "tokenizer is a Python function"),
        (TfidfVectorizer(analyzer=str.split), "analyzer is a Python function"),
        (TfidfVectorizer(token_pattern=r"(\w)\w+"), "has '('"),
        (TfidfVectorizer(token_pattern=r"[^,]+", ngram_range=(1, 2)), "words of n-grams cannot be told apart"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_vectorizer_without_onnx_gives_the_reason(vectorizer, reason):
    with pytest.raises(NotExportableError, match=reason.replace("(", r"\(")):
        to_onnx(vectorizer.fit(TEXTS), raw_inputs(TEXTS), "float32")


def test_files_and_dicts_are_no_input(tmp_path):
    path = tmp_path / "text"
    path.write_text("some words")
    with pytest.raises(NotExportableError, match="input='filename': an ONNX model takes the texts themselves"):
        to_onnx(CountVectorizer(input="filename").fit([path]), (RawInput("X", True, 1),), "float32")
    with pytest.raises(NotExportableError, match="DictVectorizer: it takes dicts"):
        to_onnx(DictVectorizer().fit([{"a": 1}]), (RawInput("X", True, 1),), "float32")


SERVE = """
import sys, onnxruntime
import numpy as np
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
texts = np.array([["\\u00c4RGER im Haus"], ["kein \\u00e4rger"]], dtype=object)
print(session.run(None, {"X": texts})[0].tolist())
"""


@pytest.mark.parametrize("variables", [{"LC_ALL": "C"}, {}, {"LANG": "xx_XX.UTF-8"}], ids=["C", "none", "unknown"])
def test_a_file_needs_no_locale(variables, tmp_path):
    vectorizer = CountVectorizer().fit(["ein Ärger", "im Haus", "kein"])
    path = tmp_path / "model.onnx"
    path.write_bytes(to_onnx(vectorizer, (RawInput("X", True, 1),), "float32").SerializeToString())
    run = subprocess.run(
        [sys.executable, "-c", SERVE, path], env=variables, capture_output=True, text=True, check=True, timeout=60
    )
    assert vectorizer.get_feature_names_out().tolist() == ["ein", "haus", "im", "kein", "ärger"]
    assert run.stdout.strip() == "[[0.0, 1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0, 1.0]]"
