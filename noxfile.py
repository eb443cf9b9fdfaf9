"""Lanes: each in a fresh virtual environment. `nox -l` lists them, `nox -s NAME` runs one."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import nox

# uv installs in seconds, with a cache for all lanes. README.md says `pip`, which its
# environments lack.
nox.options.default_venv_backend = "uv|virtualenv"
# A lane whose interpreter is not on this machine is skipped, in CI too.
nox.options.error_on_missing_interpreters = False
nox.options.download_python = "never"


def readme_command(beginning):
    """Return the command of README.md that stands alone in a block and begins so."""
    (command,) = re.findall(
        rf"^```\n({re.escape(beginning)}.*)\n```$", Path("README.md").read_text(), re.MULTILINE
    )
    return command


def run_readme_command(session, beginning):
    session.run("bash", "-c", readme_command(beginning), external=True)


@nox.session(python="3.11")
def lint(session):
    """Ruff, as before every commit, and the types."""
    session.install(".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session(python="3.13")
def types(session):
    """mypy and pyright refuse typical mistakes of users, and know nearly all types."""
    session.install(".[cpu]", "mypy>=1.13", "pandas>=2", "pyright[nodejs]>=1.1.400")
    session.run("python", "tests/types/check.py")


@nox.session(python="3.11", venv_backend="virtualenv")
def quickstart(session):
    """Run the first command of README.md, and the benchmarks."""
    run_readme_command(session, 'pip install ".[training]"')
    # The extra `bench` without torch, which only tests and comparisons with it need.
    # Together with skort: newer packages take a numpy that onnxruntime-training does not.
    session.install(".[tables,training]", "jax>=0.4.30", "threadpoolctl>=3.1")
    session.run("python", "-m", "benchmarks", "--quick")
    session.run("python", "benchmarks/solvers.py")
    session.run("python", "-m", "benchmarks.defaults", "--quick")
    session.run("python", "benchmarks/models.py")
    session.run("python", "benchmarks/pipeline.py")


@nox.session(python="3.11", venv_backend="virtualenv")
def tests(session):
    """Run the second command of README.md, and the slow tests, which it leaves out."""
    run_readme_command(session, 'pip install ".[test]"')
    session.run("pytest", "-n", "auto", "-m", "slow")


@nox.session(python="3.11")
def upstream(session):
    """scikit-learn's own tests of its SGD and MLP classes, from its wheel, with skort inside."""
    # The release of tests/upstream/not_passing.py.
    session.install(".[test]", "scikit-learn==1.9.1")
    session.run("pytest", "-n", "auto", "-m", "upstream", "tests/upstream")


@nox.session(python="3.11")
def docs(session):
    """Build the pages; any warning fails. Read them in Chromium, where it is installed."""
    session.install(".[docs,pages,test]")
    # The build needs no network: what the page of the browser loads is fetched before, where
    # npm is installed.
    if shutil.which("npm"):
        session.run("python", "docs/browser_files.py", "npm")
    session.run("sphinx-build", "-W", "-q", "docs", "docs/_build")
    session.run("pytest", "-m", "pages", "tests/test_pages.py")


def run_dask_tests(session):
    session.install(".[test,dask]")
    session.run("pytest", "-m", "dask", "tests/dask", "tests/test_examples.py", "skort/dask")


@nox.session(python="3.11")
def tests_dask(session):
    """Fits on a Dask cluster of two processes."""
    run_dask_tests(session)


@nox.session(python="3.13", default=False)
def tests_dask_plain_runtime(session):
    """The same without a training API: by name only."""
    run_dask_tests(session)


@nox.session(python="3.12")
def tests_agent_only(session):
    """onnxruntime-training-cpu 1.19, numpy 2, the newest scikit-learn: no TrainingSession."""
    session.install(".[test]")
    # What depends on the runtime; the rest runs on Python 3.13 with the same numpy
    # and scikit-learn.
    folders = ("artifacts", "estimators", "graphs", "optim", "runtime", "solvers")
    session.run("pytest", "-n", "auto", *(f"tests/{folder}" for folder in folders))
    session.run("python", "examples/quickstart.py")


@nox.session(python=["3.13", "3.14"])
def tests_plain_runtime(session):
    """The newest onnxruntime, without a training API: solver "graph"."""
    session.install(".[testing,cpu]")
    session.run("pytest", "-n", "auto")
    session.run("python", "examples/quickstart.py")


def run_torch_tests(session):
    session.install(".[test,torch,plot]", "onnxscript", "jax>=0.4.30")
    files = (
        "tests/test_torch.py",
        "tests/test_gradients.py",
        "tests/artifacts/test_generator.py",
        "skort/torch.py",
    )
    session.run("pytest", "-n", "auto", *files)
    session.run("pytest", "tests/test_examples.py", "-k", "torch or jax")


# It installs 5 GB: by name only.
@nox.session(python="3.11", default=False)
def tests_torch(session):
    """
    Models as layers of torch and JAX, and the artifacts next to those
    of ONNX Runtime's generator.
    """
    run_torch_tests(session)


@nox.session(python="3.13", default=False)
def tests_torch_plain_runtime(session):
    """The same without a training API."""
    run_torch_tests(session)


@nox.session(python="3.11")
def tests_numpy_2(session):
    """The newest onnxruntime and numpy 2 where the extra `training` would bring numpy 1."""
    session.install(".[testing,cpu]")
    session.run("python", "-c", "import numpy; assert numpy.__version__ >= '2', numpy.__version__")
    # The rest runs on Python 3.13 with the same packages.
    session.run("pytest", "-n", "auto", "tests/runtime", "tests/solvers")
    session.run("python", "examples/quickstart.py")


# What the extras choose among
RUNTIMES = {"onnxruntime", "onnxruntime-gpu", "onnxruntime-training", "onnxruntime-training-cpu"}
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
SYSTEMS = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
)


def runtime_of(extra, python, system):
    """Return the runtime that an extra brings on a system; None where there is no such wheel."""
    if extra == "gpu":
        return "onnxruntime-gpu" if system.startswith("x86_64") else None
    has_training = python in PYTHONS[:3] and system != "aarch64-unknown-linux-gnu"
    if extra == "cpu" or not has_training:
        return "onnxruntime"
    return "onnxruntime-training" + "-cpu" * (python == "3.12" or "linux" not in system)


def interpreter(python):
    """Return the path of a Python of this machine; None if there is none."""
    if shutil.which(f"python{python}") is None:
        return None
    run = subprocess.run(
        [f"python{python}", "-c", "import sys; print(sys.executable)"],
        capture_output=True,
        text=True,
    )
    return run.stdout.strip() or None


def check_resolved(session, wheel):
    """
    Resolve skort without and with each extra, for each Python and system,
    by the metadata of the index.
    """
    for python in PYTHONS:
        for system in SYSTEMS:
            # Without an extra all systems are alike.
            for extra in (
                (None, "cpu", "gpu", "training")
                if system == SYSTEMS[0]
                else ("cpu", "gpu", "training")
            ):
                runtime = extra and runtime_of(extra, python, system)
                if extra and not runtime:
                    continue
                wanted = session.create_tmp() + "/wanted.in"
                Path(wanted).write_text(f"skort[{extra or ''}] @ {wheel.as_uri()}\n")
                options = (
                    "--no-annotate",
                    "--no-header",
                    "--python-version",
                    python,
                    "--python-platform",
                    system,
                )
                # Named, as uv else looks for a Python of this version.
                here = ("--python", Path(session.bin, "python"))
                found = session.run(
                    "uv", "pip", "compile", "-q", *here, *options, wanted, silent=True
                )
                pinned = dict(re.findall(r"^([\w-]+)==(.*)$", found, re.MULTILINE))
                runtimes = sorted(RUNTIMES & pinned.keys())
                assert runtimes == [runtime] * bool(extra), (python, system, extra, found)
                is_new = int(pinned["numpy"].split(".")[0]) >= 2
                assert is_new == (runtime != "onnxruntime-training"), (python, system, extra, found)


FIT = """
import skort
try:
    skort.OrtSGDRegressor(max_iter=2, tol=None).fit([[0], [1]], [0, 1])
except skort.exceptions.RuntimeNotAvailableError as error:
    assert "skort[cpu]" in str(error), error
    print("no runtime")
"""


def check_installed(session, wheel, python, extra, before=()):
    """Install skort beside what is there before, which has to stay; `pip check`; fit."""
    folder = Path(session.create_tmp(), "installed")
    shutil.rmtree(folder, ignore_errors=True)
    session.run("uv", "venv", "-q", "--python", python, folder)

    def install(*packages):
        session.run("uv", "pip", "install", "-q", "--python", folder, *packages)
        listed = session.run(
            "uv", "pip", "list", "-q", "--python", folder, "--format", "json", silent=True
        )
        return {row["name"]: row["version"] for row in json.loads(listed)}

    kept = install(*before) if before else {}
    found = install(f"skort[{extra or ''}] @ {wheel.as_uri()}")
    assert kept.items() <= found.items(), (kept, found)
    session.run("pip", "--python", folder, "check")
    printed = session.run(
        folder / "bin" / "python", "-I", "-W", "ignore", "-c", FIT, silent=True, external=True
    )
    assert ("no runtime" in printed) == (not RUNTIMES & found.keys()), printed
    shutil.rmtree(folder)


@nox.session(python="3.11", venv_backend="virtualenv")
def runtimes(session):
    """
    Resolve what pip would install, on each system, with no extra and with each;
    install it here; `pip check`.
    """
    # The index is asked once; Macs have macOS 14, for which the newest wheels are made.
    session.env.update(
        {"UV_CACHE_DIR": f"{session.create_tmp()}/cache", "MACOSX_DEPLOYMENT_TARGET": "14.0"}
    )
    session.install("uv>=0.5", "hatchling")
    session.run(
        "uv",
        "build",
        "-q",
        "--wheel",
        "--no-build-isolation",
        "--out-dir",
        f"{session.create_tmp()}/wheel",
    )
    (wheel,) = Path(session.create_tmp(), "wheel").resolve().glob("*.whl")
    check_resolved(session, wheel)
    for python in filter(None, map(interpreter, PYTHONS)):
        for extra in (None, "cpu", "training"):
            check_installed(session, wheel, python, extra)
        check_installed(session, wheel, python, None, before=("onnxruntime<1.22", "numpy<2.2"))
    shutil.rmtree(session.create_tmp())


# Nightly lanes: by name only.
@nox.session(python="3.11", default=False)
def coverage(session):
    """Print the lines and branches that the tests reach; below 95 % it fails."""
    session.install("-e", ".[test,dask]", "pytest-cov>=7")
    session.run(
        "pytest",
        "-n",
        "auto",
        "-m",
        "not upstream and not dask and not pages",
        "--cov=skort",
        "--cov-report=",
    )
    session.run(
        *("pytest", "-m", "dask", "tests/dask", "skort/dask"),
        *("--cov=skort", "--cov-append", "--cov-report=term", "--cov-fail-under=95"),
    )


@nox.session(python="3.11", venv_backend="virtualenv", default=False)
def mutation(session):
    """Change the numerical core at 500 places, one at a time, and print what the tests find."""
    session.install(".[test]", "cosmic-ray>=8.4")
    # The tests import the changed files, not the installed ones.
    session.run("pip", "uninstall", "--yes", "skort")
    session.run("python", "tests/mutation/mutation.py", *session.posargs)


@nox.session(python="3.11", default=False)
def fuzz(session):
    """Half a minute of random bytes as each kind of file that skort reads from others."""
    session.install(".[training]", "atheris>=3")
    for kind in ("models", "graphs", "checkpoints", "crafted", "device"):
        session.run("python", "tests/fuzz/fuzz.py", kind, "-max_total_time=30")


@nox.session(python="3.10")
def tests_oldest(session):
    """Python 3.10 and the oldest version of every dependency that pyproject.toml allows."""
    dependencies = nox.project.load_toml("pyproject.toml")["project"]["dependencies"]
    lowest = [re.match(r"([\w-]+)>=([\d.]+)", d) for d in dependencies if ";" not in d]
    session.install(".[test]", *[f"{match[1]}=={match[2]}" for match in lowest])
    session.run("pytest", "-n", "auto")


@nox.session(python="3.11")
def serving_train(session):
    """Fit one estimator of each kind, and write pickles and ONNX files for `serving`."""
    session.install(".[training]")
    session.run("python", "tests/serving.py", "train", str(session.cache_dir / "serving"))


@nox.session(python="3.13")
def serving(session):
    """Read the files of `serving_train` under a newer onnxruntime, without a training API."""
    session.install(".[cpu]")
    session.run("python", "tests/serving.py", "serve", str(session.cache_dir / "serving"))


@nox.session(python="3.13")
def carrying_write(session):
    """Write artifacts for a device without a training API, for `carrying_train`."""
    session.install(".[cpu]")
    session.run("python", "tests/carrying.py", "write", str(session.cache_dir / "carrying"))


@nox.session(python="3.12")
def carrying_train(session):
    """Train from them, for `carrying_read`."""
    session.install(".[training]")
    session.run("python", "tests/carrying.py", "train", str(session.cache_dir / "carrying"))


@nox.session(python="3.13")
def carrying_read(session):
    """Bring what was trained back into the estimators."""
    session.install(".[cpu]")
    session.run("python", "tests/carrying.py", "read", str(session.cache_dir / "carrying"))


# CI: on Linux, macOS and Windows.
@nox.session(python=["3.10", "3.11", "3.12", "3.13", "3.14"], default=False)
def tests_system(session):
    """
    The default loop and the quickstart, with the ONNX Runtime
    that the install table gives this system.
    """
    session.install(".[test]")
    session.run("pytest", "-n", "auto")
    session.run("python", "examples/quickstart.py")


# Wheels of the next numpy, scipy and scikit-learn
NEXT = "https://pypi.anaconda.org/scientific-python-nightly-wheels/simple"


@nox.session(python="3.13", default=False)
def tests_prereleases(session):
    """The next versions of what skort uses private names of: docs/development.rst."""
    session.install(".[testing,cpu]")
    packages = ("numpy", "onnx", "scikit-learn", "scipy", "skl2onnx")
    session.install("--upgrade", "--pre", "--extra-index-url", NEXT, *packages)
    session.run("pytest", "-n", "auto")


@nox.session(python="3.11", default=False)
def properties(session):
    """What holds for any data, with ten times as many draws as in the other lanes."""
    session.install(".[test]")
    session.run("pytest", "-n", "auto", "--hypothesis-profile=nightly", "tests/test_properties.py")


# What GitHub, Read the Docs and those who cite read: the schema of each.
SCHEMAS = {
    "github-workflows": ".github/workflows/*.yml",
    "github-issue-forms": ".github/ISSUE_TEMPLATE/*_re*.yml",
    "github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "dependabot": ".github/dependabot.yml",
    "readthedocs": ".readthedocs.yaml",
    "citation-file-format": "CITATION.cff",
}


@nox.session(python="3.11", default=False)
def addresses(session):
    """Before publishing: an owner is set, and the addresses of pyproject.toml answer."""
    session.run("python", "release/addresses.py")


@nox.session(python="3.11", default=False)
def package(session):
    """
    Build sdist and wheel into dist/, check them, and run the quickstart from the wheel,
    far from this folder.
    """
    root = Path.cwd()
    shutil.rmtree("dist", ignore_errors=True)
    # twine as in the action that publishes: see release.yml.
    tools = ("build>=1.2", "check-wheel-contents>=0.6", "check-jsonschema>=0.31")
    session.install(*tools, "twine==7.0.0")
    session.run("python", "-m", "build")
    (wheel,), (sdist,) = root.glob("dist/*.whl"), root.glob("dist/*.tar.gz")
    session.run("twine", "check", "--strict", wheel, sdist)
    session.run("check-wheel-contents", wheel)
    for schema, files in SCHEMAS.items():
        session.run(
            "check-jsonschema", "--builtin-schema", f"vendor.{schema}", *sorted(root.glob(files))
        )
    session.install(f"{wheel}[training]")
    session.chdir(session.create_tmp())
    session.run(
        "python", "-c", "import skort; assert 'site-packages' in skort.__file__, skort.__file__"
    )
    session.run("python", root / "examples" / "quickstart.py")


# rattler-build reads a recipe and fills in its variables.
RENDER = """
import sys
from pathlib import Path
from rattler_build import Stage0Recipe, VariantConfig
recipe = Stage0Recipe.from_yaml(Path(sys.argv[1]).read_text())
(variant,) = recipe.render(VariantConfig({"python_min": ["3.10"]}))
print(variant.recipe.to_dict())
"""


@nox.session(python="3.11", venv_backend="virtualenv", default=False)
def release_files(session):
    """
    Install the files of `package` into seven environments; fit in each;
    write the recipe, as rattler-build reads it.
    """
    session.install("uv>=0.5", "py-rattler-build>=0.70")
    (wheel,) = Path("dist").resolve().glob("*.whl")
    (sdist,) = Path("dist").resolve().glob("*.tar.gz")
    for file, python, extra, before in (
        (wheel, "3.10", "training", ()),
        (wheel, "3.11", "training", ()),
        (wheel, "3.12", "training", ()),
        (wheel, "3.13", "cpu", ()),
        (wheel, "3.11", None, ()),
        (wheel, "3.12", None, ("onnxruntime<1.22", "numpy<2.2")),
        (sdist, "3.13", "cpu", ()),
    ):
        # uv fetches an interpreter that is not here.
        check_installed(session, file, interpreter(python) or python, extra, before)
        session.log(f"{file.name}, Python {python}, extra {extra}, beside {before}: fits")
    recipe = session.run("python", "release/recipe.py", str(sdist), silent=True)
    Path("recipe.yaml").write_text(recipe)
    session.run("python", "-c", RENDER, "recipe.yaml")


@nox.session(python="3.12", default=False)
def tests_sdist(session):
    """`pytest` as a packager runs it: in the sdist, without a network, warnings as warnings."""
    folder = Path(session.create_tmp()).resolve() / "sdist"
    shutil.rmtree(folder, ignore_errors=True)
    session.install("build>=1.2", "hatchling")
    session.run("python", "-m", "build", "--sdist", "--no-isolation", "--outdir", folder)
    (sdist,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(sdist, folder)
    session.chdir(folder / sdist.name.removesuffix(".tar.gz"))
    session.install(".[testing,cpu]")
    # Nothing listens there.
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    session.run("pytest", "-W", "default", env=nowhere)


@nox.session(python="3.10", default=False)
def tests_floors(session):
    """The lowest versions of the extras `cpu` and `plot`, and of every dependency."""
    project = nox.project.load_toml("pyproject.toml")["project"]
    extras = project["optional-dependencies"]
    lowest = [
        re.sub(r">=([\d.]+)$", r"==\1", wanted)
        for wanted in (*project["dependencies"], *extras["cpu"], *extras["plot"])
    ]
    session.install(".[testing,cpu]", *lowest)
    session.run("pytest", "-n", "auto")


@nox.session(python="3.12", default=False)
def tests_mlflow(session):
    """The recipe that saves an estimator with MLflow."""
    session.install(".[testing,cpu]", "mlflow>=3.17")
    session.run("pytest", "tests/test_mlflow.py")


@nox.session(python="3.11", default=False)
def hooks(session):
    """The hooks of .pre-commit-config.yaml change no file."""
    session.install("pre-commit>=3.7")
    session.run("pre-commit", "run", "--all-files", "--show-diff-on-failure")
