"""
The texts of all errors and warnings in the code of skort, read from the syntax trees of its files.

What a message fills in is a slot: `<name>`.
"""

import ast
import builtins
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SKORT = Path(__file__).parent.parent / "skort"

_WARNS = {"warn_user", "warn"}


@dataclass(frozen=True)
class Slot:
    """
    What a message fills in; `texts` are the sentences that it may be,
    where the code has them.
    """

    name: str
    texts: tuple = ()


@dataclass(frozen=True)
class Choice:
    """One of several texts, or one text or none."""

    texts: tuple


@dataclass(frozen=True)
class Message:
    """
    A text of the code.

    Parameters
    ----------
    type : str
        The name of the exception or of the warning.
    text : tuple of str, Slot and Choice
    file : str
        Below `skort/`.
    line : int
    """

    type: str
    text: tuple
    file: str
    line: int = field(compare=False)

    def begins(self, text: str) -> bool:
        """
        Return whether a text that was raised begins with this message;
        never for a message of slots alone.
        """
        words = " ".join(piece for piece in self.text if isinstance(piece, str)).split()
        return len(words) > 2 and re.match(_pattern(self.text), " ".join(text.split())) is not None


def shown(text: tuple, mark=lambda slot: f"<{slot}>", plain=str) -> str:
    """
    Return a text with its slots as `<name>`, what may be missing in brackets,
    and choices with a bar between.
    """
    pieces = []
    for piece in text:
        if isinstance(piece, str):
            pieces.append(plain(piece))
        elif isinstance(piece, Slot):
            pieces.append(mark(piece.name))
        else:
            texts = [shown(t, mark, plain) for t in piece.texts if t not in ((), ("",))]
            pieces.append(f"[{' | '.join(texts)}]")
    return "".join(pieces)


def _pattern(text):
    pieces = []
    for piece in text:
        if isinstance(piece, str):
            pieces.append(re.escape(" ".join(f".{piece}.".split())[1:-1]))
        elif isinstance(piece, Slot):
            pieces.append(".*")
        else:
            pieces.append("(?:" + "|".join(map(_pattern, piece.texts)) + ")")
    return "".join(pieces)


class _Reader:
    """
    The texts of all files.

    `constants` and `functions` are those of the modules, by name: names are looked up in the
    own file first.
    """

    def __init__(self, root: Path):
        paths = sorted(root.rglob("*.py"))
        self.trees = {
            p.relative_to(root).with_suffix("").as_posix(): ast.parse(p.read_text()) for p in paths
        }
        self.constants, self.functions = {}, {}
        for file, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    self.functions.setdefault(node.name, node)
                    self.functions[file, node.name] = node
            for node in tree.body:
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    self.constants.setdefault(node.targets[0].id, node.value)
                    self.constants[file, node.targets[0].id] = node.value

    def messages(self) -> Iterator[Message]:
        for file, tree in self.trees.items():
            for node, scope in _with_scopes(tree):
                if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                    yield from self._raised(node.exc, file, scope)
                elif (
                    isinstance(node, ast.Return)
                    and isinstance(node.value, ast.Call)
                    and not self._is_called(scope)
                ):
                    yield from self._raised(node.value, file, scope)
                elif (
                    isinstance(node, ast.Call)
                    and _name(node.func) in _WARNS
                    and file != "user_warning"
                ):
                    category = node.args[1] if len(node.args) > 1 else None
                    kind = "UserWarning" if category is None else _name(category)
                    yield from self._of(kind, node.args[0], file, scope, {}, node.lineno)

    def _is_called(self, scope):
        """
        Return whether a function that makes an error is one that `raise` calls:
        its texts are those of the calls.
        """
        return any(scope is not None and scope.name == name for name in self._error_makers)

    @functools.cached_property
    def _error_makers(self):
        nodes = (node for tree in self.trees.values() for node in ast.walk(tree))
        return {
            _name(n.exc.func)
            for n in nodes
            if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call)
        }

    def _raised(self, call, file, scope):
        kind = _name(call.func)
        if _is_error(kind):
            if call.args:
                yield from self._of(kind, call.args[0], file, scope, {}, call.lineno)
            return
        maker = self._function(file, kind)
        if maker is None:
            return
        given = self._given(call, maker, file, scope)
        for node in ast.walk(maker):
            if (
                isinstance(node, ast.Return)
                and isinstance(node.value, ast.Call)
                and _is_error(_name(node.value.func))
            ):
                yield from self._of(
                    _name(node.value.func), node.value.args[0], file, maker, given, call.lineno
                )

    def _given(self, call, function, file, scope):
        """Return the texts that a call passes on, by the names of the arguments."""
        pairs = zip(function.args.args, call.args, strict=False)
        return {
            name.arg: self._text(value, file, scope, {}) for name, value in pairs if _is_text(value)
        }

    def _of(self, kind, node, file, scope, given, line):
        for text in _expanded(self._text(node, file, scope, given)):
            # Where a function makes the whole text, its texts are messages.
            whole = (
                [text]
                if _has_words(text)
                else [t for piece in text for t in getattr(piece, "texts", ())]
            )
            yield from (Message(kind, each, file, line) for each in whole)

    def _function(self, file, name):
        return self.functions.get((file, name), self.functions.get(name))

    def _text(self, node, file, scope, given):
        """Return the text that an expression gives."""
        read = functools.partial(self._text, file=file, scope=scope, given=given)
        if isinstance(node, ast.Constant):
            return (str(node.value),)
        if isinstance(node, ast.JoinedStr):
            return _joined(read(value) for value in node.values)
        if isinstance(node, ast.FormattedValue):
            return read(node.value)
        if isinstance(node, ast.BinOp) and _is_text(node):
            return _joined((read(node.left), read(node.right)))
        if isinstance(node, ast.BoolOp):
            return self._either(node, read)
        if isinstance(node, ast.IfExp) and _is_text(node.body) and _is_text(node.orelse):
            return (Choice((read(node.body), read(node.orelse))),)
        if isinstance(node, ast.Name):
            return self._named(node, file, scope, given)
        if isinstance(node, ast.Call) and (function := self._function(file, _name(node.func))):
            return (
                Slot(
                    _slot_name(node),
                    tuple(
                        self._sentences(function, file, self._given(node, function, file, scope))
                    ),
                ),
            )
        return (Slot(_slot_name(node)),)

    def _either(self, node, read):
        texts = [read(value) for value in node.values]
        sentences = (
            t for text in texts for t in (text[0].texts if isinstance(text[0], Slot) else (text,))
        )
        return (Slot(_slot_name(node.values[0]), tuple(filter(_is_sentence, sentences))),)

    def _named(self, node, file, scope, given):
        """
        Return the text of a name: an argument, a local variable that is set once,
        or a constant of a module.
        """
        if node.id in given:
            return given[node.id]
        values = _assigned(scope, node.id)
        if len(values) == 1 and _is_text(values[0]):
            return self._text(values[0], file, scope, given)
        if len(values) == 1 and isinstance(values[0], (ast.Call, ast.BoolOp)):
            texts = (
                piece.texts
                for piece in self._text(values[0], file, scope, given)
                if isinstance(piece, Slot)
            )
            return (Slot(_slot_name(node), tuple(text for several in texts for text in several)),)
        if len(values) > 1 and all(map(_is_text, values)):
            return (Choice(tuple(self._text(value, file, scope, given) for value in values)),)
        constant = self.constants.get((file, node.id), self.constants.get(node.id))
        if not values and constant is not None and _is_text(constant):
            return self._text(constant, file, None, {})
        return (Slot(_slot_name(node)),)

    def _sentences(self, function, file, given):
        """Yield the texts of several words that a function puts together."""
        if function.name in self._reading:
            return
        self._reading.append(function.name)
        body = function.body[1:] if ast.get_docstring(function) else function.body
        for node in body:
            for found in _outermost_texts(node):
                text = self._text(found, file, function, given)
                if _is_sentence(text):
                    yield text
        self._reading.pop()

    # The functions whose texts are being read: they may call each other.
    _reading: list = []


def _joined(texts):
    pieces = []
    for piece in (piece for text in texts for piece in text):
        if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
            pieces[-1] += piece
        elif piece != "":
            pieces.append(piece)
    return tuple(pieces)


def _expanded(text):
    """Return a text for each of its choices; what may be missing stays a choice."""
    for i, piece in enumerate(text):
        if isinstance(piece, Choice) and not {(), ("",)} & set(piece.texts):
            return [
                found
                for t in piece.texts
                for found in _expanded(_joined((text[:i], t, text[i + 1 :])))
            ]
    return [text]


def _has_words(text):
    return re.search("[A-Za-z]{2}", shown(text, mark=lambda _: "")) is not None


def _is_sentence(text):
    plain = shown(text, mark=lambda _: "x")
    return plain.endswith(".") or len(plain.split()) > 5


def _is_text(node):
    return (
        (isinstance(node, ast.Constant) and isinstance(node.value, str))
        or isinstance(node, ast.JoinedStr)
        or (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Add)
            and (_is_text(node.left) or _is_text(node.right))
        )
        or (isinstance(node, ast.IfExp) and _is_text(node.body) and _is_text(node.orelse))
    )


def _outermost_texts(node):
    if isinstance(node, ast.Raise) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ):
        return
    if _is_text(node):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _outermost_texts(child)


def _assigned(scope, name):
    """Return what a function assigns to one of its variables."""
    found = []
    for node in ast.walk(scope) if scope is not None else ():
        targets = node.targets if isinstance(node, ast.Assign) else ()
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            found.append(node.value)
        if isinstance(node, ast.NamedExpr) and node.target.id == name:
            found.append(node.value)
    return found


def _with_scopes(tree, scope=None):
    """Yield all nodes, each with the innermost function around it."""
    for node in ast.iter_child_nodes(tree):
        yield node, scope
        yield from _with_scopes(node, node if isinstance(node, ast.FunctionDef) else scope)


def _name(node):
    return (
        node.id
        if isinstance(node, ast.Name)
        else node.attr
        if isinstance(node, ast.Attribute)
        else ""
    )


def _is_error(name):
    known = getattr(builtins, name, None)
    return name.endswith(("Error", "Warning")) or (
        isinstance(known, type) and issubclass(known, BaseException)
    )


def _slot_name(node):
    """Return the name of what is filled in."""
    if isinstance(node, ast.Call):
        arguments = [
            a
            for a in node.args
            if isinstance(a, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        ]
        function = _name(node.func)
        if function == "len" and arguments:
            return f"number of {_slot_name(arguments[0])}"
        if function in {
            "join",
            "str",
            "repr",
            "sorted",
            "list",
            "tuple",
            "set",
            "map",
            "type",
            "next",
            "iter",
        }:
            return _slot_name(arguments[-1]) if arguments else "names"
        if isinstance(node.func, ast.Attribute) and _name(node.func.value) not in {"", "self"}:
            return _slot_name(node.func.value)
        return function.strip("_").replace("_", " ") or "value"
    if isinstance(node, ast.Attribute) and node.attr == "__name__":
        return "class"
    if isinstance(node, (ast.Attribute, ast.Name)):
        return _name(node).strip("_").replace("_", " ").lower()
    if isinstance(node, (ast.Subscript, ast.Starred)):
        return _slot_name(node.value)
    if isinstance(node, ast.BoolOp):
        return _slot_name(node.values[0])
    if isinstance(node, ast.BinOp):
        return _slot_name(node.left)
    return "value"


@functools.cache
def all_messages(root: Path = SKORT) -> tuple[Message, ...]:
    """Return the messages of the code, in the order of the files, each text once."""
    return tuple(dict.fromkeys(_Reader(root).messages()))
