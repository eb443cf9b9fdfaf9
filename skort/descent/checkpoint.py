"""The progress of a training in a file, to resume from after a crash."""

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
from skort.descent.standardization import Standardization
from skort.descent.training import Training

__all__ = ["Checkpoint", "load_progress", "save_progress"]

# The prefixes of the arrays' names in the file.
_SOLVER, _BEST, _STANDARDIZATION = "solver/", "best/", "standardization/"


class Checkpoint(BaseEstimator):
    """
    Save the progress of a training, or resume from a saved one.

    A resumed training ends with the same bytes as one that was never interrupted, given the same data and parameters.
    Put a `Checkpoint` last in the list, so that it saves the other callbacks' columns of the history, too.

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
        if self.resume_from is not None and training.n_epochs == 0:
            training.restore(load_progress(self.resume_from))

    def on_epoch_end(self, training: Training) -> None:
        """Save after every `every` epochs."""
        if self.path is not None and training.n_epochs % self.every == 0:
            save_progress(training.progress(), self.path)


def save_progress(progress: Progress, path: str | os.PathLike) -> None:
    """
    Write a progress to a file; an existing file is replaced.

    Parameters
    ----------
    progress : Progress
        Of a training that has begun.
    path : str or path-like
    """
    path = pathlib.Path(path)
    arrays = {f"{_SOLVER}{name}": array for name, array in (progress.solver or {}).items()}
    arrays |= {f"{_BEST}{name}": array for name, array in (progress.best or {}).items()}
    if progress.standardization is not None:
        arrays |= {f"{_STANDARDIZATION}{name}": a for name, a in progress.standardization.arrays().items()}
    others = {
        "n_updates": progress.n_updates,
        "n_falls": progress.n_falls,
        "stopped": progress.stopped,
        "random_state": progress.random_state,
        "history": progress.rows(),
        "rate_scale": progress.rate_scale,
        "row_norm": progress.row_norm,
    }
    unfinished = path.with_name(path.name + ".tmp")
    with unfinished.open("wb") as file:
        np.savez(file, json=json.dumps(others, default=lambda value: value.tolist()), **arrays)
    unfinished.replace(path)


def load_progress(path: str | os.PathLike) -> Progress:
    """
    Read a progress from a file that `save_progress` wrote.

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
        If the file is no checkpoint.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            others = json.loads(str(arrays["json"]))
            solver, best, standardization = (
                {name.removeprefix(part): arrays[name] for name in arrays.files if name.startswith(part)}
                for part in (_SOLVER, _BEST, _STANDARDIZATION)
            )
        history = History(others.pop("history"))
        return Progress(
            solver=solver,
            best=best or None,
            history=history,
            n_epochs=history.n_epochs,
            columns=tuple(history),
            standardization=Standardization.of_arrays(standardization),
            **others,
        )
    except (AttributeError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"resume_from={str(path)!r} is no checkpoint of a training.") from error
