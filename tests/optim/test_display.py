"""The table and the bar of a training, on scripted trainings and on fits."""

import io
import math
import sys
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.callbacks import EarlyStopping, EpochScoring
from skort.exceptions import DivergedError
from skort.optim import display
from skort.optim.display import EpochLines, MLflowLogger, ProgressBar
from skort.optim.optimizers import SGD
from skort.optim.state import History

REASON = "The training reached max_iter=2 epochs."


def show(callback, rows, *, max_iter=2, reason=REASON, stopped=False, history=None):
    """Run a callback on a training with these rows; a row that is None is a restart."""
    history = History() if history is None else history
    training = SimpleNamespace(
        optimizer=SGD(),
        max_iter=max_iter,
        history=history,
        n_epochs=history.n_epochs,
        stopped=False,
        stopping_reason=None,
    )
    callback.on_train_begin(training)
    for row in rows:
        if row is None:
            history.truncate(0)
            callback.on_train_restart(training)
            continue
        history.next_epoch(**row)
        training.n_epochs = history.n_epochs
        callback.on_epoch_end(training)
    training.stopped, training.stopping_reason = stopped, reason
    callback.on_train_end(training)
    return history


ROWS = [
    {"loss": 3.0, "objective": 3.25, "eta": 0.1, "gradient_norm": 12345678.0, "seconds": 0.0625},
    {"loss": 1.23456, "objective": -1.25e-5, "eta": 0.1, "gradient_norm": 0.5, "seconds": 100.0},
]


def test_table(capsys):
    show(EpochLines(), ROWS)
    assert capsys.readouterr().out == (
        "epoch        loss   objective         eta  gradient_norm     seconds\n"
        "    1           3        3.25         0.1      1.235e+07       0.062\n"
        "    2       1.235   -1.25e-05         0.1            0.5     100.000\n"
        "The training reached max_iter=2 epochs.\n"
    )


def test_table_with_a_validation_score_and_columns_of_callbacks(capsys):
    rows = [
        {**ROWS[0], "validation_score": 0.75, "phase": "warm-up"},
        {**ROWS[1], "validation_score": math.nan},
    ]
    show(EpochLines(), rows)
    assert capsys.readouterr().out == (
        "epoch        loss   objective  validation_score         eta  gradient_norm     "
        "seconds       phase\n"
        "    1           3        3.25              0.75         0.1      1.235e+07       "
        "0.062     warm-up\n"
        "    2       1.235   -1.25e-05               nan         0.1            0.5     "
        "100.000            \n"
        "The training reached max_iter=2 epochs.\n"
    )


def test_the_table_of_a_training_that_begins_again(capsys):
    show(EpochLines(), [{"objective": 3.0}, None, {"objective": 2.0, "restarts": 1}])
    assert capsys.readouterr().out == (
        "epoch   objective\n"
        "    1           3\n"
        "The training begins again at a tenth of the learning rate.\n"
        "epoch   objective    restarts\n"
        "    1           2           1\n"
        "The training reached max_iter=2 epochs.\n"
    )


def test_the_calls_of_partial_fit_make_one_table(capsys):
    history = None
    for value in (3.0, 2.0):
        # A new callback each time, as `partial_fit` makes it.
        history = show(
            EpochLines(), [{"objective": value}], max_iter=None, reason=None, history=history
        )
    assert capsys.readouterr().out == "epoch   objective\n    1           3\n    2           2\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def stderr(monkeypatch):
    # Some test runners set them, and tqdm cuts its line there.
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("LINES", raising=False)

    def replace(stream):
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return replace


SCORES = [
    {"objective": 3.0, "validation_score": 0.875},
    {"objective": 1.25, "validation_score": 0.5},
]


def last_states(text):
    """
    Return what stands in a terminal in the end:
    of each line, what came after the last carriage return.
    """
    # tqdm covers a longer state before with spaces.
    return [line.rpartition("\r")[2].rstrip(" ") for line in text.removesuffix("\n").split("\n")]


def test_the_bar_shows_epochs_objective_and_validation_score_and_ends_with_the_reason(stderr):
    terminal = stderr(Terminal())
    show(ProgressBar(), SCORES)
    bar, reason = last_states(terminal.getvalue())
    assert bar.startswith("100%|")
    assert " 2/2 " in bar
    assert bar.endswith(", objective=1.25, validation_score=0.5]")
    assert reason == REASON


def test_the_bar_of_a_training_that_stopped_early_is_full(stderr):
    terminal = stderr(Terminal())
    reason = "The objective did not improve by 0.001 for 5 epochs in a row."
    show(ProgressBar(), SCORES, max_iter=1000, stopped=True, reason=reason)
    bar, last = last_states(terminal.getvalue())
    assert bar.startswith("100%|")
    assert " 2/2 " in bar
    assert last == reason


def test_the_bar_of_a_training_that_was_interrupted_shows_how_far_it_came(stderr):
    terminal = stderr(Terminal())
    show(ProgressBar(), SCORES, max_iter=8, reason="The user interrupted the training.")
    bar, reason = last_states(terminal.getvalue())
    assert bar.startswith(" 25%|")
    assert " 2/8 " in bar
    assert reason == "The user interrupted the training."


def test_a_bar_that_tqdm_disables_is_silent(stderr):
    terminal = stderr(Terminal())
    bar = ProgressBar()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "tqdm.auto.tqdm.__init__",
            lambda self, **options: vars(self).update(disable=True, total=2, n=0),
        )
        show(bar, SCORES)
    assert terminal.getvalue() == ""


def clock(monkeypatch, *times):
    monkeypatch.setattr(display, "time", SimpleNamespace(perf_counter=iter(times).__next__))


@pytest.mark.parametrize(
    "rows, line",
    [
        (
            [{"objective": 3.0}, {"objective": 1.23456}],
            "2 epochs of SGD in 1.50 s: objective=1.235. The training reached max_iter=2 epochs.\n",
        ),
        (
            SCORES,
            "2 epochs of SGD in 1.50 s: objective=1.25, validation_score=0.5, the best is 0.875 in "
            "epoch 1. The training reached max_iter=2 epochs.\n",
        ),
        (
            SCORES[:1],
            (
                "1 epoch of SGD in 1.50 s: objective=3, validation_score=0.875, the best is "
                "0.875 in epoch 1. "
            )
            + REASON
            + "\n",
        ),
    ],
)
def test_one_line_where_there_is_no_terminal(stderr, monkeypatch, rows, line):
    log = stderr(io.StringIO())
    clock(monkeypatch, 10.0, 11.5)
    show(ProgressBar(), rows)
    assert log.getvalue() == line


def test_an_error_speaks_for_itself(stderr, capsys):
    terminal = stderr(Terminal())
    show(ProgressBar(), SCORES[:1], reason=None)
    (bar,) = last_states(terminal.getvalue())
    assert " 1/2 " in bar
    log = stderr(io.StringIO())
    show(ProgressBar(), SCORES[:1], reason=None)
    assert log.getvalue() == ""
    show(EpochLines(), SCORES[:1], reason=None)
    assert (
        capsys.readouterr().out
        == "epoch   objective  validation_score\n    1           3             0.875\n"
    )


@pytest.mark.parametrize("is_closed", [False, True])
def test_without_a_console_nothing_is_shown(stderr, capsys, is_closed):
    console = stderr(Terminal() if is_closed else None)
    if is_closed:
        console.close()
    show(ProgressBar(), SCORES)
    assert capsys.readouterr().out == ""


X = np.eye(4)
Y = np.array([0.0, 1.0, 0.0, 1.0])


def test_verbose_2_of_a_fit_is_a_table_with_the_reason(capsys):
    model = OrtSGDClassifier(verbose=2, max_iter=2, tol=None, random_state=0).fit(
        X, Y, X_val=X, y_val=Y
    )
    plan, table = capsys.readouterr().out.split("\n\n")
    assert plan.splitlines()[0].split()[:2] == ["decision", "value"]
    assert [line.split()[-1] for line in plan.splitlines() if line.startswith("epochs")] == [
        "max_iter"
    ]
    header, *rows, last = table.splitlines()
    assert header.split() == [
        "epoch",
        "loss",
        "objective",
        "validation_score",
        "eta",
        "gradient_norm",
        "seconds",
    ]
    assert {len(row) for row in rows} == {len(header)}
    scores = [f"{score:.4g}" for score in model.validation_scores_]
    assert [row.split()[3] for row in rows] == scores
    assert [row.split()[0] for row in rows] == ["1", "2"]
    assert last == model.stopping_reason_ == REASON
    # A stream goes on with the table, which has no validation score any more.
    model.partial_fit(X, Y)
    (row,) = capsys.readouterr().out.splitlines()
    assert len(row) == len(header)
    assert row.split()[0] == "3"
    assert len(row.split()) == 6


def test_verbose_1_of_a_fit_is_a_line_with_the_reason(stderr):
    log = stderr(io.StringIO())
    model = OrtSGDRegressor(optimizer="sgd", verbose=1, tol=0.5, random_state=0).fit(X, Y)
    line = log.getvalue()
    assert line.startswith(f"{model.n_iter_} epochs of SGD in ")
    assert line.endswith(f" s: objective={model.loss_:.4g}. {model.stopping_reason_}\n")
    assert "did not improve by" in model.stopping_reason_


class MLflow:
    """What MLflow's module keeps of its runs."""

    def __init__(self):
        self.runs, self.active = [], None

    def active_run(self):
        return self.active

    def start_run(self):
        self.active = SimpleNamespace(
            parameters={}, metrics=[], tags={}, models={}, status="RUNNING"
        )
        self.runs.append(self.active)

    def end_run(self, status="FINISHED"):
        self.active.status, self.active = status, None

    def log_params(self, parameters):
        assert len(parameters) <= 100
        self.active.parameters |= parameters

    def log_metrics(self, metrics, step):
        self.active.metrics.append((step, metrics))

    def set_tag(self, name, value):
        self.active.tags[name] = value

    def log_artifact(self, path):
        self.active.models[path.replace("\\", "/").rpartition("/")[2]] = onnx.load(path)


@pytest.fixture
def mlflow(monkeypatch):
    module = MLflow()
    monkeypatch.setitem(sys.modules, "mlflow", module)
    return module


COLUMNS = np.random.default_rng(0).normal(size=(30, 3))
TARGET = COLUMNS @ [1.0, -2.0, 0.5]


def test_mlflow_gets_parameters_epochs_reason_and_model(mlflow):
    callbacks = [EpochScoring(COLUMNS, TARGET, name="r2"), MLflowLogger(log_model=True)]
    inner = make_pipeline(StandardScaler(), LinearRegression())
    model = OrtSGDRegressor(inner, alpha=0.5, max_iter=3, tol=None, callbacks=callbacks).fit(
        COLUMNS, TARGET
    )
    (run,) = mlflow.runs
    assert (run.status, mlflow.active) == ("FINISHED", None)
    parameters = model.get_params()
    assert run.parameters.keys() == parameters.keys() - {"callbacks"}
    for name in (
        "alpha",
        "max_iter",
        "tol",
        "learning_rate",
        "estimator__linearregression__fit_intercept",
    ):
        assert run.parameters[name] == str(parameters[name])
    assert run.parameters["estimator__standardscaler"] == "StandardScaler()"
    history = model.history_
    assert [step for step, _ in run.metrics] == [1, 2, 3]
    for i, (_, metrics) in enumerate(run.metrics):
        assert metrics == {name: column[i] for name, column in history.items()}
    assert "r2" in run.metrics[0][1]
    assert run.tags == {"stopping_reason": model.stopping_reason_}
    assert run.models == {"model.onnx": model.onnx_}


def test_mlflow_gets_the_model_of_the_best_epoch(mlflow):
    callbacks = [
        EarlyStopping("eta", greater_is_better=True, patience=99),
        MLflowLogger(log_model=True),
    ]
    model = OrtSGDRegressor(
        learning_rate="invscaling", max_iter=4, tol=None, callbacks=callbacks
    ).fit(COLUMNS, TARGET)
    assert mlflow.runs[0].models["model.onnx"] == model.onnx_
    once = OrtSGDRegressor(learning_rate="invscaling", max_iter=1, tol=None, random_state=0)
    model.set_params(random_state=0).fit(COLUMNS, TARGET)
    np.testing.assert_array_equal(model.coef_, once.fit(COLUMNS, TARGET).coef_)
    assert mlflow.runs[1].models["model.onnx"] == model.onnx_


def test_an_active_run_of_mlflow_stays_active(mlflow):
    mlflow.start_run()
    model = OrtSGDRegressor(callbacks=[MLflowLogger()])
    for _ in range(2):
        model.partial_fit(COLUMNS, TARGET)
    (run,) = mlflow.runs
    assert (run.status, run.models, run.tags) == ("RUNNING", {}, {})
    assert [(step, metrics["loss"]) for step, metrics in run.metrics] == [
        *enumerate(model.history_["loss"], 1)
    ]


def test_a_run_of_mlflow_says_that_a_training_failed(mlflow):
    options = {"learning_rate": "constant", "eta0": 1e20, "batch_size": 5}
    model = OrtSGDRegressor(callbacks=[MLflowLogger(log_model=True)], **options)
    with pytest.raises(DivergedError):
        model.fit(COLUMNS, TARGET)
    assert [(run.status, run.models) for run in mlflow.runs] == [("FAILED", {})]
    assert mlflow.active is None


def test_without_mlflow_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    model = OrtSGDRegressor(callbacks=[MLflowLogger()])
    with pytest.raises(ImportError, match=r"MLflowLogger needs mlflow .*pip install mlflow"):
        model.fit(COLUMNS, TARGET)
    assert not hasattr(model, "coef_")


def test_long_and_other_parameters_of_mlflow_are_short(mlflow):
    short = display._shown
    assert short({i: i for i in range(1000)}) == str({i: i for i in range(1000)})[:500]
    assert [short(value) for value in (None, 0.5, "a", np.zeros(1000), onnx.ModelProto())] == [
        "None",
        "0.5",
        "a",
        "ndarray",
        "ModelProto",
    ]
