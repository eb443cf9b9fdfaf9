"""The examples in the pages of the documentation."""

import doctest
import itertools
import re
import runpy
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import skort
from skort.estimators.planning.decision import RULES as planning_rules
from skort.estimators.planning.decision import sentence
from skort.graphs.gradient import reverse
from skort.graphs.gradient.reverse import RULES

PAGES = Path(__file__).parent.parent / "docs"


# tests/test_messages.py runs those of troubleshooting.rst.
SHOWN = [
    page.name
    for page in PAGES.glob("*.rst")
    if ">>> " in page.read_text() and page.stem != "troubleshooting"
]


@pytest.mark.parametrize("page", sorted(SHOWN))
def test_examples_run(page, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    # Rules that a page adds are not there before, whether or not skort has them, nor after it.
    added = {*re.findall(r'RULES\["(\w+)"\] = ', (PAGES / page).read_text())}
    kept = {operator: rule for operator, rule in RULES.items() if operator not in added}
    monkeypatch.setattr(reverse, "RULES", kept)
    failures, attempts = doctest.testfile(str(PAGES / page), module_relative=False)
    assert attempts > 0
    assert failures == 0


def test_a_page_adds_a_rule_that_skort_has_by_now(tmp_path, monkeypatch):
    monkeypatch.setitem(RULES, "Sinh", RULES["Tanh"])
    test_examples_run("adding.rst", tmp_path, monkeypatch)


@pytest.mark.parametrize("estimator_class", [skort.OrtSGDRegressor, skort.OrtSGDClassifier])
def test_the_page_of_parameters_has_all_with_their_defaults(estimator_class):
    module = runpy.run_path(str(PAGES / "parameters_page.py"))
    described = module["parameters"](estimator_class)
    assert {
        name: eval(default) for name, (default, _) in described.items()
    } == estimator_class().get_params()
    assert sum(name in described for names in module["GROUPS"].values() for name in names) == len(
        described
    )
    page = module["page"]()
    assert all(
        f"    * - `{name}`\n      - `{default}`\n" in page
        for name, (default, _) in described.items()
    )


def test_the_drawing_of_the_house_shows_the_imports_of_the_code():
    house = runpy.run_path(str(PAGES / "house_drawing.py"))
    arrows = re.findall(r"<title>(\w+)-&gt;(\w+)</title>", house["DRAWING"].read_text())
    assert {*arrows} == house["imports"]()
    floors = {room: i for i, floor in enumerate(house["FLOORS"]) for room in floor}
    assert all(floors[room] < floors[other] for room, other in arrows)


CONTRIBUTING = PAGES.parent / "CONTRIBUTING.md"
FOR_CONTRIBUTORS = [
    CONTRIBUTING,
    PAGES / "house.rst",
    PAGES / "adding.rst",
    PAGES / "development.rst",
]


def exists(name):
    """Return whether a module of skort, or what is in it, is there: its package may be missing."""
    parts = name.split(".")
    places = [PAGES.parent.joinpath(*parts[:n]) for n in range(len(parts), 1, -1)]
    found = next((p for p in places if p.is_dir() or p.with_suffix(".py").is_file()), None)
    if found is None or found == places[0]:
        return found is not None or name == "skort"
    module = ".".join(parts[: len(found.relative_to(PAGES.parent).parts)])
    return hasattr(pytest.importorskip(module), parts[-1])


@pytest.mark.parametrize("page", FOR_CONTRIBUTORS, ids=lambda page: page.name)
def test_the_pages_for_contributors_name_files_and_modules_that_exist(page):
    text = page.read_text()
    folders = "skort|tests|docs|benchmarks|examples"
    paths = re.findall(rf"[` ]((?:{folders})/[\w/]+(?:\.\w+)?)(?=[`, \n]|\.\s)", text)
    assert len(paths) > 1
    assert [path for path in paths if not (PAGES.parent / path).exists()] == []
    assert [name for name in re.findall(r"`(skort(?:\.\w+)+)`", text) if not exists(name)] == []


@pytest.mark.parametrize("page", FOR_CONTRIBUTORS, ids=lambda page: page.name)
def test_what_the_pages_for_contributors_name_in_a_file_is_there(page):
    """As in "`Batches` in `skort/optim/batches.py`"."""
    named = re.findall(r"`([\w.]+)` in\s+`((?:skort|tests)/[\w/]+\.py)`", page.read_text())
    assert [
        (name, file)
        for name, file in named
        if not re.search(
            rf"^ *(def |class )?{name.split('.')[-1]}\b", (PAGES.parent / file).read_text(), re.M
        )
    ] == []


def test_the_rooms_that_contributors_read_of_exist():
    """What is named alone, such as `optim`, in the paragraphs on who imports what."""
    of_contributing = (
        CONTRIBUTING.read_text().partition("The data goes one way")[2].partition("\n\n")[0]
    )
    of_house = (PAGES / "house.rst").read_text().partition("An estimator takes a model and data")[2]
    for text in (of_contributing, of_house.partition("One way through")[0]):
        rooms = {*re.findall(r"`([a-z_]+)`", text)}
        assert {"graphs", "objective", "optim"} < rooms
        assert [room for room in rooms if not exists(f"skort.{room}")] == []


def test_contributors_read_of_every_public_module():
    api = (PAGES / "api.rst").read_text()
    listed = {*re.findall(r"currentmodule:: (skort(?:\.\w+)?)$", api, re.MULTILINE)}
    public = listed | {
        f"skort.{name}" for name in skort.__all__ if (PAGES.parent / "skort" / name).is_dir()
    }
    named = {*re.findall(r"`(skort(?:\.\w+)?)`", CONTRIBUTING.read_text())}
    assert len(public) > 10
    assert public <= named


def pages_changes(section):
    """
    Return the changes that a section of the page shows, as file and lines,
    and the files of its tests.
    """
    blocks = re.findall(
        r"\.\. code-block:: (\w+)\n(?:    :caption: (.*)\n)?\n((?:    .*\n|\n)+)", section
    )
    changes = [
        (file, textwrap.dedent(text).strip("\n"))
        for language, file, text in blocks
        if language == "diff"
    ]
    commands = [textwrap.dedent(text).split() for language, _, text in blocks if language == "text"]
    return changes, [word for command in commands for word in command if word != "pytest"]


def changed(text, lines):
    """
    Return a text after a change, which it may have already: its lines without a plus are there
    once, one below the other.
    """
    for hunk in re.split(r"\n\n(?=[- ])", lines):
        before = "".join(f"{line[1:]}\n" for line in hunk.split("\n") if line[:1] != "+")
        after = "".join(f"{line[1:]}\n" for line in hunk.split("\n") if line[:1] != "-")
        if after in text:
            continue
        assert text.count(before) == 1, (
            f"The page changes what is not there, or not once:\n{before}"
        )
        text = text.replace(before, after)
    return text


def changes_of_a_schedule():
    """Return the changes that the page shows for a schedule, and the files of its tests."""
    page = (PAGES / "adding.rst").read_text()
    section = page.partition("\nA schedule\n---")[2]
    return pages_changes(section.partition("\nThe gradient of an operator\n---")[0])


def test_whoever_made_the_changes_that_the_page_shows_makes_them_no_second_time():
    changes, _ = changes_of_a_schedule()
    assert len(changes) > 5
    for file, lines in changes:
        once = changed((PAGES.parent / file).read_text(), lines)
        assert changed(once, lines) == once


@pytest.mark.slow
def test_the_changes_that_the_page_shows_add_a_schedule(tmp_path):
    checkout = tmp_path / "checkout"
    ignored = shutil.ignore_patterns(".*", "_build", "__pycache__", "shared", "*.egg-info")
    shutil.copytree(PAGES.parent, checkout, ignore=ignored)
    changes, tests = changes_of_a_schedule()
    for file, lines in changes:
        path = checkout / file
        path.write_text(changed(path.read_text(), lines))
    assert len(tests) > 3

    run = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    result = subprocess.run(run, cwd=checkout, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]
    for new in (
        "is_the_formula_of_the_page[exponential]",
        "test_docstrings_are_complete[skort.schedules.Exponential]",
        "skort/schedules.py::skort.schedules.Exponential",
    ):
        assert f"{new} PASSED" in result.stdout
    code = (
        "from skort import OrtSGDRegressor; "
        'OrtSGDRegressor(learning_rate="exponential").fit([[0.0], [1.0]], [0, 1])'
    )
    subprocess.run([sys.executable, "-c", code], cwd=checkout, check=True, timeout=60)


def test_the_page_of_rules_shows_the_plan_of_a_fit_and_every_rule():
    page = runpy.run_path(str(PAGES / "rules_page.py"))["page"]()
    example = doctest.DocTestParser().get_doctest(page, {}, "rules", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(example) == (0, len(example.examples))
    for rule in itertools.chain(*planning_rules.values()):
        assert sentence(rule) in page
