"""Settings and fixtures of all tests."""

import os

# Read when scipy is imported: without it scikit-learn skips its array API checks.
os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
import pytest

from skort.runtime.installed import training_api

SOLVERS = [
    "agent",
    pytest.param(
        "session",
        marks=pytest.mark.skipif("TrainingSession" not in training_api(), reason="this runtime has no TrainingSession"),
    ),
]


@pytest.fixture(params=SOLVERS)
def solver(request):
    """Every value of the parameter `solver` that works here."""
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(0)
