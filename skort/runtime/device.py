"""Where sessions run and arrays live: the only file that knows execution providers and memory that is not numpy's."""

import contextlib
import ctypes
import functools
import io
import pathlib
import re
from dataclasses import dataclass

import numpy as np

from skort.exceptions import RuntimeNotAvailableError
from skort.runtime.installed import installed_distributions, load
from skort.runtime.values import borrow

__all__ = ["CPU", "Device", "device_named"]

_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
_SILENT, _WARNINGS = 4, 2


@dataclass(frozen=True)
class Device:
    """
    What a session runs on, and the memory of the arrays that stay there from one run to the next.

    An array of the device is an ndarray in the CPU's memory, and an OrtValue elsewhere.

    Parameters
    ----------
    kind : {"cpu", "cuda"}, default="cpu"
    index : int, default=0
        Which one of several.
    n_threads : int, default=1
        Threads of one operator on the CPU. With 1 it runs on the caller's.
    is_remote : bool, default=False
        Whether its arrays are copies, out of numpy's reach: true of all but the CPU, where it is for tests.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.runtime.device import Device
    >>> for device in (Device(), Device(is_remote=True)):
    ...     array = device.put(np.array([1.0, 2.0]))
    ...     device.fill(array, np.array([3.0, 4.0]))
    ...     print(type(array).__name__, device.get(array))
    ndarray [3. 4.]
    OrtValue [3. 4.]
    """

    kind: str = "cpu"
    index: int = 0
    n_threads: int = 1
    is_remote: bool = False

    @property
    def name(self):
        """The name, as in the estimators' parameter `device`."""
        return f"{self.kind}:{self.index}" if self.index else self.kind

    def providers(self):
        """Return the execution providers of a session: of the device, and of the CPU for what it cannot run."""
        own = [] if self.kind == "cpu" else [(_PROVIDERS[self.kind], {"device_id": self.index})]
        return [*own, _PROVIDERS["cpu"]]

    def check(self):
        """
        Raise an error where nothing can run here.

        Raises
        ------
        RuntimeNotAvailableError
            Where the installed ONNX Runtime has no such provider, or that does not load: names what is missing.
        """
        if self.kind != "cpu":
            _load_provider(self)

    def check_session(self, session):
        """Raise the same error where the runtime made a session without the provider that it was given."""
        if _PROVIDERS[self.kind] not in session.get_providers():
            self.check()
            raise RuntimeNotAvailableError(_unavailable(self, "A session was made without it."))

    def put(self, array):
        """Return an array of the device with the values of an ndarray, as a copy."""
        copy = self.empty(array.shape, array.dtype)
        self.fill(copy, array)
        return copy

    def empty(self, shape, dtype):
        """Return an array of the device without values."""
        if not self.is_remote:
            return np.empty(shape, dtype)
        dtype = np.dtype(dtype).type
        return load().OrtValue.ortvalue_from_shape_and_type(list(shape), dtype, self.kind, self.index)

    def fill(self, array, values):
        """Copy an ndarray of the same shape and dtype into an array of the device."""
        if self.is_remote:
            array.update_inplace(np.ascontiguousarray(values))
        else:
            array[...] = values

    def get(self, array):
        """Return an array of the device as a new ndarray."""
        return array.numpy().copy() if self.is_remote else array.copy()

    def value(self, array):
        """Return an array of the device as an OrtValue of the same memory. Whoever takes it keeps the array."""
        return array if self.is_remote else borrow(array)


#: One thread.
CPU = Device()


@functools.cache
def device_named(name, n_threads=1):
    """
    Return a device by its name.

    Parameters
    ----------
    name : str
        "cpu", "cuda" (the first one), or "cuda:1".
    n_threads : int, default=1

    Raises
    ------
    ValueError
        For any other name.
    """
    if name == "cpu":
        return Device(n_threads=n_threads)
    match = re.fullmatch(r"cuda(?::(\d+))?", name)
    if match is None:
        raise ValueError(f'device={name!r} is unknown. Use "cpu", "cuda", or "cuda:1" for the second of several.')
    return Device("cuda", int(match[1] or 0), n_threads, is_remote=True)


@functools.cache
def _load_provider(device):
    """Load a provider and use its memory once; raise an error that says what is missing."""
    onnxruntime = load()
    if _PROVIDERS[device.kind] not in onnxruntime.get_available_providers():
        raise RuntimeNotAvailableError(
            f'device="{device.name}" needs the {_PROVIDERS[device.kind]}, which {_installed()} does not have. In its '
            "place, install onnxruntime-gpu, or onnxruntime-training 1.16.3 (Linux x86-64, Python 3.10 and 3.11). Or "
            'use device="cpu".'
        )
    # The runtime would write the loader's message to stderr; what it raises says less.
    onnxruntime.set_default_logger_severity(_SILENT)
    try:
        _preload(onnxruntime)
        device.empty((1,), np.float32)
    except RuntimeError as error:
        reason = _loader_message(device.kind) or _driver_message(error)
        raise RuntimeNotAvailableError(_unavailable(device, reason)) from error
    finally:
        onnxruntime.set_default_logger_severity(_WARNINGS)


def _preload(onnxruntime):
    """Load NVIDIA's libraries out of its Python packages, where they are, in a runtime that can."""
    if hasattr(onnxruntime, "preload_dlls"):
        # It prints what it does not find.
        with contextlib.redirect_stdout(io.StringIO()):
            onnxruntime.preload_dlls()


def _loader_message(kind):
    """Return what keeps the provider's library from being loaded, after the runtime has tried; None for nothing."""
    folder = pathlib.Path(load().__file__).parent / "capi"
    for library in folder.glob(f"*onnxruntime_providers_{kind}.*"):
        try:
            ctypes.CDLL(str(library))
        except OSError as error:
            return f"{error}."
    return None


def _driver_message(error):
    """Return what the driver said, out of the C++ around it."""
    said = re.search(r"failure \d+: [^;]*\b", str(error))
    return f"The driver says: {said[0]}." if said else str(error)


def _unavailable(device, reason):
    from onnxruntime.capi import build_and_package_info

    kind = device.kind
    version = getattr(build_and_package_info, f"{kind}_version", "")
    return (
        f'device="{device.name}": the {_PROVIDERS[kind]} of {_installed()} does not load. {reason} It wants NVIDIA\'s '
        f"driver, and the libraries of {kind.upper()} {version} and cuDNN: for onnxruntime-gpu they come with "
        'pip install "onnxruntime-gpu[cuda,cudnn]". Or use device="cpu".'
    )


def _installed():
    return ", ".join(f"{name} {version}" for name, version in installed_distributions().items())
