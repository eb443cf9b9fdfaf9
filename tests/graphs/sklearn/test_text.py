"""
Vectorizers of text as ONNX: the numbers of scikit-learn,
on texts that they have seen and others.
"""

import re
import subprocess
import sys

import numpy as np
import onnx
import pytest
import scipy.sparse
from onnx import TensorProto, helper
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.pipeline import make_pipeline

from skort.common.onnx_text import IR_VERSION, OPSET
from skort.exceptions import NotExportableError
from skort.graphs.sklearn.conversion import to_onnx
from skort.graphs.sklearn.raw_inputs import RawInput, feeds, raw_inputs
from skort.graphs.sklearn.text import token_expression
from skort.runtime.installed import load

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
NEW = [
    "the Rising SUN",
    "ÜBERALL ein Haus",
    "МОРЯ море",
    "  ",
    "café\u00a0\u00a0café",
    "nothing known",
]

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
    "characters and capitals": CountVectorizer(
        analyzer="char", ngram_range=(1, 2), lowercase=False
    ),
    "characters of words": CountVectorizer(analyzer="char_wb", ngram_range=(2, 4)),
    "many characters of words": CountVectorizer(analyzer="char_wb", ngram_range=(5, 5)),
    "few characters of words": CountVectorizer(
        analyzer="char_wb", ngram_range=(2, 3), max_features=5, lowercase=False
    ),
    "logarithms of counts": TfidfVectorizer(sublinear_tf=True),
    "norm l1": TfidfVectorizer(norm="l1", ngram_range=(1, 2)),
    "no norm": TfidfVectorizer(norm=None, smooth_idf=False),
    "no IDF": TfidfVectorizer(use_idf=False, binary=True),
    "transformer": make_pipeline(CountVectorizer(), TfidfTransformer(sublinear_tf=True)),
}


DOTTED = ["DİRECT İzmir, Pİ İn1 İİ1ab dağİ", "Rİ ali İ 1İ2İ3 ĞİZ in1 i̇", "ali aliİ ALİ al̇i ri"]


@pytest.mark.parametrize(
    "vectorizer",
    [
        CountVectorizer(),
        CountVectorizer(ngram_range=(1, 2)),
        CountVectorizer(ngram_range=(1, 2), stop_words=["ri", "in1"]),
        CountVectorizer(token_pattern=r"\b\w+\b", ngram_range=(1, 3)),
        CountVectorizer(token_pattern=r"\b\w{3,}\b", ngram_range=(1, 2)),
        CountVectorizer(token_pattern=r"\b[a-z]+\b"),
        CountVectorizer(lowercase=False, ngram_range=(1, 2)),
        CountVectorizer(analyzer="char_wb", ngram_range=(2, 4)),
        CountVectorizer(analyzer="char_wb", ngram_range=(2, 4), lowercase=False),
    ],
    ids=repr,
)
def test_a_dotted_capital_i_becomes_two_characters(vectorizer, run_onnx):
    vectorizer.fit(DOTTED)
    inputs = raw_inputs(DOTTED)
    (values,) = run_onnx(
        to_onnx(vectorizer, inputs, "float32"), **feeds(DOTTED, inputs, "float32")
    ).values()
    np.testing.assert_array_equal(values, vectorizer.transform(DOTTED).toarray())


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
    """
    Words as rows of a table, each as long as the longest,
    would have a billion characters here.
    """
    texts = ["word " * 10_000 + "x" * 100_000]
    vectorizer = CountVectorizer(analyzer="char_wb", ngram_range=(2, 3)).fit(texts)
    inputs = raw_inputs(texts)
    (values,) = run_onnx(
        to_onnx(vectorizer, inputs, "float32"), **feeds(texts, inputs, "float32")
    ).values()
    np.testing.assert_array_equal(values, vectorizer.transform(texts).toarray())


def test_a_long_text_takes_no_memory_of_the_others(run_onnx):
    """All as long as the longest would be 300 million words here."""
    texts = np.array(["a house", ""] * 1500 + ["by the sea " * 33_333], dtype=object)
    vectorizer = TfidfVectorizer(ngram_range=(1, 2)).fit(texts)
    inputs = raw_inputs(texts)
    (values,) = run_onnx(
        to_onnx(vectorizer, inputs, "float32"), **feeds(texts, inputs, "float32")
    ).values()
    np.testing.assert_allclose(values, vectorizer.transform(texts).toarray(), rtol=1e-6)


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
        (
            TfidfVectorizer(analyzer="char_wb"),
            "written as ONNX for n-grams of two characters and more only",
        ),
        (
            TfidfVectorizer(strip_accents="ascii"),
            "strip_accents='ascii': no ONNX operator removes accents",
        ),
        (TfidfVectorizer(preprocessor=str.upper), "preprocessor is a Python function"),
        (
            TfidfVectorizer(tokenizer=str.split, token_pattern=None),
            "tokenizer is a Python function",
        ),
        (TfidfVectorizer(analyzer=str.split), "analyzer is a Python function"),
        (TfidfVectorizer(token_pattern=r"(\w)\w+"), "has '('"),
        (
            TfidfVectorizer(token_pattern=r"[^,]+", ngram_range=(1, 2)),
            "words of its n-grams cannot be told apart",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_vectorizer_without_onnx_gives_the_reason(vectorizer, reason):
    with pytest.raises(NotExportableError, match=reason.replace("(", r"\(")):
        to_onnx(vectorizer.fit(TEXTS), raw_inputs(TEXTS), "float32")


def test_files_and_dicts_are_no_input(tmp_path):
    path = tmp_path / "text"
    path.write_text("some words")
    with pytest.raises(
        NotExportableError, match="input='filename': an ONNX model takes the texts themselves"
    ):
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


@pytest.mark.parametrize(
    "variables", [{"LC_ALL": "C"}, {}, {"LANG": "xx_XX.UTF-8"}], ids=["C", "none", "unknown"]
)
def test_a_file_needs_no_locale(variables, tmp_path):
    vectorizer = CountVectorizer().fit(["ein Ärger", "im Haus", "kein"])
    path = tmp_path / "model.onnx"
    path.write_bytes(to_onnx(vectorizer, (RawInput("X", True, 1),), "float32").SerializeToString())
    run = subprocess.run(
        [sys.executable, "-c", SERVE, path],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert vectorizer.get_feature_names_out().tolist() == ["ein", "haus", "im", "kein", "ärger"]
    assert run.stdout.strip() == "[[0.0, 1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0, 1.0]]"


def tokens(expression, texts):
    """Return what ONNX Runtime's tokenizer finds in each text."""
    attributes = {"tokenexp": expression, "pad_value": "", "mark": 0, "mincharnum": 1}
    node = helper.make_node("Tokenizer", ["X"], ["Y"], domain="com.microsoft", **attributes)
    inputs = [helper.make_tensor_value_info("X", TensorProto.STRING, [None])]
    graph = helper.make_graph([node], "tokens", inputs, [onnx.ValueInfoProto(name="Y")])
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(
        graph, ir_version=IR_VERSION, opset_imports=opsets
    ).SerializeToString()
    session = load().InferenceSession(model, providers=["CPUExecutionProvider"])
    rows = session.run(None, {"X": np.array(texts, dtype=object)})[0].tolist()
    return [[token for token in row if token] for row in rows]


@pytest.mark.parametrize(
    "pattern", [r"\w", r"\d", r"\s", r"\W", r"\D", r"\S", r"[\w-]", r"[^\w ]", r"[\u00e9\t]"]
)
def test_a_class_holds_the_same_characters(pattern):
    codes = [*range(0x3100), *range(0x3101, sys.maxunicode + 1, 11)]
    characters = [chr(c) for c in codes if not 0xD800 <= c < 0xE000]
    found = [bool(row) for row in tokens(token_expression(pattern), characters)]
    expected = [bool(re.match(pattern, c)) for c in characters]
    # Versions of Unicode differ in characters that are new.
    differing = [
        c for c, ours, theirs in zip(characters, found, expected, strict=True) if ours != theirs
    ]
    assert len(differing) < 2_000 if sys.version_info[:2] != (3, 11) else differing == []


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?u)\b\w\w+\b",
        r"\b\w+\b",
        r"\b\w{3,}\b",
        r"\w+",
        r"[^\s,;]+",
        r"[]\w[(]+",
        r"\w+(?:-\w+)*",
        r"[a-zäöü]+",
        r"\]|\w",
    ],
)
def test_tokens_are_those_of_python(pattern):
    texts = ["The well-known Über-Haus, 7 of [them]; a b\u00a0c", "", "naïve_2 日本語 x-y-z"]
    assert tokens(token_expression(pattern), texts) == [re.findall(pattern, text) for text in texts]


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?u)\b[a-zA-Z]{3,}\b",
        r"\b[^\d\W]+\b",
        r"\b[^\W_]+\b",
        r"\b[a-z]\w+\b",
        r"\b\d{4}\b",
        r"\b[äé\w]x?[0-9_]*\b",
    ],
)
def test_words_of_certain_characters_are_among_all_words(pattern):
    texts = ["The film1 of 2024, überall; naïve film", "x_1 1234 12345 FILM"]
    expression = token_expression(pattern)
    assert expression == r"[\p{L}\p{N}_]{1,}"
    vocabulary = {"film", "The", "naïve", "2024", "1234", "x_1"}
    for text, words in zip(texts, tokens(expression, texts), strict=True):
        # What does not match is in no vocabulary.
        known = vocabulary & set(re.findall(pattern, " ".join(vocabulary)))
        assert [word for word in words if word in known] == [
            t for t in re.findall(pattern, text) if t in known
        ]


@pytest.mark.parametrize(
    "pattern, piece",
    [
        *(
            (p, "(")
            for p in (r"(\w)\w", r"(?=\w)\w+", r"(?<!x)\w+", r"(?i)[a-z]+", r"(?P<word>\w+)")
        ),
        # Z and a have other characters between them, and à and ü the sign of a division.
        *(
            (p, r"\b")
            for p in (
                r"\b[\w-]+\b",
                r"\b[A-z]+\b",
                r"\b[à-ü]+\b",
                r"\b[^\d]+\b",
                r"\b\w+",
                r"\b[a-z]+\b-",
            )
        ),
        # Python 3.11 and newer know it.
        *([(r"\w++", "++")] if sys.version_info >= (3, 11) else []),
        *((r"\w+\Z", r"\Z"), (r"[^\W\d]+", r"\W")),
        # The tokenizer takes the longest match.
        *((r"\w+?", "+?"), (r"a\w*?b", "*?"), (r"\w{2,}?", "}?")),
    ],
)
def test_what_the_tokenizer_does_not_have_is_refused(pattern, piece, capfd):
    with pytest.raises(
        NotExportableError,
        match=re.escape(f"token_pattern={pattern!r} has {piece!r}, which is not"),
    ):
        token_expression(pattern)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("pattern", [r"\w*", r"(?u)\b\w*\b", r"x?", r"[a-z]{0,3}"])
def test_the_empty_text_is_no_token(pattern):
    with pytest.raises(NotExportableError, match=r"matches the empty text, .* Use \+ in place of"):
        token_expression(pattern)


@pytest.mark.parametrize("pattern", [r"[+?]", r"[*+?]+\w", r"\+?a"])
def test_question_marks_that_are_characters_or_optional_pieces_stay(pattern):
    texts = ["+a ?b *+c", "a"]
    assert tokens(token_expression(pattern), texts) == [re.findall(pattern, text) for text in texts]


def test_words_among_others_are_no_neighbours():
    with pytest.raises(NotExportableError, match=r"With ngram_range, a \\b .* around \\w, as in"):
        token_expression(r"\b[a-z]+\b", is_alone=False)
    assert token_expression(r"\b\w\w+\b", is_alone=False) == token_expression(r"\b\w\w+\b")


def test_ends_of_words_around_other_characters_are_told_what_to_write():
    pattern = r"(?u)\b\w[\w'-]+\b"
    with pytest.raises(NotExportableError, match=r"only around characters of words.* Leave it out"):
        token_expression(pattern)
    without = pattern.replace(r"\b", "")
    texts = ["don't do it", "well-known", "it's-"]
    expected = [re.findall(without, text) for text in texts]
    assert tokens(token_expression(without), texts) == expected
    assert expected[-1] == ["it's-"] != re.findall(pattern, texts[-1])
    with pytest.raises(NotExportableError, match=r"has '\(', which is not written as ONNX\.$"):
        token_expression(r"(\w+)")


@pytest.mark.parametrize("pattern", [r"\S+", r"(?u)\b\w\w+\b", "."])
def test_emojis_alone_are_no_words_of_an_error(pattern, run_onnx):
    """ONNX Runtime 1.16 makes "Conversion Error" of them where it makes letters small."""
    texts = ["conversion error", "🙂", "🙂🙂 🙂", "🙂日", "Fine 🙂", ""]
    vectorizer = CountVectorizer(token_pattern=pattern).fit(["conversion error", "fine 🙂 day"])
    model = to_onnx(vectorizer, (RawInput("X", True, 1),), "float32")
    for text in texts:
        (counts,) = run_onnx(model, X=np.array([[text]], dtype=object)).values()
        np.testing.assert_array_equal(counts, vectorizer.transform([text]).toarray())


def test_a_blank_alone_is_one_character(run_onnx):
    vectorizer = CountVectorizer(analyzer="char").fit(["a b"])
    model = to_onnx(vectorizer, (RawInput("X", True, 1),), "float32")
    for _ in range(20):
        (counts,) = run_onnx(model, X=np.array([[" "]], dtype=object)).values()
        np.testing.assert_array_equal(counts, [[1, 0, 0]])
