"""
Training on devices: the files of ONNX Runtime's on-device training API.

`save_training_artifacts` writes the files from which a device trains a model further.
`OnDeviceTraining` trains from these files if a build of ONNX Runtime for training is installed.
`load_checkpoint` returns an estimator with the weights that a device trained.
"""

from skort.artifacts.on_device import OnDeviceTraining
from skort.artifacts.saved import load_checkpoint, save_training_artifacts
from skort.artifacts.training_builder import TrainingBuilder

__all__ = ["OnDeviceTraining", "TrainingBuilder", "load_checkpoint", "save_training_artifacts"]
