"""The backends of solver "graph": one ONNX graph for the whole step, on any ONNX Runtime."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from skort.objective.objective import LOSS, OBJECTIVE, SAMPLE_WEIGHT, TARGET
from skort.optim.batches import HostBatch
from skort.optim.row_change import is_in_memory
from skort.optim.update import Update, UpdateRule
from skort.runtime.device import Device, DeviceArray
from skort.runtime.installed import load
from skort.runtime.sessions import StepSession, norm_on, step_session_on
from skort.solvers.base import HostBackend, Problem, step_session, views
from skort.solvers.graph.step_graph import (
    CONTROLS,
    ETA,
    GRADIENT,
    SUMS,
    WEIGHTS,
    StepGraph,
    constants_graph,
    indices_name,
    rows_name,
    split_graph,
    state_name,
)


class GraphBackend(HostBackend):
    """
    Steps of one InferenceSession.

    One graph contains forward, backward, penalty, clipping and update.
    """

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self.rule: UpdateRule = problem.rule()
        # Arrays of this state that an update does not change are constant inputs.
        self._memory = self.rule.start(*problem.n_weights, problem.objective.dtype)
        self._step = StepGraph.of(problem, self.rule, self._memory)
        self._open()

    def _open(self):
        problem = self._problem
        step = self._step
        self._eta, self._objective, loss = (np.zeros((), problem.objective.dtype) for _ in range(3))
        self._loss = loss.item
        session = step_session(problem, ("step", *step.key), step.model)
        self.gradient: np.ndarray = np.zeros_like(step.states[WEIGHTS])
        inputs = {**self.inputs, ETA: self._eta, **step.parameters}
        outputs = {LOSS: loss, OBJECTIVE: self._objective, GRADIENT: self.gradient}

        # The session reads each weight in place, as a view of the vector.
        self.session: StepSession = StepSession(
            session,
            inputs,
            outputs,
            step.states,
            lambda states: views(states[WEIGHTS], problem.weights),
        )

    def run(self, eta: float, share: float) -> None:
        """Make one update with learning rate `eta` on the batch, a part `share` of the epoch."""
        self._eta[...] = eta
        self.session.run()
        self.sums.add(share, self._objective.item(), self._loss())

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the weights and the rule's state, copied from a device if they are there."""
        current = self.session.state
        device = self._problem.device
        memory = {
            name: current.get(state_name(name), array) for name, array in self._memory.items()
        }
        arrays = {"weights": current[WEIGHTS], **memory}

        return {
            name: array if isinstance(array, np.ndarray) else device.get(array)
            for name, array in arrays.items()
        }

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Overwrite the weights and the arrays of the state that a step changes."""
        current = self.session.state
        device = self._problem.device

        for name, array in arrays.items():
            input_name = WEIGHTS if name == "weights" else state_name(name)
            if input_name in current:
                device.fill(current[input_name], array)

    def training_graphs(self) -> dict[str, onnx.ModelProto]:
        """
        Return the graphs of the whole step, of its inputs, and of the parts of the weights.

        "start" has the inputs of the next step besides the batch and the learning rate.
        """
        step = self._step.model()
        arrays = self.arrays()
        states = {
            WEIGHTS if name == "weights" else state_name(name): array
            for name, array in arrays.items()
        }
        weights = views(arrays["weights"], self._problem.weights)
        start = constants_graph(step, {**states, **weights, **self._step.parameters})

        return {"step": step, "start": start, "split": split_graph(weights)}


class DeviceSums:
    """The sums of objective and loss over the steps of an epoch, on a device."""

    def __init__(self, device: Device, session: Any, objective: DeviceArray):
        self._device = device
        self._session = session
        self._objective = objective

    def last(self) -> float:
        """Return the objective of the last step."""
        return self._device.get(self._objective).item()

    def take(self) -> tuple[float, float]:
        """Return the sums of objective and loss since the last call."""
        sums = self._session.state[SUMS]
        objective, loss = self._device.get(sums).tolist()
        self._device.fill(sums, np.zeros(2))
        return objective, loss


class DeviceRows:
    """
    The batch of a device.

    Rows in memory are copied to the device once, before the training. Rows of a file are copied
    batch by batch.
    """

    #: Windows of rows need no copy: the device has all rows.
    in_place = True

    def __init__(self, device: Device, host: HostBatch):
        self._device = device
        self._host = host
        self.sample_weight: np.ndarray = host.sample_weight
        self._all, self._chosen = (device.put(np.arange(len(host))) for _ in range(2))
        self.tables: list[_Table] = [
            _Table(device, rows, self._all) for rows in (host.X, host.target)
        ]

    def arrays(self, input_name: str) -> dict[str, DeviceArray]:
        """Return the device arrays by the names of their inputs. `input_name` is the name of X."""
        tables = dict(zip((input_name, TARGET), self.tables, strict=True))
        arrays = {rows_name(name): table.array for name, table in tables.items()}
        return arrays | {indices_name(name): table.indices for name, table in tables.items()}

    def __len__(self) -> int:
        return len(self._host)

    def begin(self, data: list[Any]) -> None:
        """Copy the rows of a training that are in memory to the device."""
        for table, rows in zip(self.tables, data, strict=False):
            table.take(rows, self._chosen, self._all)

    def fillers(self, data: list[Any]) -> list[Callable[[np.ndarray], None]]:
        """Return the functions that, for some row numbers, make these rows the batch."""
        host_fillers = self._host.fillers(data)
        fillers = [self._choose] if any(table.is_whole for table in self.tables) else []

        for table, fill in zip(self.tables, host_fillers, strict=False):
            if not table.is_whole:
                fillers += [fill, table.upload]

        # The other functions fill the sample weights, if they differ.
        return fillers + host_fillers[len(self.tables) :]

    def _choose(self, indices):
        self._device.fill(self._chosen, indices.astype(np.int64, copy=False))


class _Table:
    """
    Rows on a device.

    `indices` has the numbers of the rows of the batch, at first of all rows.
    """

    def __init__(self, device, batch, indices):
        self._device = device
        self._batch = batch
        self.array = device.put(batch)
        self.indices = indices
        self.is_whole = False

    def take(self, rows, chosen, every):
        """
        Copy all rows of a training to the device if they are in memory, else make room for a batch.

        `chosen` will have the row numbers of the batch. `every` has the numbers from 0 to the size
        of a batch.
        """
        self.is_whole = is_in_memory(rows)
        self.indices = chosen if self.is_whole else every
        rows = np.asarray(rows, self._batch.dtype) if self.is_whole else self._batch

        # A record of the step has the address of the array.
        if tuple(self.array.shape()) == rows.shape:
            self._device.fill(self.array, rows)
        else:
            self.array = self._device.put(rows)

    def upload(self, indices):
        """Copy the rows of the batch to the device."""
        self._device.fill(self.array, self._batch)


class DeviceGraphBackend(GraphBackend):
    """
    The steps of `GraphBackend` on a device with its own memory.

    The device has the rows, and takes a batch of them by number. Results stay on the device until
    they are read.
    """

    reads_in_place = False

    def _open(self):
        problem = self._problem
        device = self._problem.device
        dtype = problem.objective.dtype
        self.batch: Any = DeviceRows(device, self.batch)
        self._controls = np.zeros(2)

        # The values that the device has a copy of.
        self._given = {
            SAMPLE_WEIGHT: self.batch.sample_weight.copy(),
            CONTROLS: self._controls.copy(),
        }
        self._copies = {name: device.put(array) for name, array in self._given.items()}
        states = self._step.states | {SUMS: np.zeros(2)}
        outputs = {LOSS: (), OBJECTIVE: (), GRADIENT: states[WEIGHTS].shape}
        self._outputs = {
            name: device.put(np.zeros(shape, dtype)) for name, shape in outputs.items()
        }
        inputs = {**self.batch.arrays(problem.score_graph.input_name), **self._copies}
        graph = self._step.device_model().SerializeToString()
        self.session: StepSession = step_session_on(device, graph, inputs, self._outputs, states)
        self.sums: Any = DeviceSums(device, self.session, self._outputs[OBJECTIVE])

    def run(self, eta: float, share: float) -> None:
        """Make one update with learning rate `eta` on the batch, a part `share` of the epoch."""
        self._controls[:] = eta, share
        for name, array in ((SAMPLE_WEIGHT, self.batch.sample_weight), (CONTROLS, self._controls)):
            if not np.array_equal(array, self._given[name]):
                self._given[name][...] = array
                self._problem.device.fill(self._copies[name], array)

        for name, array in self.batch.arrays(self._problem.score_graph.input_name).items():
            self.session.replace(name, array)
        self.session.run()

    def last_gradient(self) -> np.ndarray:
        """Return the gradient of the last step before clipping."""
        return self._problem.device.get(self._outputs[GRADIENT])

    def gradient_norm(self) -> float:
        """Return the norm of that gradient, computed on the device."""
        return norm_on(self._problem.device, self._outputs[GRADIENT])

    def is_finite(self) -> bool:
        """Return whether all weights are finite; copy them only if their norm is not."""
        shape = self._step.states[WEIGHTS].shape
        vectors = [
            self.session.state[name]
            for name, array in self._step.states.items()
            if array.shape == shape
        ]
        norms = (norm_on(self._problem.device, vector) for vector in vectors)
        return all(map(math.isfinite, norms)) or super().is_finite()


def needs_onnx_update(solver: str, dtype: np.dtype, update: Update) -> None:
    """Raise an error for an optimizer without ONNX text, or if no ONNX Runtime is installed."""
    load()
    if not _is_onnx(update.optimizer):
        raise ValueError(
            f'solver="{solver}" needs an optimizer with a method onnx_update, got '
            f'optimizer={update.optimizer!r}. Use solver="agent", or write its own update as ONNX '
            "text, see skort.optimizers.OnnxOptimizer."
        )


def _is_onnx(optimizer):
    """
    Return whether the ONNX text of an optimizer describes its `update`.

    It does not if a subclass has replaced `update` or `step_length`, but not the ONNX text.
    """
    for cls in type(optimizer).__mro__:
        if "onnx_update" in vars(cls):
            return True
        if "update" in vars(cls) or "step_length" in vars(cls):
            return False

    return False
