"""
What mypy and pyright make of skort: `nox -s types`.

They refuse the mistakes of `mistakes.py` and nothing else there or in `correct.py`. pyright knows
the types of nearly all names of the package.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# The part of the names whose types pyright knows.
COMPLETE = 0.95


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, cwd=HERE).stdout


def refused_by_mypy(name):
    """Return the numbers of the lines of a file that mypy refuses."""
    options = ("--config-file=", "--ignore-missing-imports", "--hide-error-context")
    found = output(sys.executable, "-m", "mypy", *options, name)
    return {int(line) for line in re.findall(rf"^{name}:(\d+): error", found, re.MULTILINE)}


def refused_by_pyright(name):
    found = json.loads(output(sys.executable, "-m", "pyright", "--outputjson", name))
    return {
        each["range"]["start"]["line"] + 1
        for each in found["generalDiagnostics"]
        if each["severity"] == "error"
    }


def marked(name):
    """Return the numbers of the lines that are marked as mistakes."""
    lines = HERE.joinpath(name).read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("# mistake")}


def completeness():
    command = (sys.executable, "-m", "pyright", "--verifytypes", "skort", "--ignoreexternal")
    return json.loads(output(*command, "--outputjson"))["typeCompleteness"]["completenessScore"]


def main():
    for name in ("mistakes.py", "correct.py"):
        expected = marked(name)
        for refused in (refused_by_mypy, refused_by_pyright):
            found = refused(name)
            print(f"{refused.__name__}: {len(found)} lines of {name}")
            assert found == expected, sorted(found ^ expected)

    share = completeness()
    print(f"complete: {share:.1%}")
    assert share >= COMPLETE, share


if __name__ == "__main__":
    main()
