"""`show_versions`: the facts about a machine that a bug report needs."""

import contextlib
import importlib.metadata
import os
import platform
import sys
import warnings

from skort.version import __version__

__all__ = ["show_versions"]

# Their versions are read without an import, so that broken packages are listed, too.
_DEPENDENCIES = (
    *("scikit-learn", "numpy", "scipy", "joblib", "onnx", "skl2onnx", "flatbuffers", "tqdm", "pip"),
    *("dask", "distributed", "matplotlib", "pandas", "torch"),
)
_ENVIRONMENT = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
)


def show_versions() -> None:
    """
    Print the facts that a bug report needs: system, package versions, ONNX Runtime and solvers.

    If ONNX Runtime is missing or broken, the report says why. A package that is not installed has
    the version None.

    Examples
    --------
    >>> import skort
    >>> skort.show_versions()  # doctest: +ELLIPSIS
    System:
    ...
    Python dependencies:
    ...
    ONNX Runtime:
    ...
    Solvers:
    ...
    """
    sections = {
        "System": _system(),
        "Python dependencies": {"skort": __version__}
        | {name: _version(name) for name in _DEPENDENCIES},
        "ONNX Runtime": _onnx_runtime(),
        "Solvers": _solvers(),
    }
    print("\n\n".join(_text(title, rows) for title, rows in sections.items()))


def _text(title: str, rows: dict[str, str | None]) -> str:
    width = max(map(len, rows))
    return "\n".join([f"{title}:", *(f"{name:>{width}}: {value}" for name, value in rows.items())])


def _system() -> dict[str, str | None]:
    return {
        "python": _joined(sys.version),
        "executable": sys.executable,
        "machine": platform.platform(),
        "cores": f"{os.cpu_count()}{_usable_cores()}",
        "environment": ", ".join(
            f"{name}={os.environ[name]}" for name in _ENVIRONMENT if name in os.environ
        )
        or None,
    }


def _usable_cores() -> str:
    try:
        import joblib
    except Exception:  # The report is of broken installations, too.
        return ""
    return f", of which this process may use {joblib.cpu_count()}"


def _version(name: str) -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    return None


def _onnx_runtime() -> dict[str, str | None]:
    """Return the distributions that install `onnxruntime`, and the imported version's providers."""
    try:
        from skort.runtime.installed import installed_distributions, load, mix_advice
    except Exception as error:  # The report names any error.
        return {"imported": f"no: {_one_line(error)}"}

    owners = importlib.metadata.packages_distributions().get("onnxruntime", [])
    rows = {name: _version(name) for name in sorted({*installed_distributions(), *owners})}
    if advice := mix_advice():
        rows["problem"] = advice
    try:
        with warnings.catch_warnings():
            # The advice above says the same.
            warnings.simplefilter("ignore", RuntimeWarning)
            onnxruntime = load()

        return rows | {
            "imported": onnxruntime.__version__,
            "providers": ", ".join(onnxruntime.get_available_providers()),
        }
    except Exception as error:  # The report names any error.
        return rows | {"imported": f"no: {_one_line(error)}"}


def _solvers() -> dict[str, str | None]:
    """Return, for each solver, whether it can train in float32 here, or why it cannot."""
    try:
        from skort.solvers import ON_REQUEST, SOLVERS, why_not
    except Exception as error:  # The report names any error.
        return {"none": _one_line(error)}

    reasons = {name: why_not(solver) for name, solver in {**SOLVERS, **ON_REQUEST}.items()}
    return {
        name: "available" if why is None else f"not available: {_joined(why)}"
        for name, why in reasons.items()
    }


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {_joined(str(error))}"


def _joined(text: str) -> str:
    return " ".join(text.split())
