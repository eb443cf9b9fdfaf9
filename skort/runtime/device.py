"""
Where sessions run and arrays live.

Only this file knows execution providers, and memory other than that of numpy.
"""

import contextlib
import ctypes
import functools
import io
import pathlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from skort.exceptions import RuntimeNotAvailableError
from skort.runtime.installed import c_api, installed_distributions, load

#: An ndarray in the CPU's memory, an OrtValue elsewhere.
DeviceArray: TypeAlias = Any

_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
_SILENT = 4
_WARNINGS = 2
# CUDA spoils the record of a step if another thread copies or allocates memory meanwhile.
_ONE_AT_A_TIME = threading.RLock()
_F = TypeVar("_F", bound=Callable[..., Any])


@functools.cache
def cpu_memory() -> Any:
    """Return ONNX Runtime's object for the memory of numpy's arrays."""
    kind = c_api().OrtDevice
    return kind(kind.cpu(), kind.default_memory(), 0)


def ortvalue_views(arrays: Mapping[Any, np.ndarray]) -> dict[Any, Any]:
    """
    Return OrtValues over the memory of C-contiguous, aligned arrays, with their keys.

    The caller keeps the arrays alive.
    """
    # The wrapper of this class takes twice as long.
    view = c_api().OrtValue.ortvalue_from_numpy
    memory = cpu_memory()
    values = {}
    for key, array in arrays.items():
        if not (array.flags.c_contiguous and array.flags.aligned):
            raise ValueError("only a C-contiguous, aligned array can be borrowed")
        values[key] = view(array, memory)

    return values


def value_vector(arrays: Iterable[np.ndarray] = ()) -> Any:
    """Return a vector of OrtValues over the memory of arrays. The caller keeps the arrays alive."""
    vector = c_api().OrtValueVector()
    for value in ortvalue_views(dict(enumerate(arrays))).values():
        vector.push_back(value)
    return vector


@dataclass(frozen=True)
class Device:
    """
    A processor and the memory of its arrays: ndarrays in the CPU's memory,
    values of ONNX Runtime elsewhere.
    """

    kind: Literal["cpu", "cuda"] = "cpu"
    #: The number of the device, if there are several of its kind.
    index: int = 0
    #: The number of threads of an operator on the CPU; 1 is the caller's thread alone.
    n_threads: int = 1
    #: Whether numpy cannot reach the arrays of the device, so that values are copied. Tests set it
    #: for the CPU, too.
    is_remote: bool = False

    @property
    def name(self) -> str:
        """The name, as in the estimators' parameter `device`."""
        return f"{self.kind}:{self.index}" if self.index else self.kind

    @property
    def can_record(self) -> bool:
        """Whether the runtime records a run on the device, and replays it as one launch."""
        return self.kind == "cuda" and _is_current()

    def providers(self, *, records: bool = False) -> list[Any]:
        """
        Return the execution providers of a session: that of the device, and that of the CPU.

        The CPU runs the operators that the device cannot run. With `records` there must be none: the
        runs of the session may be recorded.
        """
        if self.kind == "cpu":
            return [_PROVIDERS["cpu"]]

        options = {"device_id": self.index}
        if _is_current():
            # Products in TF32 have three digits.
            options["use_tf32"] = 0
        if records:
            options["enable_cuda_graph"] = 1

        return [(_PROVIDERS[self.kind], options), _PROVIDERS["cpu"]]

    def alone(self, function: _F) -> _F:
        """Return a function that runs while no other thread uses a device with its own memory."""
        if not self.is_remote:
            return function

        @functools.wraps(function)
        def locked(*args, **kwargs):
            with _ONE_AT_A_TIME:
                return function(*args, **kwargs)

        return locked  # type: ignore[return-value]

    def check(self) -> None:
        """Raise an error if no session can run here."""
        if self.kind != "cpu":
            _load_provider(self)

    def check_session(self, session: Any) -> None:
        """Raise an error if the runtime made a session without the provider of the device."""
        if _PROVIDERS[self.kind] not in session.get_providers():
            self.check()
            raise RuntimeNotAvailableError(_unavailable(self, "A session was made without it."))

    def put(self, array: np.ndarray) -> DeviceArray:
        """Return a new array of the device with the values of an ndarray."""
        if not self.is_remote:
            return array.copy()

        copy = self.empty(array.shape, array.dtype)
        self.fill(copy, array)
        return copy

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        """Return a new array of the device, whose values are undefined."""
        if not self.is_remote:
            return np.empty(shape, dtype)

        make = self.alone(load().OrtValue.ortvalue_from_shape_and_type)
        return make(list(shape), np.dtype(dtype).type, self.kind, self.index)

    def fill(self, array: DeviceArray, values: np.ndarray) -> None:
        """Copy an ndarray of the same shape and dtype into an array of the device."""
        if self.is_remote:
            self.alone(array.update_inplace)(np.ascontiguousarray(values))
        else:
            array[...] = values

    def get(self, array: DeviceArray) -> np.ndarray:
        """Return an array of the device as a new ndarray."""
        if not self.is_remote:
            return array.copy()

        values = self.alone(array.numpy)()
        return values.copy() if self.kind == "cpu" else values

    def values(self, arrays: Mapping[str, DeviceArray]) -> dict[str, Any]:
        """
        Return OrtValues over the memory of arrays of the device, by name.

        The caller keeps the arrays alive.
        """
        if self.is_remote:
            return {name: array._ortvalue for name, array in arrays.items()}
        return ortvalue_views(arrays)


#: The CPU with one thread.
CPU = Device()


@functools.cache
def _is_current():
    """Return whether the runtime records several runs of a session, and can do without TF32."""
    major, minor = load().__version__.split(".")[:2]
    return (int(major), int(minor)) >= (1, 18)


@contextlib.contextmanager
def without_log() -> Iterator[None]:
    """
    Silence what the runtime writes to stderr beside its errors.

    At each session on CUDA it warns of a plugin that nobody asked for.
    """
    set_severity = load().set_default_logger_severity
    set_severity(_SILENT)
    try:
        yield
    finally:
        set_severity(_WARNINGS)


@functools.cache
def device_named(name: str, n_threads: int = 1) -> Device:
    """Return a device by its name."""
    if name == "cpu":
        return Device(n_threads=n_threads)

    # The runtime's numbers of devices are small integers.
    match = re.fullmatch(r"cuda(?::(\d{1,4}))?", name)
    if match is None:
        raise ValueError(
            f'device={name!r} is unknown. Use "cpu", "cuda", or "cuda:1" for the second of several.'
        )

    return Device("cuda", int(match[1] or 0), n_threads, is_remote=True)


@functools.cache
def _load_provider(device):
    """Load a provider and use its memory once; raise an error about what is missing."""
    onnxruntime = load()
    if _PROVIDERS[device.kind] not in onnxruntime.get_available_providers():
        raise RuntimeNotAvailableError(
            f'device="{device.name}" needs the {_PROVIDERS[device.kind]}, which {_installed()} '
            f'does not have. Replace it: {_replacement()}. Or use device="cpu".'
        )

    try:
        # The runtime writes the loader's message to stderr; the error that it raises says less.
        with without_log():
            if hasattr(onnxruntime, "preload_dlls"):
                # This loads the libraries of NVIDIA's Python packages, and prints those that it
                # does not find.
                with contextlib.redirect_stdout(io.StringIO()):
                    onnxruntime.preload_dlls()

            device.empty((1,), np.float32)
    except RuntimeError as error:
        reason = _loader_message(device.kind) or _driver_message(error)
        raise RuntimeNotAvailableError(_unavailable(device, reason)) from error


def _loader_message(kind):
    """
    Return why the provider's library does not load, after the runtime has tried;
    None if it loads.
    """
    folder = pathlib.Path(load().__file__).parent / "capi"
    for library in folder.glob(f"*onnxruntime_providers_{kind}.*"):
        try:
            ctypes.CDLL(str(library))
        except OSError as error:
            return f"{error}."

    return None


def _driver_message(error):
    """Return the driver's own message, without the C++ around it."""
    said = re.search(r"failure \d+: [^;]*\b", str(error))
    return f"The driver says: {said[0]}." if said else str(error)


def _unavailable(device, reason):
    kind = device.kind
    version = ""
    # onnxruntime 1.16.0 lacks this module.
    with contextlib.suppress(ImportError):
        from onnxruntime.capi import build_and_package_info

        version = getattr(build_and_package_info, f"{kind}_version", "")

    return (
        f'device="{device.name}": the {_PROVIDERS[kind]} of {_installed()} does not load. {reason} '
        f"It needs NVIDIA's driver, and the libraries of {kind.upper()} {version} and cuDNN; "
        f'onnxruntime-gpu brings its own: {_replacement()}. Or use device="cpu".'
    )


def _replacement():
    """
    Return the command that replaces the installed runtime by onnxruntime-gpu.

    It installs NVIDIA's libraries, too.
    """
    others = [name for name in installed_distributions() if name != "onnxruntime-gpu"]
    uninstall = f"pip uninstall -y {' '.join(others)} && " if others else ""
    return f'{uninstall}pip install "onnxruntime-gpu[cuda,cudnn]"'


def _installed():
    return ", ".join(f"{name} {version}" for name, version in installed_distributions().items())
