"""Saving the files from which a device trains a model, and loading the weights that it trained."""

import enum
import os
import pathlib
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import onnx
import onnx.compose
from onnx import helper
from sklearn.base import BaseEstimator

from skort.artifacts.sources import (
    Source,
    check_batch_size,
    estimator_source,
    model_source,
    predicting_graph,
)
from skort.common.files import write_files
from skort.common.onnx_text import build_model, domains_of
from skort.estimators.base import BaseOrtSGD
from skort.estimators.training.fitted_problem import fitted_problem
from skort.exceptions import RuntimeNotAvailableError
from skort.graphs.trainable import got_instead
from skort.optim.optimizers import SGD, Adam, optimizer_tags
from skort.runtime.checkpoint_file import (
    VERSIONS,
    CheckpointFile,
    read_checkpoint,
    release_of_devices,
    write_checkpoint,
)
from skort.solvers.module.models import eval_model, optimizer_model, training_model

TRAINING = "training_model.onnx"
EVAL = "eval_model.onnx"
OPTIMIZER = "optimizer_model.onnx"
CHECKPOINT = "checkpoint"
#: The key in the metadata of an eval model for the names of its predictions.
PREDICTIONS = "skort.predictions"
# The losses of artifacts.LossType in onnxruntime.training.
_LOSSES = {
    "MSELoss": '"squared_error", which is half of it',
    "L1Loss": '"absolute_error"',
    "CrossEntropyLoss": '"log_loss"',
    "BCEWithLogitsLoss": '"log_loss"',
}
# Parameters of onnxruntime.training.artifacts that skort refuses, and the reasons.
_REFUSED = {
    "ort_format": (
        "the files are ONNX; python -m onnxruntime.tools.convert_onnx_models_to_ort converts them, "
        'but an optimizer model with "SGD" must stay ONNX: the training API loads no .ort file of it'
    ),
    "custom_op_library": (
        "skort's rules and those of ONNX Runtime differentiate standard operators only"
    ),
    "nominal_checkpoint": (
        "a checkpoint without values could not be trained from, and load_checkpoint needs the "
        "values. Send the checkpoint, which has them"
    ),
}


def save_training_artifacts(  # noqa: PLR0913  # the names of onnxruntime.training
    estimator_or_model: Any,
    folder: str | os.PathLike[str],
    *,
    loss: Any = "auto",
    optimizer: "Literal['SGD', 'AdamW'] | SGD | Adam | None" = "SGD",
    trainable: str | Sequence[str] | None = None,
    batch_size: int | None = None,
    ort_version: Literal["auto", "1.16", "1.17", "1.18", "1.19"] = "auto",
    prefix: str = "",
    additional_output_names: Sequence[str] = (),
    sample_weight: bool = False,
    ort_format: bool = False,
    custom_op_library: str | os.PathLike[str] | None = None,
    nominal_checkpoint: bool = False,
) -> None:
    """
    Write the files with which ONNX Runtime's on-device training API trains a model further.

    The files are `training_model.onnx`, `eval_model.onnx`, `optimizer_model.onnx` and `checkpoint`.
    Module, Optimizer and CheckpointState load them, in every language that has these classes. Torch
    is not needed.

    Parameters
    ----------
    estimator_or_model : OrtSGDRegressor, OrtSGDClassifier or onnx.ModelProto
        A fitted estimator: the device continues from its weights, and minimises its objective,
        penalty included. Or an ONNX model in float32.
    folder : str or path-like
        The folder is created if it does not exist. Files of the same names are replaced.
    loss : str, loss, dict or None, default="auto"
        "auto": the loss of the estimator. For an ONNX model: a loss of `skort.objective`, or its
        name. For several outputs: a dict, name -> (weight, loss), of the terms of a weighted sum.
        None: the first output of the model is the loss, and it has one element.
    optimizer : {"SGD", "AdamW"}, SGD, Adam or None, default="SGD"
        "AdamW" is `skort.optimizers.Adam` with its default parameters; a weight decay is refused.
        None: no optimizer model is written. The device chooses the learning rate.
    trainable : str, list of str or None, default=None
        The weights to train: names, or patterns with `*`, `?` and `[...]`. The weights of the loss
        are always trained. None: the weights that the estimator trained, or the coefficients and
        intercepts of an ONNX model. The checkpoint has all weights.
    batch_size : int or None, default=None
        The number of rows of every training batch: skort writes the gradients, with any ONNX
        Runtime. None: batches may have any number of rows, and ONNX Runtime writes the gradients,
        which needs a build for training on this machine. The eval model takes any number of rows.
    ort_version : {"auto", "1.16", "1.17", "1.18", "1.19"}, default="auto"
        The release of ONNX Runtime on the device. 1.18 and 1.19 cannot read checkpoints of 1.16 and
        1.17, nor the other way round. "auto": the release of the build for training that is
        installed here; without one, 1.19.
    prefix : str, default=""
        The beginning of the names of the files.
    additional_output_names : sequence of str, default=()
        Names of results inside the model. The training and the eval step return them after the
        loss.
    sample_weight : bool, default=False
        Whether "sample_weight", of shape (n_rows, 1), is the last input. The loss is then the sum
        of the weighted losses of the rows, divided by the number of rows. An estimator with class
        weights needs True: the device multiplies the sample weights by the class weights.
    ort_format, custom_op_library, nominal_checkpoint : bool, path-like or None, bool
        Only the defaults are possible: the files are ONNX with standard operators, and the
        checkpoint has all weights.

    Raises
    ------
    NotTrainableError, NotExportableError
        If an operator has no gradient, or if a step of a pipeline cannot be part of an ONNX model.
    ValueError
        For other parameters than described, and for a column, weight or result of the model named
        "target", "sample_weight" or "loss".

    Notes
    -----
    The inputs of a training step are the inputs of `onnx_`, in float32, and "target", of shape
    (n_rows, n_outputs). For a regressor, the target is y, after the transformer of a
    `TransformedTargetRegressor`. For two classes, it is one column of 1 or 0; for more classes or
    several labels, it has one such column for each. With several losses, each output has its own
    target, named `target_` and the name of the output.

    All models have opset 17, with ONNX Runtime's own operators of domain "com.microsoft"; a model
    of another opset is converted. If the estimator standardises X and y, the first nodes of the
    models do so, too. The checkpoint then holds the weights for the standardised data, and
    `load_checkpoint` converts them back. With `standardize=False`, the checkpoint holds the weights
    of `weights_`.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> from skort import OrtSGDRegressor
    >>> from skort.artifacts import save_training_artifacts
    >>> model = OrtSGDRegressor(max_iter=3, tol=None).fit(*load_diabetes(return_X_y=True))
    >>> folder = tempfile.mkdtemp()
    >>> save_training_artifacts(model, folder, batch_size=20)
    >>> sorted(os.listdir(folder))
    ['checkpoint', 'eval_model.onnx', 'optimizer_model.onnx', 'training_model.onnx']
    """
    refused = {
        "ort_format": ort_format,
        "custom_op_library": custom_op_library,
        "nominal_checkpoint": nominal_checkpoint,
    }
    _check(refused, batch_size, ort_version)
    release = release_of_devices() if ort_version == "auto" else ort_version
    check_folder(folder, prefix)
    update = _update(optimizer)
    options = (trainable, tuple(additional_output_names))

    if isinstance(estimator_or_model, BaseOrtSGD):
        if not (isinstance(loss, str) and loss == "auto"):
            raise ValueError(
                f'loss={loss!r}: an estimator has its own. Use loss="auto", or fit '
                "it with that loss."
            )

        source = estimator_source(estimator_or_model, *options, sample_weight=sample_weight)
    else:
        _check_model(estimator_or_model, loss)
        source = model_source(estimator_or_model, loss, *options, sample_weight=sample_weight)

    training = _with_steps(_training_model(source, batch_size), source)
    evaluation = eval_model(source.eval)
    helper.set_model_props(evaluation, {PREDICTIONS: "\n".join(source.predictions)})
    checkpoint = CheckpointFile(
        VERSIONS[release], source.training.trainable, source.training.frozen
    )
    contents = {
        TRAINING: training.SerializeToString(),
        EVAL: evaluation.SerializeToString(),
        CHECKPOINT: write_checkpoint(checkpoint),
    }
    if update is not None:
        contents[OPTIMIZER] = optimizer_model(*update).SerializeToString()
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    write_files(
        {pathlib.Path(folder, f"{prefix}{name}"): content for name, content in contents.items()}
    )


def _training_model(source, batch_size):
    try:
        return training_model(source.training, batch_size)
    except RuntimeNotAvailableError as error:
        raise RuntimeNotAvailableError(
            "batch_size=None needs a build of ONNX Runtime for training. Give a "
            f"batch_size. {error}"
        ) from error


def _check(refused, batch_size, ort_version):
    for name, value in refused.items():
        if value:
            raise ValueError(f"{name}={value!r} is not possible: {_REFUSED[name]}.")

    check_batch_size(batch_size)
    if ort_version not in ("auto", *VERSIONS):
        raise ValueError(f"ort_version must be one of {['auto', *VERSIONS]}, got {ort_version!r}.")


def _check_model(model, loss):
    if not isinstance(model, onnx.ModelProto):
        advice = (
            f"Got {model!r}. Put a fitted scikit-learn model into one: "
            "OrtSGDRegressor(FrozenEstimator(model)).fit(X, y)."
            if isinstance(model, BaseEstimator)
            else got_instead(model)
        )
        raise ValueError(
            "estimator_or_model must be a fitted OrtSGDRegressor or OrtSGDClassifier, or an "
            f"onnx.ModelProto. {advice}"
        )
    if isinstance(loss, enum.Enum):
        raise ValueError(f"loss={loss!r}: give a name of skort, {_LOSSES[loss.name]}.")
    if isinstance(loss, str) and loss == "auto":
        raise ValueError(
            'loss="auto" is for estimators. An ONNX model needs a loss, or None where '
            "its output is one."
        )


def _update(optimizer):
    """Return the name and the options of an optimizer model, or None."""
    if optimizer is None:
        return None

    if isinstance(optimizer, enum.Enum):
        # artifacts.OptimType of onnxruntime.training has the same names.
        optimizer = optimizer.name
    if isinstance(optimizer, str):
        optimizer = {"SGD": SGD(), "AdamW": Adam()}.get(optimizer, optimizer)
    name = optimizer_tags(optimizer).runtime
    if name is None:
        raise ValueError(
            'optimizer must be "SGD", "AdamW", an SGD or an Adam of skort.optimizers, or None, '
            f"got {optimizer!r}."
        )

    options = optimizer.get_params()
    if options.get("weight_decay"):
        raise ValueError(
            f"optimizer={optimizer!r}: ONNX Runtime's AdamW decays intercepts, too, and after the "
            'update; skort\'s Adam does neither. Give weight_decay=0. With penalty="l2", the device '
            "shrinks the coefficients of an estimator."
        )

    return name, options


def _with_steps(model: onnx.ModelProto, source: Source) -> onnx.ModelProto:
    """Return a training model that begins with the steps before the first input of the blueprint."""
    if source.steps is None:
        return model

    steps = onnx.compose.add_prefix(source.steps, "transformers/", rename_inputs=False)
    first = next(i for i in model.graph.input if i.name == source.training.user_inputs[0].name)
    for column in steps.graph.input:
        column.type.tensor_type.shape.dim[0].CopyFrom(first.type.tensor_type.shape.dim[0])
    link = [(steps.graph.output[0].name, first.name)]
    merged = onnx.compose.merge_graphs(
        steps.graph, model.graph, io_map=link, name="training", doc_string=""
    )

    return build_model(merged, domains=domains_of(steps) | domains_of(model), producer_name="skort")


def check_folder(folder: str | os.PathLike[str], prefix: str) -> None:
    """Raise a ValueError for a folder or a prefix of another type."""
    if not isinstance(folder, (str, os.PathLike)):
        raise ValueError(f"folder must be a str or path-like, got {folder!r}.")
    if not isinstance(prefix, str):
        raise ValueError(f"prefix must be a str, got {prefix!r}.")


def artifact(folder: str | os.PathLike[str], prefix: str, name: str) -> pathlib.Path:
    """Return the path of one of the files; raise an error if it does not exist."""
    check_folder(folder, prefix)
    path = pathlib.Path(folder, f"{prefix}{name}")
    if not path.is_file():
        raise FileNotFoundError(
            f"{str(path)!r} does not exist: give the folder that save_training_artifacts wrote to, "
            f"and the same prefix (here {prefix!r})."
        )

    return path


def checkpoint_at(path: pathlib.Path) -> CheckpointFile:
    """Read a checkpoint."""
    try:
        return read_checkpoint(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{str(path)!r} cannot be read: {error}") from error


def model_at(path: pathlib.Path) -> onnx.ModelProto:
    """Read an ONNX model."""
    try:
        return onnx.load(path)
    except Exception as error:  # protobuf's error is no ValueError
        raise ValueError(f"{str(path)!r} is not an ONNX model, or it is damaged.") from error


def load_checkpoint(folder: str | os.PathLike[str], estimator: Any, *, prefix: str = "") -> Any:
    """
    Return a fitted estimator with the weights of a checkpoint.

    This works with any ONNX Runtime: the file is read without it.

    Parameters
    ----------
    folder : str or path-like
        A folder with the file `checkpoint`, or a checkpoint file of any name that a device wrote.
    estimator : OrtSGDRegressor or OrtSGDClassifier
        The fitted estimator that `save_training_artifacts` got, or a copy of it. It is not changed.
    prefix : str, default=""
        The prefix of the name of the file in the folder.

    Returns
    -------
    estimator : OrtSGDRegressor or OrtSGDClassifier
        A copy with the weights of the checkpoint. It predicts, can be exported, and can be trained
        further. The memory of its optimizer is empty, and its history is that of the fit.

    Raises
    ------
    FileNotFoundError, NotFittedError, ValueError
        If the file does not exist, cannot be read, or is the checkpoint of another model or of
        another fit; and if the estimator is not fitted.

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
            "estimator must be the fitted OrtSGDRegressor or OrtSGDClassifier of the artifacts, "
            f"got {type(estimator).__name__}."
        )

    _, variables, problem, _ = fitted_problem(estimator, of_model_rows=True)
    path = pathlib.Path(folder)
    if not path.exists():
        raise FileNotFoundError(
            f"{str(path)!r} does not exist: give a checkpoint, or the folder that has one."
        )

    path = artifact(folder, prefix, CHECKPOINT) if path.is_dir() else path
    checkpoint = checkpoint_at(path)
    given = {**checkpoint.trainable, **checkpoint.frozen}
    score_graph, _ = predicting_graph(problem.score_graph, variables)
    expected = {**score_graph.arrays, **problem.loss_weights}
    shapes, wanted = (
        {name: array.shape for name, array in arrays.items()} for arrays in (given, expected)
    )
    if shapes != wanted:
        raise ValueError(
            f"{str(path)!r} is the checkpoint of another model: it has the parameters {shapes}, "
            f"the estimator {wanted}."
        )

    # The device may have trained other weights than the estimator did.
    trained = problem.weights.keys() | checkpoint.trainable.keys()
    for name, array in expected.items():
        if name not in trained and not np.allclose(given[name], array, rtol=1e-6, atol=0):
            raise ValueError(
                f"{str(path)!r} is the checkpoint of another fit: the values of {name!r}, which is "
                "not trained, differ from those of the estimator."
            )

    weights = {name: given[name] for name in expected if name in trained}
    changed = variables.model_weights({name: weights[name] for name in problem.weights})
    return estimator.with_weights(weights | changed)
