"""The package as a whole."""

import ast
import importlib
import importlib.metadata
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import skort
from skort.optim.optimizers import OPTIMIZERS
from skort.optim.schedules import SCHEDULES


def test_version_is_the_installed_one():
    assert importlib.metadata.version("skort") == skort.__version__


# The extra `training`, and whether numpy stays below 2 with it
PLATFORMS = [
    ("3.10", "linux", "x86_64", "onnxruntime-training"),
    ("3.11", "linux", "x86_64", "onnxruntime-training"),
    ("3.12", "linux", "x86_64", "onnxruntime-training-cpu"),
    ("3.13", "linux", "x86_64", "onnxruntime"),
    ("3.11", "linux", "aarch64", "onnxruntime"),
    ("3.10", "darwin", "arm64", "onnxruntime-training-cpu"),
    ("3.12", "darwin", "x86_64", "onnxruntime-training-cpu"),
    ("3.13", "darwin", "arm64", "onnxruntime"),
    ("3.11", "win32", "AMD64", "onnxruntime-training-cpu"),
    ("3.11", "win32", "ARM64", "onnxruntime"),
    ("3.14", "win32", "AMD64", "onnxruntime"),
    ("3.11", "freebsd14", "amd64", "onnxruntime"),
]


def requirements(platform, *extras):
    """
    Return what pip installs beside skort: the names of runtimes,
    and whether numpy 2 may be among it.
    """
    python, system, machine = platform
    environment = {"python_version": python, "sys_platform": system, "platform_machine": machine}
    wanted = [Requirement(text) for text in importlib.metadata.requires("skort")]
    wanted = [
        r
        for r in wanted
        if r.marker is None
        or any(r.marker.evaluate(environment | {"extra": extra}) for extra in ("", *extras))
    ]
    runtimes = [str(r).split(";")[0] for r in wanted if r.name.startswith("onnxruntime")]
    return runtimes, all("2.0" in r.specifier for r in wanted if r.name == "numpy")


@pytest.mark.parametrize("python, system, machine, runtime", PLATFORMS)
def test_every_platform_gets_the_runtime_of_its_extra(python, system, machine, runtime):
    platform = (python, system, machine)
    # skort alone replaces neither a runtime nor numpy.
    assert requirements(platform) == ([], True)
    assert requirements(
        platform, "testing", "docs", "bench", "tables", "dev", "torch", "dask", "plot"
    ) == ([], True)
    assert requirements(platform, "cpu") == (["onnxruntime>=1.16"], True)
    assert requirements(platform, "gpu") == (["onnxruntime-gpu[cuda,cudnn]>=1.21"], True)
    versions = {
        "onnxruntime": ">=1.16",
        "onnxruntime-training": "<1.17,>=1.16.2",
        "onnxruntime-training-cpu": ">=1.19.2",
    }
    # onnxruntime-training 1.16 is built for numpy 1.
    assert requirements(platform, "training") == (
        [runtime + versions[runtime]],
        runtime != "onnxruntime-training",
    )


@pytest.mark.parametrize("platform", [row[:3] for row in PLATFORMS], ids=" ".join)
def test_the_extra_of_the_tests_is_their_tools_and_a_runtime(platform):
    assert requirements(platform, "test") == requirements(platform, "training")
    assert requirements(platform, "testing", "training") == requirements(platform, "training")
    of_extra = {extra: set() for extra in ("test", "testing", "training")}
    for text in importlib.metadata.requires("skort"):
        wanted, _, extra = text.rpartition("extra == ")
        of_extra.get(extra.strip("'\""), set()).add(wanted)
    assert of_extra["test"] == of_extra["testing"] | of_extra["training"]


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


def test_import_loads_neither_onnx_nor_onnxruntime():
    packages = {"numpy", "onnx", "onnxruntime", "skl2onnx", "sklearn", "tqdm"}
    loaded = run(f"import sys, skort; dir(skort); print(sorted({packages} & set(sys.modules)))")
    assert loaded.stdout.strip() == "[]"


def test_the_faces_load_neither_onnx_nor_onnxruntime_nor_scikit_learns_models():
    heavy = {"matplotlib", "onnx", "onnxruntime", "skl2onnx", "tqdm"}
    heavy |= {
        "sklearn.linear_model",
        "sklearn.neural_network",
        "sklearn.metrics",
        "sklearn.model_selection",
    }
    loaded = run(f"""
import sys, skort
# A search is one of scikit-learn's searches, and artifacts are ONNX files.
heavy = ("__version__", "artifacts", "model_selection")
names = [getattr(skort, name).__name__ for name in skort.__all__ if name not in heavy]
assert names[-2:] == ["skort.schedules", "show_versions"], names
print(sorted({heavy} & set(sys.modules)))
""")
    assert loaded.stdout.strip() == "[]"


FACES = {
    "artifacts": ["OnDeviceTraining", "load_checkpoint", "save_training_artifacts"],
    "callbacks": [
        "Callback",
        "Checkpoint",
        "EarlyStopping",
        "EpochScoring",
        "MLflowLogger",
        "ProgressBar",
        "Training",
    ],
    "exceptions": ["NotExportableError", "NotTrainableError", "RuntimeNotAvailableError"],
    "gradients": [
        "ForwardBackward",
        "GradientGraphs",
        "Gradients",
        "gradient_graphs",
        "initial_model",
    ],
    "model_selection": ["OrtGridSearchCV"],
    "networks": ["TabularNetwork"],
    "objective": ["ElasticLoss", "ElasticPenalty", "Huber", "Loss", "SquaredError"],
    "onnx_models": ["Weight", "find_weights", "objective_graph", "with_weights"],
    "optimizers": ["SGD", "Adam", "Momentum", "Nesterov", "OnnxOptimizer", "Optimizer"],
    "plotting": ["GraphDisplay", "LossCurveDisplay", "ScheduleDisplay", "WeightsDisplay"],
    "schedules": [
        "Adaptive",
        "Constant",
        "Cosine",
        "Cyclic",
        "InvScaling",
        "Optimal",
        "Schedule",
        "Warmup",
    ],
}


@pytest.mark.parametrize("face", FACES)
def test_a_face_has_the_public_names_and_says_what_they_are(face):
    module = getattr(skort, face)
    assert module is importlib.import_module(f"skort.{face}")
    assert module.__doc__
    assert {*FACES[face]} <= {*module.__all__}
    assert all(getattr(module, name).__doc__ for name in module.__all__)


def test_every_optimizer_and_schedule_by_name_is_in_its_face():
    assert {type.__name__ for type in OPTIMIZERS.values()} <= {*skort.optimizers.__all__}
    assert {type.__name__ for type in SCHEDULES.values()} <= {*skort.schedules.__all__}


# Modules that need another package: which, and its absence in words
NEEDED = {"dask": "distributed", "torch": "torch"}


@pytest.mark.parametrize("name", NEEDED)
def test_a_module_without_its_package_says_which_one(name):
    code = f"""
import sys
sys.modules[{NEEDED[name]!r}] = None
import skort
try:
    skort.{name}
except ImportError as error:
    print(error)
"""
    halted = "import of torch halted; None in sys.modules"
    expected = {
        "dask": 'skort.dask needs dask and distributed: pip install "dask[distributed]".',
        "torch": f"skort.torch needs torch ({halted}). Install it: pip install torch.",
    }
    assert run(code).stdout.strip() == expected[name]


def test_the_package_lists_its_names_and_no_others():
    optional = [name for name, needed in NEEDED.items() if importlib.util.find_spec(needed)]
    assert dir(skort) == sorted([*skort.__all__, *optional])
    others = {
        "OrtSGDClassifier",
        "OrtSGDRegressor",
        "Step",
        "__version__",
        "expected_failed_checks",
        "show_versions",
    }
    assert {*FACES, *others} == {*skort.__all__}
    with pytest.raises(AttributeError, match="module 'skort' has no attribute 'Regressor'"):
        skort.Regressor  # noqa: B018


ROOT = Path(__file__).parent.parent
PRIVATE = ROOT / "docs" / "development.rst"
# Users import from the public modules.
INNER = r"skort\.optim\b"
# Those for contributors name all modules.
INSIDE = {"adding.rst", "house.rst"}
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.rst"), *(ROOT / "examples").rglob("*.py")]
PAGES = [page for page in PAGES if page.name not in INSIDE]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_speak_of_the_faces(page):
    assert not re.search(INNER, page.read_text())


@pytest.mark.parametrize("name", [name for name in skort.__all__ if name != "__version__"])
def test_docstrings_speak_of_the_faces(name):
    public = getattr(skort, name)
    members = [getattr(public, name) for name in public.__all__] if name in FACES else [public]
    for member in members:
        texts = [
            member.__doc__,
            *(method.__doc__ for method in vars(member).values() if callable(method)),
        ]
        assert not any(re.search(INNER, text) for text in texts if text), member


def _private_imports():
    """
    Yield (module, name) of each private name of another package that skort imports,
    but those of ONNX Runtime.
    """
    for path in ROOT.glob("skort/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or node.module.split(".")[0] in (
                "skort",
                "onnxruntime",
            ):
                continue
            yield from (
                (node.module, alias.name)
                for alias in node.names
                if any(
                    part.startswith("_") and not part.startswith("__")
                    for part in (*node.module.split("."), alias.name)
                )
            )


def test_the_page_of_private_names_lists_those_that_are_imported():
    rows = re.findall(
        r"^    \* - `([\w.]+)`: ((?:[`\w, \n])+?)\n      -", PRIVATE.read_text(), re.MULTILINE
    )
    listed = {(module, name) for module, names in rows for name in re.findall(r"`(\w+)`", names)}
    assert listed == {*_private_imports()}


def test_only_the_runtime_uses_private_names_of_onnxruntime():
    users = {
        p.parent.name
        for p in ROOT.glob("skort/**/*.py")
        if re.search(r"^ *from onnxruntime.capi", p.read_text(), re.M)
    }
    assert users == {"runtime"}


def test_fit_leaves_the_users_logging_as_it_was():
    fit = run(
        "import logging, numpy as np, skort; X = np.eye(4);"
        "skort.OrtSGDRegressor(max_iter=9, tol=None).fit(X, X[:, 0]);"
        "print(logging.getLogger().level, logging.getLogger().handlers)"
    )
    assert fit.stdout.strip() == f"{30} []"
    assert fit.stderr == ""
