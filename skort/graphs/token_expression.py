"""The regular expression of a token, from Python's syntax to that of ONNX Runtime's tokenizer, RE2."""

import re

from skort.exceptions import NotExportableError

__all__ = ["token_expression"]

# \w of Python, which RE2 takes for ASCII.
_WORD = r"\p{L}\p{N}_"
_CLASSES = {"w": _WORD, "d": r"\p{Nd}", "s": r"\s\v\x{1c}-\x{1f}\x{85}\p{Z}"}
# All words of a least length: what is between two \b cannot be longer or shorter than a word.
_WORDS = re.compile(r"\\b((?:\\w)*)\\w(\+|\{(\d+),\})\\b")
_PIECES = re.compile(r"\\.|\[\^?\]?|\(\?:|.", re.DOTALL)


def token_expression(pattern: str) -> str:
    r"""
    Return a regular expression of Python for RE2.

    Parameters
    ----------
    pattern : str
        `token_pattern` of a vectorizer.

    Returns
    -------
    expression : str
        `\w`, `\d` and `\s` match what they match in Python; `\b` is where ASCII words begin and end, but around
        whole words.

    Raises
    ------
    NotExportableError
        For what RE2 does not have: groups that capture, and looking ahead or back.

    Examples
    --------
    >>> from skort.graphs.token_expression import token_expression
    >>> print(token_expression(r"(?u)\b\w\w+\b"))
    [\p{L}\p{N}_]{2,}
    """
    text = pattern.removeprefix("(?u)")
    words = _WORDS.fullmatch(text)
    if words:
        least = len(words[1]) // 2 + int(words[3] or 1)
        return f"[{_WORD}]{{{least},}}"
    parts, in_class = [], False
    for piece in _PIECES.findall(text):
        if piece == "(" and not in_class:
            raise NotExportableError(
                f"token_pattern={pattern!r} has a group, which is not written as ONNX: use (?:...)."
            )
        if piece[0] == "[" and not in_class:
            in_class = True
        elif piece in ("]", "[]", "[^]"):
            in_class = False
        parts.append(_translated(piece, in_class))
    return "".join(parts)


def _translated(piece, in_class):
    characters = _CLASSES.get(piece[1:].lower()) if piece[0] == "\\" else None
    if characters is None or (in_class and piece[1].isupper()):
        return piece
    if in_class:
        return characters
    return f"[{'^' if piece[1].isupper() else ''}{characters}]"
