"""
Set the owner of the project everywhere: on GitHub, in the metadata, in the recipe of conda.

    python release/owner.py --github jane --email jane@example.com --name "Jane Doe"
"""

import argparse
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
# The only files with the owner's name and address. Until an owner is set, they have these.
FILES = ("pyproject.toml", ".conda/recipe.yaml", "CODE_OF_CONDUCT.md")
GITHUB, EMAIL, NAME = "OWNER", "OWNER@example.org", "the skort developers"


def placeholders(root):
    """Return the files that still wait for an owner."""
    return [name for name in FILES if GITHUB in (root / name).read_text(encoding="utf-8")]


def set_owner(root, github, email, name):
    """Write an owner into the files that wait for one."""
    for file in placeholders(root):
        path = root / file
        text = path.read_text(encoding="utf-8").replace(EMAIL, email).replace(GITHUB, github)
        if file == "pyproject.toml":
            text = text.replace(f'authors = [{{ name = "{NAME}"', f'authors = [{{ name = "{name}"')
        path.write_text(text, encoding="utf-8")


def main(arguments=None, root=ROOT):
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--github", required=True, help="the user or organisation on GitHub")
    parser.add_argument("--email", required=True, help="where people write to")
    parser.add_argument("--name", default=NAME, help="the author in the metadata")
    given = parser.parse_args(arguments)

    if not re.fullmatch(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*", given.github) or given.github == GITHUB:
        parser.error(f"--github: {given.github!r} is no name on GitHub")
    if not re.fullmatch(r"[^@\s\"]+@[^@\s\"]+\.[^@\s\"]+", given.email):
        parser.error(f"--email: {given.email!r} is no address")
    if re.search(r"[\"\\\n]", given.name):
        parser.error("--name: it has quotes or backslashes")
    if not placeholders(root):
        parser.error("an owner is set already: change it by hand in " + ", ".join(FILES))

    set_owner(root, given.github, given.email, given.name)


if __name__ == "__main__":
    main()
