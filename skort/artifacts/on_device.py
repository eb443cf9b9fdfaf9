"""Training from the files of `save_training_artifacts`, with a build for training."""

import math
import os
import pathlib
import tempfile
from numbers import Real

import numpy as np
from onnx import helper

from skort.artifacts.saved import (
    CHECKPOINT,
    EVAL,
    OPTIMIZER,
    PREDICTIONS,
    TRAINING,
    artifact,
    checkpoint_at,
    model_at,
)
from skort.common.files import write_file
from skort.runtime.checkpoint_file import (
    release_here,
    releases,
    version_here,
    with_checksum,
)
from skort.runtime.installed import load
from skort.runtime.module import ModuleSession

_ACCUMULATED = ".accumulation.out"


class OnDeviceTraining:
    """
    Train from the files of `save_training_artifacts`, as a device does.

    It needs numpy and a build of ONNX Runtime for training; torch and the estimator are not needed.

    Parameters
    ----------
    folder : str or path-like
    prefix : str, default=""
        The prefix of the names of the files.
    checkpoint : str, path-like or None, default=None
        The checkpoint to start from. None: the one in the folder.

    Raises
    ------
    FileNotFoundError, ValueError
        If a file cannot be read, if a file other than the optimizer model is missing, or if the
        checkpoint is that of another model.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from skort import OrtSGDRegressor
    >>> from skort.artifacts import OnDeviceTraining, save_training_artifacts
    >>> X, y = load_diabetes(return_X_y=True)
    >>> batch = X[:20].astype(np.float32), y[:20, None].astype(np.float32)
    >>> model = OrtSGDRegressor(max_iter=3, tol=None, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_training_artifacts(model, folder, batch_size=20)
    ...     device = OnDeviceTraining(folder)
    >>> losses = [float(device.train_step(*batch)["loss"]) for _ in range(10)]
    >>> losses[-1] < losses[0]
    True
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        prefix: str = "",
        checkpoint: str | os.PathLike[str] | None = None,
    ):
        training, evaluation = (artifact(folder, prefix, name) for name in (TRAINING, EVAL))
        path = (
            artifact(folder, prefix, CHECKPOINT) if checkpoint is None else pathlib.Path(checkpoint)
        )
        graph = model_at(training).graph
        parameters = checkpoint_at(path)
        arrays = {**parameters.trainable, **parameters.frozen}
        self._trainable = list(parameters.trainable)
        self._inputs = _user_inputs(graph, arrays)
        self._outputs = [o.name for o in graph.output if not o.name.endswith(_ACCUMULATED)]
        _check_parameters(graph, arrays, path)
        if parameters.version != version_here():
            raise ValueError(
                f"{str(path)!r} is for ONNX Runtime {releases(parameters.version)}, and "
                f"{load().__version__} is installed: save the artifacts with "
                f'ort_version="{release_here()}".'
            )

        model = model_at(evaluation)
        self._eval_inputs = _user_inputs(model.graph, arrays)
        self._results = [name for node in model.graph.node for name in node.output]
        props = {prop.key: prop.value for prop in model.metadata_props}
        self._predictions = (
            props[PREDICTIONS].split("\n") if PREDICTIONS in props else self._outputs
        )
        optimizer = pathlib.Path(folder, f"{prefix}{OPTIMIZER}")
        self._session = ModuleSession(
            training, path, evaluation, optimizer if optimizer.is_file() else None
        )

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs of a step, in order."""
        return [name for name, *_ in self._inputs]

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs of a step, the loss first."""
        return list(self._outputs)

    @property
    def learning_rate(self) -> float:
        """
        The learning rate of the next updates, at first 0.001.

        It needs an optimizer model. A checkpoint does not restore it.
        """
        self._check_optimizer()
        return self._session.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._check_optimizer()
        if not isinstance(value, Real) or not math.isfinite(value) or value < 0:
            raise ValueError(
                f"learning_rate must be a finite number that is not negative, got {value!r}."
            )

        self._session.learning_rate = float(value)

    def train_step(self, *arrays: np.ndarray) -> dict[str, np.ndarray]:
        """
        Make one update on a batch.

        Parameters
        ----------
        *arrays : ndarray
            The inputs, in the order of `input_names`. Numbers are converted to float32.

        Returns
        -------
        outputs : dict of str to ndarray
            The outputs before the update, by `output_names`.

        Raises
        ------
        ValueError
            If an array has no rows or another shape than the training model takes, or if there is
            no optimizer model. The parameters stay as they were.
        """
        self._check_optimizer()
        inputs = _checked(arrays, self._inputs)

        try:
            values = self._session.add_gradients(inputs)
        except ValueError:
            # Some gradients may have been added before the error.
            self._session.forget_gradients()
            raise

        self._session.update()
        return dict(zip(self._outputs, values, strict=False))

    def eval_step(self, *arrays: np.ndarray) -> dict[str, np.ndarray]:
        """
        Return the loss of a batch of any size, and the other `output_names`.

        Parameters
        ----------
        *arrays : ndarray
            As for `train_step`.

        Raises
        ------
        ValueError
            If an array has other columns than the eval model takes, or no rows.
        """
        inputs = _checked(arrays, self._eval_inputs)
        return dict(zip(self._outputs, self._session.evaluate(inputs), strict=False))

    def weights(self) -> dict[str, np.ndarray]:
        """Return copies of the trained parameters, by name."""
        return {name: self._session.parameter(name) for name in self._trainable}

    def save_checkpoint(
        self, path: str | os.PathLike[str], *, include_optimizer_state: bool = False
    ) -> None:
        """
        Write the parameters as they are now; an existing file is replaced.

        Parameters
        ----------
        path : str or path-like
        include_optimizer_state : bool, default=False
            Whether to write the optimizer's moments, too, for a training that continues from the
            file.
        """
        self._write(
            path,
            lambda temporary: self._session.save(temporary, with_optimizer=include_optimizer_state),
            with_checksum,
        )

    def export_model_for_inferencing(
        self, path: str | os.PathLike[str], graph_output_names: list[str] | None = None
    ) -> None:
        """
        Write the model with its parameters as they are now, without losses, for any ONNX Runtime.

        Parameters
        ----------
        path : str or path-like
        graph_output_names : list of str or None, default=None
            Names of results of the eval model. None: the predictions, which `save_onnx` has as
            outputs.

        Raises
        ------
        ValueError
            For a name that is no result of the eval model.
        """
        names = self._predictions if graph_output_names is None else list(graph_output_names)
        if unknown := [name for name in names if name not in self._results]:
            raise ValueError(
                f"graph_output_names: the eval model has no results {unknown}. It has "
                f"{self._results}."
            )

        self._write(path, lambda temporary: self._session.export(temporary, names))

    def _write(self, path, write, change=bytes):
        with tempfile.TemporaryDirectory(prefix="skort-") as folder:
            temporary = pathlib.Path(folder, "file")
            write(temporary)
            write_file(path, change(temporary.read_bytes()))

    def _check_optimizer(self):
        if not self._session.has_optimizer:
            raise ValueError(
                f"The folder has no {OPTIMIZER}: save the artifacts with an optimizer."
            )


def _checked(arrays, inputs):
    """Return arrays in the shapes and dtypes of inputs; raise a ValueError if they do not fit."""
    names = [name for name, *_ in inputs]
    if len(arrays) != len(inputs):
        raise ValueError(f"A step takes the arrays {names}, got {len(arrays)}.")

    checked = [_as_input(array, *each) for array, each in zip(arrays, inputs, strict=True)]
    n_rows = {
        name: len(array)
        for (name, shape, _), array in zip(inputs, checked, strict=True)
        if shape and shape[0] is None
    }
    if len({*n_rows.values()}) > 1:
        raise ValueError(f"All arrays must have the same number of rows, got {n_rows}.")
    if 0 in n_rows.values():
        raise ValueError(f"{next(iter(n_rows))} has no rows.")

    return checked


def _as_input(array, name, shape, dtype):
    """Return an array of the shape and the dtype of an input."""
    try:
        array = np.ascontiguousarray(array, dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as an array of {dtype}: {error}") from error

    if array.ndim == len(shape) and all(
        size in (None, n) for size, n in zip(shape, array.shape, strict=True)
    ):
        return array

    wanted = ", ".join("any" if size is None else str(size) for size in shape)
    advice = ""
    if array.shape[1:] == tuple(shape[1:]):
        advice = " For other batches, save the artifacts with another batch_size, or with None."
    elif array.ndim <= 2 and array.size == len(array) and len(shape) == 2:
        n = shape[1] or 1
        advice = " Give one column as array[:, None]."
        if n > 1:
            advice = (
                f" Give {n} columns; of class numbers np.eye({n})[numbers], one column of 1 and "
                "0 for each class."
            )

    raise ValueError(
        f"{name} has the shape {array.shape}, but the model was written for ({wanted}).{advice}"
    )


def _user_inputs(graph, parameters):
    """Return name, shape and dtype of the inputs of a step that are no parameters or buffers."""
    added = (".accumulation.buffer", "lazy_reset_grad")
    given = {
        i.name: i.type.tensor_type
        for i in graph.input
        if i.name not in parameters and not i.name.endswith(added)
    }
    return [
        # None: a dimension of any size.
        (
            name,
            [dim.dim_value or None for dim in tensor.shape.dim],
            helper.tensor_dtype_to_np_dtype(tensor.elem_type),
        )
        for name, tensor in given.items()
    ]


def _check_parameters(graph, arrays, path):
    """Raise a ValueError if the parameters of a checkpoint are not those of a training model."""
    inputs = {i.name: tuple(d.dim_value for d in i.type.tensor_type.shape.dim) for i in graph.input}
    buffers = [name for name in inputs if name.endswith("_grad.accumulation.buffer")]
    needed = {name.removesuffix("_grad.accumulation.buffer") for name in buffers}

    for name, array in arrays.items():
        if inputs.get(name) != array.shape:
            raise ValueError(
                f"{str(path)!r} is the checkpoint of another model: it has {name!r} of shape "
                f"{array.shape}, the training model {inputs.get(name, 'has no such parameter')}."
            )

    if missing := sorted(needed - arrays.keys()):
        raise ValueError(
            f"{str(path)!r} is the checkpoint of another model: it lacks the parameters {missing}."
        )
