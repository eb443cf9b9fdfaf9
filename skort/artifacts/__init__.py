"""
Training on devices: the files of ONNX Runtime's on-device training API.

`save_training_artifacts` writes what a device needs to train a model further. `OnDeviceTraining` trains from these
files where a build of ONNX Runtime for training is installed. `load_checkpoint` brings the weights back.
"""

from skort.artifacts.on_device import OnDeviceTraining
from skort.artifacts.saved import load_checkpoint, save_training_artifacts
from skort.artifacts.training_builder import TrainingBuilder

__all__ = ["OnDeviceTraining", "TrainingBuilder", "load_checkpoint", "save_training_artifacts"]
