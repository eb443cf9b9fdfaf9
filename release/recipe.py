"""
Write the recipe of a release for conda-forge: the one of this checkout, with the sdist of PyPI.

    python release/recipe.py skort-0.1.0.tar.gz > recipe.yaml
"""

import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHECKOUT = "source:\n  path: ..\n"
SOURCE = """\
source:
  url: https://pypi.org/packages/source/s/skort/skort-${{{{ version }}}}.tar.gz
  sha256: {sha256}
"""


def of_release(recipe, sdist):
    """Return the recipe with the address and the sum of an sdist in the place of a folder."""
    version = sdist.name.removeprefix("skort-").removesuffix(".tar.gz")
    if f'version: "{version}"' not in recipe or recipe.count(CHECKOUT) != 1:
        raise ValueError(f"The recipe is not that of skort {version}.")
    sha256 = hashlib.sha256(sdist.read_bytes()).hexdigest()
    return recipe.replace(CHECKOUT, SOURCE.format(sha256=sha256))


if __name__ == "__main__":
    recipe = (ROOT / ".conda" / "recipe.yaml").read_text(encoding="utf-8")
    sys.stdout.write(of_release(recipe, Path(sys.argv[1])))
