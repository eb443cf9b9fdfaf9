"""Solvers: one gradient step of a score graph, one file a runtime API."""

from skort.solvers.agent import AgentSolver
from skort.solvers.session import SessionSolver

__all__ = ["SOLVERS"]

#: The values of the estimators' parameter `solver`.
SOLVERS = {"agent": AgentSolver, "session": SessionSolver}
