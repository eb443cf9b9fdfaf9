"""
Write the page "All messages": the text of every error and every warning,
by what the user was doing.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from messages import Message, Slot, all_messages, shown  # beside this file

# A message is in the first group with a type of its own, a word of its text, or a beginning of
# its file's name.
GROUPS = {
    "Install and devices": (
        {"RuntimeNotAvailableError", "ImportError"},
        ("needs the program",),
        ("runtime/installed", "runtime/device", "estimators/planning/threads"),
    ),
    "Export to ONNX and to scikit-learn": (
        {"NotExportableError"},
        (
            "will have no ONNX",
            "gives other values as ONNX",
            "original=True",
            "target_opset",
            "given back",
            "no place for",
        ),
        (
            "graphs/export",
            "graphs/sklearn/registration",
            "graphs/sklearn/transformers",
            "graphs/sklearn/text",
        ),
    ),
    "Dask": (set(), (), ("dask/",)),
    "Devices: on-device training": (
        set(),
        (),
        ("artifacts/", "runtime/checkpoint_file", "runtime/module"),
    ),
    "torch and gradients": (set(), (), ("torch", "gradients", "graphs/gradient/")),
    "Files and checkpoints": (set(), ("The checkpoint is ",), ("common/files", "optim/checkpoint")),
    "Streaming and custom batches": (
        set(),
        ("partial_fit", "fit_batches", "earlier calls", "batches", "warm_start"),
        (
            "estimators/data/first_pass",
            "estimators/training/data_source",
            "estimators/training/read",
            "estimators/training/without_rows",
            "optim/batches",
            "step",
        ),
    ),
    "Training": (
        {"DivergedError", "ConvergenceWarning"},
        ("Training", "scoring"),
        (
            "optim/loop",
            "optim/training",
            "estimators/training/diverged",
            "estimators/training/no_better_than_constant",
            "estimators/training/warnings_",
        ),
    ),
    "Data": (
        set(),
        (
            "y is ",
            "y has ",
            "X has ",
            "y contains",
            "takes y ",
            "Sample weights",
            "sample_weight",
            "validation set",
        ),
        (
            "estimators/data/targets",
            "estimators/data/row",
            "estimators/data/sample_weight",
            "estimators/data/validation_set",
            "estimators/regressor",
            "graphs/sklearn/raw_inputs",
        ),
    ),
    "The model inside": (
        {"NotTrainableError"},
        ("estimator: ", "estimator=", "ONNX model"),
        ("graphs/", "estimators/model/wrapped", "estimators/data/nesting", "onnx_models"),
    ),
    "Parameters": (set(), (), ("",)),
}

# The errors with these names never reach a user alone: others quote them.
_QUOTED = {"UnlikeError", "_ConversionError", "IndexError"}


def group(message: Message) -> str:
    """Return the title of the group of a message."""
    plain = shown(message.text)
    for title, (types, words, files) in GROUPS.items():
        if (
            message.type in types
            or any(word in plain for word in words)
            or message.file.startswith(files)
        ):
            return title
    raise KeyError(message.file)


TITLE = """\
All messages
============

All errors and warnings of skort. Search this page for a few words of your message. :doc:`troubleshooting` explains the
most frequent ones.

- :samp:`{<name>}`: a value, such as a name or a number.
- [Brackets]: optional; a | b: alternatives.
- scikit-learn checks X, y and the parameters first. Its errors are not listed.

"""

TABLE = """\
.. list-table::
    :header-rows: 1
    :widths: 75 25

    * - message
      - raised as
"""


def page() -> str:
    """Return the page, in reStructuredText."""
    found, parts = all_messages(), [TITLE]
    for title in sorted(GROUPS, key=_ORDER.index):
        parts.append(f"{title}\n{'-' * len(title)}\n\n{TABLE}")
        for message in sorted(
            (m for m in found if group(m) == title), key=lambda m: shown(m.text).lower()
        ):
            kind = "quoted by others" if _is_quoted(message) else f"``{message.type}``"
            parts.append(
                f"    * - {_literal(message.text)}\n{_sentences(message.text)}      - {kind}\n"
            )
        parts.append("\n")
    return "".join(parts)


_ORDER = (
    "Install and devices",
    "Data",
    "Parameters",
    "The model inside",
    "Training",
    "Streaming and custom batches",
    "Export to ONNX and to scikit-learn",
    "Files and checkpoints",
    "Dask",
    "torch and gradients",
    "Devices: on-device training",
)


def _is_quoted(message):
    return message.type in _QUOTED or shown(message.text).startswith(
        ("it ", "its ", "It ", "the shape of", "the values of")
    )


def _sentences(text):
    """Return a list of the sentences that a slot is made from; empty where there are none."""
    slots = {piece.name: piece.texts for piece in text if isinstance(piece, Slot) and piece.texts}
    return "".join(
        f"\n        :samp:`{{<{name}>}}` consists of some of these:\n\n"
        + "".join(f"        - {_literal(sentence)}\n" for sentence in dict.fromkeys(texts))
        for name, texts in slots.items()
    )


def _escaped(text):
    """
    Return text for the role `samp`: it reads a backslash and a brace itself,
    reStructuredText reads a backtick.
    """
    return re.sub(r"([\\{}])", r"\\\\\1", text).replace("`", r"\`")


def _literal(text):
    """Return a text as literal text whose slots are emphasised."""
    written = shown(text, lambda slot: f"{{<{slot}>}}", _escaped).strip()
    return f":samp:`{' '.join(written.split())}`"


if __name__ == "__main__":
    Path(__file__).with_name("messages.rst").write_text(page())
