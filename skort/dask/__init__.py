"""Estimators for Dask collections, trained on the workers of a Dask cluster."""

try:
    import distributed  # noqa: F401  # Everything here needs it.
except ImportError as _error:
    raise ImportError(
        'skort.dask needs dask and distributed: pip install "dask[distributed]".'
    ) from _error

from skort.dask.estimators import OrtSGDClassifier, OrtSGDRegressor

__all__ = ["OrtSGDClassifier", "OrtSGDRegressor"]
