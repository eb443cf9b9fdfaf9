"""
The pages "All messages", which is made from the code, and "Troubleshooting",
whose examples are run.
"""

import doctest
import io
import re
import runpy
import tokenize
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from skort.runtime import installed

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "skort").rglob("*.py"))
PAGE = runpy.run_path(str(ROOT / "docs" / "messages_page.py"))
TROUBLESHOOTING = (ROOT / "docs" / "troubleshooting.rst").read_text()
# scikit-learn checks these, with texts of its own.
OF_OTHERS = (
    "Input X contains NaN",
    "The feature names should match",
    "X has 2 features, but OrtSGDRegressor is expecting 3",
    "The 'loss' parameter",
    "The 'learning_rate' parameter",
    "This OrtSGDRegressor instance is not fitted yet",
)


def literal_words(source):
    """
    Yield the words of all string literals in statements that raise or warn;
    nothing of what they fill in.
    """
    is_message, depth = False, 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NEWLINE:
            is_message = False
        elif token.type == tokenize.NAME and token.string in ("raise", "warn_user"):
            is_message = True
        kind = tokenize.tok_name[token.type]
        # From Python 3.12 on, an f-string is several tokens.
        depth += {"FSTRING_START": 1, "FSTRING_END": -1}.get(kind, 0)
        if is_message and kind == "FSTRING_MIDDLE":
            yield token.string
        elif is_message and kind == "STRING" and not depth:
            prefix, _, text = re.fullmatch(r"(\w*)(\"|')(.*)\2", token.string, re.DOTALL).groups()
            yield from (
                re.split(r"\{\{|\}\}|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", text)
                if "f" in prefix
                else [text]
            )


@pytest.mark.parametrize(
    "beginning, title",
    [
        ("GraphDisplay.to_svg needs the program", "Install and devices"),
        ("stop: the reason must be a string", "Training"),
        ("The checkpoint is that of a training on other rows", "Files and checkpoints"),
        ("resume_from=", "Files and checkpoints"),
    ],
)
def test_messages_are_where_readers_look_for_them(beginning, title):
    found = [m for m in PAGE["all_messages"]() if PAGE["shown"](m.text).startswith(beginning)]
    assert {PAGE["group"](message) for message in found} == {title}


def test_the_page_has_every_message_of_the_code():
    page = " ".join(PAGE["page"]().replace("\\", "").split())
    fragments = [
        " ".join(text.replace("\\", "").split())
        for path in SOURCES
        if path.name != "user_warning.py"
        for text in literal_words(path.read_text())
    ]
    long = [fragment for fragment in fragments if len(fragment.split()) > 2]
    assert len(long) > 400
    assert [fragment for fragment in long if fragment not in page] == []


def test_every_message_has_a_group():
    messages = PAGE["all_messages"]()
    found = {PAGE["group"](message) for message in messages}
    assert found == set(PAGE["GROUPS"]) == set(PAGE["_ORDER"])
    of = {
        message.file: PAGE["group"](message)
        for message in messages
        if message.type == "DivergedError"
    }
    assert set(of.values()) == {"Training"}


def test_a_message_is_known_again():
    (diverged,) = [
        m
        for m in PAGE["all_messages"]()
        if PAGE["shown"](m.text).startswith("Training diverged: the loss be")
    ]
    assert PAGE["shown"](diverged.text) == (
        "Training diverged: the loss became infinite or NaN in epoch <n epochs>, at a "
        "learning rate of <eta>."
    )
    assert diverged.begins(
        "Training diverged: the loss became infinite or NaN in epoch 2, at a "
        "learning rate of 1e+30."
    )
    assert not diverged.begins("Training diverged: the weights became infinite or NaN in epoch 2.")


def raised():
    """Return the messages on the page "Troubleshooting"."""
    blocks = re.findall(
        r"^Traceback.*?\n    \.\.\.\n(.*?)(?=\n\n|\n>>>|\Z)",
        TROUBLESHOOTING,
        re.DOTALL | re.MULTILINE,
    )
    return [" ".join(block.split()).partition(": ")[2] for block in blocks]


@pytest.mark.parametrize("text", raised())
def test_an_explained_message_is_one_of_the_code(text):
    of_skort = any(message.begins(text) for message in PAGE["all_messages"]())
    assert of_skort != text.startswith(OF_OTHERS)


class SameMessage(doctest.OutputChecker):
    """
    Compares messages with their numbers to a hundredth, as other runtimes round otherwise,
    and without the order of sets.
    """

    NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")

    def check_output(self, want, got, optionflags):
        if super().check_output(want, got, optionflags):
            return True
        if re.match(r"[\w.]+(Error|Warning): ", want) is None:
            return False
        want, got = self.without_order(want), self.without_order(got)
        return self.NUMBER.sub("0", want) == self.NUMBER.sub("0", got) and np.allclose(
            self.numbers(want), self.numbers(got), rtol=0.01, atol=0
        )

    def without_order(self, text):
        return re.sub(
            r"\{(.*?)\}", lambda inside: str(sorted(inside[1].split(", "))), " ".join(text.split())
        )

    def numbers(self, text):
        return [float(number) for number in self.NUMBER.findall(text)]


@pytest.mark.parametrize(
    "printed, is_same",
    [("{'b', 'a'}: 1.004 at 2e-3.", True), ("{'a', 'b'}: 1.02 at 2e-3.", False)],
)
def test_a_message_of_another_runtime_differs_by_rounding(printed, is_same):
    want = "ValueError: {'a', 'b'}: 1.000 at 2e-3.\n"
    assert SameMessage().check_output(want, f"ValueError: {printed}\n", 0) == is_same


# scikit-learn before 1.8, of a pipeline whose steps learn nothing
@pytest.mark.filterwarnings("ignore:This Pipeline instance is not fitted yet:FutureWarning")
def test_the_examples_give_these_messages(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(
        TROUBLESHOOTING, {}, "troubleshooting", "troubleshooting.rst", 0
    )
    runner = doctest.DocTestRunner(SameMessage(), optionflags=doctest.NORMALIZE_WHITESPACE)
    report = []
    runner.run(test, out=report.append)
    assert "".join(report) == ""
    assert runner.tries > 30


@pytest.mark.parametrize(
    "distributions, numpy_version, message",
    [
        (
            {"onnxruntime": "1.26.0", "onnxruntime-training": "1.16.3"},
            "1.26.4",
            installed.mix_advice,
        ),
        ({"onnxruntime-training": "1.16.3"}, "2.4.6", installed._needs_numpy_1),
    ],
    ids=["mixed", "numpy"],
)
def test_messages_of_installs_are_those_of_the_code(
    distributions, numpy_version, message, monkeypatch
):
    monkeypatch.setattr(installed, "installed_distributions", lambda: distributions)
    monkeypatch.setattr(installed, "_numpy_2_only", lambda: ["pandas"])
    monkeypatch.setattr(np, "__version__", numpy_version)
    monkeypatch.setattr(
        installed, "sys", SimpleNamespace(version_info=SimpleNamespace(major=3, minor=13))
    )
    assert message() in " ".join(TROUBLESHOOTING.split())
