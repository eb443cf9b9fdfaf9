"""The machine on which all is measured, and what is installed there."""

import importlib.metadata
import os
import platform
from pathlib import Path

from benchmarks.contenders import missing_peers
from benchmarks.jax_process import jax_version

__all__ = ["machine"]

_PACKAGES = (
    "scikit-learn",
    "numpy",
    "onnx",
    "onnxruntime-training",
    "onnxruntime-training-cpu",
    "onnxruntime",
    "torch",
    "skorch",
)


def machine():
    """Return a description of the machine as lines."""
    versions = [f"{package} {version}" for package in _PACKAGES if (version := _version(package))]
    versions += [f"jax {version}" for version in [jax_version()] if version]
    lines = [
        f"- {_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}; "
        f"load average {os.getloadavg()[0]:.1f} at the end",
        f"- Python {platform.python_version()}, {', '.join(versions)}",
    ]
    return [*lines, *(f"- Left out, as it is not installed: {peer}" for peer in missing_peers())]


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor():
    info = Path("/proc/cpuinfo")
    names = [
        line.split(":")[1].strip()
        for line in info.read_text().splitlines()
        if line.startswith("model name")
    ]
    return names[0] if names else platform.processor()
