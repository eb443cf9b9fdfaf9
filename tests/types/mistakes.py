"""
Typical mistakes of users.

mypy and pyright refuse each line that ends in `# mistake`, and no other line of this file. Nothing
here runs.
"""

import numpy as np

import skort
from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.callbacks import EarlyStopping
from skort.model_selection import OrtGridSearchCV
from skort.optimizers import Adam
from skort.schedules import Cosine

X = np.eye(4)
y = np.arange(4)


def of_names() -> None:
    """Names that are not there."""
    OrtSGDRegressor(lerning_rate="constant")  # mistake
    OrtSGDRegressor().fit(X, y, sample_wieght=y)  # mistake
    OrtSGDRegressor().fit(X, y).no_such()  # mistake
    OrtSGDClassifier().predict_prob(X)  # mistake
    OrtSGDClassifier().partial_fit(X, y, clases=[0, 1])  # mistake
    print(OrtSGDRegressor().fit(X, y).coefs_)  # mistake
    Adam(beta1=0.9)  # mistake
    skort.OrtSGDRegresor()  # mistake
    print(OrtGridSearchCV(OrtSGDRegressor(), {"alpha": [1]}).fit(X, y).best_param_)  # mistake


def of_values() -> None:
    """Values of another type, and names that a parameter does not take."""
    OrtSGDRegressor(solver="grpah")  # mistake
    OrtSGDRegressor("ridge")  # mistake
    OrtSGDClassifier(loss="logloss")  # mistake
    OrtSGDRegressor(loss="log_loss")  # mistake
    OrtSGDClassifier(optimizer="adma")  # mistake
    OrtSGDClassifier(eta0="fast")  # mistake
    OrtSGDRegressor(callbacks=EarlyStopping())  # mistake
    OrtSGDRegressor(learning_rate=0.1)  # mistake
    Cosine(n_updates="all")  # mistake


def of_calls() -> None:
    """Arguments that are missing, and results that are taken for something else."""
    OrtSGDRegressor().fit(X, y).score(X)  # mistake
    OrtSGDRegressor().fit(X, y).save_onnx()  # mistake
    OrtGridSearchCV(OrtSGDRegressor())  # mistake
    OrtSGDClassifier().fit(X, y).score(X, y).mean()  # mistake
    labels: str = OrtSGDClassifier().fit(X, y).predict(X)  # mistake
    print(labels)
