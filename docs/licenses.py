"""Write the licences of the packages whose files the pages ship, for the page of third parties."""

import importlib.metadata
import re
from pathlib import Path

LICENSES = Path(__file__).parent / "static" / "licenses"
SHIPPED = ("pydata-sphinx-theme", "sphinx", "sphinx-copybutton", "sphinx-design", "sphinx-gallery")


def license_of(name):
    """Return the text of the licence that an installed package brings."""
    (file,) = (
        f
        for f in importlib.metadata.files(name)
        if re.search(r"\.dist-info/(licenses/)?LICENSE[.\w]*$", str(f))
    )
    return file.read_text()


if __name__ == "__main__":
    LICENSES.mkdir(exist_ok=True)
    for name in SHIPPED:
        (LICENSES / f"{name}.txt").write_text(license_of(name), encoding="utf-8")
