"""A training in a file, to go on from after a crash."""

import json
import os
import pathlib
import zipfile
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from skort.descent.history import History
from skort.descent.progress import Progress

__all__ = ["Checkpoint", "load_progress", "save_progress"]

# What stands before the names of the arrays in the file.
_SOLVER, _BEST = "solver/", "best/"


class Checkpoint(BaseEstimator):
    """
    Save everything that a training goes on from, and go on from what was saved.

    A training that goes on from a checkpoint ends with the same bytes as one that was never interrupted, given the same
    data and parameters. Put it behind other callbacks: their columns of the history are saved too.

    Parameters
    ----------
    path : str, path-like or None, default=None
        The file to write: weights, the optimizer's memory, averages, the state of the random generator and the history.
        It is replaced as a whole, never half written. None: nothing is saved.
    every : int, default=1
        Save after every so many epochs.
    resume_from : str, path-like or None, default=None
        The file to go on from. `max_iter` counts its epochs too, and a training that had stopped stays so.

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

    _parameter_constraints = {
        "path": [str, os.PathLike, None],
        "every": [Interval(Integral, 1, None, closed="left")],
        "resume_from": [str, os.PathLike, None],
    }

    def __init__(self, path=None, every=1, resume_from=None):
        self.path = path
        self.every = every
        self.resume_from = resume_from

    def on_train_begin(self, training):
        """Go on from `resume_from`, unless this goes on from an earlier `partial_fit` already."""
        if self.resume_from is not None and training.n_epochs == 0:
            training.restore(load_progress(self.resume_from))

    def on_epoch_end(self, training):
        """Save, every `every` epochs."""
        if self.path is not None and training.n_epochs % self.every == 0:
            save_progress(training.progress(), self.path)


def save_progress(progress: Progress, path: str | os.PathLike) -> None:
    """
    Write a progress to a file, in place of what is there.

    Parameters
    ----------
    progress : Progress
        Of a training that has begun.
    path : str or path-like
    """
    path = pathlib.Path(path)
    arrays = {f"{_SOLVER}{name}": array for name, array in (progress.solver or {}).items()}
    arrays |= {f"{_BEST}{name}": array for name, array in (progress.best or {}).items()}
    others = {
        "n_updates": progress.n_updates,
        "n_falls": progress.n_falls,
        "stopped": progress.stopped,
        "random_state": progress.random_state,
        "history": progress.rows(),
    }
    unfinished = path.with_name(path.name + ".tmp")
    with unfinished.open("wb") as file:
        np.savez(file, json=json.dumps(others, default=lambda value: value.tolist()), **arrays)
    unfinished.replace(path)


def load_progress(path: str | os.PathLike) -> Progress:
    """
    Read a progress from a file of `save_progress`.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    progress : Progress

    Raises
    ------
    FileNotFoundError
    ValueError
        Where the file is no checkpoint.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            others = json.loads(str(arrays["json"]))
            solver, best = (
                {name.removeprefix(part): arrays[name] for name in arrays.files if name.startswith(part)}
                for part in (_SOLVER, _BEST)
            )
        history = History(others.pop("history"))
        return Progress(
            solver=solver,
            best=best or None,
            history=history,
            n_epochs=history.n_epochs,
            columns=tuple(history),
            **others,
        )
    except (AttributeError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"resume_from={str(path)!r} is no checkpoint of a training.") from error
