"""Vectorizers of text of scikit-learn, as ONNX that needs no locale."""
# A text is split into tokens, each token becomes an integer, and `TfIdfVectorizer` counts the
# n-grams of integers. An operator changes capitals to small letters for ASCII only: for other
# letters it depends on the locale of the machine. So the table of tokens has all spellings of the
# other letters.

import functools
import re
import string
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
from sklearn.decomposition import KernelPCA
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)

from skort.exceptions import NotExportableError
from skort.graphs.sklearn.converters import Nodes

_UNKNOWN = -1
_STOP_WORD = -2
_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

# The regular expression of a token is translated from Python's syntax to that of RE2, which ONNX
# Runtime's tokenizer uses. This is Python's \w; the \w of RE2 is ASCII only.
_WORD = r"\p{L}\p{N}_"
# Python changes İ to an i and a dot above. The dot is no character of a word, so a word ends after
# İ.
_DOTTED = "\u0130"
_DOT = "\u0307"
_WORD_BUT_DOTTED = rf"(?:[^\P{{L}}{_DOTTED}]|[\p{{N}}_])"
_CLASSES = {"w": _WORD, "d": r"\p{Nd}", "s": r"\s\v\x{1c}-\x{1f}\x{85}\p{Z}"}
_PIECES = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|\[\^?\]?|\(\?:|[*+?}][+?]|.", re.DOTALL)
# Escapes with the same meaning in both syntaxes.
_KNOWN = set("ntrfva")
# The pattern of all words of a least length.
_WORDS = re.compile(r"\\b((?:\\w)*)\\w(\+|\{(\d+),\})\\b")
# The pattern of whole words only: characters of a word, with their numbers, between two \b.
_CHARACTER = r"\\[wd]|\w"
_LISTED = rf"\[(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|{_CHARACTER})+\]"
_BUT = rf"\[\^(?:{_CHARACTER})*\\W(?:{_CHARACTER})*\]"
_WHOLE_WORDS = re.compile(rf"\\b(?:(?:{_CHARACTER}|{_LISTED}|{_BUT})(?:[+*?]|\{{\d*,?\d*\}})?)+\\b")

_ON_WORD_ENDS = (
    r" A \b may stand only around characters of words, as in '\b\w+\b'. Leave it out: a token may "
    "then begin or end with another character that the pattern has."
)
_WITH_NGRAMS = (
    r" With ngram_range, a \b may stand only around \w, as in '\b\w\w+\b'. "
    "Leave it or the n-grams out."
)

_TYPES = (CountVectorizer, TfidfVectorizer, TfidfTransformer)
_REASONS = {
    HashingVectorizer: (
        "it keeps no vocabulary, and its hash is not written as ONNX. TfidfVectorizer and "
        "CountVectorizer are; with max_features the file is small."
    ),
    DictVectorizer: (
        "it takes dicts, and the inputs of an ONNX model are columns of numbers or text. "
        "OneHotEncoder takes such columns."
    ),
}


def check_convertible(estimator: Any) -> None:
    """Raise a NotExportableError for a step that is never written as ONNX."""
    reason = _REASONS.get(type(estimator))
    if isinstance(estimator, KernelPCA) and estimator.kernel == "cosine":
        reason = (
            'kernel="cosine" gives NaN for rows of zeros as ONNX. Use Normalizer() before '
            'KernelPCA(kernel="linear"), which is the same'
        )
    if reason is not None:
        raise NotExportableError(f"{type(estimator).__name__}: {reason}")


def text_converters(element_type: int) -> dict[type, Callable[..., None]]:
    """
    Return the converters of text by type, for skl2onnx.

    Vectorizers give numbers of `element_type`.
    """

    def convert(scope, operator, container):
        nodes = Nodes(scope, container)
        model = operator.raw_operator
        given = operator.inputs[0].full_name

        if isinstance(model, CountVectorizer):
            result = _vectorized(nodes, given, model, element_type)
        else:
            result = _tf_idf(
                nodes, nodes.add("Cast", [given], to=element_type), model, element_type
            )

        nodes.add("Identity", [result], result=operator.outputs[0].full_name)

    return dict.fromkeys(_TYPES, convert)


def text_shapes(element_type: int) -> dict[type, Callable[..., None]]:
    """Return the functions that give the outputs of the converters types and shapes, by type."""
    tensor = DoubleTensorType if element_type == TensorProto.DOUBLE else FloatTensorType

    def give_type(operator):
        model = operator.raw_operator
        width = (
            len(model.vocabulary_) if isinstance(model, CountVectorizer) else model.n_features_in_
        )
        operator.outputs[0].type = tensor([None, width])

    return dict.fromkeys(_TYPES, give_type)


def _tokens(nodes: Nodes, texts: str, expression: str) -> str:
    """
    Write a split of texts into the parts that match an expression; return the name of the parts.

    Short rows are filled up with "".
    """
    attributes: dict[str, Any] = {
        "tokenexp": expression,
        "pad_value": "",
        "mark": 0,
        "mincharnum": 1,
    }
    tokens = nodes.add("Tokenizer", [texts], domain="com.microsoft", version=1, **attributes)

    # onnx does not know the type of Tokenizer's result, and its checker crashes if the input of a
    # LabelEncoder has no type.
    return nodes.add("Cast", [tokens], to=TensorProto.STRING)


def _vectorized(nodes, texts, vectorizer, element_type):
    """Write a vectorizer; return the name of its numbers."""
    # A Scan works on one text after the other: a row of numbers stays in the cache, and no text is
    # filled up to the longest one.
    _check_settings(vectorizer)
    inner = Nodes(nodes.scope, type(nodes.container)(nodes.container.target_opset))
    text = nodes.scope.get_unique_variable_name("text")
    width = len(vectorizer.vocabulary_)
    row = _counts(inner, text, vectorizer, element_type)
    if isinstance(vectorizer, TfidfVectorizer):
        row = _tf_idf(inner, row, vectorizer, element_type)
    given = helper.make_tensor_value_info(text, TensorProto.STRING, [1])
    made = helper.make_tensor_value_info(row, element_type, [1, width])
    body = helper.make_graph(
        inner.container.nodes, "vectorizer", [given], [made], inner.container.initializers
    )
    nodes.container.node_domain_version_pair_sets.update(
        inner.container.node_domain_version_pair_sets
    )
    texts = nodes.add("Reshape", [texts, nodes.constant([-1, 1])])
    rows = nodes.add("Scan", [texts], version=11, body=body, num_scan_inputs=1)

    return nodes.add("Reshape", [rows, nodes.constant([-1, width])])


def _counts(nodes, texts, vectorizer, element_type):
    """Write the counting of n-grams; return the name of the counts."""
    by_column = [
        term for term, _ in sorted(vectorizer.vocabulary_.items(), key=lambda item: item[1])
    ]
    of_words = vectorizer.analyzer == "word"
    grams = _word_grams(vectorizer, by_column) if of_words else [tuple(term) for term in by_column]
    tokens = {
        token: code for code, token in enumerate(dict.fromkeys(t for gram in grams for t in gram))
    }

    if of_words:
        codes = _word_codes(nodes, texts, tokens, vectorizer)
    else:
        table = tokens
        if vectorizer.lowercase:
            # No gram has a capital letter. A capital gets the code of its small letter.
            table = {token: code for token, code in tokens.items() if token == token.lower()}
            table |= {c: table[c.lower()] for c in _characters()[1] if c.lower() in table}

        if vectorizer.analyzer == "char":
            codes = _character_codes(nodes, texts, table)
        else:
            codes = _inner_codes(nodes, texts, table, lowercase=vectorizer.lowercase)

    counts = _gram_counts(
        nodes, codes, [[tokens[t] for t in gram] for gram in grams], vectorizer.ngram_range[1]
    )
    if vectorizer.binary:
        counts = nodes.add("Cast", [counts], to=TensorProto.BOOL)
    return nodes.add("Cast", [counts], to=element_type)


def _check_settings(vectorizer):
    """Raise a NotExportableError for a setting that no operator supports."""
    for name in ("preprocessor", "tokenizer", "analyzer"):
        if callable(getattr(vectorizer, name)):
            raise NotExportableError(f"{name} is a Python function, which ONNX cannot hold.")

    if vectorizer.analyzer == "char_wb" and vectorizer.ngram_range[0] == 1:
        raise NotExportableError(
            'analyzer="char_wb" is written as ONNX for n-grams of two characters and more only.'
        )
    if vectorizer.strip_accents is not None:
        raise NotExportableError(
            f"strip_accents={vectorizer.strip_accents!r}: no ONNX operator removes accents."
        )
    if vectorizer.input != "content":
        raise NotExportableError(
            f"input={vectorizer.input!r}: an ONNX model takes the texts themselves."
        )


def _word_grams(vectorizer, terms):
    """Return the words of each term, which scikit-learn joins by a space."""
    if vectorizer.ngram_range[1] == 1:
        return [(term,) for term in terms]

    grams = [tuple(term.split(" ")) for term in terms]
    tokenize = vectorizer.build_tokenizer()
    for word in dict.fromkeys(word for gram in grams for word in gram):
        if tokenize(word) != [word]:
            raise NotExportableError(
                f"the vocabulary has {word!r}, which token_pattern={vectorizer.token_pattern!r} "
                "does not match as one token: the words of its n-grams cannot be told apart."
            )

    return grams


def _word_codes(nodes, texts, tokens, vectorizer):
    """Return the name of the codes of the words of each text, without stop words."""
    if vectorizer.lowercase:
        # "C" is the one locale that every machine has. It knows the letters of ASCII.
        attributes = {"case_change_action": "LOWER", "is_case_sensitive": 0, "locale": "C"}
        small = nodes.add("StringNormalizer", [texts], "small", version=10, **attributes)
        # ONNX Runtime 1.16 gives this for emojis alone. It has capitals, so it is no other text.
        failed = nodes.codes(small, {"Conversion Error": 1}, 0, "failed")
        failed = nodes.add("Cast", [failed], "failed", to=TensorProto.BOOL)
        texts = nodes.add("Where", [failed, texts, small], "texts", version=9)

    forms = _spellings if vectorizer.lowercase else lambda token: [token]
    stop_words = vectorizer.get_stop_words() or ()
    table = {form: code for token, code in tokens.items() for form in forms(token)}
    table |= {form: _STOP_WORD for word in stop_words for form in forms(word)}
    is_alone = vectorizer.ngram_range[1] == 1
    words = _tokens(
        nodes,
        texts,
        token_expression(
            vectorizer.token_pattern, is_alone=is_alone, lowercase=vectorizer.lowercase
        ),
    )
    codes = nodes.codes(words, table, _UNKNOWN)
    if not stop_words or is_alone:
        return codes

    return _without(nodes, codes, nodes.add("Equal", [codes, nodes.constant(_STOP_WORD)]))


def _spellings(token):
    """Return the spellings of a token in a text whose ASCII letters are small already."""
    # A letter such as ß stays small in a word of capitals, if Python is to read the same word.
    capitals = "".join(each.upper() if len(each.upper()) == 1 else each for each in token)
    cases = [token] if token.isascii() else [token, capitals, token.capitalize(), token.title()]
    forms = [
        form for form in dict.fromkeys(c.translate(_SMALL) for c in cases) if form.lower() == token
    ]
    return forms + [form[:-1] + _DOTTED for form in forms if form.endswith("i")]


def _character_codes(nodes, texts, table):
    """
    Return the name of the codes of the characters of each text;
    several spaces count as one blank.
    """
    characters = _tokens(nodes, texts, ".")
    codes = nodes.codes(characters, table, _UNKNOWN)
    spaces = nodes.codes(characters, dict.fromkeys(_characters()[0], 1), 0)
    # A negative pad would leave one character without a value.
    around = nodes.add("Pad", [spaces, nodes.constant([0, 1, 0, 1]), nodes.constant(0)])
    before, after = (
        nodes.add("Slice", [around, *(nodes.constant([n]) for n in (*limits, 1))])
        for limits in ((0, -2), (2, np.iinfo(np.int64).max))
    )
    is_space, after_space, before_space = (
        nodes.add("Cast", [c], to=TensorProto.BOOL) for c in (spaces, before, after)
    )
    repeated = nodes.add("And", [is_space, nodes.add("Or", [after_space, before_space])])
    codes = nodes.add(
        "Where", [repeated, nodes.constant(table.get(" ", _UNKNOWN)), codes], version=9
    )

    return _without(nodes, codes, nodes.add("And", [is_space, after_space]))


def _inner_codes(nodes, texts, table, *, lowercase):
    """Return the name of the codes of the characters of words, with blanks around each word."""
    blank = nodes.constant(table.get(" ", _UNKNOWN))
    around = nodes.constant([0, 1, 0, 1])
    characters = _tokens(nodes, texts, ".")

    # The padding of a short text is space, too. 1 is a space, 2 a letter that becomes two.
    kinds = dict.fromkeys([*_characters()[0], ""], 1)
    if lowercase:
        table = {**table, _DOTTED: table.get("i", _UNKNOWN)}
        kinds = {**kinds, _DOTTED: 2}

    kinds = nodes.add("Pad", [nodes.codes(characters, kinds, 0), around, nodes.constant(1)])
    codes = nodes.add("Pad", [nodes.codes(characters, table, _UNKNOWN), around, blank])
    is_space = nodes.add("Equal", [kinds, nodes.constant(1)])
    codes = nodes.add("Where", [is_space, blank, codes], version=9)
    second = nodes.add(
        "Where", [is_space, blank, nodes.constant(table.get(_DOT, _UNKNOWN))], version=9
    )

    # A space becomes two blanks, one for each word beside it: no n-gram of a word has two
    # blanks side by side.
    codes, second, kinds = (
        nodes.add("Unsqueeze", [n, nodes.constant([2])]) for n in (codes, second, kinds)
    )
    twice = nodes.add("Concat", [codes, second], axis=2)
    kept = nodes.add("Pad", [kinds, nodes.constant([0, 0, 1, 0, 0, 0]), nodes.constant(1)])
    shape = nodes.add("Concat", [nodes.add("Shape", [texts]), nodes.constant([-1])], axis=0)
    twice, kept = (nodes.add("Reshape", [name, shape]) for name in (twice, kept))

    return _without(nodes, twice, nodes.add("Equal", [kept, nodes.constant(0)]))


@functools.cache
def _characters():
    """Return all characters that are space, and all whose small letter is one other character."""
    # No later character is a space or has a small letter.
    every = list(map(chr, range(0x20000)))
    return [c for c in every if c.isspace()], [
        c for c in every if c.lower() != c and len(c.lower()) == 1
    ]


def _without(nodes, codes, dropped):
    """Write the removal of dropped codes; return the name of the rows, filled up at the end."""
    width = nodes.add("Gather", [nodes.add("Shape", [codes]), nodes.constant(1)])
    position = nodes.add("Range", [nodes.constant(0), width, nodes.constant(1)], version=11)
    rank = nodes.add(
        "Where", [dropped, nodes.add("Add", [position, width], version=14), position], version=9
    )
    codes = nodes.add("Where", [dropped, nodes.constant(_UNKNOWN), codes], version=9)
    order, ranks = (nodes.scope.get_unique_variable_name(name) for name in ("order", "ranks"))
    k = nodes.add("Reshape", [width, nodes.constant([1])])
    nodes.container.add_node(
        "TopK", [rank, k], [ranks, order], op_version=11, axis=1, largest=0, sorted=1
    )

    return nodes.add("GatherElements", [codes, order], axis=1)


def _gram_counts(nodes, codes, grams, longest):
    """Return the name of the counts of n-grams of codes, one column each."""
    columns = sorted(range(len(grams)), key=lambda column: len(grams[column]))
    lengths = [len(gram) for gram in grams]
    starts = [sum(size for size in lengths if size < n) for n in range(1, longest + 1)]
    attributes = {
        "mode": "TF",
        # A word that is shorter than n characters is an n-gram, too.
        "min_gram_length": min(lengths),
        "max_gram_length": longest,
        "max_skip_count": 0,
        "ngram_counts": starts,
        "ngram_indexes": columns,
        "pool_int64s": [code for column in columns for code in grams[column]],
    }

    return nodes.add("TfIdfVectorizer", [codes], version=9, **attributes)


def _tf_idf(nodes, counts, transformer, element_type):
    """Write the weighting of counts by a `TfidfTransformer`; return the name of its result."""
    values = counts
    if transformer.sublinear_tf:
        zero, one = (nodes.constant(value, element_type) for value in (0.0, 1.0))
        is_zero = nodes.add("Equal", [values, zero])
        logarithm = nodes.add("Log", [nodes.add("Where", [is_zero, one, values], version=9)])
        values = nodes.add(
            "Where", [is_zero, zero, nodes.add("Add", [logarithm, one], version=14)], version=9
        )

    if transformer.use_idf:
        values = nodes.add(
            "Mul", [values, nodes.constant(transformer.idf_, element_type)], version=14
        )

    if transformer.norm is None:
        return values

    axes = nodes.constant([1])
    if transformer.norm == "l1":
        norm = nodes.add("ReduceSum", [nodes.add("Abs", [values]), axes], keepdims=1)
    else:
        squares = nodes.add("Mul", [values, values], version=14)
        norm = nodes.add("Sqrt", [nodes.add("ReduceSum", [squares, axes], keepdims=1)])

    # A row of zeros stays a row of zeros.
    least = np.finfo(helper.tensor_dtype_to_np_dtype(element_type)).tiny
    return nodes.add(
        "Div", [values, nodes.add("Max", [norm, nodes.constant(least, element_type)])], version=14
    )


def token_expression(pattern: str, *, is_alone: bool = True, lowercase: bool = False) -> str:
    r"""
    Return a `token_pattern` as a regular expression for RE2.

    A pattern of words between two `\b` becomes the expression of all words.
    """
    # With `is_alone`, tokens are looked up one by one, so the expression may match other words as
    # well. With `lowercase`, it matches the words of the text in small letters.
    text = pattern.removeprefix("(?u)")
    if any(not match[0] for match in re.finditer(pattern, " a ")):
        raise NotExportableError(
            f"token_pattern={pattern!r} matches the empty text, which is no token in ONNX. Use "
            "+ in place of *."
        )

    words = _WORDS.fullmatch(text)
    if words:
        return _words(len(words[1]) // 2 + int(words[3] or 1), lowercase)
    if is_alone and _WHOLE_WORDS.fullmatch(text):
        return _words(1, lowercase)

    parts = []
    in_class = False
    for piece in _PIECES.findall(text):
        if piece[0] == "[" and not in_class:
            in_class = True
        elif piece in ("]", "[]", "[^]"):
            in_class = False

        translated = _translated(piece, in_class)
        if translated is None:
            advice = ""
            if piece == r"\b":
                advice = _ON_WORD_ENDS if is_alone else _WITH_NGRAMS
            raise NotExportableError(
                f"token_pattern={pattern!r} has {piece!r}, which is not written as ONNX.{advice}"
            )

        parts.append(translated)

    return "".join(parts)


def _words(least, lowercase):
    """Return the expression of all words of a least length."""
    if not lowercase:
        return f"[{_WORD}]{{{least},}}"
    return f"{_WORD_BUT_DOTTED}{{{least - 1}}}(?:{_WORD_BUT_DOTTED}+{_DOTTED}?|{_DOTTED})"


def _translated(piece, in_class):
    """Return a piece of a pattern for RE2; None if RE2 has no such piece."""
    if piece[0] != "\\":
        return None if not in_class and (piece == "(" or piece[1:] in ("+", "?")) else piece
    if len(piece) > 2:
        return f"\\x{{{piece[2:]}}}"

    characters = _CLASSES.get(piece[1].lower())
    if characters is None:
        return (
            piece if piece[1] in _KNOWN or not (piece[1].isalnum() or piece[1].isspace()) else None
        )
    if in_class:
        return characters if piece[1].islower() else None

    return f"[{'^' if piece[1].isupper() else ''}{characters}]"
