"""Pictures of learning rates."""

import re

import numpy as np
import pytest

from skort import OrtSGDRegressor
from skort.plotting import ScheduleDisplay
from skort.schedules import Cosine, InvScaling

pytest.importorskip("matplotlib")


def halved(t):
    return 1 / t


def labels(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_one_schedule():
    display = ScheduleDisplay.from_schedule(Cosine(n_updates=40, eta0=0.1), n_updates=50)
    (line,) = display.lines_
    np.testing.assert_array_equal(line.get_ydata(), Cosine(n_updates=40, eta0=0.1).simulate(50))
    np.testing.assert_array_equal(line.get_xdata(), range(1, 51))
    assert labels(display) == ["Cosine(eta0=0.1, n_updates=40)"]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("Update", "Learning rate")
    assert display.ax_.get_yscale() == "linear"


def test_a_dict_of_a_schedule_a_name_and_a_function():
    display = ScheduleDisplay.from_schedule(
        {"a": InvScaling(0.5), "b": "invscaling", "c": halved}, n_updates=3
    )
    assert labels(display) == ["a", "b", "c"]
    np.testing.assert_allclose(display.rates["a"], InvScaling(0.5).simulate(3))
    np.testing.assert_allclose(display.rates["b"], InvScaling().simulate(3))
    np.testing.assert_allclose(display.rates["c"], [1, 1 / 2, 1 / 3])


def test_a_function_alone_has_its_name():
    assert labels(ScheduleDisplay.from_schedule(halved, n_updates=2)) == ["halved"]
    assert labels(ScheduleDisplay.from_schedule("constant", n_updates=2)) == ["constant"]


def test_rates_that_differ_a_hundredfold_have_a_logarithmic_axis():
    assert ScheduleDisplay.from_schedule(halved, n_updates=99).ax_.get_yscale() == "linear"
    assert ScheduleDisplay.from_schedule(halved, n_updates=100).ax_.get_yscale() == "log"
    # A rate that falls to zero has no logarithm.
    assert ScheduleDisplay({"a": [1.0, 0.0]}).plot().ax_.get_yscale() == "linear"


def test_the_rates_that_trainings_used():
    X = np.random.default_rng(0).normal(size=(60, 2))
    options = {"eta0": 0.1, "batch_size": 10, "tol": 1e-3, "random_state": 0}
    models = {
        name: OrtSGDRegressor(learning_rate=name, **options) for name in ("adaptive", "invscaling")
    }
    models = {name: model.fit(X, X[:, 0]) for name, model in models.items()}
    display = ScheduleDisplay.from_estimator(models)
    for line, model in zip(display.lines_, models.values(), strict=True):
        assert list(line.get_ydata()) == model.history_["eta"]
        assert line.get_drawstyle() == "steps-mid"
    assert display.ax_.get_xlabel() == "Epoch"
    assert labels(display) == ["adaptive", "invscaling"]


def test_axes_and_keywords_of_the_user():
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1]
    display = ScheduleDisplay({"a": [1.0, 2.0]}).plot(ax, linestyle=":", label="mine")
    assert display.ax_ is ax and display.figure_ is ax.figure
    assert display.lines_[0].get_linestyle() == ":"
    assert labels(display) == ["mine"]
    assert display.lines_[0].get_drawstyle() == "default"
    ax.set_xscale("log")
    (line,) = ScheduleDisplay({"a": [1.0, 2.0]}, unit="epoch").plot(ax).lines_
    assert (line.get_drawstyle(), ax.get_xscale()) == ("steps-mid", "log")
    (line,) = ScheduleDisplay({"a": [1.0, 2.0]}, unit="epoch").plot(ds="default", c="red").lines_
    assert (line.get_drawstyle(), line.get_color()) == ("default", "red")


@pytest.mark.parametrize("schedule", ["constnat", [Cosine(10)], 0.1])
def test_what_is_no_name_and_no_function_is_refused(schedule):
    with pytest.raises(
        ValueError, match=f"schedule must be one of .* got {re.escape(repr(schedule))}"
    ):
        ScheduleDisplay.from_schedule(schedule)


def test_what_is_no_learning_rate_is_refused():
    with pytest.raises(ValueError, match="learning_rate"):
        ScheduleDisplay.from_schedule(lambda t: -1.0, n_updates=2)


def test_without_matplotlib_the_error_says_how_to_install_it(no_matplotlib):
    with pytest.raises(
        ImportError, match=r"ScheduleDisplay.plot needs matplotlib .* pip install matplotlib"
    ):
        ScheduleDisplay.from_schedule("constant")
