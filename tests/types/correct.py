"""A user's file without mistakes: mypy and pyright refuse nothing in it. Nothing here runs."""

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import skort
from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.callbacks import Checkpoint, EarlyStopping, Training
from skort.model_selection import OrtGridSearchCV, OrtRandomizedSearchCV
from skort.objective import Huber
from skort.optimizers import Adam, Nesterov
from skort.schedules import Cosine, Schedule

X = np.eye(4)
y = np.arange(4)


class Printed:
    """A callback."""

    def on_epoch_end(self, training: Training) -> None:
        print(training)


class Harmonic(Schedule):
    """A schedule."""

    def __call__(self, t: int) -> float:
        return 0.5 / t


def fits() -> None:
    """All kinds of models and data."""
    for inside in (
        None,
        Ridge(),
        MLPRegressor(hidden_layer_sizes=(5,)),
        make_pipeline(StandardScaler(), Ridge()),
    ):
        model = OrtSGDRegressor(inside, loss=Huber(epsilon=2), optimizer=Nesterov(momentum=0.9))
        model.fit(X, y, sample_weight=[1, 2, 3, 4]).set_params(alpha=1e-3)
        print(model.predict(X)[:2], model.coef_.shape, model.score(X, y) > 0.5)

    table = pd.DataFrame({"a": [1, 2], "b": [3.0, 4.0]})
    OrtSGDClassifier(LogisticRegression(), eta0=0.1, learning_rate=Cosine(10)).fit(
        table, table["a"], X_val=table, y_val=["yes", "no"]
    )
    OrtSGDClassifier(
        MLPClassifier(hidden_layer_sizes=(5,)), learning_rate=Harmonic(), optimizer=Adam(beta_1=0.9)
    ).fit(scipy.sparse.csr_matrix(X), y).predict_proba([[1, 2, 3, 4]]).sum(axis=1)

    stream = OrtSGDClassifier(optimizer="sgd", batch_size=16, callbacks=[Printed()], verbose=1)
    stream.partial_fit(X, y, classes=[0, 1, 2, 3]).partial_fit(X, y).save_onnx("model.onnx")
    stream.fit_batches([(X, y), (X, y)], classes=y).to_onnx().SerializeToString()
    stream.set_weights({"coef": X}).sparsify().densify().training_graphs()["step"]
    print(stream.alpha, stream.batch_size, stream.classes_[0], stream.loss_curve_[-1] + 1)
    OrtSGDRegressor(callbacks=[EarlyStopping(), Checkpoint("file.npz")], scoring="r2")
    skort.show_versions()


def searches() -> None:
    """scikit-learn's tools around them."""
    Pipeline([("scale", StandardScaler()), ("fit", OrtSGDRegressor())]).fit(X, y)
    cross_val_score(OrtSGDRegressor(), X, y)
    GridSearchCV(OrtSGDRegressor(), {"alpha": [0.1, 1]}).fit(X, y)
    search = OrtGridSearchCV(OrtSGDRegressor(), {"alpha": [0.1, 1]}, cv=2).fit(X, y)
    print(search.best_params_["alpha"], search.best_score_ + 1, search.cv_results_["rank"])
    OrtRandomizedSearchCV(OrtSGDRegressor(), {"alpha": [0.1, 1]}, n_iter=1).fit(X, y).predict(X)
