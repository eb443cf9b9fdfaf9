"""The regular expression of a token, from Python's syntax to that of ONNX Runtime's tokenizer, RE2."""

import re

from skort.exceptions import NotExportableError

__all__ = ["token_expression"]

# \w of Python, which RE2 takes for ASCII.
_WORD = r"\p{L}\p{N}_"
_CLASSES = {"w": _WORD, "d": r"\p{Nd}", "s": r"\s\v\x{1c}-\x{1f}\x{85}\p{Z}"}
_PIECES = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|\[\^?\]?|\(\?:|[*+?}][+?]|.", re.DOTALL)
# Escapes that both take for the same.
_KNOWN = set("ntrfva")
# All words of a least length.
_WORDS = re.compile(r"\\b((?:\\w)*)\\w(\+|\{(\d+),\})\\b")
# One character, and how often.
_ATOM = re.compile(r"(\\[wd]|\w|\[\^?\]?(?:\\.|[^\]\\])*\])(?:[+*?]|\{\d*,?\d*\})?")


def token_expression(pattern: str, *, is_alone: bool = True) -> str:
    r"""
    Return a `token_pattern` of Python as a regular expression for RE2.

    `\w`, `\d` and `\s` match what they match in Python; `\b...\b` around characters of words becomes all words.
    `is_alone`: tokens are looked up one by one, so that other words may be among them. A NotExportableError names what
    RE2 does not have, or takes for something else (groups that capture, looking ahead or back, `\b` anywhere else), and
    what the tokenizer does: quantifiers that match as little as possible, and patterns that match the empty text.
    """
    text = pattern.removeprefix("(?u)")
    if any(not match[0] for match in re.finditer(pattern, " a ")):
        raise NotExportableError(
            f"token_pattern={pattern!r} matches the empty text, which is no token in ONNX. Use + in place of *."
        )
    words = _WORDS.fullmatch(text)
    if words:
        least = len(words[1]) // 2 + int(words[3] or 1)
        return f"[{_WORD}]{{{least},}}"
    if is_alone and _is_of_whole_words(text):
        return f"[{_WORD}]+"
    parts, in_class = [], False
    for piece in _PIECES.findall(text):
        if piece[0] == "[" and not in_class:
            in_class = True
        elif piece in ("]", "[]", "[^]"):
            in_class = False
        translated = _translated(piece, in_class)
        if translated is None:
            raise NotExportableError(f"token_pattern={pattern!r} has {piece!r}, which is not written as ONNX.")
        parts.append(translated)
    return "".join(parts)


def _is_of_whole_words(text):
    r"""Return whether a pattern is \b...\b around characters of words: what it matches is a whole word."""
    inner = text.removeprefix(r"\b").removesuffix(r"\b")
    if len(inner) != len(text) - 4 or not re.fullmatch(f"(?:{_ATOM.pattern})+", inner):
        return False
    characters = "".join(map(chr, range(0x20000)))
    matched = "".join("".join(re.findall(atom, characters)) for atom in dict.fromkeys(_ATOM.findall(inner)))
    return re.fullmatch(r"\w*", matched) is not None


def _translated(piece, in_class):
    """Return a piece of a pattern for RE2; None where there is none."""
    if piece[0] != "\\":
        return None if not in_class and (piece == "(" or piece[1:] in ("+", "?")) else piece
    if len(piece) > 2:
        return f"\\x{{{piece[2:]}}}"
    characters = _CLASSES.get(piece[1].lower())
    if characters is None:
        return piece if piece[1] in _KNOWN or not (piece[1].isalnum() or piece[1].isspace()) else None
    if in_class:
        return characters if piece[1].islower() else None
    return f"[{'^' if piece[1].isupper() else ''}{characters}]"
