"""
What pytest does not collect where an extra is not installed,
and what it leaves out by default.
"""

from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

_HERE = Path(__file__).parent
_OF_DASK = _HERE / "tests" / "dask", _HERE / "skort" / "dask"

# Any other file that cannot be imported is an error.
_NEEDS = {
    "atheris": ["tests/fuzz/*"],
    "cosmic_ray": ["tests/mutation/*"],
    "distributed": ["skort/dask/*"],
    "matplotlib": [f"skort/plotting/{n}.py" for n in ("loss_curve", "schedule", "weights")],
    "torch": ["skort/torch.py", "tests/data/torch_layer.py"],
}

collect_ignore_glob = [
    path for package, paths in _NEEDS.items() if not find_spec(package) for path in paths
]
if not any(found.name.startswith("onnxruntime-training") for found in distributions()):
    collect_ignore_glob.append("skort/artifacts/on_device.py")


@pytest.fixture(autouse=True)
def _seeded():
    """Let a fit without a random_state draw the same numbers in every run of a test."""
    np.random.seed(0)  # noqa: NPY002  # The generator that such a fit draws from.


def pytest_collection_modifyitems(items):
    """Mark what starts clusters: `nox -s tests_dask` runs it, and no other lane."""
    for item in items:
        if any(folder in item.path.parents for folder in _OF_DASK):
            item.add_marker(pytest.mark.dask)
