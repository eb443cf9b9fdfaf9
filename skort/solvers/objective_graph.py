"""The objective of a model as an ONNX model."""

from dataclasses import replace
from typing import Any

import onnx
from sklearn.utils import get_tags

from skort.common.component import check_parameters
from skort.common.onnx_text import Fragment, inlined
from skort.common.user_warning import warn_user
from skort.graphs.initialization import fitted_score_graph, given_model
from skort.graphs.onnx_models.inputs import training_losses
from skort.graphs.onnx_models.onnx_score_graph import onnx_score_graph, output_widths, spec_of
from skort.objective.combined import OutputLosses
from skort.objective.custom import check_term
from skort.objective.loss import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, ScoreLoss, as_loss
from skort.objective.objective import LOSS, OBJECTIVE, Objective
from skort.objective.penalties import PENALTIES, WeightPenalty, as_penalty


def objective_graph(
    model: Any,
    loss: str | ScoreLoss = "squared_error",
    penalty: str | WeightPenalty | None = None,
) -> onnx.ModelProto:
    r"""
    Return the model that computes the objective of a model on any number of rows.

    .. math:: J(w) = \sum_i v_i \, loss(y_i, score_i) + penalty(w)

    Parameters
    ----------
    model : onnx.ModelProto, or fitted estimator of skort or scikit-learn
        An ONNX model, as for `OrtSGDRegressor(estimator=model)`, must have fixed numbers of
        columns.
    loss : str, loss instance or dict of str to either, default="squared_error"
        A name, an instance, or a dict with the losses of the outputs of an ONNX model by name. A
        name that two losses have, such as "huber", is the regression loss. The score of a
        classification loss is the raw score. Two classes have one score and a target of 0 or 1.
        More classes have one score each and a one-hot target. With a dict, the target has the
        columns of all outputs side by side.
    penalty : str, penalty instance or None, default=None
        A name stands for the penalty with its default strength. A custom penalty gets the weights
        of the model as `start`.

    Returns
    -------
    objective : onnx.ModelProto
        A model with the inputs X, "skort_target" of shape (n_rows, n_outputs),
        "skort_sample_weight" of shape (n_rows, 1), and the weights of the loss. The sample weights
        are :math:`v_i = s_i / \sum_j s_j`. If the loss is a mean over the outputs, divide them by
        the number of outputs. The outputs are the scalars "skort_loss" and "skort_objective".

    Examples
    --------
    >>> import numpy as np
    >>> import onnx.parser
    >>> import onnxruntime
    >>> from skort.objective import L2
    >>> from skort.onnx_models import objective_graph
    >>> model = onnx.parser.parse_model('''
    ... <ir_version: 8, opset_import: ["" : 17]>
    ... line (float[N, 2] X) => (float[N, 1] y) <float[2, 1] W = {1, 2}> { y = MatMul (X, W) }''')
    >>> graph = objective_graph(model, "squared_error", L2(alpha=2.0))
    >>> session = onnxruntime.InferenceSession(
    ...     graph.SerializeToString(), providers=["CPUExecutionProvider"]
    ... )
    >>> batch = {
    ...     "X": np.eye(2),
    ...     "skort_target": np.zeros((2, 1)),
    ...     "skort_sample_weight": np.full((2, 1), 0.5),
    ... }
    >>> loss, objective = session.run(
    ...     None, {name: array.astype(np.float32) for name, array in batch.items()}
    ... )
    >>> print(loss, objective)
    1.25 6.25
    """
    given = given_model(model)
    for name in training_losses(given)[:1]:
        warn_user(
            f"model: The loss {name!r} of the ONNX model is left out: the parameter loss "
            "takes its place."
        )

    resolved_loss = _loss(loss, given)
    resolved_penalty = (
        None if penalty is None else _resolved("penalty", penalty, PENALTIES, as_penalty)
    )
    score_graph = _score_graph(given, resolved_loss)
    objective = Objective(
        loss=resolved_loss,
        penalty=resolved_penalty,
        coefficients=score_graph.coefficients,
        n_outputs=score_graph.n_outputs,
        dtype=score_graph.dtype,
        intercepts=score_graph.trained.intercepts,
        start=score_graph.trained_arrays,
    )
    for name, term in objective.custom_terms.items():
        check_term(term, name, score_graph.arrays[name].shape)
    whole = score_graph.model
    fragment = Fragment(score_graph.dtype)
    objective.add_value(fragment, score_graph.score_name)
    whole.graph.node.extend(fragment.nodes)
    whole.graph.input.extend(
        [*objective.inputs(None), *objective.weight_infos(resolved_loss.weight_names)]
    )
    del whole.graph.output[:]
    whole.graph.output.extend(objective.output(name) for name in (LOSS, OBJECTIVE))

    return inlined(whole, fragment)


def _loss(loss, model):
    """Return a validated loss. A dict becomes an `OutputLosses` with numbers of columns."""
    if isinstance(loss, dict):
        shaped = (
            onnx.shape_inference.infer_shapes(model)
            if isinstance(model, onnx.ModelProto)
            else model
        )
        # A model with an unknown number of columns has no score graph. That raises an error later.
        widths = {
            name: width
            for name, width in output_widths(shaped, tuple(loss)).items()
            if width is not None
        }
        parts = OutputLosses({name: _loss(part, model) for name, part in loss.items()}, widths)
        check_parameters(parts)

        return parts

    return given_loss(loss)


def given_loss(loss: Any) -> ScoreLoss:
    """Return the validated loss for a name or an instance."""
    return _resolved("loss", loss, CLASSIFICATION_LOSSES | REGRESSION_LOSSES, as_loss)


def _resolved(what, given, known, completed):
    """Return the validated loss or penalty for a name or an instance."""
    if isinstance(given, str):
        if given not in known:
            raise ValueError(
                f"{what} must be one of {', '.join(known)}, or an instance, got {given!r}."
            )
        return known[given]()

    component = completed(given)
    if component is None:
        raise ValueError(f"{what} must be a name or an instance, got {given!r}.")

    check_parameters(component)
    return component


def _score_graph(model, loss):
    """Return the score graph of a model for a loss."""
    if isinstance(model, onnx.ModelProto):
        spec = spec_of(model, loss.output_names)
        is_classifier = "regressor" not in loss.estimator_types
        n_outputs = 1 if is_classifier and spec.n_outputs == 2 else spec.n_outputs
        return onnx_score_graph(
            model, replace(spec, n_outputs=n_outputs, is_classifier=is_classifier)
        )

    kind = get_tags(model).estimator_type
    if kind not in loss.estimator_types:
        cure = f" {loss.for_others}" if loss.for_others else ""
        raise ValueError(
            f"loss={type(loss).__name__} is not a loss of a {kind}, such as "
            f"{type(model).__name__}.{cure}"
        )

    return fitted_score_graph(model, keeps_link=loss.inverse_link_function(1) is None)
