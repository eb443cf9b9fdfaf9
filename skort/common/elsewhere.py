"""The error for a public name that is asked of the wrong module of skort."""

import dis
import importlib
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

# The function of Python that asks a package for the names of `from package import name`.
_OF_IMPORTS = "_handle_fromlist"

# What has the role of a name that no module has: sentence -> names in other libraries.
_ROLES = {
    "pickle or joblib read an estimator, onnx.load an ONNX file": "load load_model from_file",
    "pickle or joblib keep an estimator, its method save_onnx(path) writes the ONNX file": (
        "save save_model dump save_onnx to_onnx export export_onnx"
    ),
    "an ONNX model is the estimator of OrtSGDRegressor or OrtSGDClassifier: "
    "OrtSGDRegressor(onnx.load(path))": "from_onnx load_onnx read_onnx from_torch onnx",
    "a model of scikit-learn is the estimator of OrtSGDRegressor or OrtSGDClassifier: "
    "OrtSGDClassifier(MLPClassifier())": (
        "from_sklearn convert convert_sklearn to_ort wrap train fit compile Trainer Model "
        "Sequential MLP MLPClassifier MLPRegressor OrtMLPClassifier OrtMLPRegressor"
    ),
    "from skort import OrtSGDClassifier": (
        "SGDClassifier OrtClassifier Classifier SkortClassifier LogisticRegression"
    ),
    "from skort import OrtSGDRegressor": (
        "SGDRegressor OrtRegressor Regressor SkortRegressor LinearRegression"
    ),
    "from skort.model_selection import OrtGridSearchCV": (
        "OrtGridSearch SkortGridSearchCV OrtHalvingGridSearchCV HalvingGridSearchCV"
    ),
    "scikit-learn has it: from sklearn.model_selection import GridSearchCV": (
        "GridSearchCV RandomizedSearchCV cross_val_score train_test_split"
    ),
    "scikit-learn has it: from sklearn.frozen import FrozenEstimator": "FrozenEstimator freeze",
    "losses are in skort.objective": "losses loss",
    "scikit-learn has metrics: sklearn.metrics": "metrics",
    "random_state of each estimator is its seed": "set_seed manual_seed seed",
    'the parameter solver="session" trains by TrainingSession, solver="agent" by TrainingAgent': (
        "TrainingSession TrainingAgent OrtTrainer ORTTrainer ORTModule"
    ),
    "skort.callbacks.Checkpoint writes checkpoints": "ModelCheckpoint Checkpointing",
    "skort.callbacks.MLflowLogger logs to MLflow, and a Callback of your own to anything else": (
        "TensorBoard WandbLogger CSVLogger Logger"
    ),
    'learning_rate="adaptive" lowers the rate if the objective no longer falls': (
        "ReduceLROnPlateau ReduceOnPlateau"
    ),
    "a schedule of your own is a function of the number of the update: learning_rate=function": (
        "LearningRateScheduler LRScheduler LambdaLR StepLR MultiStepLR ExponentialLR "
        "ExponentialDecay PiecewiseConstant Polynomial PolynomialDecay"
    ),
    "from skort.schedules import Cosine": (
        "CosineAnnealing CosineAnnealingLR CosineDecay CosineSchedule"
    ),
    "from skort.schedules import Cyclic": "OneCycle OneCycleLR CyclicLR",
    "from skort.optimizers import Adam, whose weight_decay is that of AdamW": "AdamW",
    "from skort.optimizers import Adam": "Adamax Nadam RAdam Adadelta Adagrad RMSprop RMSProp",
    "from skort.optimizers import SGD": "Sgd GradientDescent",
    "from skort.objective import SquaredError": (
        "MSE MSELoss MeanSquaredError HalfSquaredError SquaredLoss"
    ),
    "from skort.objective import AbsoluteError": "MAE MAELoss L1Loss MeanAbsoluteError",
    "from skort.objective import Huber": "HuberLoss SmoothL1Loss",
    "from skort.objective import Quantile": "QuantileLoss PinballLoss Pinball",
    "from skort.objective import LogLoss": (
        "CrossEntropy CrossEntropyLoss BCE BCELoss BCEWithLogitsLoss NLLLoss BinaryCrossentropy "
        "CategoricalCrossentropy SparseCategoricalCrossentropy SoftmaxCrossEntropyLoss"
    ),
    "from skort.objective import Loss, which takes the formula of a loss of your own": (
        "FocalLoss CustomLoss BaseLoss TripletLoss KLDivLoss CosineSimilarity"
    ),
    "from skort.objective import ElasticPenalty": "ElasticNet L1L2 l1_l2 ElasticNetPenalty",
    "from skort.objective import L2": "Ridge l2",
    "from skort.objective import L1": "Lasso l1",
    "from skort.networks import TabularNetwork": (
        "TabularNet TabNet FTTransformer ResNet EmbeddingNetwork OrtTabularNetwork"
    ),
    "a network of such layers comes as an ONNX file of another tool: "
    "OrtSGDRegressor(onnx.load(path))": "Dense Linear Dropout BatchNorm Embedding Conv2d LSTM",
}
_INSTEAD = {name: sentence for sentence, names in _ROLES.items() for name in names.split()}


def missing(package: str, name: str) -> Exception:
    """
    Return the error for a name that a package lacks: it says which public module has the name,
    or what has its role.

    The `__getattr__` of the package calls it.
    """
    is_inner = name.startswith("_") or _is_module(package, name)
    home = None if is_inner else _home_of(name)
    absent = f"module {package!r} has no attribute {name!r}"
    if home is not None:
        text = f"{name} is in {home}: from {home} import {name}"
    elif name in _INSTEAD and not is_inner:
        text = f"{absent}: {_INSTEAD[name]}"
    else:
        # Python suggests a similar name of the module.
        return AttributeError(absent, name=name, obj=sys.modules[package])

    # An import drops the text of an AttributeError; all others who ask expect one.
    if _imports(sys._getframe(2)):
        return ImportError(text, name=package)
    return AttributeError(text)


def asked_of(package: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module: it raises the error of `missing`."""

    def of_module(name: str) -> Any:
        raise missing(package, name)

    return of_module


def _imports(frame):
    """Return whether a frame asks for a name because of `from module import name`."""
    # A package is asked by a function of Python, any other module by the line itself.
    code = frame.f_code
    return code.co_name == _OF_IMPORTS or code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]


def _is_module(package, name):
    """Return whether a name is that of a module inside, which Python imports after the error."""
    is_package = hasattr(sys.modules[package], "__path__")
    return is_package and importlib.util.find_spec(f"{package}.{name}") is not None


def _home_of(name):
    """Return the public module that has a public name, or None; optional modules are not read."""
    package = importlib.import_module("skort")
    public = (getattr(package, each) for each in package.__all__)
    modules = [package, *(each for each in public if isinstance(each, ModuleType))]

    return next((each.__name__ for each in modules if name in each.__all__), None)
