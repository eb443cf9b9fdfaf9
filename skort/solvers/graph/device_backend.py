"""The backend of solver "graph" on a device with its own memory, which has the rows of a training."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from skort.common.formulas import function_text
from skort.common.onnx_text import Fragment, build_model, domains_of, onnx_dtype
from skort.graphs.gradient.forward_backward import GRADIENT, unpacked_text
from skort.objective.objective import LOSS, OBJECTIVE, SAMPLE_WEIGHT, TARGET
from skort.optim.batches import HostBatch
from skort.optim.row_change import is_in_memory
from skort.runtime.device import Device, DeviceArray
from skort.runtime.sessions import StepSession, next_name, norm_on, step_session_on
from skort.solvers.graph.backend import ETA, WEIGHTS, GraphBackend, StepGraph

#: An input on a device: the learning rate, and the batch's share of the epoch.
CONTROLS = "skort_controls"
#: A state on a device: the sums of the objective and the loss.
SUMS = "skort_sums"

_CONTROLLED = """
eta = Cast(Squeeze(Slice(controls, [0], [1]), [0]), to=%d)
share = Slice(controls, [1], [2])
"""
_ADDED = function_text(
    "added (sums, share, objective, loss) => (next_sums)",
    (
        "next_sums = sums + share * Cast(Concat(Reshape(objective, [1]), Reshape(loss, "
        "[1]), axis=0), to=11)"
    ),
)


def rows_name(name: str) -> str:
    """Return the name of the device's input with all rows of the step's input `name`."""
    return f"skort_all/{name}"


def indices_name(name: str) -> str:
    """Return the name of the device's input with the row numbers of a batch of `name`."""
    return f"skort_rows/{name}"


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
        graph = _device_model(self._step).SerializeToString()
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


def _device_model(step: StepGraph) -> onnx.ModelProto:
    """
    Return the graph of the step on a device.

    It takes the batch out of all rows by number, splits the vector of weights into its parts,
    and adds up the objectives.
    """
    problem = step.problem
    model = step.model()
    dtype = problem.objective.dtype
    double = onnx.TensorProto.DOUBLE
    fragment = Fragment(dtype)
    tables = []
    inputs = {i.name: i for i in model.graph.input}

    for name in (problem.score_graph.input_name, TARGET):
        batch_size, n_columns = (d.dim_value for d in inputs.pop(name).type.tensor_type.shape.dim)
        tables.append(
            helper.make_tensor_value_info(rows_name(name), onnx_dtype(dtype), [None, n_columns])
        )
        tables.append(
            helper.make_tensor_value_info(indices_name(name), onnx.TensorProto.INT64, [batch_size])
        )
        fragment.node("Gather", [rows_name(name), indices_name(name)], [name], axis=0)

    inputs.pop(ETA, None)
    controlled = function_text(
        "controlled (controls) => (eta, share)", _CONTROLLED % onnx_dtype(dtype)
    )
    fragment.call(controlled, [CONTROLS], [ETA, "skort_share"])
    fragment.call(unpacked_text(problem.weights), [WEIGHTS], list(problem.weights))
    fragment.nodes.extend(model.graph.node)
    fragment.call(_ADDED, [SUMS, "skort_share", OBJECTIVE, LOSS], [next_name(SUMS)])
    constants = {name: array for name, array in step.parameters.items() if name in inputs}
    given = [i for name, i in inputs.items() if name not in {*constants, *problem.weights}]
    pairs = [helper.make_tensor_value_info(name, double, [2]) for name in (CONTROLS, SUMS)]
    outputs = [*model.graph.output, helper.make_tensor_value_info(next_name(SUMS), double, [2])]
    values = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    initializers = [*model.graph.initializer, *values]
    graph = helper.make_graph(
        fragment.nodes, "step", [*tables, *given, *pairs], outputs, initializers
    )

    return build_model(graph, fragment, domains=domains_of(model))
