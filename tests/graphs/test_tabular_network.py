"""The score graph of a `TabularNetwork`, and its gradient, against numpy and finite differences."""

import functools
import itertools
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import scipy.special

from skort import OrtSGDRegressor
from skort.gradients import initial_model
from skort.graphs.layers import Layer
from skort.graphs.score_graph import ScoreSpec, find_weights
from skort.graphs.standardized import centred, uncentred_arrays
from skort.graphs.tabular_network import ACTIVATIONS, bin_edges
from skort.graphs.training_mode import masked
from skort.networks import TabularNetwork
from skort.optim import standardization
from skort.solvers.base import views
from skort.solvers.graph.gradient_sessions import GradientSessions

# Numbers in columns 0, 2 and 4; ids of 3 and of 5 categories in columns 1 and 3.
CATEGORIES = (0, 3, 0, 5, 0)
NUMBERS, IDS = [0, 2, 4], [1, 3]
OF_NUMPY = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "logistic": scipy.special.expit,
    "identity": lambda x: x,
}


def graph_of(n_outputs=2, dtype="float32", categories=CATEGORIES, seed=0, **options):
    network = TabularNetwork(**{"hidden": (7, 6), **options})
    spec = spec_of(fitted_rows(), n_outputs, dtype, categories=categories)
    graph = network.initial_score_graph(spec, np.random.RandomState(seed))
    rng = np.random.default_rng(1)
    return graph.with_weights(
        {
            n: rng.normal(size=w.shape, scale=0.5).astype(dtype)
            for n, w in graph.trained_arrays.items()
        }
    )


def spec_of(X, n_outputs=1, dtype="float32", **options):
    """Return the requirements of rows."""
    moments = None if X is None else functools.partial(standardization.moments, np.asarray(X), None)
    n_features = 2 if X is None else X.shape[1]
    return ScoreSpec(n_features, n_outputs, dtype, rows=X, moments=moments, **options)


def fitted_rows(n=83):
    """Return rows with a column of many values, of three, and of two."""
    X = rows(n)
    X[:, 0] = 300 + 40 * X[:, 0]
    X[:, 2] = np.resize([1, 0, 0, 2, 0], n)
    X[:, 4] = np.resize([0, 1, 1], n)
    return X


def rows(n=11):
    X = np.random.default_rng(2).normal(size=(n, 5))
    X[:, 1] = np.resize([0, 1, 2, -1, 3], n)
    X[:, 3] = np.resize([4, 0, -1, 7], n)
    return X


def score(run_onnx, graph, X):
    (result,) = run_onnx(graph.model, X=X.astype(graph.dtype)).values()
    return result


def of_numpy(X, w, activation="relu", masks=(1.0, 1.0)):
    """Return the score of two hidden layers, whose units are multiplied by masks."""
    f = OF_NUMPY[activation]
    # The row of unknown ids is the first of each column.
    known = [np.where((X[:, i] >= 0) & (X[:, i] < n), X[:, i] + 1, 0) for i, n in ((1, 3), (3, 5))]
    embedded = [
        w["embeddings"][ids.astype(int) + first] for ids, first in zip(known, (0, 4), strict=True)
    ]
    h = X[:, NUMBERS] @ w["coefficient0"] + np.hstack(embedded) @ w["coefficient0_of_ids"]
    h = f(h + w["intercept0"]) * masks[0]
    z = f(h @ w["coefficient1"] + w["intercept1"]) * masks[1]
    return z @ w["coefficient2"] + w["intercept2"]


def of_bins(X, like):
    """Return the numbers of rows, standardised as those of other rows, and the halves of bins."""
    mean, scale = like[:, NUMBERS].mean(axis=0), like[:, NUMBERS].std(axis=0)
    z, known = ((rows[:, NUMBERS] - mean) / scale for rows in (X, like))
    parts = []
    for i in (0, 1):
        edges = np.unique(np.quantile(known[:, i], np.linspace(0, 1, 17), method="nearest"))
        parts += [
            0.5 * np.interp(z[:, i], [left, right], [0, 1])
            for left, right in itertools.pairwise(edges)
        ]
    return z, np.column_stack(parts)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_score_has_the_activation(run_onnx, activation):
    graph = graph_of(activation=activation)
    expected = of_numpy(rows(), graph.arrays, activation)
    np.testing.assert_allclose(score(run_onnx, graph, rows()), expected, rtol=1e-4, atol=1e-5)


def test_score_in_float64(run_onnx):
    graph = graph_of(dtype="float64", activation="tanh")
    expected = of_numpy(rows(), graph.arrays, "tanh")
    np.testing.assert_allclose(score(run_onnx, graph, rows()), expected, rtol=1e-10)


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-3), ("float64", 1e-9)])
def test_piecewise_numbers_fill_bins_between_quantiles(run_onnx, dtype, rtol):
    graph = graph_of(dtype=dtype, activation="tanh", numeric_embedding="piecewise", hidden=7)
    X, w = fitted_rows(29) + np.array([3.0, 0, 0.25, 0, 0.1]), graph.arrays
    z, bins = of_bins(X, fitted_rows())
    # Sixteen of the first column, two of three values, none of two.
    assert w["coefficient0_of_bins"].shape == (18, 7)
    assert bins.shape == (29, 18)

    known = [np.where((X[:, i] >= 0) & (X[:, i] < n), X[:, i] + 1, 0) for i, n in ((1, 3), (3, 5))]
    embedded = np.hstack([w["embeddings"][(known[i] + (0, 4)[i]).astype(int)] for i in (0, 1)])
    h = z @ w["coefficient0"] + bins @ w["coefficient0_of_bins"]
    h = np.tanh(h + embedded @ w["coefficient0_of_ids"] + w["intercept0"])
    expected = h @ w["coefficient1"] + w["intercept1"]
    np.testing.assert_allclose(score(run_onnx, graph, X), expected, rtol=rtol, atol=rtol)


def test_edges_of_bins_are_different_quantiles():
    assert bin_edges(np.arange(161.0)).tolist() == np.arange(0, 161, 10).tolist()
    assert bin_edges(np.array([0.0, 0, 0, 1, 2])).tolist() == [0, 1, 2]
    assert bin_edges(np.resize([0.0, 1.0, 2.0], 300)).tolist() == [0, 1, 2]
    assert bin_edges(np.resize([3.0, 5.0], 40)).tolist() == [3, 5]
    assert bin_edges(np.full(9, 7.0)).tolist() == [7]
    # float32 does not tell such edges apart.
    assert bin_edges(np.resize([1.0, 1.0 + 1e-7, 4.0], 300)).tolist() == [1, 4]


def test_bins_are_not_trained_and_fits_on_other_rows_share_their_structure():
    options = {"numeric_embedding": "piecewise", "hidden": 6}
    graph = graph_of(**options)
    fixed = {"number_means", "number_inverse_scales", "bin_edges", "bin_factors"}
    assert {*graph.frozen_arrays} == fixed
    assert {*graph.weight_names.scales} == fixed
    assert graph.first_layer is None

    network = TabularNetwork(6, numeric_embedding="piecewise")
    spec = spec_of(7 - 3 * fitted_rows(), 2, categories=CATEGORIES)
    other = network.initial_score_graph(spec, np.random.RandomState(0))
    assert other.key == graph.key
    np.testing.assert_allclose(
        other.arrays["number_inverse_scales"], graph.arrays["number_inverse_scales"] / 3, rtol=1e-6
    )


def test_columns_of_few_values_have_no_bins(run_onnx):
    network = TabularNetwork(6, numeric_embedding="piecewise")
    X = np.column_stack([np.resize([0.0, 1.0], 40), np.full(40, 3.0)])
    spec = spec_of(X)
    graph = network.initial_score_graph(spec, np.random.RandomState(0))
    assert [*graph.trained.coefficients] == ["coefficient0", "coefficient1"]
    w = graph.arrays
    z = np.column_stack([2 * X[:, 0] - 1, X[:, 1] - 3])
    expected = np.maximum(z @ w["coefficient0"] + w["intercept0"], 0) @ w["coefficient1"]
    np.testing.assert_allclose(
        score(run_onnx, graph, X), expected + w["intercept1"], rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame])
def test_quantiles_are_those_of_evenly_spaced_rows(container):
    # Every third of 25,001 rows.
    column = np.random.default_rng(0).normal(size=25_001)
    spec = spec_of(container(column[:, None]), dtype="float64")
    network = TabularNetwork(6, numeric_embedding="piecewise")
    arrays = network.initial_score_graph(spec, np.random.RandomState(0)).arrays
    edges = arrays["bin_edges"] / arrays["number_inverse_scales"] + arrays["number_means"]
    np.testing.assert_allclose(
        edges, np.quantile(column[::3], np.arange(16) / 16, method="nearest"), rtol=1e-9
    )


def many(shape, scale=1.0, far=0.0):
    X = np.resize(np.arange(7.0), shape)
    X[:, 0] = scale * X[:, 0] + far
    return X


@pytest.mark.parametrize(
    ("X", "options", "has_bins"),
    [
        (many((5_000, 32)), {}, True),
        (many((4_999, 32)), {}, False),
        (many((5_000, 33)), {}, False),
        (many((5_000, 33)), {"categories": (3, *[0] * 32)}, True),
        (many((5_000, 2)), {"is_classifier": True}, True),
        (many((4_999, 2)), {"is_classifier": True}, False),
        (None, {}, False),
        (scipy.sparse.csr_array((5_000, 2)), {}, False),
        # Means of ten and of a hundred thousand standard deviations.
        (many((5_000, 2), far=2e4), {}, True),
        (many((5_000, 2), far=2e5), {}, False),
        (many((5_000, 2), scale=1e-39), {}, False),
        (many((5_000, 2), scale=1e-39), {"dtype": "float64"}, True),
        (many((5_000, 2), scale=0, far=0.1), {}, True),
    ],
)
def test_numbers_of_many_dense_rows_have_bins_by_default(X, options, has_bins):
    graph = TabularNetwork(3).initial_score_graph(spec_of(X, **options), np.random.RandomState(0))
    assert ("coefficient0_of_bins" in graph.trainable) == has_bins
    assert bool(graph.frozen_arrays) == has_bins


def test_piecewise_numbers_need_dense_rows():
    network = TabularNetwork(6, numeric_embedding="piecewise")
    with pytest.raises(ValueError, match="needs dense rows, and there are none: use numeric_emb"):
        initial_model(network, n_features=3)
    with pytest.raises(ValueError, match="needs dense rows, and X is sparse: use numeric_embed"):
        OrtSGDRegressor(network).fit(scipy.sparse.csr_array(np.eye(3)), [0.0, 1.0, 2.0])


def test_piecewise_numbers_need_digits():
    network = TabularNetwork(6, numeric_embedding="piecewise")
    X = np.random.default_rng(0).normal(size=(501, 3))
    X[:, 1] += 1e6
    X[:, 2] = 0.1
    y = np.abs(X[:, 1] - 1e6)
    message = "float32 lacks the digits for column 1 of X, whose mean is 1e\\+06 and whose standard"
    with pytest.raises(ValueError, match=message):
        OrtSGDRegressor(network).fit(X, y)
    model = OrtSGDRegressor(network, dtype="float64", random_state=0).fit(X, y)
    near = OrtSGDRegressor(network, dtype="float64", random_state=0).fit(X - [0, 1e6, 0], y)
    np.testing.assert_allclose(model.predict(X), near.predict(X - [0, 1e6, 0]), atol=1e-4)
    assert model.score(X, y) > 0.9


def test_dropout_multiplies_the_units_of_each_row_in_a_step_only(run_onnx):
    graph, X = graph_of(dropout=0.25), rows()
    np.testing.assert_allclose(
        score(run_onnx, graph, X), of_numpy(X, graph.arrays), rtol=1e-4, atol=1e-5
    )
    training = masked(graph, len(X))
    assert [*training.dropout.values()] == [0.25, 0.25]
    assert [training.arrays[name].shape for name in training.dropout] == [(11, 7), (11, 6)]

    rng = np.random.default_rng(5)
    masks = [(rng.random((11, n)) < 0.75).astype(np.float32) / 0.75 for n in (7, 6)]
    fed = dict(zip(training.dropout, masks, strict=True))
    (result,) = run_onnx(training.model, X=X.astype(np.float32), **fed).values()
    expected = of_numpy(X, graph.arrays, masks=masks)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_ids_are_numbers_without_embeddings_and_without_an_encoder(run_onnx):
    for graph in (graph_of(embeddings=None), graph_of(categories=())):
        assert [*graph.trained.coefficients] == ["coefficient0", "coefficient1", "coefficient2"]
        w = graph.arrays
        h = np.maximum(rows() @ w["coefficient0"] + w["intercept0"], 0)
        h = np.maximum(h @ w["coefficient1"] + w["intercept1"], 0)
        expected = h @ w["coefficient2"] + w["intercept2"]
        np.testing.assert_allclose(score(run_onnx, graph, rows()), expected, rtol=1e-4, atol=1e-5)


def test_all_columns_may_be_ids(run_onnx):
    graph = graph_of(categories=(2, 3, 4, 5, 6), embeddings=3)
    assert graph.arrays["embeddings"].shape == (2 + 3 + 4 + 5 + 6 + 5, 3)
    assert graph.first_layer is None
    assert score(run_onnx, graph, np.zeros((2, 5))).shape == (2, 2)


def test_kinds_of_weights():
    graph = graph_of()
    layers = [f"coefficient{i}" for i in range(3)]
    coefficients = {"embeddings", "coefficient0_of_ids", *layers}
    assert {*graph.trained.coefficients} == coefficients
    assert {*graph.trained.intercepts} == {"intercept0", "intercept1", "intercept2"}
    assert graph.trained.scales == ()
    assert graph.trained == find_weights(graph.structure.graph)


def test_initial_weights_are_those_of_scikit_learn_and_unknown_ids_have_zeros():
    graph = TabularNetwork((7, 6)).initial_score_graph(
        ScoreSpec(5, 2, "float32", categories=CATEGORIES), np.random.RandomState(0)
    )
    table = graph.arrays["embeddings"]
    assert table.shape == (3 + 5 + 2, 8)
    assert np.flatnonzero(~table.any(axis=1)).tolist() == [0, 4]

    bound = np.sqrt(6 / (3 + 2 * 8 + 7))
    drawn = [graph.arrays[n] for n in ("coefficient0", "coefficient0_of_ids", "intercept0")]
    assert all(np.abs(array).max() <= bound for array in drawn)
    assert max(np.abs(array).max() for array in drawn) > 0.95 * bound


# ReLU has a kink, at which a finite difference is no derivative: tanh has none.
@pytest.mark.parametrize(
    "options",
    [
        {"activation": "tanh"},
        {"activation": "logistic"},
        {"activation": "tanh", "hidden": 6, "embeddings": 3},
        {"activation": "tanh", "numeric_embedding": "piecewise"},
    ],
)
def test_gradient_is_a_finite_difference(run_onnx, options):
    graph = graph_of(dtype="float64", **options)
    X, w = rows(), graph.arrays
    direction = np.random.default_rng(3).normal(size=(len(X), 2))

    sessions = GradientSessions(graph)
    pair = sessions.pair(len(X), input_gradient=False)
    _, kept = sessions.forward(pair, X, w)
    gradient, _ = sessions.backward(pair, direction, X, w, kept)
    gradient = views(gradient, graph.trained_arrays)

    def value(name, array):
        return (score(run_onnx, graph.with_weights({name: array}), X) * direction).sum()

    for name in graph.trainable:
        array = w[name]
        step = np.random.default_rng(4).normal(size=array.shape)
        difference = value(name, array + 1e-6 * step) - value(name, array - 1e-6 * step)
        expected = difference / 2e-6
        assert (gradient[name] * step).sum() == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_the_first_layer_reads_the_numbers(run_onnx):
    graph = graph_of(dtype="float64")
    assert graph.first_layer == Layer("coefficient0", "intercept0", columns=(0, 2, 4))
    assert graph.last_layer == Layer("coefficient2", "intercept2")

    offset = np.array([1e3, 0, -2e3, 0, 3.0])
    moved = centred(graph, offset)
    expected = score(run_onnx, graph, rows())
    np.testing.assert_allclose(score(run_onnx, moved, rows()), expected, rtol=1e-9, atol=1e-9)
    assert moved.first_layer == graph.first_layer
    np.testing.assert_allclose(
        uncentred_arrays(moved)["intercept0"], graph.arrays["intercept0"], atol=1e-9
    )


@pytest.mark.parametrize("hidden", [(5, 0), [2.5], (), True, [[2, 3], [4]], [[2, 3]]])
def test_wrong_sizes_are_refused(hidden):
    message = re.escape(f"hidden of TabularNetwork must be one or more ints > 0, got {hidden!r}.")
    with pytest.raises(ValueError, match=message):
        graph_of(categories=(), hidden=hidden)


@pytest.mark.parametrize("hidden", [7, np.int64(7), (7,), np.array([7])])
def test_sizes_are_an_int_or_several(hidden):
    assert graph_of(hidden=hidden).arrays["coefficient1"].shape == (7, 2)
