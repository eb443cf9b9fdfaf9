"""Pictures of the weights of a first layer."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import BaggingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.plotting import WeightsDisplay

matplotlib = pytest.importorskip("matplotlib")

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.normal(size=(60, 3)), columns=["width", "height", "depth"])
TABLE_WITH_TEXT = TABLE.assign(kind=RNG.choice(["u", "v"], 60))
SHORT = {"max_iter": 3, "tol": None, "random_state": 0}


def names(display):
    return [text.get_text() for text in display.ax_.get_yticklabels()]


def widths(display):
    return [bar.get_width() for bar in display.bars_]


def test_one_output_is_bars_by_size():
    display = WeightsDisplay([[0.5, -2.0, 1.0]], ["a", "b", "c"]).plot()
    assert names(display) == ["b", "c", "a"]
    assert widths(display) == [-2.0, 1.0, 0.5]
    assert list(display.shown_) == [1, 2, 0]
    colours = [matplotlib.colors.to_hex(colour) for colour in ("C3", "C0", "C0")]
    assert [matplotlib.colors.to_hex(bar.get_facecolor()) for bar in display.bars_] == colours
    # The largest is at the top.
    assert display.ax_.yaxis_inverted()
    assert display.ax_.get_xlabel() == "Coefficient"
    assert display.ax_.get_title() == ""
    assert display.image_ is None


def test_several_outputs_are_a_table_by_norm():
    weights = np.array([[3.0, 0.0, 1.0], [0.0, -4.0, 1.0]])
    display = WeightsDisplay(weights, ["a", "b", "c"], outputs=["no", "yes"]).plot()
    assert names(display) == ["b", "a", "c"]
    np.testing.assert_array_equal(display.image_.get_array(), weights.T[[1, 0, 2]])
    assert display.image_.get_clim() == (-4.0, 4.0)
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["no", "yes"]
    assert display.ax_.get_xlabel() == "Output"
    assert display.bars_ is None


def test_several_epochs_are_lines_by_their_last_size():
    epochs = [[[1.0, 2.0, 3.0]], [[4.0, -5.0, 0.5]]]
    display = WeightsDisplay(epochs, ["a", "b$", "c"]).plot(top_k=2, linewidth=3)
    assert [line.get_label() for line in display.lines_] == ["b$", "a"]
    assert [line.get_ydata().tolist() for line in display.lines_] == [[2.0, -5.0], [1.0, 4.0]]
    assert {tuple(line.get_xdata()) for line in display.lines_} == {(1, 2)}
    assert {line.get_linewidth() for line in display.lines_} == {3}
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["b$", "a"]
    assert display.ax_.get_xlabel() == "Epoch"
    assert display.ax_.get_ylabel() == "Coefficient"
    assert display.ax_.get_title() == "2 of 3 features, the largest weights first"
    assert display.bars_ is display.image_ is None
    display.figure_.canvas.draw()


def test_several_epochs_of_several_outputs_are_norms():
    epochs = np.array([[[3.0, 0.0], [4.0, 1.0]], [[0.0, 6.0], [1.0, 8.0]]])
    display = WeightsDisplay(epochs, ["a", "b"]).plot()
    assert [line.get_ydata().tolist() for line in display.lines_] == [[1.0, 10.0], [5.0, 1.0]]
    assert display.ax_.get_ylabel() == "Coefficient: norm over outputs"


def test_lines_beyond_ten_colours_are_dashed():
    display = WeightsDisplay(np.ones((2, 1, 12)), [f"x{i}" for i in range(12)]).plot()
    styles = [(line.get_color(), line.get_linestyle()) for line in display.lines_]
    assert styles[0] == ("C0", "-")
    assert styles[10] == ("C0", "--")
    assert len(set(styles)) == 12


def test_top_k():
    display = WeightsDisplay(np.arange(1000.0)[None], [f"x{i}" for i in range(1000)]).plot(top_k=3)
    assert names(display) == ["x999", "x998", "x997"]
    assert display.ax_.get_title() == "3 of 1,000 features, the largest weights first"
    with pytest.raises(ValueError, match="top_k must be at least 1, got 0"):
        display.plot(top_k=0)


def test_a_linear_model_of_a_dataframe():
    model = OrtSGDRegressor(**SHORT).fit(TABLE, TABLE["width"] - 2 * TABLE["depth"])
    display = WeightsDisplay.from_estimator(model)
    order = np.argsort(-np.abs(model.coef_))
    np.testing.assert_allclose(widths(display), model.coef_[order])
    assert names(display) == [TABLE.columns[i] for i in order]
    sparse = WeightsDisplay.from_estimator(model.sparsify())
    np.testing.assert_allclose(widths(sparse), widths(display))


def test_names_of_what_the_steps_of_a_pipeline_make():
    steps = make_column_transformer((StandardScaler(), list(TABLE)), (OneHotEncoder(), ["kind"]))
    y = (TABLE["width"] > 0).astype(int)
    made = ["standardscaler__width", "standardscaler__height", "standardscaler__depth"]
    made += ["onehotencoder__kind_u", "onehotencoder__kind_v"]
    inside = OrtSGDClassifier(make_pipeline(steps, LogisticRegression()), **SHORT).fit(
        TABLE_WITH_TEXT, y
    )
    assert sorted(names(WeightsDisplay.from_estimator(inside))) == sorted(made)
    outside = make_pipeline(steps, OrtSGDClassifier(**SHORT)).fit(TABLE_WITH_TEXT, y)
    display = WeightsDisplay.from_estimator(outside)
    order = np.argsort(-np.abs(outside[-1].coef_[0]), kind="stable")
    assert names(display) == [made[i] for i in order]


def test_names_of_the_columns_of_steps_around_steps():
    y = TABLE["width"] - 2 * TABLE["depth"]
    turned = make_pipeline(
        make_column_transformer((StandardScaler(), [2]), ("passthrough", [0, 1])),
        LinearRegression(),
    )
    model = make_pipeline(StandardScaler(), OrtSGDRegressor(turned, **SHORT)).fit(TABLE, y)
    display = WeightsDisplay.from_estimator(model)
    assert display.feature_names == [
        "standardscaler__depth",
        "passthrough__width",
        "passthrough__height",
    ]
    np.testing.assert_allclose(widths(display), model[-1].coef_[display.shown_])
    assert names(display) == [display.feature_names[i] for i in display.shown_]


@pytest.mark.parametrize(
    "steps", [(), ("passthrough",), (StandardScaler(),), (make_pipeline(StandardScaler()),)]
)
def test_names_of_columns_that_steps_do_not_change(steps):
    y = TABLE["width"] - 2 * TABLE["depth"]
    pipeline = make_pipeline(*steps, OrtSGDRegressor(**SHORT))
    for model in (
        pipeline,
        make_pipeline(pipeline),
        TransformedTargetRegressor(pipeline),
        {"a": pipeline},
    ):
        (fitted,) = model.values() if isinstance(model, dict) else (model,)
        fitted.fit(TABLE, y)
        assert WeightsDisplay.from_estimator(model).feature_names == ["width", "height", "depth"]
    pipeline.fit(TABLE.to_numpy(), y)
    assert WeightsDisplay.from_estimator(pipeline).feature_names == ["x0", "x1", "x2"]


def test_an_ensemble_may_have_turned_the_columns():
    model = BaggingRegressor(OrtSGDRegressor(**SHORT), n_estimators=1, random_state=0)
    steps = make_pipeline(StandardScaler(), model).fit(TABLE, TABLE["width"])
    assert WeightsDisplay.from_estimator(steps).feature_names == ["x0", "x1", "x2"]


def test_the_classes_of_a_linear_classifier():
    y = np.array(["red", "green", "blue"])[RNG.integers(0, 3, 60)]
    model = OrtSGDClassifier(**SHORT).fit(TABLE.to_numpy(), y)
    display = WeightsDisplay.from_estimator(model)
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["blue", "green", "red"]
    np.testing.assert_allclose(display.image_.get_array(), model.coef_.T[display.shown_])
    assert sorted(names(display)) == ["x0", "x1", "x2"]


def test_the_first_layer_of_a_network():
    model = OrtSGDClassifier(MLPClassifier((5, 4)), **SHORT).fit(TABLE, RNG.integers(0, 3, 60))
    display = WeightsDisplay.from_estimator(model, top_k=2, cmap="PiYG")
    np.testing.assert_allclose(
        display.image_.get_array(), model.weights_["coefficient"][display.shown_]
    )
    assert display.image_.get_cmap().name == "PiYG"
    assert display.ax_.get_xlabel() == "Hidden unit"
    assert names(display) == [TABLE.columns[i] for i in display.shown_]


def test_a_layer_stays_the_first_where_another_is_trained():
    model = OrtSGDClassifier(MLPClassifier((5,)), trainable="coefficient1", **SHORT).fit(
        TABLE, TABLE["width"] > 0
    )
    np.testing.assert_array_equal(
        WeightsDisplay.from_estimator(model).weights, model.weights_["coefficient"].T
    )


def test_several_estimators_are_refused():
    model = OrtSGDRegressor(**SHORT).fit(TABLE, TABLE["width"])
    with pytest.raises(
        ValueError, match=r"estimator has several fitted estimators of skort, \['a', 'b'\]"
    ):
        WeightsDisplay.from_estimator({"a": model, "b": model})


def test_axes_and_keywords_of_the_user():
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1]
    display = WeightsDisplay([[1.0, -1.0]], ["a", "b"]).plot(ax, color="green")
    assert display.ax_ is ax and display.figure_ is ax.figure
    assert {bar.get_facecolor() for bar in display.bars_} == {matplotlib.colors.to_rgba("green")}


def test_names_are_no_formulas():
    features, outputs = ["from $10^^$ on", r"$\alpha$", "ü"], ["$^^$", "b"]
    display = WeightsDisplay([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], features, outputs=outputs).plot()
    display.figure_.canvas.draw()
    assert sorted(names(display)) == sorted(features)
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == outputs


def test_without_matplotlib_the_error_says_how_to_install_it(no_matplotlib):
    with pytest.raises(
        ImportError, match=r"WeightsDisplay.plot needs matplotlib .* pip install matplotlib"
    ):
        WeightsDisplay([[1.0]], ["a"]).plot()
