"""The errors of skort that are not plain `ValueError`s."""

__all__ = ["NotExportableError", "NotTrainableError", "RuntimeNotAvailableError"]


class NotExportableError(ValueError, AttributeError):
    """
    A part of the fitted model cannot be written as ONNX; everything but the export works.

    An `AttributeError`, too, so that `hasattr(model, "onnx_")` is False, as with scikit-learn's `NotFittedError`.
    """


class NotTrainableError(ValueError):
    """The model has no gradient that mini-batch training could follow."""


class RuntimeNotAvailableError(ImportError):
    """The installed ONNX Runtime lacks what was asked of it."""
