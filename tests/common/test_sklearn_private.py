"""One module imports scikit-learn's private names, and says what to do where one is gone."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import sklearn

import skort

# Where it is installed, too: the recipe of conda runs this file without the checkout.
PACKAGE = Path(skort.__file__).parent
WITHOUT = """
import {module}
del {module}.{name}
try:
    import skort.optimizers
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    "module, name",
    [("sklearn.base", "_fit_context"), ("sklearn.utils._param_validation", "Interval")],
)
def test_the_error_for_a_name_that_is_gone_says_what_to_install(module, name):
    code = WITHOUT.format(module=module, name=name)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.startswith(
        f"This version of skort does not know scikit-learn {sklearn.__version__}: "
        f"cannot import name '{name}' from '{module}'"
    )
    advice = f'older scikit-learn: pip install "scikit-learn<{sklearn.__version__}".'
    assert run.stdout.rstrip().endswith(advice)


def test_one_module_imports_them():
    private = re.compile(r"^ *from sklearn\S* import .*\b_\w|^ *from sklearn\S*\._", re.MULTILINE)
    users = [path.name for path in PACKAGE.rglob("*.py") if private.search(path.read_text())]
    assert users == ["sklearn_private.py"]
