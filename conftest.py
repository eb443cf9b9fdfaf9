"""What pytest does not collect where an extra is not installed, and what it leaves out by default."""

from importlib.util import find_spec
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_OF_DASK = _HERE / "tests" / "dask", _HERE / "skort" / "dask"

collect_ignore_glob = [] if find_spec("distributed") else ["skort/dask/*"]


def pytest_collection_modifyitems(items):
    """Mark what starts clusters: `nox -s tests_dask` runs it, and no other lane."""
    for item in items:
        if any(folder in item.path.parents for folder in _OF_DASK):
            item.add_marker(pytest.mark.dask)
