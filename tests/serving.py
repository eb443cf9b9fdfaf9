"""
One fitted estimator of each kind, carried from where it was trained to where it is served.

`python tests/serving.py train FOLDER` fits the models and writes each as a pickle and as ONNX, with
its predictions; `python tests/serving.py serve FOLDER`, in another environment, loads both and
compares what they predict.
"""

import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import skl2onnx
from sklearn.base import RegressorMixin, is_classifier
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    RANSACRegressor,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.common.onnx_text import OPSET
from skort.graphs.initialization import FAMILY
from skort.graphs.sklearn.raw_inputs import feeds, raw_inputs
from skort.objective.sklearn_objectives import SEARCHES
from skort.solvers import available_solvers


def regressor(estimator=None, **parameters):
    return OrtSGDRegressor(estimator, max_iter=5, tol=None, random_state=0, **parameters)


def classifier(estimator=None, **parameters):
    return OrtSGDClassifier(estimator, max_iter=5, tol=None, random_state=0, **parameters)


X, y = load_diabetes(return_X_y=True)
X, y = 30 * X, y / 100
Y = np.column_stack([y, y[::-1]])
FLOWERS, species = load_iris(return_X_y=True)
NAMES = load_iris().target_names[species]

COLUMNS = np.empty((len(NAMES), 3), dtype=object)
COLUMNS[:, 0], COLUMNS[:, 1] = np.where(np.arange(len(NAMES)) % 7, FLOWERS[:, 0], np.nan), NAMES
COLUMNS[:, 2] = np.where(species, "a red flower", "one blue leaf")


def of_type(model_class):
    """Return a model of a type that can be trained, at its own defaults, and data for it."""
    with warnings.catch_warnings():
        # PassiveAggressive* say that scikit-learn 1.10 will not have them.
        warnings.simplefilter("ignore", FutureWarning)
        model = model_class()
    if not issubclass(model_class, RegressorMixin):
        return classifier(model), FLOWERS, species
    return regressor(model), X, Y if model_class.__name__.startswith("MultiTask") else y


# Those that search for their own penalty are trained when they are fitted only.
TRAINED = [model_class for model_class in [*FAMILY, RANSACRegressor] if model_class not in SEARCHES]
# name -> (model, X, y); what ONNX returns is a prediction, or labels and probabilities.
MODELS = {
    **{model_class.__name__: of_type(model_class) for model_class in TRAINED},
    "Poisson loss": (regressor(PoissonRegressor(), loss="poisson"), X, y),
    "gamma loss": (regressor(GammaRegressor(), loss="gamma"), X, y),
    "hinge": (classifier(loss="hinge"), FLOWERS, species),
    "fitted before": (
        regressor(FrozenEstimator(LinearRegression().fit(X, y)), early_stopping=False),
        X,
        y,
    ),
    "columns of text and gaps": (
        classifier(
            make_pipeline(
                make_column_transformer(
                    (SimpleImputer(), [0]),
                    (OneHotEncoder(), [1]),
                    (TfidfVectorizer(), 2),
                    sparse_threshold=0,
                ),
                MLPClassifier(),
            )
        ),
        COLUMNS,
        NAMES,
    ),
    "linear": (regressor(), X, y),
    "linear, float64": (regressor(dtype="float64"), X, y),
    "linear, two outputs": (regressor(LinearRegression(fit_intercept=False)), X, Y),
    **{
        f"MLP, {f}": (regressor(MLPRegressor(activation=f)), X, y)
        for f in ("relu", "tanh", "logistic", "identity")
    },
    "MLP, float64": (regressor(MLPRegressor(), dtype="float64"), X, y),
    "pipeline": (regressor(make_pipeline(StandardScaler(), PCA(5), MLPRegressor())), X, y),
    "in a pipeline": (make_pipeline(StandardScaler(), regressor(MLPRegressor())), X, y),
    "in a vote": (VotingRegressor([("a", regressor()), ("b", regressor(MLPRegressor()))]), X, y),
    "two classes": (classifier(), FLOWERS, species > 1),
    "three classes": (classifier(LogisticRegression()), FLOWERS, species),
    "names of classes": (classifier(MLPClassifier()), FLOWERS, NAMES),
    "classes, pipeline": (
        classifier(make_pipeline(StandardScaler(), MLPClassifier())),
        FLOWERS,
        NAMES,
    ),
    "classes, float64": (classifier(dtype="float64"), FLOWERS, species),
    "classes in a vote": (
        VotingClassifier([("a", classifier()), ("b", classifier(MLPClassifier()))], voting="soft"),
        FLOWERS,
        species,
    ),
}


def onnx_model(model, X):
    if hasattr(model, "to_onnx"):
        return model.to_onnx()
    options = {id(model): {"zipmap": False}} if is_classifier(model) else None
    if isinstance(model, VotingClassifier):
        model.set_params(flatten_transform=False)  # skl2onnx knows no other
    return skl2onnx.to_onnx(model, X[:1].astype(np.float32), target_opset=OPSET, options=options)


def predictions(model, X):
    """Return what `onnx_predictions` returns, from scikit-learn's methods."""
    return (
        [model.predict(X), model.predict_proba(X)]
        if hasattr(model, "predict_proba")
        else [model.predict(X)]
    )


def onnx_predictions(path, X):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    dtype = (
        np.float64 if any(i.type == "tensor(double)" for i in session.get_inputs()) else np.float32
    )
    return session.run(None, feeds(X, raw_inputs(X), dtype))


def train(folder):
    """Fit every model and write it, with its predictions, to a folder."""
    for name, (model, X, y) in MODELS.items():
        with warnings.catch_warnings():
            # Models that have no objective of their own are trained as others.
            warnings.filterwarnings("ignore", "estimator: .* is trained ")
            model.fit(X, y)
        (folder / f"{name}.onnx").write_bytes(onnx_model(model, X).SerializeToString())
        (folder / f"{name}.pickle").write_bytes(pickle.dumps((model, predictions(model, X))))


def serve(folder):
    """
    Return the largest difference of each model's predictions from those stored,
    relative to the largest one.
    """
    return {
        name: max(
            difference(results, stored)
            for model, stored in [pickle.loads((folder / f"{name}.pickle").read_bytes())]
            for results in (predictions(model, X), onnx_predictions(folder / f"{name}.onnx", X))
        )
        for name, (_, X, _) in MODELS.items()
    }


def difference(results, stored):
    """
    Labels have to be the same; of numbers,
    return the largest difference relative to the largest one.
    """
    if len(stored) == 2 or stored[0].dtype.kind != "f":
        np.testing.assert_array_equal(results[0], stored[0])
    if stored[-1].dtype.kind != "f":
        return 0.0
    numbers = stored[-1].reshape(results[-1].shape)
    return np.abs(results[-1] - numbers).max() / np.abs(numbers).max()


if __name__ == "__main__":
    command, folder = sys.argv[1], Path(sys.argv[2])
    if command == "train":
        folder.mkdir(parents=True, exist_ok=True)
        train(folder)
        print(f"{len(MODELS)} models in {folder}")
    else:
        differences = serve(folder)
        for name, relative in differences.items():
            print(f"{name:24} {relative:.1e}")
        print(f"trains here with {available_solvers()}")
        sys.exit(int(max(differences.values()) > 1e-6))
