"""What a device has trained, back in an estimator."""

import os
import pathlib
from typing import Any

import numpy as np

from skort.artifacts.saved import CHECKPOINT, artifact, check_folder, checkpoint_at
from skort.artifacts.sources import predicting_graph
from skort.estimators.base import BaseOrtSGD
from skort.estimators.training.fitting import fitted_problem


def load_checkpoint(folder: str | os.PathLike, estimator: Any, *, prefix: str = "") -> Any:
    """
    Return a fitted estimator with the weights of a checkpoint.

    This works with any ONNX Runtime: the file is read without it.

    Parameters
    ----------
    folder : str or path-like
        A folder with the file `checkpoint`, or a file of any name, which a device wrote.
    estimator : OrtSGDRegressor or OrtSGDClassifier
        The fitted one that `save_training_artifacts` got, or a copy of it. It is not changed.
    prefix : str, default=""
        What the name of the file in the folder begins with.

    Returns
    -------
    estimator : OrtSGDRegressor or OrtSGDClassifier
        A copy with the weights of the checkpoint: it predicts, can be exported, and can be trained further. Its
        optimizer's memory is empty, and its history is that of the fit.

    Raises
    ------
    FileNotFoundError
        Where there is no such file.
    NotFittedError
    ValueError
        Where the file cannot be read, or is the checkpoint of another model or of another fit.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> from skort import OrtSGDRegressor
    >>> from skort.artifacts import load_checkpoint, save_training_artifacts
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = OrtSGDRegressor(max_iter=3, tol=None).fit(X, y)
    >>> folder = tempfile.mkdtemp()
    >>> save_training_artifacts(model, folder, batch_size=20)

    A device trains and writes its checkpoint, and then:

    >>> trained = load_checkpoint(folder, model)
    >>> trained.predict(X[:2]).shape
    (2,)
    """
    check_folder(folder, prefix)
    if not isinstance(estimator, BaseOrtSGD):
        raise ValueError(
            "estimator must be the fitted OrtSGDRegressor or OrtSGDClassifier of the artifacts, got "
            f"{type(estimator).__name__}."
        )
    _, variables, problem, _ = fitted_problem(estimator, of_model_rows=True)
    path = pathlib.Path(folder)
    if not path.exists():
        raise FileNotFoundError(f"{str(path)!r} does not exist: give a checkpoint, or the folder that has one.")
    path = artifact(folder, prefix, CHECKPOINT) if path.is_dir() else path
    checkpoint = checkpoint_at(path)
    given = {**checkpoint.trainable, **checkpoint.frozen}
    score_graph, _ = predicting_graph(problem.score_graph, variables)
    expected = {**score_graph.arrays, **problem.loss_weights}
    shapes, wanted = ({name: array.shape for name, array in arrays.items()} for arrays in (given, expected))
    if shapes != wanted:
        raise ValueError(
            f"{str(path)!r} is the checkpoint of another model: it has the parameters {shapes}, the estimator {wanted}."
        )
    # The device may have trained other weights than the estimator did.
    trained = problem.weights.keys() | checkpoint.trainable.keys()
    for name, array in expected.items():
        if name not in trained and not np.allclose(given[name], array, rtol=1e-6, atol=0):
            raise ValueError(
                f"{str(path)!r} is the checkpoint of another fit: the values of {name!r}, which is not trained, differ "
                "from those of the estimator."
            )
    weights = {name: given[name] for name in expected if name in trained}
    changed = variables.model_weights({name: weights[name] for name in problem.weights})
    return estimator.with_weights(weights | changed)
