"""The whole step as one graph on a device that has memory of its own: data, weights and optimizer stay there."""

import numpy as np

from skort.descent.averaging import Average
from skort.descent.batches import Batch
from skort.descent.clipping import norm
from skort.objective.nodes import LOSS, OBJECTIVE, SAMPLE_WEIGHT, TARGET
from skort.runtime.step_session import StepSession
from skort.solvers.resident_data import Rows, Table
from skort.solvers.resident_graph import CONTROLS, SUMS, WEIGHT_SUM, indices_name, resident_graph, table_name
from skort.solvers.state import everything, flat, load, saved, views
from skort.solvers.step_graph import GRADIENT, WEIGHTS, next_name, state_name, step_graph

__all__ = ["ResidentSolver"]


class ResidentSolver:
    """
    Solver "graph" on a device: the same step, and in front of it the choice of its rows.

    The first batch of a data set takes all of it to the device; after that a step gets the numbers of its rows, and
    their weights and the learning rate where these are others than before. Its results stay on the device until they
    are read.

    Parameters
    ----------
    score_graph : ScoreGraph
    objective : Objective
    optimizer : OnnxOptimizer
    batch_size : int
    device : Device
        A remote one.
    max_grad_norm, average, state
        As for `Solver`.

    Raises
    ------
    RuntimeNotAvailableError
        Where the device is not there.
    """

    def __init__(
        self, score_graph, objective, optimizer, batch_size, *, device, max_grad_norm=None, average=False, state=None
    ):
        self._device, dtype = device, objective.dtype
        self._initial = score_graph.trained_arrays
        weights = flat(self._initial)
        memory = optimizer.start(*score_graph.n_weights(), dtype)
        self._average = Average(average, len(weights))
        step = step_graph(score_graph, objective, optimizer, batch_size, memory, max_grad_norm)
        model = resident_graph(step, score_graph.input_name, dtype, average=bool(average))
        rows, n_columns = Rows(device, batch_size), (score_graph.n_features, score_graph.n_outputs)
        X, target = (Table(device, rows, (batch_size, n), dtype) for n in n_columns)
        self._tables = {score_graph.input_name: X, TARGET: target}
        self.batch = Batch(X, target, np.zeros((batch_size, 1), dtype))
        self._controls = np.zeros(3)
        # What the device has a copy of.
        self._given = {SAMPLE_WEIGHT: self.batch.sample_weight.copy(), CONTROLS: self._controls.copy()}
        self._copies = {name: device.put(array) for name, array in self._given.items()}
        self._host = everything(weights, memory, self._average)
        names = {WEIGHTS: "weights", WEIGHT_SUM: "weight_sum", **{state_name(n): f"optimizer_{n}" for n in memory}}
        given = {i.name for i in model.graph.input}
        self._names = {name: host_name for name, host_name in names.items() if name in given}
        states = {name: self._host[host_name] for name, host_name in self._names.items()} | {SUMS: np.zeros(2)}
        outputs = {LOSS: (), OBJECTIVE: (), GRADIENT: weights.shape}
        self._outputs = {name: device.put(np.zeros(shape, dtype)) for name, shape in outputs.items()}
        inputs, next_names = {**self._data(), **self._copies}, {name: next_name(name) for name in states}
        self._session = StepSession(model.SerializeToString(), inputs, self._outputs, states, next_names, device=device)
        if state is not None:
            self.restore(state)

    def _data(self):
        """Return the arrays that hold the data, by their names as inputs."""
        arrays = {table_name(name): table.array for name, table in self._tables.items()}
        return arrays | {indices_name(name): table.indices for name, table in self._tables.items()}

    def launch(self, eta, share):
        """Make one update with learning rate `eta`, of a batch that is this part of the epoch; read nothing."""
        self._controls[:] = eta, share, self._average.count()
        for name, array in ((SAMPLE_WEIGHT, self.batch.sample_weight), (CONTROLS, self._controls)):
            if not np.array_equal(array, self._given[name]):
                self._given[name][...] = array
                self._device.fill(self._copies[name], array)
        for name, array in self._data().items():
            self._session.replace(name, array)
        self._session.run()

    def means(self):
        """Return the objective and the loss, the means over all batches since the last call."""
        sums = self._session.state[SUMS]
        objective, loss = self._device.get(sums).tolist()
        self._device.fill(sums, np.zeros(2))
        return objective, loss

    def step(self, eta):
        """Make one update with learning rate `eta`; return the objective on the batch before it."""
        self.launch(eta, 0.0)
        return self.objective()

    def objective(self):
        """Return the objective on the last step's batch before its update."""
        return self._output(OBJECTIVE).item()

    def loss(self):
        """Return the loss on the last step's batch before its update: the objective without the penalty."""
        return self._output(LOSS).item()

    def gradient_norm(self):
        """Return the Euclidean norm of the last step's gradient, before it was clipped; 0 before the first step."""
        return norm(self._output(GRADIENT))

    def weights(self):
        """Return a copy of the trained weights, by name: of their mean where `average` has begun."""
        return views(self._average.mean(self._read()["weights"]), self._initial)

    def state(self):
        """Return a copy of everything that training goes on from, by name."""
        return saved(self._read())

    def restore(self, state):
        """Go on from a state as from `state`."""
        load(self._host, state)
        for name, host_name in self._names.items():
            self._device.fill(self._session.state[name], self._host[host_name])
        self._device.fill(self._session.state[SUMS], np.zeros(2))

    def _read(self):
        """Return everything that training goes on from, as it is on the device."""
        for name, host_name in self._names.items():
            self._host[host_name][...] = self._device.get(self._session.state[name])
        return self._host

    def _output(self, name):
        return self._device.get(self._outputs[name])
