"""The progress of a training in a file, to resume from after a crash."""

import hashlib
import io
import json
import math
import os
import pathlib
import zipfile
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from skort.common.files import file_at, write_file
from skort.common.random_state import generator_of
from skort.optim.standardization import Standardization
from skort.optim.state import History, TrainState
from skort.optim.training import Training
from skort.version import __version__

# The prefixes of the arrays' names in the file.
_SOLVER, _BEST, _STANDARDIZATION, _START = "solver/", "best/", "standardization/", "penalty_start/"
_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


class Checkpoint(BaseEstimator):
    """
    Save the progress of a training, or resume from a saved one.

    With the same data and parameters, a resumed training ends with the same weights as one that was never interrupted,
    bit for bit. A `Checkpoint` saves after all other callbacks have seen the epoch, at any place in the list.

    The file has no code in it, and is checked when it is read.

    Parameters
    ----------
    path : str, path-like or None, default=None
        The file to write: weights, the optimizer's memory, averages, the state of the random generator and the history.
        The whole file is replaced, so that it is never half written. None: save nothing.
    every : int, default=1
        Save after each epoch whose number is a multiple of this.
    resume_from : str, path-like or None, default=None
        The file to resume from. `max_iter` includes its epochs, and a training that had stopped stays stopped.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from skort import OrtSGDRegressor
    >>> from skort.callbacks import Checkpoint
    >>> X, y = load_diabetes(return_X_y=True)
    >>> path = os.path.join(tempfile.mkdtemp(), "training.npz")
    >>> first = OrtSGDRegressor(max_iter=3, tol=None, random_state=0, callbacks=[Checkpoint(path)]).fit(scale(X), y)
    >>> rest = OrtSGDRegressor(max_iter=5, tol=None, callbacks=[Checkpoint(resume_from=path)]).fit(scale(X), y)
    >>> whole = OrtSGDRegressor(max_iter=5, tol=None, random_state=0).fit(scale(X), y)
    >>> rest.onnx_.SerializeToString() == whole.onnx_.SerializeToString()
    True
    """

    __module__ = "skort.callbacks"
    _parameter_constraints = {
        "path": [str, os.PathLike, None],
        "every": [Interval(Integral, 1, None, closed="left")],
        "resume_from": [str, os.PathLike, None],
    }

    def __init__(
        self, path: str | os.PathLike | None = None, every: int = 1, resume_from: str | os.PathLike | None = None
    ):
        self.path = path
        self.every = every
        self.resume_from = resume_from

    def on_train_begin(self, training: Training) -> None:
        """Resume from `resume_from`, unless the training continues an earlier `partial_fit`."""
        if self.path is not None:
            # Better now than after an epoch.
            file_at(self.path)
        if self.resume_from is not None and training.n_epochs == 0:
            training.restore(load_progress(self.resume_from, _shapes(training)))

    def on_epoch_end(self, training: Training) -> None:
        """Save after every `every` epochs."""
        if self.path is not None and training.n_epochs % self.every == 0:
            save_progress(training.progress(), self.path, _shapes(training))


def _shapes(training):
    return {name: list(array.shape) for name, array in training.weights().items()}


def save_progress(progress: TrainState, path: str | os.PathLike, shapes: Mapping[str, list[int]] | None = None) -> None:
    """Write the progress of a training to a file; `shapes` of the trained weights are checked when it is read."""
    arrays = {f"{_SOLVER}{name}": array for name, array in (progress.solver or {}).items()}
    arrays |= {f"{_BEST}{name}": array for name, array in (progress.best or {}).items()}
    arrays |= {f"{_START}{name}": array for name, array in (progress.penalty_start or {}).items()}
    if progress.standardization is not None:
        arrays |= {f"{_STANDARDIZATION}{name}": a for name, a in progress.standardization.arrays().items()}
    others = {
        "n_updates": progress.n_updates,
        "n_falls": progress.n_falls,
        "stopped": progress.stopped,
        "stopping_reason": progress.stopping_reason,
        "random_state": progress.random_state,
        "history": progress.rows(),
        "rate_scale": progress.rate_scale,
        "row_norm": progress.row_norm,
        "shapes": shapes,
        "version": __version__,
    }
    arrays["json"] = np.array(json.dumps(others, default=lambda value: value.tolist()))
    file = io.BytesIO()
    np.savez(file, checksum=_checksum(arrays), **arrays)
    write_file(path, file.getvalue())


def _checksum(arrays):
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def load_progress(path: str | os.PathLike, shapes: Mapping[str, list[int]] | None = None) -> TrainState:
    """Read what `save_progress` wrote; raise a ValueError where it is no checkpoint, damaged, or of another model."""
    content = pathlib.Path(path).read_bytes()
    # zipfile, numpy and json raise errors of all kinds on damaged bytes.
    try:
        arrays = _arrays(content)
        checksum = str(arrays.pop("checksum"))
        others = json.loads(str(arrays["json"]))
        damage = "its checksum is that of other values" if checksum != _checksum(arrays) else _damage(others, arrays)
        saved = others.pop("shapes")
        progress = None if damage else _progress(others, arrays)
    except Exception as error:
        raise ValueError(f"resume_from={str(path)!r} is no checkpoint of a training.") from error
    if progress is None:
        raise ValueError(f"resume_from={str(path)!r} is a damaged checkpoint: {damage}.")
    if saved is not None and shapes is not None and saved != dict(shapes):
        raise ValueError(
            f"resume_from={str(path)!r} is the checkpoint of another model: its weights are {saved}, expected "
            f"{dict(shapes)}."
        )
    return progress


def _arrays(content):
    """Return the arrays of a file that `numpy.savez` wrote; compressed ones, which may be huge, are refused."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if any(item.compress_type != zipfile.ZIP_STORED for item in archive.infolist()):
            raise ValueError("It is compressed.")
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _progress(others, arrays):
    solver, best, standardization, start = (
        {name.removeprefix(part): array for name, array in arrays.items() if name.startswith(part)}
        for part in (_SOLVER, _BEST, _STANDARDIZATION, _START)
    )
    del others["version"]
    history = History(others.pop("history"))
    return TrainState(
        solver=solver,
        best=best or None,
        history=history,
        n_epochs=history.n_epochs,
        columns=tuple(history),
        standardization=Standardization.of_arrays(standardization),
        penalty_start=start or None,
        **others,
    )


def _damage(others: dict[str, Any], arrays: dict[str, np.ndarray]) -> str | None:
    """Return why a checkpoint is invalid; None where it is not."""
    for name in ("n_updates", "n_falls"):
        if type(others[name]) is not int or others[name] < 0:
            return f"{name}={others[name]!r}, expected an integer that is not negative"
    if type(others["stopped"]) is not bool:
        return f"stopped={others['stopped']!r}, expected true or false"
    if not isinstance(others.get("stopping_reason"), str | None):
        return f"stopping_reason={others['stopping_reason']!r}, expected a string or null"
    for name, least in (("rate_scale", 0.0), ("row_norm", -1.0)):
        if not _is_number(others[name]) or not least < others[name] < math.inf:
            return f"{name}={others[name]!r}, expected a finite number"
    if others["random_state"]["bit_generator"] not in _GENERATORS:
        return f"random_state is that of {others['random_state']['bit_generator']!r}, expected one of {_GENERATORS}"
    if not _is_generator(others["random_state"]):
        return "random_state is no state of a random generator"
    columns = others["history"]
    if not all(isinstance(column, list) for column in columns.values()):
        return "the columns of its history are no lists"
    if len({len(column) for column in columns.values()}) != 1:
        return "the columns of its history have not all the same length"
    for name in ("objective", "loss", "eta"):
        if not all(map(_is_number, columns.get(name, ()))):
            return f"the column {name!r} of its history has values that are no numbers"
    for name, array in arrays.items():
        if name != "json" and (array.dtype.kind not in "bif" or not np.isfinite(array).all()):
            return f"{name} has values that are not finite numbers"
    return None


def _is_generator(state):
    """Return whether numpy takes the state of a generator, which reads beyond its numbers at a wrong position."""
    position, in_buffer = state["state"].get("pos", 0), state.get("buffer_pos", 0)
    if not (0 <= position <= 624 and 0 <= in_buffer <= 4):
        return False
    generator_of(state)
    return True


def _is_number(value):
    return type(value) in (int, float)
