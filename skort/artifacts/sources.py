"""The source of a training on a device: a fitted estimator, or an ONNX model with losses."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import onnx
import onnx.compose
import onnx.shape_inference
from onnx import TensorProto, helper, numpy_helper

from skort.common.formulas import function_text
from skort.common.onnx_text import Fragment, read_names, rename, with_parameter_inputs
from skort.estimators.training.fitted_problem import fitted_problem
from skort.estimators.variables.reparametrization import Reparametrization
from skort.graphs.export import check_columns
from skort.graphs.onnx_models.onnx_score_graph import plain_model
from skort.graphs.score_graph import ScoreGraph, find_weights
from skort.graphs.standardized import STANDARDIZED_SCORE, rescaled_score
from skort.graphs.trainable import matching
from skort.graphs.training_mode import in_training_mode
from skort.objective.objective import OBJECTIVE, Objective
from skort.solvers.module.backend import check_dropout
from skort.solvers.module.models import Blueprint, Term
from skort.solvers.objective_graph import given_loss

#: The names of the inputs that skort adds, and of the first output.
TARGET, SAMPLE_WEIGHT, LOSS = "target", "sample_weight", "loss"
_TRAINING_MODE = "skort_training_mode"
_ROW_WEIGHTS = """
n_rows = Shape(target, start=0, end=1)
weight = Expand(scale / Cast(n_rows, to=1), Concat(n_rows, [1], axis=0))
"""


@dataclass(frozen=True, eq=False)
class Source:
    """The training of a graph, and its predictions."""

    #: Of the training model.
    training: Blueprint
    #: Of the eval model: with the same parameters, it also computes predictions.
    eval: Blueprint
    #: The names of the predictions in the eval model.
    predictions: tuple[str, ...]
    #: The steps before the first input of `training`. The eval model has them already.
    steps: onnx.ModelProto | None = None


def check_batch_size(batch_size: Any) -> None:
    """Raise a ValueError unless a batch_size is an int > 0 or None."""
    is_int = isinstance(batch_size, Integral) and not isinstance(batch_size, bool)
    if batch_size is not None and not (is_int and batch_size > 0):
        raise ValueError(f"batch_size must be an int > 0, or None, got {batch_size!r}.")


def estimator_source(
    estimator: Any, trainable: Any, additional: Sequence[str], *, sample_weight: bool
) -> Source:
    """Return the source of a fitted estimator: the training that it would continue itself."""
    fitted, variables, problem, weighs_rows = fitted_problem(estimator, of_model_rows=True)
    objective = problem.objective
    graph = problem.score_graph
    _check_problem(estimator, problem)
    if weighs_rows and not sample_weight:
        raise ValueError(
            f"class_weight={estimator.class_weight!r} is a part of the sample weights: use "
            "sample_weight=True, and let the device give each row the weight of its class."
        )

    score_graph, score = predicting_graph(graph, variables)
    arrays = {**score_graph.arrays, **problem.loss_weights}
    chosen = (
        graph.trainable
        if trainable is None
        else matching(trainable, list(fitted.score_graph.arrays))
    )
    names = {*chosen, *problem.loss_weights}
    n_outputs = graph.n_outputs
    inputs = [
        _rows_info(TARGET, n_outputs),
        *([_rows_info(SAMPLE_WEIGHT, 1)] if sample_weight else []),
    ]
    term = Term(score, "skort_target", "skort_sample_weight", objective)
    units = {"unit": float(variables.in_units.unit), "offset": float(variables.objective(0.0))}
    to_model_units = function_text(
        "in_model_units (objective) => (loss)", "loss = objective * unit + offset", **units
    )
    row_scale = variables.sample_weight_scale(n_outputs)

    def before(fragment):
        _add_target(fragment, variables, n_outputs)
        _add_row_weights(fragment, TARGET, term.sample_weight, row_scale, given=sample_weight)

    blueprint = Blueprint(
        structure=score_graph.structure,
        trainable={name: array for name, array in arrays.items() if name in names},
        frozen={name: array for name, array in arrays.items() if name not in names},
        terms=(term,),
        outputs=(LOSS, *additional),
        inputs=tuple(inputs),
        penalized=objective,
        before=before,
        after=lambda fragment: fragment.call(to_model_units, [OBJECTIVE], [LOSS]),
    )
    _check_results(additional, blueprint.structure.graph)
    check_columns(score_graph, fitted.preprocessing.exported())
    exported = replace(fitted, score_graph=score_graph).onnx
    _check_names(blueprint, exported.graph)
    predictions = tuple(output.name for output in exported.graph.output)
    evaluated = replace(blueprint, structure=with_parameter_inputs(exported, score_graph.arrays))

    return Source(blueprint, evaluated, predictions, fitted.preprocessing.exported())


def predicting_graph(graph: ScoreGraph, variables: Reparametrization) -> tuple[ScoreGraph, str]:
    """
    Return a score graph in the variables of a training that gives the score of the model.

    Return also the name of the result that is the score in these variables.
    """
    score = variables.score
    if score is None or score.is_of_y:
        return graph, graph.score_name
    return rescaled_score(graph, score.shift + score.offset, score.scale), STANDARDIZED_SCORE


def model_source(
    model: onnx.ModelProto,
    loss: Any,
    trainable: Any,
    additional: Sequence[str],
    *,
    sample_weight: bool,
) -> Source:
    """Return the source of an ONNX model with losses."""
    plain = plain_model(model)
    normalizing = in_training_mode(plain)
    if loss is None:
        _free_names(plain.graph)
    plain = onnx.shape_inference.infer_shapes(plain, data_prop=True)
    values = {i.name: i for i in plain.graph.initializer}
    user_inputs = [i for i in plain.graph.input if i.name not in values]

    for value in (*user_inputs, *plain.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.DOUBLE:
            _check_float32(np.dtype("float64"))

    found = find_weights(plain.graph)
    weights = [
        i.name for i in plain.graph.initializer if i.data_type == TensorProto.FLOAT and i.dims
    ]
    trained = {*found.coefficients, *found.intercepts, *normalizing}
    chosen = trained if trainable is None else matching(trainable, weights)
    arrays = {
        n: numpy_helper.to_array(values[n]) for n in weights if n in chosen or n in found.names
    }
    structure = with_parameter_inputs(plain, arrays)
    if loss is None:
        _check_number(plain.graph.output[0])
    losses = _losses(loss, [output.name for output in plain.graph.output])
    terms = [
        _term(name, weight, each, plain, len(losses)) for name, (weight, each) in losses.items()
    ]
    inputs = [_rows_info(term.target, term.objective.n_outputs) for term in terms]

    def before(fragment):
        for term in terms:
            scale = term.objective.sample_weight_scale
            _add_row_weights(fragment, term.target, term.sample_weight, scale, given=sample_weight)

    blueprint = Blueprint(
        structure=structure,
        trainable={name: array for name, array in arrays.items() if name in chosen},
        frozen={name: array for name, array in arrays.items() if name not in chosen},
        terms=tuple(terms),
        outputs=(LOSS, *additional),
        inputs=(*inputs, *([_rows_info(SAMPLE_WEIGHT, 1)] if sample_weight and terms else [])),
        before=before,
        after=lambda fragment: fragment.node("Identity", [OBJECTIVE], [LOSS]),
    )
    _check_names(blueprint, plain.graph)
    _check_prefix(plain.graph, loss)
    _check_results(additional, plain.graph)
    training = replace(blueprint, structure=_with_active_dropout(structure))

    return Source(training, blueprint, tuple(output.name for output in plain.graph.output))


def _free_names(graph):
    """
    Rename results of a model whose names the training needs, in place.

    The model computes its own loss.
    """
    in_subgraphs = {
        name for node in graph.node for name in read_names(node) if name not in node.input
    }
    results = {name for node in graph.node for name in node.output} - in_subgraphs
    renamed = {
        name: f"model/{name}" for name in results if name == LOSS or name.startswith("skort_")
    }
    rename(graph.node, renamed)
    for info in (*graph.output, *graph.value_info):
        info.name = renamed.get(info.name, info.name)


def _check_number(output):
    """Raise a ValueError if the output that is the loss is known to be more than one number."""
    shape = [
        "any" if not dim.dim_value else str(dim.dim_value)
        for dim in output.type.tensor_type.shape.dim
    ]
    if any(size != "1" for size in shape):
        raise ValueError(
            f"loss=None: the first output {output.name!r} must be the loss, one number, but it has "
            f"the shape ({', '.join(shape)}). Give a loss, or end the model with one, for instance "
            "with ReduceMean."
        )


def _losses(loss, outputs):
    """Return the weight and the loss of each output with a loss, by name."""
    if loss is None:
        return {}
    if isinstance(loss, dict):
        unknown = [name for name in loss if name not in outputs]
        if unknown or not loss:
            raise ValueError(
                f"loss: the model has no outputs {unknown or loss!r}. It has {outputs}."
            )

        return {name: _weighted(name, term) for name, term in loss.items()}
    if len(outputs) != 1:
        raise ValueError(
            f"loss={loss!r}: the model has the outputs {outputs}. Give a dict of the outputs that "
            "have a loss: name -> (weight, loss)."
        )

    return {outputs[0]: (1.0, given_loss(loss))}


def _weighted(name, term):
    """Return the weight and the loss of an output."""
    is_pair = isinstance(term, (tuple, list)) and len(term) == 2
    if not is_pair or not isinstance(term[0], Real) or not math.isfinite(term[0]):
        raise ValueError(
            f"loss[{name!r}] must be (weight, loss), with a finite weight, got {term!r}."
        )

    return float(term[0]), given_loss(term[1])


def _term(name, weight, loss, model, n_terms):
    (output,) = [o for o in model.graph.output if o.name == name]
    dims = output.type.tensor_type.shape.dim
    if len(dims) != 2 or not dims[1].dim_value:
        raise ValueError(
            f"loss: the output {name!r} must have the shape (any, n_outputs), with a "
            "known n_outputs."
        )

    objective = Objective(loss, None, (), dims[1].dim_value, np.dtype("float32"))
    if loss.weight_names:
        raise ValueError(
            f"loss={loss!r} has weights of its own: fit an OrtSGDRegressor with it, and "
            "pass the estimator."
        )

    target = TARGET if n_terms == 1 else f"{TARGET}_{name}"
    return Term(name, target, f"skort_sample_weight_of/{name}", objective, weight)


def _check_problem(estimator, problem):
    """Raise an error for a training that the on-device API cannot make."""
    _check_float32(problem.objective.dtype)
    check_dropout(problem.score_graph)
    if problem.objective.with_term("l1"):
        raise ValueError(
            f"penalty={estimator.penalty!r} has an l1 term, which the optimizers of on-device "
            'training do not know. Use penalty="l2" or None.'
        )


def _check_float32(dtype):
    if dtype != np.float32:
        raise ValueError(f'dtype="{dtype}": on-device training is in float32 only.')


def _check_names(blueprint, graph):
    """Raise a ValueError if a name of the model is also that of an added input or of the loss."""
    added = {LOSS, *(i.name for i in blueprint.inputs)}
    names = {i.name for i in (*graph.input, *graph.initializer)} | {
        name for node in graph.node for name in node.output
    }
    if clashing := sorted(names & added):
        raise ValueError(
            f"The model has inputs (columns of X), weights or results named {clashing}, which "
            "artifacts add: rename them."
        )


def _check_prefix(graph, loss):
    """Raise a ValueError if a name of a user's model begins with skort_, as added names do."""
    # If the loss is None, no inputs are added.
    names = [i.name for i in graph.input if loss is not None] + [
        name for node in graph.node for name in node.output
    ]
    if own := sorted(name for name in names if name.startswith("skort_")):
        raise ValueError(
            f"The ONNX model has results or inputs named {own}: rename them. Names of skort "
            "begin with skort_."
        )


def _check_results(names, graph):
    """Raise a ValueError if the model does not have a result of these names."""
    known = [name for node in graph.node for name in node.output]
    if unknown := [name for name in names if name not in known]:
        raise ValueError(
            f"additional_output_names: the model has no results {unknown}. It has {known}."
        )


def _rows_info(name, width):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, width])


def _with_active_dropout(structure):
    """
    Return a copy whose `Dropout` nodes draw and return masks.

    ONNX Runtime's gradient reads them.
    """
    active = copy.deepcopy(structure)
    nodes = [node for node in active.graph.node if node.op_type == "Dropout"]

    for node in nodes:
        node.input[:] = [
            node.input[0],
            node.input[1] if len(node.input) > 1 else "",
            _TRAINING_MODE,
        ]
        node.output[:] = [node.output[0], f"{node.output[0]}/mask"]

    if nodes:
        active.graph.initializer.append(numpy_helper.from_array(np.array(True), _TRAINING_MODE))
    return active


def _add_target(fragment: Fragment, variables: Reparametrization, n_outputs: int) -> None:
    """Add the nodes from the target that a user gives to the target of the training."""
    used = variables.standardization
    score = variables.score
    if used is None or used.target_mean is None or score is None or score.is_of_y:
        fragment.node("Identity", [TARGET], ["skort_target"])
        return

    fragment.constant(
        "skort_target_mean", np.resize(used.target_mean, (1, n_outputs)).astype(np.float32)
    )
    text = function_text(
        "scaled (y, mean) => (z)", "z = (y - mean) * inverse", inverse=float(1 / used.target_scale)
    )
    fragment.call(text, [TARGET, "skort_target_mean"], ["skort_target"])


def _add_row_weights(fragment, target, result, scale, *, given):
    """Add the nodes that divide the loss of a batch by its number of rows."""
    share = f"{result}/share" if given else result
    row_weights = function_text(
        "row_weights (target) => (weight)", _ROW_WEIGHTS, scale=float(scale)
    )
    fragment.call(row_weights, [target], [share])
    if given:
        fragment.node("Mul", [SAMPLE_WEIGHT, share], [result])
