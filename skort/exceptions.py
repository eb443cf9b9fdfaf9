"""The errors of skort that are not plain `ValueError`s."""

__all__ = ["NotTrainableError", "RuntimeNotAvailableError"]


class NotTrainableError(ValueError):
    """The model has no gradient that mini-batch training could follow."""


class RuntimeNotAvailableError(ImportError):
    """The installed ONNX Runtime lacks what was asked of it."""
