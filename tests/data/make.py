"""
Write the files that `tests/test_data.py` loads:
`python tests/data/make.py VERSION`, with numpy below 2.

They stay as they are in later versions, which have to read them. A new release gets a
folder of its own.
"""

import json
import pathlib
import pickle
import sys
import zipfile

import numpy as np
import skops.io
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor, callbacks, objective, optimizers, schedules

X = np.round(np.random.RandomState(0).normal(size=(12, 3)), 2)
OPTIONS = {"max_iter": 5, "tol": None, "eta0": 0.1, "learning_rate": "constant", "random_state": 0}
MODELS = {
    "linear": OrtSGDRegressor(**OPTIONS),
    "classifier": OrtSGDClassifier(
        MLPClassifier(hidden_layer_sizes=(3,)), optimizer="adam", **OPTIONS
    ),
    "pipeline": OrtSGDRegressor(make_pipeline(StandardScaler(), LinearRegression()), **OPTIONS),
    "components": OrtSGDRegressor(
        **OPTIONS
        | {
            "loss": objective.Huber(0.5),
            "penalty": objective.ElasticPenalty(0.01, 0.5),
            "optimizer": optimizers.Nesterov(),
            "learning_rate": schedules.Warmup(schedules.Cosine(50, eta0=0.1), 5),
            "callbacks": [callbacks.EarlyStopping(monitor="objective")],
        }
    ),
}


def main(version):
    """
    Fit the models, and write a pickle, a file of skops and an ONNX file of each,
    and what they predict.
    """
    folder = pathlib.Path(__file__).with_name(version)
    folder.mkdir()
    predictions = {}
    for name, model in MODELS.items():
        y = X[:, 0] if isinstance(model, OrtSGDRegressor) else np.where(X[:, 0] > 0, "yes", "no")
        fitted = model.fit(X, y)
        # A protocol that every supported Python reads.
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(fitted, protocol=4))
        skops.io.dump(fitted, folder / f"{name}.skops", compression=zipfile.ZIP_DEFLATED)
        fitted.save_onnx(folder / f"{name}.onnx")
        score = fitted.predict_proba if isinstance(model, OrtSGDClassifier) else fitted.predict
        predictions[name] = score(X).tolist()
    (folder / "predictions.json").write_text(json.dumps({"X": X.tolist(), **predictions}))


if __name__ == "__main__":
    main(sys.argv[1])
