"""The examples in the pages of the documentation."""

import doctest
import re
import runpy
from pathlib import Path

import pytest

import skort

PAGES = Path(__file__).parent.parent / "docs"


# tests/test_messages.py runs those of troubleshooting.rst.
SHOWN = [page.name for page in PAGES.glob("*.rst") if ">>> " in page.read_text() and page.stem != "troubleshooting"]


@pytest.mark.parametrize("page", sorted(SHOWN))
def test_examples_run(page, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    failures, attempts = doctest.testfile(str(PAGES / page), module_relative=False)
    assert attempts > 0
    assert failures == 0


@pytest.mark.parametrize("estimator_class", [skort.OrtSGDRegressor, skort.OrtSGDClassifier])
def test_the_page_of_parameters_has_all_with_their_defaults(estimator_class):
    module = runpy.run_path(str(PAGES / "parameters_page.py"))
    described = module["parameters"](estimator_class)
    assert {name: eval(default) for name, (default, _) in described.items()} == estimator_class().get_params()
    assert sum(name in described for names in module["GROUPS"].values() for name in names) == len(described)
    page = module["page"]()
    assert all(f"    * - `{name}`\n      - `{default}`\n" in page for name, (default, _) in described.items())


def test_the_drawing_of_the_house_shows_the_imports_of_the_code():
    house = runpy.run_path(str(PAGES / "house_drawing.py"))
    arrows = re.findall(r"<title>(\w+)-&gt;(\w+)</title>", house["DRAWING"].read_text())
    assert {*arrows} == house["imports"]()
    floors = {room: i for i, floor in enumerate(house["FLOORS"]) for room in floor}
    assert all(floors[room] < floors[other] for room, other in arrows)


def test_the_pages_for_contributors_name_files_that_exist():
    for page in ("house.rst", "adding.rst"):
        paths = re.findall(r"`((?:skort|tests|docs|benchmarks)/[\w/]+(?:\.\w+)?)`", (PAGES / page).read_text())
        assert len(paths) > 10
        assert [path for path in paths if not (PAGES.parent / path).exists()] == []
