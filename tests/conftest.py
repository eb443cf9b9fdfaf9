"""Settings of all tests."""

import os

# Read when scipy is imported: without it scikit-learn skips its array API checks.
os.environ["SCIPY_ARRAY_API"] = "1"
