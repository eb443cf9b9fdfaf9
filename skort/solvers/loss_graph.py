"""
Models of the losses of rows, of their derivatives and of their curvature, from scores or from X and
all weights.
"""

import copy

from onnx import ModelProto, helper

from skort.common.onnx_text import Fragment, build_model, inlined, onnx_dtype
from skort.graphs.score_graph import ScoreGraph
from skort.objective.loss import source_key
from skort.objective.objective import LOSS, SAMPLE_WEIGHT, SCORE_GRADIENT, TARGET, Objective
from skort.runtime.sessions import InferenceModel
from skort.solvers.derived_gradients import ruled_score_gradient

#: The input of a loss without a score graph.
SCORE = "score"
#: The weighted losses of the rows, as `Objective.add_loss` names them.
ROW_LOSSES = "skort_weighted_losses"
#: The second derivatives of the losses of rows by each column of their scores.
CURVATURES = "skort_curvatures"
#: The probabilities of the classes of rows.
PROBABILITIES = "skort_probabilities"


def loss_model(objective: Objective, score_graph: ScoreGraph | None = None) -> InferenceModel:
    """Return the model that computes `LOSS`, the weighted sum, and `ROW_LOSSES` of the rows."""
    structure = "loss", objective.loss_key, None if score_graph is None else score_graph.key
    return InferenceModel(lambda: _model(objective, score_graph), structure=structure)


def _model(objective: Objective, score_graph: ScoreGraph | None) -> ModelProto:
    """Return the model of X or `SCORE`, all weights, targets and sample weights."""
    fragment = Fragment(objective.dtype)

    if score_graph is None:
        model = _score_model(objective)
    else:
        model = copy.deepcopy(score_graph.structure)
        model.graph.input.extend(
            [*objective.inputs(None), *objective.weight_infos(objective.loss.weight_names)]
        )

    objective.add_loss(fragment, model.graph.output[0].name, LOSS)
    rows = helper.make_tensor_value_info(ROW_LOSSES, onnx_dtype(objective.dtype), None)
    return _with_outputs(model, fragment, [objective.output(LOSS), rows])


def score_gradient_model(objective: Objective) -> InferenceModel | None:
    """
    Return the model of `SCORE`, targets and sample weights that computes `SCORE_GRADIENT` and
    `LOSS`; None for a loss without a gradient of its own.
    """
    if objective.gradient_source is None:
        return None
    structure = "score gradient", objective.loss_key, objective.gradient_source
    return InferenceModel(lambda: _score_gradient_model(objective), structure=structure)


def _score_gradient_model(objective):
    """Return the model of `SCORE`, targets, sample weights, and weights of the loss."""
    fragment = Fragment(objective.dtype)
    model = _score_model(objective)
    objective.add_loss(fragment, SCORE, LOSS)
    objective.add_score_gradient(fragment, SCORE)
    shape = [None, objective.n_outputs]
    gradient = helper.make_tensor_value_info(SCORE_GRADIENT, onnx_dtype(objective.dtype), shape)
    return _with_outputs(model, fragment, [objective.output(LOSS), gradient])


def derived_gradient_model(objective: Objective, n_rows: int) -> InferenceModel:
    """
    Return the model of so many scores, targets and sample weights that computes `SCORE_GRADIENT`,
    by skort's rules.
    """
    structure = "derived gradient", objective.loss_key, n_rows
    return InferenceModel(lambda: _derived_gradient_model(objective, n_rows), structure=structure)


def _derived_gradient_model(objective, n_rows):
    """Return the model of scores, targets and sample weights with the derivatives."""
    fragment = Fragment(objective.dtype)
    model = _score_model(objective)
    derived = ruled_score_gradient(objective, n_rows)
    fragment.call_as_is(derived, [SCORE, TARGET, SAMPLE_WEIGHT], [SCORE_GRADIENT])
    shape = [None, objective.n_outputs]
    gradient = helper.make_tensor_value_info(SCORE_GRADIENT, onnx_dtype(objective.dtype), shape)
    return _with_outputs(model, fragment, [gradient])


def _score_model(objective):
    """Return a model without nodes, whose inputs are those of a loss."""
    shape = [None, objective.n_outputs]
    score = helper.make_tensor_value_info(SCORE, onnx_dtype(objective.dtype), shape)
    inputs = [
        score,
        *objective.inputs(None),
        *objective.weight_infos(objective.loss.weight_names),
    ]
    return build_model(helper.make_graph([], "loss", inputs, [score]))


def curvature_model(objective: Objective, score_graph: ScoreGraph) -> InferenceModel | None:
    """Return the model of X, all weights and targets that computes `CURVATURES`, if it can."""
    source = objective.loss.curvature_function(objective.n_outputs)
    return None if source is None else _model_of_rows(objective, score_graph, source, CURVATURES)


def softmax_model(objective: Objective, score_graph: ScoreGraph) -> InferenceModel | None:
    """Return the model of X, all weights and targets that computes `PROBABILITIES`, if it can."""
    source = objective.loss.softmax_function(objective.n_outputs)
    return None if source is None else _model_of_rows(objective, score_graph, source, PROBABILITIES)


def _model_of_rows(objective, score_graph, source, name):
    """Return the model of X, all weights and targets that computes a function of score and target."""
    structure = name, source_key(source), objective.loss_key, score_graph.key
    return InferenceModel(
        lambda: _row_model(objective, score_graph, source, name), structure=structure
    )


def _row_model(objective, score_graph, source, name):
    fragment = Fragment(objective.dtype)
    model = copy.deepcopy(score_graph.structure)
    graph = model.graph

    fragment.call(source, [graph.output[0].name, TARGET], [name], objective.n_outputs)
    graph.input.extend(info for info in objective.inputs(None) if info.name == TARGET)
    shape = [None, objective.n_outputs]
    values = helper.make_tensor_value_info(name, onnx_dtype(objective.dtype), shape)
    return _with_outputs(model, fragment, [values])


def _with_outputs(model, fragment, outputs):
    """Return a model with the nodes of a fragment, and with these outputs in place of its own."""
    model.graph.node.extend(fragment.nodes)
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    return inlined(model, fragment)
