"""Module, Optimizer and CheckpointState: ONNX Runtime's on-device training API, without torch."""

import contextlib
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from skort.exceptions import NotTrainableError
from skort.runtime.device import CPU, Device, cpu_memory, value_vector
from skort.runtime.installed import c_api, load, require
from skort.runtime.sessions import session_options, short_message
from skort.runtime.training_api import with_statistics


def gradient_model(model: bytes, names: Iterable[str], output: str) -> bytes:
    """
    Return the serialised model of a scalar output and its gradients.

    The gradient by `w` has the name ``w_grad``.
    """
    builder_class = require("GradientGraphBuilder")
    try:
        builder = builder_class(
            with_statistics(model), {output}, set(names), output, session_options()
        )
        builder.build()
    except RuntimeError as error:
        raise NotTrainableError(
            f"ONNX Runtime does not differentiate the model: {short_message(error)}"
        ) from error

    return builder.get_model()


@contextlib.contextmanager
def _in_words(what, kind=ValueError):
    """Raise errors of ONNX Runtime as `kind`, with their text but without the place in C++."""
    try:
        yield
    except RuntimeError as error:
        raise kind(f"ONNX Runtime {what}: {short_message(error)}") from error


def _loading(path):
    return _in_words(f"{load().__version__} does not load {str(path)!r}")


def _writing(path):
    return _in_words(f"does not write {str(path)!r}", OSError)


class ModuleSession:
    """
    A training from the files of on-device training.

    Without the file of an eval model or of an optimizer, it cannot make that step.
    """

    def __init__(
        self,
        training: os.PathLike[str],
        checkpoint: os.PathLike[str],
        eval: os.PathLike[str] | None = None,
        optimizer: os.PathLike[str] | None = None,
        device: Device = CPU,
    ):
        module_class = require("Module")
        api = c_api()
        memory = cpu_memory()
        options = session_options(device)
        self._optimizer: Any = None
        with _loading(checkpoint):
            self._state = api.load_checkpoint(os.fspath(checkpoint))

        # The module comes first, because it tells the state where its arrays are.
        path = None if eval is None else os.fspath(eval)
        with _loading(training):
            self._module = module_class(os.fspath(training), self._state, path, memory, options)
        if optimizer is not None:
            with _loading(optimizer):
                self._optimizer = api.Optimizer(os.fspath(optimizer), self._state, memory, options)

    @property
    def has_optimizer(self) -> bool:
        """Whether there is an optimizer model."""
        return self._optimizer is not None

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next steps of the optimizer."""
        return self._optimizer.get_learning_rate()

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._optimizer.set_learning_rate(value)

    def add_gradients(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the outputs for `inputs`, and add the gradients to those since the last update."""
        return self._outputs("training", self._module.train_step, list(inputs))

    def add_gradients_bound(self, inputs: Any) -> list[np.ndarray]:
        """Return the same as `add_gradients`, for inputs from `value_vector`."""
        return self._outputs("training", self._module.train_step_with_ort_values, inputs)

    def evaluate(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the outputs for `inputs`; raise a ValueError if ONNX Runtime refuses them."""
        return self._outputs("eval", self._module.eval_step, list(inputs))

    def _outputs(self, step, run, inputs):
        """Return the outputs of a run."""
        outputs = value_vector()
        with _in_words(f"does not make the {step} step"):
            run(inputs, outputs)
        return [value.numpy() for value in outputs]

    def update(self) -> None:
        """Update the parameters by their gradients. The next gradients replace these."""
        self._optimizer.optimizer_step()
        self.forget_gradients()

    def forget_gradients(self) -> None:
        """Forget the gradients since the last update: the next gradients replace them."""
        self._module.lazy_reset_grad()

    def parameter(self, name: str) -> np.ndarray:
        """Return a copy of a parameter."""
        return self._state.get_parameter(name).data.numpy().copy()

    def scale(self, name: str, factor: float | np.ndarray) -> None:
        """Multiply a parameter by a number, or by an array of its shape."""
        value = self._state.get_parameter(name).data
        array = value.numpy()
        value.update_inplace(array * np.asarray(factor, array.dtype))

    def set_parameter(self, name: str, array: np.ndarray) -> None:
        """Overwrite a parameter."""
        self._state.get_parameter(name).data.update_inplace(np.ascontiguousarray(array))

    def gradient(self, name: str) -> np.ndarray:
        """Return a copy of the gradient of a parameter, as the last update used it."""
        return self._state.get_parameter(name).grad.numpy().copy()

    def save(self, path: os.PathLike[str], *, with_optimizer: bool) -> None:
        """Write a checkpoint, with or without the optimizer's memory."""
        with _writing(path):
            c_api().save_checkpoint(self._state, os.fspath(path), with_optimizer)

    def export(self, path: os.PathLike[str], names: list[str]) -> None:
        """Write the part of the eval model that gives some results, with the present parameters."""
        with _writing(path):
            self._module.export_model_for_inferencing(os.fspath(path), names)
