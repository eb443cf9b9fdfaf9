"""scikit-learn models trained by mini-batch gradient descent on ONNX Runtime."""

from skort.estimators.classifier import OrtSGDClassifier
from skort.estimators.regressor import OrtSGDRegressor
from skort.version import __version__

__all__ = ["OrtSGDClassifier", "OrtSGDRegressor", "__version__"]
