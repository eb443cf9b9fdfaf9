"""scikit-learn's own tests, from its installed wheel: `pytest -m upstream tests/upstream`."""

import collections
import fnmatch
import pathlib
import sys

import numpy as np
import pytest
import sklearn

HERE = pathlib.Path(__file__).parent
# In importlib mode pytest leaves it out: for the modules beside this one, in workers of joblib too.
sys.path.append(str(HERE))

from not_passing import NOT_PASSING, SCIKIT_LEARN, TOO_LONG  # noqa: E402

collect_ignore_glob = [] if sklearn.__version__ == SCIKIT_LEARN else ["test_*.py"]


def pytest_configure(config):
    config.addinivalue_line("markers", "no_check_spmatrix: of scikit-learn's own settings")


@pytest.fixture(params=[42])
def global_random_seed(request):
    """As in scikit-learn's own conftest.py."""
    return request.param


@pytest.fixture(autouse=True)
def seeded():
    """Some tests have random_state=None: they are to pass or fail each time."""
    np.random.seed(0)  # noqa: NPY002


def fits(item, pattern):
    """
    Return whether a pattern of the table is of a test;
    its brackets are those of parametrized tests.
    """
    return fnmatch.fnmatchcase(f"{item.path.name}::{item.name}", pattern.replace("[", "[[]"))


def pytest_collection_modifyitems(config, items):
    ours = [item for item in items if item.path.parent == HERE]
    for item in ours:
        item.add_marker(pytest.mark.upstream)
        # scikit-learn's tests let them pass.
        item.add_marker(pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"))
        reason = next(
            (reason for pattern, reason in NOT_PASSING.items() if fits(item, pattern)), None
        )
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True, run=reason != TOO_LONG))
    if ours and not any("::" in argument for argument in config.args):
        collected = {item.path.name for item in ours}
        stale = [
            p
            for p in NOT_PASSING
            if p.split("::")[0] in collected and not any(fits(item, p) for item in ours)
        ]
        if stale:
            raise pytest.UsageError(
                f"No test of scikit-learn {SCIKIT_LEARN} is called {', '.join(stale)}."
            )


def pytest_terminal_summary(terminalreporter):
    """Count the tests by reason."""
    reports = terminalreporter.getreports("xfailed")
    counts = collections.Counter(
        r.wasxfail for r in reports if r.fspath.startswith("tests/upstream")
    )
    for reason, n in sorted(counts.items(), key=lambda pair: (pair[0].split(":")[0], -pair[1])):
        terminalreporter.write_line(f"{n:4d}  {reason}")
