"""Operators of ai.onnx.ml as standard ones."""

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

from skort.exceptions import NotTrainableError
from skort.graphs.onnx_models.onnx_score_graph import plain_model
from skort.graphs.onnx_models.standard_operators import held_weights
from skort.onnx_models import find_weights, with_weights

X = np.array([[1, -2, 3], [0, 0, 0], [-1, -2, -3], [0.5, 0, 0.25]], np.float32)
ROWS = np.array([[1, 2, 3], [-1, 0, 0.5]], np.float32)
LABELS = {"classlabels_ints": [3, 7]}


def one_node(op_type, n_outputs=1, element_type=TensorProto.FLOAT, **attributes):
    """Return a model of one operator of ai.onnx.ml."""
    names = ["label", "result"][-n_outputs:]
    label_type = TensorProto.STRING if "classlabels_strings" in attributes else TensorProto.INT64
    types = [label_type, element_type if op_type == "Imputer" else TensorProto.FLOAT][-n_outputs:]
    shapes = [[None], [None] * (3 if op_type == "OneHotEncoder" else 2)][-n_outputs:]
    graph = helper.make_graph(
        [helper.make_node(op_type, ["X"], names, domain="ai.onnx.ml", **attributes)],
        "one_node",
        [helper.make_tensor_value_info("X", element_type, [None, 3])],
        [helper.make_tensor_value_info(*each) for each in zip(names, types, shapes, strict=True)],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, ir_version=8, opset_imports=imports)


def classifier(rows, intercepts, **attributes):
    return one_node(
        "LinearClassifier", 2, coefficients=rows.ravel(), intercepts=intercepts, **attributes
    )


def is_standard(model):
    return all(node.domain == "" for node in model.graph.node)


@pytest.mark.parametrize(
    "model",
    [
        *(one_node("Normalizer", norm=norm) for norm in ("L1", "L2", "MAX")),
        one_node("Imputer", imputed_value_floats=[9.0], replaced_value_float=0.0),
        one_node(
            "Imputer", imputed_value_floats=[7.0, 8.0, 9.0], replaced_value_float=float("nan")
        ),
        one_node(
            "Imputer",
            element_type=TensorProto.INT64,
            imputed_value_int64s=[9],
            replaced_value_int64=0,
        ),
        one_node("OneHotEncoder", cats_int64s=[0, 1, 3]),
        one_node("Scaler", offset=[1.0, 2.0, 3.0], scale=[2.0, 0.5, 1.0]),
        one_node("Scaler", offset=[1.0], scale=[2.0], element_type=TensorProto.DOUBLE),
        *(
            one_node(
                "LinearRegressor",
                coefficients=ROWS.ravel(),
                intercepts=[1.0, -1.0],
                targets=2,
                post_transform=end,
            )
            for end in ("NONE", "LOGISTIC", "SOFTMAX")
        ),
        *(
            classifier(ROWS, [1.0, -1.0], post_transform=end, **LABELS)
            for end in ("NONE", "LOGISTIC", "SOFTMAX")
        ),
        *(
            classifier(
                np.array([-ROWS[0], ROWS[0]]),
                [-0.5, 0.5],
                post_transform=end,
                classlabels_strings=["a", "b"],
            )
            for end in ("NONE", "LOGISTIC", "SOFTMAX")
        ),
    ],
)
@pytest.mark.parametrize("missing", [0.0, np.nan])
def test_the_results_are_the_same(model, missing, run_onnx):
    plain = plain_model(model)
    assert is_standard(plain)
    dtype = helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type)
    rows = X.copy()
    if model.graph.node[0].op_type == "Imputer" and dtype == np.float32:
        rows[1, 2] = missing
    expected, results = (run_onnx(each, X=rows.astype(dtype)) for each in (model, plain))
    for name, result in expected.items():
        if result.dtype.kind == "f":
            np.testing.assert_allclose(results[name], result, rtol=1e-6, atol=1e-6)
        else:
            assert results[name].tolist() == result.tolist()


@pytest.mark.parametrize("end", ["NONE", "LOGISTIC"])
def test_one_score_of_two_classes(end, run_onnx):
    """
    ONNX Runtime 1.16 gives 1 - score and score, whatever the attribute says;
    the label is that of the sign.
    """
    model = classifier(ROWS[:1], [-0.5], post_transform=end, **LABELS)
    score = X @ ROWS[:1].T - 0.5
    results = run_onnx(plain_model(model), X=X)
    both = np.hstack([-score, score])
    np.testing.assert_allclose(
        results["result"], both if end == "NONE" else 1 / (1 + np.exp(-both)), atol=1e-6
    )
    assert (
        results["label"].tolist()
        == run_onnx(model, X=X)["label"].tolist()
        == np.where(score > 0, 7, 3).ravel().tolist()
    )


def test_what_has_no_other_way_to_be_written_stays():
    for model in (
        one_node(
            "LinearRegressor",
            coefficients=[1.0, 2.0, 3.0],
            intercepts=[0.0],
            post_transform="PROBIT",
        ),
        classifier(ROWS, [1.0, -1.0], post_transform="SOFTMAX_ZERO", **LABELS),
        classifier(ROWS, [1.0, -1.0], classlabels_ints=[1, 2, 3]),
        one_node("Binarizer", threshold=0.5),
    ):
        assert plain_model(model).graph.node[0].op_type == model.graph.node[0].op_type


def test_weights_go_back_into_attributes():
    """Coefficients are columns of outputs; of opposite rows there is one."""
    names = ("result/coefficients", "result/intercepts")
    model = classifier(np.array([-ROWS[0], ROWS[0]]), [-0.5, 0.5], **LABELS)
    (node,) = with_weights(model, {names[0]: [[4.0], [5.0], [6.0]], names[1]: [2.0]}).graph.node
    attributes = {a.name: list(a.floats) for a in node.attribute if a.floats}
    assert attributes == {"coefficients": [-4, -5, -6, 4, 5, 6], "intercepts": [-2, 2]}
    model = one_node(
        "LinearRegressor", coefficients=ROWS.ravel(), intercepts=[1.0, -1.0], targets=2
    )
    np.testing.assert_array_equal(held_weights(model.graph.node[0])[names[0]], ROWS.T)
    (node,) = with_weights(model, {names[0]: [[1, 4], [2, 5], [3, 6]]}).graph.node
    attributes = {a.name: list(a.floats) for a in node.attribute if a.floats}
    assert attributes == {"coefficients": [1, 2, 3, 4, 5, 6], "intercepts": [1, -1]}
    assert [(weight.name, weight.shape, weight.kind) for weight in find_weights(model)] == [
        (names[0], (3, 2), "coefficient"),
        (names[1], (2,), "intercept"),
    ]


def test_no_intercepts(run_onnx):
    model = one_node("LinearRegressor", coefficients=ROWS.ravel(), targets=2)
    np.testing.assert_allclose(run_onnx(plain_model(model), X=X)["result"], X @ ROWS.T, rtol=1e-6)
    assert [weight.name for weight in find_weights(model)] == ["result/coefficients"]


def test_a_domain_in_two_versions_is_refused():
    model = one_node("Normalizer", norm="L1")
    model.opset_import.add(domain="", version=17)
    assert is_standard(plain_model(model))
    model.opset_import.add(domain="", version=18)
    with pytest.raises(
        NotTrainableError, match=r"a domain of operators in two versions: .*\('', 18\)"
    ):
        plain_model(onnx.ModelProto.FromString(model.SerializeToString()))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    "nodes",
    [
        "loss = SoftmaxCrossEntropyLoss <reduction = '%s'> (X, t)",
        "loss, p = SoftmaxCrossEntropyLoss <reduction = '%s'> (X, t)",
        "p = LogSoftmax <axis = 1> (X) loss = NegativeLogLikelihoodLoss <reduction = '%s'> (p, t)",
    ],
    ids=["softmax", "both outputs", "logarithms"],
)
def test_losses_of_class_numbers_have_operators_with_a_gradient(nodes, reduction, run_onnx):
    shape = "N" if reduction == "none" else ""
    text = f"m (float[N, 3] X, int64[N] t) => (float[{shape}] loss) {{ {nodes % reduction} }}"
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]>' + text.replace("'", '"').replace("[]", "")
    )
    plain = plain_model(model)
    assert not {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"} & {
        node.op_type for node in plain.graph.node
    }

    labels = np.array([2, 0, 1, 1])
    losses = np.log(np.exp(X).sum(axis=1)) - X[np.arange(4), labels]
    expected = {"mean": losses.mean(), "sum": losses.sum(), "none": losses}[reduction]
    np.testing.assert_allclose(run_onnx(plain, X=X, t=labels)["loss"], expected, rtol=1e-5)
