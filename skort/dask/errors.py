"""The error of a cluster that cannot go on."""

__all__ = ["ClusterError"]


class ClusterError(RuntimeError):
    """A cluster that cannot go on: no workers, workers that die, or a scheduler that has gone."""
