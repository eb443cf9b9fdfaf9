"""Models that make their own score graph."""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class OwnGraph(Protocol):
    """A model that no class of scikit-learn describes: it makes its score graph itself."""

    def initial_score_graph(self, spec: Any, random_state: Any) -> Any:
        """
        Return the `ScoreGraph` that a training starts from, for a `ScoreSpec`.

        Weights that multiply X are drawn for columns of mean zero and standard deviation one.
        """
