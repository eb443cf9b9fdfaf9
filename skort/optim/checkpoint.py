"""The state of a training in a file, to resume from after a crash."""

import hashlib
import io
import json
import math
import os
import pathlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from skort.common.component import Component
from skort.common.files import file_at, write_file
from skort.common.random_state import generator_of
from skort.common.sklearn_private import Interval
from skort.optim.standardization import Standardization
from skort.optim.state import History, TrainState
from skort.optim.training import Training
from skort.version import __version__

# The fields of a TrainState that are arrays by name. In a file, their names are like
# "solver/weights".
_HOLDING_ARRAYS = ("solver", "best", "penalty_start", "standardization")


def _is_number(value):
    return type(value) in (int, float)


_COUNT = (lambda value: type(value) is int and value >= 0, "an integer that is not negative")
# The other fields: a test of the value in a file, and the value that it should be, in words.
_VALUES = {
    "n_updates": _COUNT,
    "n_falls": _COUNT,
    "stopped": (lambda value: type(value) is bool, "true or false"),
    "stopping_reason": (lambda value: isinstance(value, str | None), "a string or null"),
    "first_objective": (lambda value: value is None or _is_number(value), "a number or null"),
    "rate_scale": (lambda value: _is_number(value) and 0 < value < math.inf, "a finite number"),
    "n_in_rate": (lambda value: value is None or _COUNT[0](value), f"{_COUNT[1]}, or null"),
    "is_rate_found": (lambda value: type(value) is bool, "true or false"),
}
_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


@dataclass(eq=False, repr=False)
class Checkpoint(Component):
    """
    Save the state of a training, or resume from a saved one.

    With the same data and parameters, a resumed training ends with the same weights as one that was
    never interrupted, bit for bit. A `Checkpoint` saves after all other callbacks have seen the
    epoch, at any place in the list. The file has no code in it, and is checked when it is read. A
    stream of `partial_fit`, whose rows are others in each call, is kept by a pickle instead.

    Parameters
    ----------
    path : str, path-like or None, default=None
        The file to write: weights, the optimizer's memory, averages, the state of the random
        generator and the history. The whole file is replaced, so that it is never half written.
        None: save nothing.
    every : int, default=1
        Save after each epoch whose number is a multiple of this.
    resume_from : str, path-like or None, default=None
        The file to resume from. `max_iter` includes its epochs, and a training that had stopped
        stays stopped.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from skort import OrtSGDRegressor
    >>> from skort.callbacks import Checkpoint
    >>> X, y = load_diabetes(return_X_y=True)
    >>> path = os.path.join(tempfile.mkdtemp(), "training.npz")
    >>> options = {"optimizer": "sgd", "tol": None, "random_state": 0}
    >>> first = OrtSGDRegressor(max_iter=3, callbacks=[Checkpoint(path)], **options)
    >>> first = first.fit(scale(X), y)
    >>> rest = OrtSGDRegressor(max_iter=5, callbacks=[Checkpoint(resume_from=path)], **options)
    >>> rest = rest.fit(scale(X), y)
    >>> whole = OrtSGDRegressor(max_iter=5, **options).fit(scale(X), y)
    >>> rest.onnx_.SerializeToString() == whole.onnx_.SerializeToString()
    True
    """

    __module__ = "skort.callbacks"
    _parameter_constraints = {
        "path": [str, os.PathLike, None],
        "every": [Interval(Integral, 1, None, closed="left")],
        "resume_from": [str, os.PathLike, None],
    }
    path: str | os.PathLike[str] | None = None
    every: int = 1
    resume_from: str | os.PathLike[str] | None = None
    #: Other callbacks come first: their decisions and columns are saved, too.
    comes_last = True

    def on_train_begin(self, training: Training) -> None:
        """Resume from `resume_from`, unless the training continues an earlier `partial_fit`."""
        if self.path is not None:
            # An error now is better than one after an epoch.
            file_at(self.path)
        if self.resume_from is not None and training.n_epochs == 0:
            training.restore(load_state(self.resume_from, _shapes(training)))

    def on_epoch_end(self, training: Training) -> None:
        """Save after every `every` epochs."""
        if self.path is not None and training.n_epochs % self.every == 0:
            save_state(training.state(), self.path, _shapes(training))


def _shapes(training):
    return {name: list(array.shape) for name, array in training.weights().items()}


def save_state(
    state: TrainState, path: str | os.PathLike[str], shapes: Mapping[str, list[int]] | None = None
) -> None:
    """
    Write the state of a training to a file, with the `shapes` of the trained weights, which are
    checked when it is read.
    """
    held = {part: getattr(state, part) for part in _HOLDING_ARRAYS}
    if state.standardization is not None:
        held["standardization"] = state.standardization.arrays()
    arrays = {
        f"{part}/{name}": array for part in held for name, array in (held[part] or {}).items()
    }
    others = {name: getattr(state, name) for name in (*_VALUES, "random_state")}
    others |= {"history": state.rows(), "shapes": shapes, "version": __version__}
    others["arrays"] = _kinds(arrays)
    arrays["json"] = np.array(json.dumps(others, default=lambda value: value.tolist()))
    file = io.BytesIO()
    np.savez(file, checksum=_checksum(arrays), **arrays)
    write_file(path, file.getvalue())


def _kinds(arrays):
    """Return the dtype and the shape of arrays, by name, as JSON has them."""
    return {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}


def _checksum(arrays):
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def load_state(
    path: str | os.PathLike[str], shapes: Mapping[str, list[int]] | None = None
) -> TrainState:
    """
    Read what `save_state` wrote. Raise a ValueError for a file that is no checkpoint, is damaged,
    or is of another model.
    """
    try:
        content = io.BytesIO(pathlib.Path(path).read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(
            f"resume_from={str(path)!r} does not exist: leave resume_from out of the first training."
        ) from None
    # For damaged bytes, zipfile, numpy and json raise errors of all kinds.
    try:
        with zipfile.ZipFile(content) as archive:
            # Compressed arrays may be huge.
            if any(item.compress_type != zipfile.ZIP_STORED for item in archive.infolist()):
                raise ValueError("It is compressed.")

        with np.load(content, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        checksum = str(arrays.pop("checksum"))
        others = {"stopping_reason": None, "first_objective": None} | json.loads(
            str(arrays["json"])
        )
        kinds = others.pop("arrays", None)
        damage = (
            "its checksum is that of other values"
            if checksum != _checksum(arrays)
            else _damage_of_names(kinds, arrays) or _damage(others, arrays)
        )
        saved = others.pop("shapes")
        state = None if damage else _state_of(others, arrays)
    except Exception as error:
        raise ValueError(f"resume_from={str(path)!r} is no checkpoint of a training.") from error

    if state is None:
        raise ValueError(f"resume_from={str(path)!r} is a damaged checkpoint: {damage}.")
    if saved is not None and shapes is not None and saved != dict(shapes):
        raise ValueError(
            f"resume_from={str(path)!r} is the checkpoint of another model: its weights are "
            f"{saved}, expected {dict(shapes)}."
        )

    return state


def _state_of(others, arrays):
    held: dict[str, Any] = {
        part: {
            name.partition("/")[2]: array
            for name, array in arrays.items()
            if name.startswith(f"{part}/")
        }
        or None
        for part in _HOLDING_ARRAYS
    }
    held["standardization"] = Standardization.of_arrays(held["standardization"] or {})
    del others["version"]
    history = History(others.pop("history"))

    return TrainState(
        history=history, n_epochs=history.n_epochs, columns=tuple(history), **held, **others
    )


def _damage(others: dict[str, Any], arrays: dict[str, np.ndarray]) -> str | None:
    """Return why a checkpoint is invalid, or None if it is valid."""
    for name, (is_valid, expected) in _VALUES.items():
        if not is_valid(others[name]):
            return f"{name}={others[name]!r}, expected {expected}"

    return (
        _damage_of_generator(others["random_state"])
        or _damage_of_history(others["history"])
        or _damage_of_arrays(arrays)
    )


def _damage_of_generator(state: dict[str, Any]) -> str | None:
    """Return why the state of a random generator is invalid, or None if it is valid."""
    if state["bit_generator"] not in _GENERATORS:
        return f"random_state is that of {state['bit_generator']!r}, expected one of {_GENERATORS}"
    # At a wrong position, numpy would read beyond its numbers.
    if not (0 <= state["state"].get("pos", 0) <= 624 and 0 <= state.get("buffer_pos", 0) <= 4):
        return "random_state is no state of a random generator"

    # Another state raises an error here.
    generator_of(state)
    return None


def _damage_of_history(columns: dict[str, Any]) -> str | None:
    """Return why the columns of a history are invalid, or None if they are valid."""
    if not all(isinstance(column, list) for column in columns.values()):
        return "the columns of its history are no lists"
    if len({len(column) for column in columns.values()}) != 1:
        return "the columns of its history have not all the same length"

    for name in ("objective", "loss", "eta"):
        if not all(map(_is_number, columns.get(name, ()))):
            return f"the column {name!r} of its history has values that are no numbers"

    return None


def _damage_of_names(
    kinds: dict[str, list[Any]] | None, arrays: dict[str, np.ndarray]
) -> str | None:
    """Return which arrays of a checkpoint are missing or not expected, or None."""
    given = _kinds({name: array for name, array in arrays.items() if name != "json"})
    if not any(name.startswith("solver/") for name in given):
        return "it has no weights"
    if kinds is not None and given != kinds:
        return f"it has the arrays {given}, expected {kinds}"

    return None


def _damage_of_arrays(arrays: dict[str, np.ndarray]) -> str | None:
    """Return why the arrays of a checkpoint are invalid, or None if they are valid."""
    for name, array in arrays.items():
        if name != "json" and (array.dtype.kind not in "bif" or not np.isfinite(array).all()):
            return f"{name} has values that are not finite numbers"
    return None
