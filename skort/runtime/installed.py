"""Which ONNX Runtime is installed, and what it can do."""

import contextlib
import functools
import importlib
import importlib.metadata
import importlib.util
import logging
import re
import sys
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np

from skort.exceptions import RuntimeNotAvailableError

ApiName = Literal["TrainingAgent", "TrainingSession", "GradientGraphBuilder", "Module"]
# All of these install the same import package, `onnxruntime`.
DISTRIBUTIONS = (
    "onnxruntime",
    "onnxruntime-gpu",
    "onnxruntime-directml",
    "onnxruntime-openvino",
    "onnxruntime-qnn",
    "onnxruntime-training",
    "onnxruntime-training-cpu",
)

# If several distributions are installed, the advice is to keep the first of these.
_ACCELERATED = [name for name in DISTRIBUTIONS if name not in ("onnxruntime", "onnxruntime-qnn")]
NO_RUNTIME = (
    "No ONNX Runtime is installed: install exactly one of skort's extras, "
    'pip install "skort[cpu]" (onnxruntime: every system, all but the solvers "session", "agent" '
    'and "module"), pip install "skort[gpu]" (onnxruntime-gpu with CUDA: device="cuda" as well) or '
    'pip install "skort[training]" (the package for training of this system and Python, if there '
    "is one: these solvers as well)."
)

# The packages that have each class of the training API.
_PACKAGES = {
    "TrainingAgent": (
        "onnxruntime-training 1.16.2 and 1.16.3 (Linux x86-64, Python 3.10 and 3.11) and "
        "onnxruntime-training-cpu 1.19.2 (Linux x86-64, macOS and Windows, Python up to 3.12)"
    ),
    "TrainingSession": (
        "onnxruntime-training 1.16.2 and 1.16.3 (Linux x86-64, Python 3.10 and 3.11)"
    ),
}
# These classes come with TrainingAgent: all builds for training have them.
_ON_DEVICE = ("GradientGraphBuilder", "Module")
_PACKAGES |= dict.fromkeys(_ON_DEVICE, _PACKAGES["TrainingAgent"])


@functools.cache
def installed_distributions() -> dict[str, str]:
    """Return the installed distributions of ONNX Runtime: name -> version."""
    found = {}
    for name in DISTRIBUTIONS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


@functools.cache
def load() -> Any:
    """Import `onnxruntime` and return it."""
    if advice := _needs_numpy_1():
        raise RuntimeNotAvailableError(advice)

    mixed = mix_advice()
    try:
        with _logging_as_it_was():
            onnxruntime = importlib.import_module("onnxruntime")
    except ImportError as error:
        if (
            isinstance(error, ModuleNotFoundError)
            and error.name == "onnxruntime"
            and not installed_distributions()
        ):
            raise RuntimeNotAvailableError(NO_RUNTIME) from error

        advice = mixed or f"Fix it with: {_reinstall()}"
        raise RuntimeNotAvailableError(
            f"onnxruntime cannot be imported ({error}). {advice}"
        ) from error

    if not hasattr(onnxruntime, "InferenceSession"):
        cure = (
            "Another distribution of it was installed over it and uninstalled. Fix it "
            f"with: {_reinstall()}"
        )
        raise RuntimeNotAvailableError(f"onnxruntime has lost files of its own. {mixed or cure}")

    if mixed:
        warnings.warn(mixed, RuntimeWarning, stacklevel=2)
    return onnxruntime


@functools.cache
def c_api() -> Any:
    """Return the extension module that ONNX Runtime's own Python classes are made of."""
    load()
    from onnxruntime.capi import _pybind_state

    return _pybind_state


def require(name: ApiName) -> Any:
    """Return a class of the training API; raise a RuntimeNotAvailableError if it is missing."""
    api = training_api()
    if name not in api:
        raise RuntimeNotAvailableError(why_missing(name))
    return api[name]


def why_missing(name: ApiName) -> str:
    """Return a message about a missing class: what is installed, and which packages have it."""
    found = (
        ", ".join(f"{k} {v}" for k, v in installed_distributions().items())
        or "no package of ONNX Runtime"
    )
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    message = (
        f"The installed runtime ({found}, {python}) has no {name}, which is in {_PACKAGES[name]}."
    )
    return f"{message} {mix_advice() or ''}".strip()


def training_api() -> dict[str, Any]:
    """Return the classes of the training API that exist here: name -> class."""
    api = {
        name: getattr(c_api(), name)
        for name in ("TrainingAgent", *_ON_DEVICE)
        if hasattr(c_api(), name)
    }
    if hasattr(c_api(), "TrainingSession"):
        # The C++ class alone is not enough: its Python half was removed from the wheels first.
        with contextlib.suppress(ImportError):
            from onnxruntime.capi.training.training_session import TrainingSession

            api["TrainingSession"] = TrainingSession
    return api


def mix_advice() -> str | None:
    """Return advice about distributions that are installed over each other; None without any."""
    found = installed_distributions()
    if len(found) < 2:
        return None

    accelerated = [name for name in _ACCELERATED if name in found]
    loaded = _owner_of_the_files()
    keep = loaded if loaded in accelerated else next(iter(accelerated or found))

    return (
        f"{' and '.join(found)} are installed over each other and share the import name "
        f"onnxruntime. Fix it with: pip uninstall -y {' '.join(found)} && pip install "
        f"{keep}=={found[keep]}"
    )


def _owner_of_the_files() -> str | None:
    """
    Return the distribution that was installed last, whose libraries an import loads.

    Return None if its files do not say its name.
    """
    # An imported onnxruntime may have no spec, and its folder may lack this file.
    with contextlib.suppress(OSError, ValueError):
        spec = importlib.util.find_spec("onnxruntime")
        for folder in (spec and spec.submodule_search_locations) or ():
            text = Path(folder, "capi", "build_and_package_info.py").read_text()
            if name := re.search(r"^package_name = '([\w-]+)'", text, re.MULTILINE):
                return name[1]

    return None


def _reinstall():
    wanted = (
        " ".join(f"{name}=={version}" for name, version in installed_distributions().items())
        or "onnxruntime"
    )
    return f"pip install --force-reinstall --no-deps {wanted}"


def _needs_numpy_1():
    """Return advice about a numpy that is too new for onnxruntime-training; None if it is not."""
    found = installed_distributions()
    if list(found) != ["onnxruntime-training"] or np.__version__.startswith("1."):
        return None

    packages = " ".join(["'numpy<2'", *_numpy_2_only()])
    return (
        f"onnxruntime-training {found['onnxruntime-training']} was built for numpy 1, and "
        f"numpy {np.__version__} is installed, perhaps by a package installed after skort. Fix "
        "it with one command, so that pip takes versions of all packages that agree: pip "
        f"install {packages}"
    )


def _numpy_2_only():
    """Return the names of the installed distributions that need numpy 2."""
    return sorted(
        {
            distribution.metadata["Name"]
            for distribution in importlib.metadata.distributions()
            for requirement in distribution.requires or ()
            if "extra ==" not in requirement and re.match(r"numpy\b[^;]*>=\s*2", requirement)
        }
    )


@contextlib.contextmanager
def _logging_as_it_was():
    # If torch is installed, onnxruntime-training 1.16 sets the root logger to DEBUG and adds a
    # handler.
    root = logging.getLogger()
    level = root.level
    handlers = root.handlers[:]

    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
