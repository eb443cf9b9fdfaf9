"""The step that all problems of one structure share: its graph is made once, and numbers are its inputs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skort.common.parametrized_graph import Program
from skort.optim.update import UpdateRule
from skort.runtime.cache import LRUCache
from skort.runtime.sessions import compiled
from skort.solvers.base import Problem, is_small
from skort.solvers.graph.step import add_loss, add_update, shared_step_graph, state_name, states_of

__all__ = ["SharedStep", "shared_step"]

# A search has few structures. A session of a small step keeps about a MB.
_STEPS: LRUCache = LRUCache(16)


@dataclass(frozen=True, eq=False)
class SharedStep:
    """
    A step, and what of a problem goes into it.

    Parameters
    ----------
    session : InferenceSession
        It is shared: whoever runs it binds arrays of his own.
    states : dict of str to ndarray
        The weights and what an update changes of the memory, by their names as inputs.
    parameters : dict of str to ndarray
        All that no step changes, by their names as inputs.
    """

    session: Any
    states: dict[str, np.ndarray]
    parameters: dict[str, np.ndarray]


def shared_step(problem: Problem, rule: UpdateRule, memory: dict[str, np.ndarray]) -> SharedStep:
    """
    Return the step of a problem. Its graph and its session are made for the first problem of a structure.

    Parameters
    ----------
    problem : Problem
    rule : UpdateRule
        `problem.rule()`.
    memory : dict of str to ndarray
        The state of the rule.
    """
    loss, update = (Program(problem.objective.dtype, problem.batch_size, name) for name in ("loss", "update"))
    add_loss(loss, problem)
    changed = add_update(update, problem, rule, memory)
    states = states_of(problem, memory, changed)
    fixed = {state_name(name): array for name, array in memory.items() if name not in changed}
    frozen = problem.score_graph.frozen_arrays
    parameters = {**loss.parameters, **update.parameters, **fixed}
    shapes = tuple((name, a.dtype.str, a.shape) for name, a in {**states, **fixed}.items())
    key = problem.structure, loss.structure, update.structure, shapes

    def make():
        graph = shared_step_graph(problem, states, parameters, loss.write, update.write)
        names = frozenset(i.name for i in graph.graph.input)
        return compiled(graph.SerializeToString(), problem.device), names

    session, names = _STEPS.get(key, make) if is_small(problem) else make()
    given = {**parameters, **frozen}
    return SharedStep(session, states, {name: array for name, array in given.items() if name in names})
