"""Regular expressions of tokens: Python's matches, found by ONNX Runtime's tokenizer."""

import re
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from skort.common.onnx_text import IR_VERSION, OPSET
from skort.exceptions import NotExportableError
from skort.graphs.sklearn.token_expression import token_expression
from skort.runtime.installed import load


def tokens(expression, texts):
    """Return what ONNX Runtime's tokenizer finds in each text."""
    attributes = {"tokenexp": expression, "pad_value": "", "mark": 0, "mincharnum": 1}
    node = helper.make_node("Tokenizer", ["X"], ["Y"], domain="com.microsoft", **attributes)
    inputs = [helper.make_tensor_value_info("X", TensorProto.STRING, [None])]
    graph = helper.make_graph([node], "tokens", inputs, [onnx.ValueInfoProto(name="Y")])
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, ir_version=IR_VERSION, opset_imports=opsets).SerializeToString()
    session = load().InferenceSession(model, providers=["CPUExecutionProvider"])
    rows = session.run(None, {"X": np.array(texts, dtype=object)})[0].tolist()
    return [[token for token in row if token] for row in rows]


@pytest.mark.parametrize("pattern", [r"\w", r"\d", r"\s", r"\W", r"\D", r"\S", r"[\w-]", r"[^\w ]", r"[\u00e9\t]"])
def test_a_class_holds_the_same_characters(pattern):
    codes = [*range(0x3100), *range(0x3101, sys.maxunicode + 1, 11)]
    characters = [chr(c) for c in codes if not 0xD800 <= c < 0xE000]
    found = [bool(row) for row in tokens(token_expression(pattern), characters)]
    expected = [bool(re.match(pattern, c)) for c in characters]
    # Versions of Unicode differ in characters that are new.
    differing = [c for c, ours, theirs in zip(characters, found, expected, strict=True) if ours != theirs]
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


@pytest.mark.parametrize("pattern", [r"(?u)\b[a-zA-Z]{3,}\b", r"\b[^\d\W]+\b", r"\b[a-z]\w+\b", r"\b\d{4}\b"])
def test_words_of_certain_characters_are_among_all_words(pattern):
    texts = ["The film1 of 2024, überall; naïve film", "x_1 1234 12345 FILM"]
    expression = token_expression(pattern)
    assert expression == r"[\p{L}\p{N}_]+"
    vocabulary = {"film", "The", "naïve", "2024", "1234", "x_1"}
    for text, words in zip(texts, tokens(expression, texts), strict=True):
        # What does not match is in no vocabulary.
        known = vocabulary & set(re.findall(pattern, " ".join(vocabulary)))
        assert [word for word in words if word in known] == [t for t in re.findall(pattern, text) if t in known]


@pytest.mark.parametrize(
    "pattern, piece",
    [
        *((p, "(") for p in (r"(\w)\w", r"(?=\w)\w+", r"(?<!x)\w+", r"(?i)[a-z]+", r"(?P<word>\w+)")),
        *((p, r"\b") for p in (r"\b[\w-]+\b", r"\b\w+", r"\b[a-z]+\b-")),
        # Python 3.11 and newer know it.
        *([(r"\w++", "++")] if sys.version_info >= (3, 11) else []),
        *((r"\w+\Z", r"\Z"), (r"[^\W\d]+", r"\W")),
        # The tokenizer takes the longest match.
        *((r"\w+?", "+?"), (r"a\w*?b", "*?"), (r"\w{2,}?", "}?")),
    ],
)
def test_what_the_tokenizer_does_not_have_is_refused(pattern, piece, capfd):
    with pytest.raises(NotExportableError, match=re.escape(f"token_pattern={pattern!r} has {piece!r}, which is not")):
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
    with pytest.raises(NotExportableError, match="is not written as ONNX"):
        token_expression(r"\b[a-z]+\b", is_alone=False)
