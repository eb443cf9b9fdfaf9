"""Learning curves: data, marks and texts."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from skort import OrtSGDClassifier
from skort.plotting import LossCurveDisplay

pytest.importorskip("matplotlib")

X, Y = load_breast_cancer(return_X_y=True)
HISTORY = {"objective": [4.0, 2.0, 3.0], "loss": [3.0, 1.5, 2.5]}
SCORED = {**HISTORY, "validation_score": [0.1, 0.2, 0.7]}


def fitted(**options):
    return OrtSGDClassifier(**{"max_iter": 4, "tol": None, "random_state": 0, **options}).fit(X, Y)


def ydata(lines):
    return [list(line.get_ydata()) for line in lines]


def at(points):
    """Return the places of marks."""
    return [(float(point.get_xdata()[0]), float(point.get_ydata()[0])) for point in points]


def legend(display):
    (found,) = display.figure_.legends
    return [text.get_text() for text in found.get_texts()]


def test_the_curves_of_one_training():
    model = fitted(early_stopping=True)
    display = LossCurveDisplay.from_estimator(model, columns=("objective", "gradient_norm"))
    history = model.history_
    assert ydata(display.lines_) == [history["objective"], history["gradient_norm"]]
    assert ydata(display.score_lines_) == [history["validation_score"]]
    assert list(display.lines_[0].get_xdata()) == [1, 2, 3, 4]
    best = int(np.argmax(history["validation_score"]))
    assert at(display.best_points_) == [(best + 1, history["validation_score"][best])]
    assert at(display.last_points_) == [(4, history["objective"][-1])]
    assert display.ax_.get_title() == "The training reached max_iter=4 epochs."
    assert display.ax_.get_xlabel() == "Epoch"
    assert display.ax_.get_ylabel() == "Objective, gradient norm"
    assert display.score_ax_.get_ylabel() == "Validation score (best at the bottom)"
    # Both curves fall while the model improves.
    assert display.score_ax_.yaxis_inverted() and not display.ax_.yaxis_inverted()
    assert {line.axes for line in display.lines_} == {display.ax_}
    assert {line.axes for line in display.score_lines_} == {display.score_ax_}
    assert legend(display) == [
        "Objective",
        "Gradient norm",
        "Validation score",
        f"Best epoch: {best + 1}",
        "Last epoch: 4",
    ]


def test_without_a_score_the_smallest_value_of_the_first_column_is_the_best():
    display = LossCurveDisplay({"a": HISTORY}).plot()
    assert display.score_ax_ is None
    assert display.score_lines_ == []
    assert at(display.best_points_) == [(2, 2.0)]
    assert at(display.last_points_) == [(3, 3.0)]
    assert display.ax_.get_title() == ""
    assert legend(display) == ["Objective", "Best epoch: 2", "Last epoch: 3"]


def test_score_none_draws_no_right_axis():
    display = LossCurveDisplay({"a": SCORED}, score=None).plot()
    assert display.score_ax_ is None
    assert at(display.best_points_) == [(2, 2.0)]


def test_another_column_as_the_score():
    display = LossCurveDisplay(
        {"a": {**SCORED, "recall": [math.nan, 0.9, 0.8]}}, score="recall"
    ).plot()
    assert at(display.best_points_) == [(2, 0.9)]
    assert display.score_ax_.get_ylabel() == "Recall (best at the bottom)"


def test_of_equal_scores_the_last_one_is_marked():
    scores = [0.5, 0.9, 0.9]
    display = LossCurveDisplay({"a": {**HISTORY, "validation_score": scores}}).plot()
    assert at(display.best_points_) == [(3, 0.9)]


def test_a_score_that_is_never_a_number_is_not_the_best():
    display = LossCurveDisplay({"a": {**HISTORY, "validation_score": [math.nan] * 3}}).plot()
    assert at(display.best_points_) == [(2, 2.0)]


def test_several_trainings_have_a_colour_each_and_say_why_they_ended():
    reasons = {"a": "It was enough.", "b": None}
    histories = {"a": SCORED, "b": HISTORY}
    display = LossCurveDisplay(
        histories, columns=("objective", "loss"), stopping_reasons=reasons
    ).plot()
    assert ydata(display.lines_) == [
        SCORED["objective"],
        SCORED["loss"],
        HISTORY["objective"],
        HISTORY["loss"],
    ]
    assert [line.get_color() for line in display.lines_] == ["C0", "C0", "C1", "C1"]
    assert [line.get_linestyle() for line in display.lines_] == ["-", ":", "-", ":"]
    assert [line.get_color() for line in display.score_lines_] == ["C0"]
    assert at(display.best_points_) == [(3, 0.7), (2, 2.0)]
    assert legend(display) == [
        "a: best epoch 3, last epoch 3. It was enough.",
        "b: best epoch 2, last epoch 3.",
    ]
    assert display.ax_.get_title() == ""
    assert display.ax_.get_ylabel() == "Objective (solid), loss (dotted)"
    assert display.score_ax_.get_ylabel() == "Validation score (dashed, best at the bottom)"


def test_long_reasons_are_broken_into_lines():
    display = LossCurveDisplay(
        {"a": HISTORY, "b": HISTORY}, stopping_reasons={"a": "word " * 40}
    ).plot()
    assert max(map(len, legend(display)[0].split("\n"))) <= 88
    assert legend(display)[0].count("\n") == 2


def test_a_dict_of_estimators():
    models = {"slow": fitted(eta0=0.01), "fast": fitted()}
    display = LossCurveDisplay.from_estimator(models, columns="loss")
    assert ydata(display.lines_) == [model.history_["loss"] for model in models.values()]
    assert display.stopping_reasons == dict.fromkeys(
        models, "The training reached max_iter=4 epochs."
    )


def test_axes_and_keywords_of_the_user():
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2)
    display = LossCurveDisplay({"a": HISTORY}).plot(left, color="red", linewidth=3)
    assert display.ax_ is left
    assert display.figure_ is figure
    assert (display.lines_[0].get_color(), display.lines_[0].get_linewidth()) == ("red", 3)
    assert [text.get_text() for text in left.get_legend().get_texts()] == legend_of_one()
    assert figure.legends == []
    scored = LossCurveDisplay({"a": SCORED}).plot(right)
    assert scored.ax_ is right
    assert scored.score_ax_.get_legend() is not None


def test_short_names_of_keywords():
    display = LossCurveDisplay({"a": SCORED}).plot(c="red", ls=":", lw=3)
    for line in (*display.lines_, *display.score_lines_):
        assert (line.get_color(), line.get_linestyle(), line.get_linewidth()) == ("red", ":", 3)


def test_the_ticks_of_new_axes_are_whole_numbers_and_those_of_the_user_stay():
    import matplotlib.pyplot as plt

    ticks = LossCurveDisplay({"a": HISTORY}).plot().ax_.get_xticks()
    np.testing.assert_array_equal(ticks, np.round(ticks))
    logarithmic, chosen = plt.subplots(1, 2)[1]
    logarithmic.set_xscale("log")
    LossCurveDisplay({"a": HISTORY}).plot(logarithmic)
    assert logarithmic.get_xscale() == "log"
    chosen.set_xticks([1, 2.5])
    LossCurveDisplay({"a": HISTORY}).plot(chosen)
    np.testing.assert_array_equal(chosen.get_xticks(), [1, 2.5])


def legend_of_one():
    return ["Objective", "Best epoch: 2", "Last epoch: 3"]


def test_a_missing_column_names_those_that_there_are():
    with pytest.raises(
        ValueError, match=r"the history of a has no 'lost', it has \['loss', 'objective'\]"
    ):
        LossCurveDisplay({"a": HISTORY}, columns=("lost",)).plot()


@pytest.mark.parametrize("history", [{"objective": []}, {"objective": [math.nan, math.nan]}])
def test_a_history_without_numbers_is_refused(history):
    with pytest.raises(ValueError, match="columns: 'objective' has no numbers in the history of a"):
        LossCurveDisplay({"a": history}).plot()


def test_without_columns_nothing_is_drawn():
    with pytest.raises(ValueError, match="columns: give at least one column"):
        LossCurveDisplay({"a": HISTORY}, columns=()).plot()


def test_without_matplotlib_the_error_says_how_to_install_it(no_matplotlib):
    with pytest.raises(
        ImportError, match=r"LossCurveDisplay.plot needs matplotlib .* pip install matplotlib"
    ):
        LossCurveDisplay({"a": HISTORY}).plot()
