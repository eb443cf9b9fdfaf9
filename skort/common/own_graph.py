"""Models that make their own score graph."""

from typing import Any, Protocol, TypeGuard


class OwnGraph(Protocol):
    """A model that no class of scikit-learn describes: it makes its score graph itself."""

    def initial_score_graph(self, spec: Any, random_state: Any) -> Any:
        """
        Return the `ScoreGraph` that a training starts from, for a `ScoreSpec`.

        Weights that multiply X are drawn for columns of mean zero and standard deviation one.
        """


def makes_graph(model: Any) -> TypeGuard[OwnGraph]:
    """Return whether a model makes its score graph itself."""
    # A check of a protocol takes much longer.
    return hasattr(model, "initial_score_graph")
