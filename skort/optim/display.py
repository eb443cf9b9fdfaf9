"""
Callbacks that show a training while it runs:
a table of its epochs, a bar, or a run of MLflow.
"""

import pathlib
import sys
import tempfile
import time
from dataclasses import dataclass
from numbers import Real
from typing import Any

from sklearn.base import BaseEstimator

from skort.common.component import Component
from skort.optim.state import History, best_epoch
from skort.optim.training import Training

_VALIDATION_SCORE = "validation_score"
# The first columns of the table. Those of callbacks come after them.
_FIRST = ("loss", "objective", _VALIDATION_SCORE, "eta", "gradient_norm", "seconds")
# "-1.234e-05"
_WIDTH = 10


class EpochLines(Component):
    """
    Print the history as a table with a row for each epoch, and why the training stopped,
    as `verbose=2` does.

    `verbose=2` also prints the plan, before the first epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from skort import OrtSGDRegressor
    >>> from skort.callbacks import EpochLines
    >>> model = OrtSGDRegressor(callbacks=[EpochLines()], eta0=0.1, max_iter=2, tol=None)
    >>> model = model.fit(np.eye(2), [1.0, 3.0])  # doctest: +ELLIPSIS
    epoch        loss   objective         eta  gradient_norm     seconds
        1         0.5         0.5         0.1          1.414       ...
        2        0.32        0.32         0.1          1.131       ...
    The training reached max_iter=2 epochs.
    """

    __module__ = "skort.callbacks"

    def on_train_begin(self, training: Training) -> None:
        """Forget the last training."""
        self._header: str | None = None
        self._is_one_epoch = training.max_iter is None

    def on_train_restart(self, training: Training) -> None:
        """Say that the rows so far are forgotten."""
        print_line("The training begins again at a tenth of the learning rate.")

    def on_epoch_end(self, training: Training) -> None:
        """Print the last row of the history, below the names of its columns if these are new."""
        epoch = training.n_epochs
        history = training.history
        columns = [
            *(name for name in _FIRST if name in history),
            *(name for name in history if name not in _FIRST),
        ]
        header = _line("epoch", {name: name for name in columns})

        # All calls of a `partial_fit` make one table.
        goes_on = self._is_one_epoch and epoch > 1
        if header != self._header and not goes_on:
            print_line(header)
        self._header = header
        print_line(_line(str(epoch), {name: _cell(history, name) for name in columns}))

    def on_train_end(self, training: Training) -> None:
        """Print why the training stopped. An error says so itself."""
        if training.stopping_reason is not None:
            print_line(training.stopping_reason)


def _line(epoch: str, cells: dict[str, str]) -> str:
    return "  ".join(
        [f"{epoch:>5}", *(f"{cell:>{max(len(name), _WIDTH)}}" for name, cell in cells.items())]
    )


def _cell(history: History, name: str) -> str:
    """Return the value of the last epoch, or nothing if the column has none."""
    if len(history[name]) < history.n_epochs:
        return ""

    value = history[name][-1]
    if not isinstance(value, Real):
        return str(value)

    return f"{value:.3f}" if name == "seconds" else f"{value:.4g}"


def bar(total: int | None, unit: str, initial: int = 0) -> Any:
    """Return a bar of tqdm, or None without a terminal or notebook."""
    is_seen = "ipykernel" in sys.modules or getattr(sys.stderr, "isatty", bool)()
    if not (_is_open(sys.stderr) and is_seen):
        return None

    from tqdm.auto import tqdm

    return tqdm(total=total, initial=initial, unit=unit)


class ProgressBar(Component):
    """
    Show a tqdm bar over epochs, as `verbose=1` does;
    without a terminal or notebook, one line at the end.

    It shows the last objective and the last validation score, and ends with the reason why the
    training stopped.

    Examples
    --------
    >>> from skort import OrtSGDRegressor
    >>> from skort.callbacks import ProgressBar
    >>> X, y = [[-1.0], [0.0], [1.0]], [1.0, 3.0, 5.0]
    >>> model = OrtSGDRegressor(callbacks=[ProgressBar()]).fit(X, y)
    """

    __module__ = "skort.callbacks"

    def on_train_begin(self, training: Training) -> None:
        """Show the bar."""
        self._begin = time.perf_counter()
        self._bar = bar(training.max_iter, "epoch", training.n_epochs)

    def on_epoch_end(self, training: Training) -> None:
        """Move the bar by one epoch."""
        if self._bar is not None:
            self._bar.set_postfix_str(", ".join(_last_values(training.history)), refresh=False)
            self._bar.update()

    def on_train_restart(self, training: Training) -> None:
        """Begin the bar anew."""
        if self._bar is not None:
            self._bar.reset()

    def on_train_end(self, training: Training) -> None:
        """Fill the bar and close it, and print why the training stopped. An error says so itself."""
        shown_bar = self._bar
        self._bar = None
        reason = training.stopping_reason
        history = training.history

        if shown_bar is not None:
            # TQDM_DISABLE asks for silence. A closed bar is disabled.
            is_shown = not shown_bar.disable
            # A training that has stopped is done, whatever number of epochs was planned.
            shown_bar.total = training.n_epochs if training.stopped else shown_bar.total
            shown_bar.refresh()
            shown_bar.close()
            if reason is not None and is_shown:
                print(reason, file=shown_bar.fp, flush=True)
        elif reason is not None and _is_open(sys.stderr):
            n_epochs = training.n_epochs
            seconds = time.perf_counter() - self._begin
            epochs = "1 epoch" if n_epochs == 1 else f"{n_epochs} epochs"
            best = best_epoch(history.get(_VALIDATION_SCORE, ()))
            shown = [] if best is None else [f"the best is {best[1]:.4g} in epoch {best[0]}"]
            values = ", ".join([*_last_values(history), *shown])
            by = "" if training.optimizer is None else f" of {type(training.optimizer).__name__}"
            print(
                f"{epochs}{by} in {seconds:.2f} s: {values}. {reason}", file=sys.stderr, flush=True
            )


def _is_open(stream: Any) -> bool:
    """Return whether a stream can be written to. Without a console, as in pythonw, it is None."""
    return stream is not None and not getattr(stream, "closed", False)


def print_line(line: str) -> None:
    """Print a line, unless the output is closed."""
    if _is_open(sys.stdout):
        print(line, flush=True)


def _last_values(history: History) -> list[str]:
    cells = {
        name: _cell(history, name) for name in ("objective", _VALIDATION_SCORE) if name in history
    }
    return [f"{name}={cell}" for name, cell in cells.items() if cell]


@dataclass(eq=False, repr=False)
class MLflowLogger(Component):
    """
    Log the training in MLflow, in the active run or in one of its own.

    It logs the parameters of the estimator, the numbers of the history after each epoch, and the
    tag "stopping_reason". Put callbacks that add columns to the history before it. It needs mlflow:
    ``pip install mlflow``.

    Parameters
    ----------
    log_model : bool, default=False
        Whether the trained model is logged at the end, as the artifact "model.onnx".

    Examples
    --------
    >>> from skort import OrtSGDRegressor
    >>> from skort.callbacks import MLflowLogger
    >>> model = OrtSGDRegressor(callbacks=[MLflowLogger(log_model=True)])
    >>> model.callbacks
    [MLflowLogger(log_model=True)]
    """

    __module__ = "skort.callbacks"
    _parameter_constraints = {"log_model": ["boolean"]}
    _owns_run = False
    log_model: bool = False

    def on_train_begin(self, training: Training) -> None:
        """Begin a run if none is active, and log the parameters."""
        mlflow = _mlflow()
        self._n_epochs = training.n_epochs
        self._owns_run = mlflow.active_run() is None
        if self._owns_run:
            mlflow.start_run()
        parameters = training.trained_model().get_params()
        items = [(name, _shown(value)) for name, value in parameters.items() if name != "callbacks"]

        # A server takes at most 100 of them at once.
        for i in range(0, len(items), 100):
            mlflow.log_params(dict(items[i : i + 100]))

    def on_epoch_end(self, training: Training) -> None:
        """Log the last row of the history."""
        n = training.n_epochs
        columns = (
            (name, column[-1]) for name, column in training.history.items() if len(column) == n
        )
        _mlflow().log_metrics(
            {name: float(value) for name, value in columns if isinstance(value, Real)}, step=n
        )

    def on_train_end(self, training: Training) -> None:
        """Log why the training ended, and the model. End the run if the training began it."""
        mlflow = _mlflow()
        owns_run = self._owns_run
        self._owns_run = False
        reason = training.stopping_reason

        # A `partial_fit` has no reason to end after its epoch. Without a reason, a `fit` has ended
        # by an error.
        succeeded = (
            training.n_epochs > self._n_epochs if training.max_iter is None else reason is not None
        )
        try:
            if reason is not None:
                mlflow.set_tag("stopping_reason", reason)
            if succeeded and self.log_model:
                with tempfile.TemporaryDirectory(prefix="skort-") as folder:
                    path = pathlib.Path(folder, "model.onnx")
                    training.trained_model().save_onnx(path)
                    mlflow.log_artifact(str(path))
        finally:
            if owns_run:
                mlflow.end_run("FINISHED" if succeeded else "FAILED")


def _mlflow():
    try:
        import mlflow
    except ImportError as error:
        raise ImportError(
            f"MLflowLogger needs mlflow ({error}). Install it: pip install mlflow."
        ) from error

    return mlflow


def _shown(value):
    """Return the value of a parameter for MLflow: as text, or as a type if it is an array or a model."""
    is_short = value is None or isinstance(value, (str, Real, tuple, list, dict, BaseEstimator))
    return str(value)[:500] if is_short else type(value).__name__
