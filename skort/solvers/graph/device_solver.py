"""The whole step as one graph on a device that has memory of its own: data, weights and optimizer stay there."""

import numpy as np

from skort.objective.objective import LOSS, OBJECTIVE, SAMPLE_WEIGHT, TARGET
from skort.optim.transforms import norm
from skort.runtime.sessions import compiled
from skort.runtime.step_session import StepSession
from skort.solvers.base import BaseSolver, Problem
from skort.solvers.graph.device_batch import DeviceBatch
from skort.solvers.graph.solver import GraphSolver
from skort.solvers.graph.step_graph import (
    CONTROLS,
    GRADIENT,
    SUMS,
    WEIGHTS,
    StepGraph,
    indices_name,
    next_name,
    rows_name,
)

__all__ = ["DeviceGraphSolver"]


class DeviceGraphSolver(GraphSolver):
    """
    Solver "graph" on a device: the same step, and in front of it the choice of its rows.

    The data go to the device when a training begins. A step then gets the numbers of its rows, and their sample
    weights and the learning rate where these are others than before. Its results stay on the device until they are
    read.

    Parameters
    ----------
    problem : Problem
        Of a remote device.

    Raises
    ------
    RuntimeNotAvailableError
        Where the device is not there.
    """

    def __init__(self, problem: Problem):
        BaseSolver.__init__(self, problem)
        graph, dtype, device = problem.score_graph, problem.objective.dtype, problem.device
        self._problem, self._device = problem, device
        self._memory = self._rule.start(*problem.n_weights(), dtype)
        self._step = StepGraph.of(problem, self._rule, self._memory)
        model = self._step.device_model()
        self._inputs = graph.input_name, TARGET
        self.batch = DeviceBatch(device, problem.batch_size, (graph.n_features, graph.n_outputs), dtype)
        self._controls = np.zeros(2)
        # What the device has a copy of.
        self._given = {SAMPLE_WEIGHT: self.batch.sample_weight.copy(), CONTROLS: self._controls.copy()}
        self._copies = {name: device.put(array) for name, array in self._given.items()}
        states = self._step.states | {SUMS: np.zeros(2)}
        outputs = {LOSS: (), OBJECTIVE: (), GRADIENT: states[WEIGHTS].shape}
        self._outputs = {name: device.put(np.zeros(shape, dtype)) for name, shape in outputs.items()}
        next_names = {name: next_name(name) for name in states}
        inputs = {**self._data(), **self._copies}
        session = compiled(model.SerializeToString(), device)
        self._session = StepSession(session, inputs, self._outputs, states, next_names, device=device)

    def _data(self):
        """Return the arrays that hold the data, by their names as inputs."""
        tables = dict(zip(self._inputs, self.batch.tables, strict=True))
        arrays = {rows_name(name): table.array for name, table in tables.items()}
        return arrays | {indices_name(name): table.indices for name, table in tables.items()}

    def step(self, eta, share):
        """Make one update with learning rate `eta` on the batch, which is this part of the epoch; read nothing."""
        self._controls[:] = eta, share
        for name, array in ((SAMPLE_WEIGHT, self.batch.sample_weight), (CONTROLS, self._controls)):
            if not np.array_equal(array, self._given[name]):
                self._given[name][...] = array
                self._device.fill(self._copies[name], array)
        for name, array in self._data().items():
            self._session.replace(name, array)
        self._session.run()

    def read(self, X):
        """Do nothing: a step reads the rows that its device has a copy of."""

    def means(self):
        """Return the objective and the loss, each the mean over all steps since the last call."""
        sums = self._session.state[SUMS]
        objective, loss = self._device.get(sums).tolist()
        self._device.fill(sums, np.zeros(2))
        return objective, loss

    def objective(self):
        """Return the objective on the last step's batch before its update."""
        return self._device.get(self._outputs[OBJECTIVE]).item()

    def gradient_norm(self):
        """Return the Euclidean norm of the last step's gradient, before it was clipped; 0 before the first step."""
        return norm(self._device.get(self._outputs[GRADIENT]))
