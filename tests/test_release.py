"""
What surrounds the package: workflows, templates, citation, metadata.
`nox -s package` checks their schemas.
"""

import ast
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import urllib.error
from pathlib import Path

import pytest

import skort
from skort.common.component import DOCUMENTATION

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
# Of the install table of README.md
PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]


def lanes():
    """Return the lanes of noxfile.py, by the names that `nox -s` takes, with their Pythons."""
    found = {}
    for node in ast.parse(ROOT.joinpath("noxfile.py").read_text()).body:
        for decorator in getattr(node, "decorator_list", ()):
            options = {
                keyword.arg: ast.literal_eval(keyword.value) for keyword in decorator.keywords
            }
            several = isinstance(options["python"], list)
            found |= {f"{node.name}-{python}": python for python in options["python"] if several}
            found |= {} if several else {node.name: options["python"]}
    return found


def workflow(name):
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(ROOT.joinpath(".github", "workflows", f"{name}.yml").read_text())


def runs(job):
    """
    Return the Pythons that a job sets up, and the lanes that it runs,
    one pair for each entry of its matrix.
    """
    matrix = job.get("strategy", {}).get("matrix", {})
    entries = [
        *matrix.get("include", ()),
        *({"python": python} for python in matrix.get("python", ())),
    ]
    return [_pair(repr(job["steps"]), entry) for entry in entries or [{}]]


def _pair(steps, entry):
    text = re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda match: entry[match[1]], steps)
    (python,) = re.findall(r"'python-version': '([^']*)'", text)
    (names,) = re.findall(r"nox --error-on-missing-interpreters -s ([^']*)", text)
    return python.replace("\\n", " ").split(), names.replace('"', "").split()


def test_there_are_four_workflows():
    assert [path.stem for path in WORKFLOWS] == ["docs", "nightly", "release", "tests"]


def test_workflows_run_every_lane_with_its_python():
    found = set()
    for path in WORKFLOWS:
        for job in workflow(path.stem)["jobs"].values():
            if "nox" not in repr(job.get("steps")):
                continue
            for pythons, names in runs(job):
                assert sorted({lanes()[name] for name in names}) == pythons
                found.update(names)
    assert found == set(lanes())


def test_each_system_runs_each_python():
    job = workflow("tests")["jobs"]["tests"]
    matrix = job["strategy"]["matrix"]
    assert matrix["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    assert matrix["python"] == PYTHONS
    assert [names for _, names in runs(job)] == [
        ["tests_system-3.12"],
        *([f"tests_system-{p}"] for p in PYTHONS),
    ]
    # Arm on Linux
    assert matrix["include"] == [{"os": "ubuntu-24.04-arm", "python": "3.12"}]


def test_the_classifiers_name_these_pythons():
    text = ROOT.joinpath("pyproject.toml").read_text()
    assert re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text) == PYTHONS
    assert f'requires-python = ">={PYTHONS[0]}"' in text


def test_only_the_job_that_publishes_may_ask_for_a_token():
    for path in WORKFLOWS:
        assert workflow(path.stem)["permissions"] == {"contents": "read"}
        assert "secrets." not in path.read_text()
    jobs = workflow("release")["jobs"]
    assert list(jobs) == ["tests", "prereleases", "build", "publish"]
    asked = [job.get("permissions") for job in jobs.values()]
    assert asked == [None, None, None, {"id-token": "write"}]
    build, publish = jobs["build"], jobs["publish"]
    assert publish["needs"] == ["tests", "prereleases", "build"]
    assert jobs["tests"] == {"uses": "./.github/workflows/tests.yml"}
    assert "workflow_call:" in ROOT.joinpath(".github", "workflows", "tests.yml").read_text()
    # It refuses placeholders.
    assert [names for _, names in runs(build)] == [["addresses", "package", "release_files"]]
    assert publish["environment"]["name"] == "pypi"
    assert [step.get("uses").partition("@")[0] for step in publish["steps"]] == [
        "actions/download-artifact",
        "pypa/gh-action-pypi-publish",
    ]
    # What is checked is what is uploaded.
    assert build["steps"][-1]["with"]["path"] == publish["steps"][0]["with"]["path"] == "dist"


def test_actions_are_pinned_by_hash_and_keep_no_credentials():
    pinned = {}
    for path in WORKFLOWS:
        for action, version in re.findall(r"uses: ([^.\s]\S*)(.*)", path.read_text()):
            name, _, commit = action.partition("@")
            assert re.fullmatch(r"[0-9a-f]{40}", commit) and re.fullmatch(
                r" # v\d+\.\d+\.\d+", version
            ), action
            assert pinned.setdefault(name, (commit, version)) == (commit, version)
        for job in workflow(path.stem)["jobs"].values():
            for step in job.get("steps", ()):
                if step.get("uses", "").startswith("actions/checkout@"):
                    assert step["with"] == {"persist-credentials": False}


def test_the_addresses_are_those_of_the_project():
    tables = (
        ROOT.joinpath("pyproject.toml")
        .read_text()
        .partition("[project.urls]\n")[2]
        .partition("\n[")[0]
    )
    urls = dict(re.findall(r'^(\w+) = "(.*)"$', tables, re.MULTILINE))
    assert {*urls} == {"Repository", "Issues", "Documentation", "Changelog"}
    assert urls["Issues"] == f"{urls['Repository']}/issues"
    assert urls["Changelog"] == f"{urls['Documentation']}changes.html"
    # Files that cannot read them
    config = ROOT.joinpath(".github", "ISSUE_TEMPLATE", "config.yml").read_text()
    assert f"url: {urls['Documentation']}troubleshooting.html" in config
    own = re.compile(r"https?://(?:skort\.|[\w.]+/[\w-]+/skort\b)[^\s\"')]*")
    for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"):
        assert own.findall(ROOT.joinpath(name).read_text()) == []


def release_script(name):
    """Return a module of the folder `release`."""
    path = ROOT / "release" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    # `addresses` imports `owner`.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def without_owner(tmp_path):
    """Return a copy of the files that wait for an owner."""
    owner = release_script("owner")
    for name in owner.FILES:
        tmp_path.joinpath(name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    if owner.placeholders(tmp_path) == []:
        pytest.skip("an owner is set")
    return tmp_path


def test_one_command_sets_the_owner_everywhere(without_owner):
    owner = release_script("owner")
    assert owner.placeholders(without_owner) == list(owner.FILES)
    owner.main(
        ["--github", "jane-doe", "--email", "jane@example.com", "--name", "Jane Doe"],
        without_owner,
    )
    assert owner.placeholders(without_owner) == []
    text = without_owner.joinpath("pyproject.toml").read_text()
    assert 'authors = [{ name = "Jane Doe", email = "jane@example.com" }]' in text
    assert 'Issues = "https://github.com/jane-doe/skort/issues"' in text
    recipe = without_owner.joinpath(".conda", "recipe.yaml").read_text()
    assert recipe.endswith("recipe-maintainers:\n    - jane-doe\n")
    assert "homepage: https://github.com/jane-doe/skort\n" in recipe
    assert "jane@example.com" in without_owner.joinpath("CODE_OF_CONDUCT.md").read_text()
    with pytest.raises(SystemExit):
        owner.main(["--github", "other", "--email", "a@b.c"], without_owner)


@pytest.mark.parametrize(
    "wrong",
    [("OWNER", "a@b.c"), ("jane/skort", "a@b.c"), ("jane", "nowhere"), ("jane", "a@b.c", '"')],
)
def test_an_owner_that_cannot_be_is_refused(without_owner, wrong):
    owner = release_script("owner")
    options = zip(("--github", "--email", "--name"), wrong, strict=False)
    with pytest.raises(SystemExit):
        owner.main([part for pair in options for part in pair], without_owner)
    assert owner.placeholders(without_owner) == list(owner.FILES)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_no_other_file_waits_for_an_owner():
    run = subprocess.run(
        ["git", "grep", "-lE", r"github\.com/OWNER|OWNER@"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if run.returncode == 128:
        pytest.skip("no repository of git")
    of_scripts = {"release/owner.py", "tests/test_release.py"}
    assert {*run.stdout.split()} - of_scripts <= {*release_script("owner").FILES}


def test_a_first_release_asks_for_the_newest_pages():
    addresses = release_script("addresses")
    urls = addresses.urls(ROOT.joinpath("pyproject.toml").read_text())
    assert addresses.to_ask(urls, is_first=False) == list(urls.values())
    first = addresses.to_ask(urls, is_first=True)
    assert first[:2] == [urls["Repository"], urls["Issues"]]
    assert first[2:] == [
        "https://skort.readthedocs.io/en/latest/",
        "https://skort.readthedocs.io/en/latest/changes.html",
    ]


def test_without_a_network_the_addresses_end_in_a_sentence(monkeypatch):
    addresses = release_script("addresses")

    def unreachable(address, timeout):
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr("urllib.request.urlopen", unreachable)
    with pytest.raises(SystemExit, match=r"^https://skort\.org cannot be asked: Name or service"):
        addresses.exists("https://skort.org")


def test_the_recipe_of_a_release_has_the_sum_of_its_sdist(tmp_path):
    yaml = pytest.importorskip("yaml")
    recipe = release_script("recipe")
    sdist = tmp_path / f"skort-{skort.__version__}.tar.gz"
    sdist.write_bytes(b"skort")
    text = ROOT.joinpath(".conda", "recipe.yaml").read_text()
    released = yaml.safe_load(recipe.of_release(text, sdist))
    assert released["source"] == {
        "url": "https://pypi.org/packages/source/s/skort/skort-${{ version }}.tar.gz",
        "sha256": hashlib.sha256(b"skort").hexdigest(),
    }
    assert {**released, "source": {"path": ".."}} == yaml.safe_load(text)
    with pytest.raises(ValueError, match=r"not that of skort 9\.9"):
        recipe.of_release(text, tmp_path / "skort-9.9.tar.gz")


@pytest.mark.slow
def test_the_tests_of_the_recipe_need_only_its_files(tmp_path):
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load(ROOT.joinpath(".conda", "recipe.yaml").read_text())
    (tests,) = [each for each in recipe["tests"] if "files" in each]
    for name in tests["files"]["source"]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if name.endswith("/") else shutil.copy
        copy(ROOT / name, path)
    (command,) = tests["script"]
    run = subprocess.run(
        [sys.executable, "-m", *command.split(), "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        # Of the checkout, where it is not installed
        env={**os.environ, "PYTHONPATH": str(Path(skort.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-2000:]


def test_a_release_does_not_call_itself_unreleased():
    if "dev" in skort.__version__:
        pytest.skip("no release")
    wrong = re.compile(r"\(unreleased\)|not on PyPI", re.IGNORECASE)
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/*.rst")]
    assert [page.name for page in pages if wrong.search(page.read_text(encoding="utf-8"))] == []


def test_the_recipe_of_conda_asks_for_what_pip_asks_for_and_a_runtime():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load(ROOT.joinpath(".conda", "recipe.yaml").read_text())
    assert recipe["context"]["version"] == skort.__version__
    python, *packages = recipe["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    renamed = [
        text.replace("python-flatbuffers", "flatbuffers").replace(" ", "") for text in packages
    ]
    text = ROOT.joinpath("pyproject.toml").read_text()
    (dependencies,) = re.findall(r"^dependencies = \[\n(.*?)^\]", text, re.DOTALL | re.MULTILINE)
    (cpu,) = re.findall(r'^cpu = \["(.*)"\]$', text, re.MULTILINE)
    assert sorted(renamed) == sorted([*re.findall(r'"(.*)"', dependencies), cpu])
    assert recipe["tests"][0]["python"]["pip_check"] is True


def test_the_readme_of_pypi_has_no_relative_links():
    metadata = importlib.metadata.metadata("skort")
    repository = dict(url.split(", ") for url in metadata.get_all("Project-URL"))["Repository"]
    text = metadata.get_payload() or metadata["Description"]
    links = re.findall(r'(?:\]\(|src="|srcset=")([^)"]*)', text)
    files = [
        link.removeprefix(f"{repository}/").split("/", 2)[2]
        for link in links
        if link.startswith(repository)
    ]
    assert len(files) == len(links) >= 6
    assert [name for name in files if not ROOT.joinpath(name).exists()] == []


TEMPLATES = [
    "ISSUE_TEMPLATE/bug_report.yml",
    "ISSUE_TEMPLATE/feature_request.yml",
    "PULL_REQUEST_TEMPLATE.md",
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_templates_ask_for_the_versions(template):
    assert "skort.show_versions()" in ROOT.joinpath(".github", template).read_text()


def test_a_bug_report_needs_code_and_versions():
    yaml = pytest.importorskip("yaml")
    fields = yaml.safe_load(ROOT.joinpath(".github", TEMPLATES[0]).read_text())["body"]
    required = [field["id"] for field in fields if field.get("validations", {}).get("required")]
    assert required == ["what", "code", "versions"]


def test_the_citation_is_of_this_version():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load(ROOT.joinpath("CITATION.cff").read_text())
    assert citation["version"] == skort.__version__
    assert citation["license"] == "BSD-3-Clause"
    assert DOCUMENTATION.startswith(citation["url"])


def test_the_changelog_begins_with_this_version():
    headings = re.findall(r"^## (.*)$", ROOT.joinpath("CHANGELOG.md").read_text(), re.MULTILINE)
    versions = [heading for heading in headings if heading != "Unreleased"]
    assert versions[0].split()[0] == skort.__version__


def test_the_sdist_has_what_its_tests_read():
    text = ROOT.joinpath("pyproject.toml").read_text()
    (listed,) = re.findall(r"sdist\]\ninclude = \[\n(.*?)\n\]", text, re.DOTALL)
    paths = {path.removeprefix("/") for path in re.findall(r'"(.*?)"', listed)}
    assert {
        "tests",
        "conftest.py",
        "examples",
        "benchmarks",
        "docs",
        ".github",
        "README.md",
        "noxfile.py",
        "release",
        ".ci",
        ".pre-commit-config.yaml",
    } <= paths
    assert all(ROOT.joinpath(path).exists() for path in paths)


def test_the_nightly_profile_is_known_before_any_test_is_imported():
    options = ["-q", "--collect-only", "-p", "no:cacheprovider", "--hypothesis-profile=nightly"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests/test_properties.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout
    assert "tests collected" in run.stdout
