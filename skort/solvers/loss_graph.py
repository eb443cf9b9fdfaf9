"""A model that computes the losses of rows, from scores or from X and all weights."""

import copy

from onnx import ModelProto, helper

from skort.common.onnx_text import Fragment, build_model, inlined, onnx_dtype
from skort.graphs.score_graph import ScoreGraph
from skort.objective.objective import LOSS, Objective
from skort.runtime.sessions import InferenceModel

#: The input of a loss without a score graph.
SCORE = "score"
#: The weighted losses of the rows, as `Objective.add_loss` names them.
ROW_LOSSES = "skort_weighted_losses"


def loss_model(objective: Objective, score_graph: ScoreGraph | None = None) -> InferenceModel:
    """Return the model that computes `LOSS`, the weighted sum, and `ROW_LOSSES` of the rows."""
    structure = "loss", objective.loss_key, None if score_graph is None else score_graph.key
    return InferenceModel(lambda: _model(objective, score_graph), structure=structure)


def _model(objective: Objective, score_graph: ScoreGraph | None) -> ModelProto:
    """Return the model of X or `SCORE`, all weights, targets and sample weights."""
    dtype = onnx_dtype(objective.dtype)
    fragment = Fragment(objective.dtype)

    if score_graph is None:
        score = helper.make_tensor_value_info(SCORE, dtype, [None, objective.n_outputs])
        model = build_model(helper.make_graph([], "loss", [score], [score]))
    else:
        model = copy.deepcopy(score_graph.structure)

    graph = model.graph
    objective.add_loss(fragment, graph.output[0].name, LOSS)
    graph.node.extend(fragment.nodes)
    graph.input.extend(
        [*objective.inputs(None), *objective.weight_infos(objective.loss.weight_names)]
    )
    del graph.output[:]
    graph.output.extend(
        [objective.output(LOSS), helper.make_tensor_value_info(ROW_LOSSES, dtype, None)]
    )

    return inlined(model, fragment)
