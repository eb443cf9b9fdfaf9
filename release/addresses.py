"""Before publishing: an owner is set, and the addresses of pyproject.toml answer."""

import re
import sys
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from owner import ROOT, placeholders

PYPI = "https://pypi.org/simple/skort/"


def urls(text):
    """Return the addresses of `project.urls`: name -> address."""
    (section,) = re.findall(r"^\[project\.urls\]\n(.*?)\n\n", text, re.DOTALL | re.MULTILINE)
    return dict(re.findall(r'^(\w+) = "(.*)"$', section, re.MULTILINE))


def to_ask(addresses, *, is_first):
    """
    Return the addresses that have to answer.

    Read the Docs has `stable` only after the first tag, and `latest` before.
    """
    return [
        address.replace("/en/stable/", "/en/latest/") if is_first else address
        for address in addresses.values()
    ]


def exists(address):
    """Return whether there is a page at an address."""
    try:
        with urllib.request.urlopen(address, timeout=60):
            return True
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return False
        raise
    except urllib.error.URLError as error:
        sys.exit(f"{address} cannot be asked: {error.reason}.")


def main():
    waiting = placeholders(ROOT)
    if waiting:
        sys.exit(f"No owner is set in {', '.join(waiting)}: run `python release/owner.py --help`.")

    is_first = not exists(PYPI)
    print("the first release" if is_first else "a later release")
    for address in to_ask(urls((ROOT / "pyproject.toml").read_text()), is_first=is_first):
        if not exists(address):
            sys.exit(f"{address} does not exist.")
        print(f"{address} answers")


if __name__ == "__main__":
    main()
