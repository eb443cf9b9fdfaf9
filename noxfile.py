"""Lanes: each in a fresh virtual environment. `nox -l` lists them, `nox -s NAME` runs one."""

import re
import shutil
from pathlib import Path

import nox

nox.options.default_venv_backend = "virtualenv"
# A lane whose interpreter is not on this machine is skipped, in CI too.
nox.options.error_on_missing_interpreters = False


def readme_command(beginning):
    """Return the command of README.md that stands alone in a block and begins so."""
    (command,) = re.findall(rf"^```\n({re.escape(beginning)}.*)\n```$", Path("README.md").read_text(), re.MULTILINE)
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


@nox.session(python="3.11")
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


@nox.session(python="3.11")
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
    session.run("sphinx-build", "-W", "-q", "docs", "docs/_build")
    session.run("pytest", "-m", "pages", "tests/test_pages.py")


def run_dask_tests(session):
    session.install(".[test,dask]", "dask[dataframe]")
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
    session.run("pytest", "-n", "auto")
    session.run("python", "examples/quickstart.py")


@nox.session(python=["3.13", "3.14"])
def tests_plain_runtime(session):
    """The newest onnxruntime, without a training API: solver "graph"."""
    session.install(".[testing,cpu]")
    session.run("pytest", "-n", "auto", "-m", "not upstream and not dask and not pages")
    session.run("python", "examples/quickstart.py")


def run_torch_tests(session):
    session.install(".[test,torch,plot]", "onnxscript", "jax>=0.4.30")
    files = ("tests/test_torch.py", "tests/test_gradients.py", "tests/artifacts/test_generator.py", "skort/torch.py")
    session.run("pytest", "-n", "auto", *files)
    session.run("pytest", "tests/test_examples.py", "-k", "torch or jax")


# It installs 5 GB: by name only.
@nox.session(python="3.11", default=False)
def tests_torch(session):
    """Models as layers of torch and JAX, and the artifacts next to those of ONNX Runtime's generator."""
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
    session.run("pytest", "-n", "auto")
    session.run("python", "examples/quickstart.py")


# Nightly lanes: by name only.
@nox.session(python="3.11", default=False)
def coverage(session):
    """Print the lines and branches that the tests reach; below 95 % it fails."""
    session.install("-e", ".[test,dask]", "dask[dataframe]", "pytest-cov>=7")
    session.run("pytest", "-n", "auto", "-m", "not upstream and not dask and not pages", "--cov=skort", "--cov-report=")
    session.run(
        *("pytest", "-m", "dask", "tests/dask", "skort/dask"),
        *("--cov=skort", "--cov-append", "--cov-report=term", "--cov-fail-under=95"),
    )


@nox.session(python="3.11", default=False)
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
    session.run("pytest", "-n", "auto", "-m", "not upstream and not dask and not pages")


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
    """The default loop and the quickstart, with the ONNX Runtime that the install table gives this system."""
    session.install(".[test]")
    session.run("pytest", "-n", "auto")
    session.run("python", "examples/quickstart.py")


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
def package(session):
    """Build sdist and wheel into dist/, check them, and run the quickstart from the wheel, far from this folder."""
    root = Path.cwd()
    shutil.rmtree("dist", ignore_errors=True)
    session.install("build>=1.2", "twine>=6", "check-wheel-contents>=0.6", "check-jsonschema>=0.31")
    session.run("python", "-m", "build")
    (wheel,), (sdist,) = root.glob("dist/*.whl"), root.glob("dist/*.tar.gz")
    session.run("twine", "check", "--strict", wheel, sdist)
    session.run("check-wheel-contents", wheel)
    for schema, files in SCHEMAS.items():
        session.run("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *sorted(root.glob(files)))
    session.install(f"{wheel}[training]")
    session.chdir(session.create_tmp())
    session.run("python", "-c", "import skort; assert 'site-packages' in skort.__file__, skort.__file__")
    session.run("python", root / "examples" / "quickstart.py")
