"""Kills, interrupts and other processes: the same bytes. `pytest -m slow tests/test_crashes.py`."""

import functools
import os
import pathlib
import random
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDRegressor

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals and forks are POSIX's"),
]
SCRIPT = pathlib.Path(__file__).with_name("crashes.py")
X = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
Y = np.sin(X[:, 0]) + X[:, 1]


def run(*arguments):
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=1800
    )


def test_fifty_kills_leave_the_bytes_of_undisturbed_trainings():
    ran = run("kills", "50")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("50 kills, ")


def test_other_processes_fit_the_same_bytes():
    ran = run("processes")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(
        "3 models, the same bytes with spawn, fork, loky, n_jobs=1, loky, n_jobs=2"
    )


def network(**others):
    # Of a cosine, the rate of an epoch would depend on `max_iter`.
    options = {
        "optimizer": "adam",
        "learning_rate": "constant",
        "eta0": 0.01,
        "batch_size": 20,
        "max_iter": 30,
    }
    options |= {"tol": None, "random_state": 0}
    return OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(5,)), **options | others)


@functools.cache
def after(n_epochs):
    fitted = network(max_iter=n_epochs).fit(X, Y)
    return fitted.onnx_.SerializeToString(), fitted.t_, fitted.loss_curve_


def interrupted(model):
    """Fit a model that somebody interrupts; return whether an epoch was whole before."""
    before = dict(vars(model))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, Y)
    except KeyboardInterrupt:
        assert vars(model) == before
        return False
    assert (model.onnx_.SerializeToString(), model.t_, model.loss_curve_) == after(model.n_iter_)
    return True


class Interrupt:
    """Ctrl-C at an update."""

    def __init__(self, update):
        self.update = update

    def on_batch_end(self, training):
        if training.n_updates == self.update:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def interruptible():
    """A process in the background of a shell ignores Ctrl-C."""
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, old)


def test_a_hundred_interrupts_at_updates_leave_the_last_whole_epoch(interruptible):
    draw = random.Random(0)
    for _ in range(100):
        update = draw.randint(1, 300)
        model = network(callbacks=[Interrupt(update)])
        # An epoch has 10 updates; the interrupt comes before the last one of them ends it.
        assert interrupted(model) == (update > 10)
        if update > 10:
            assert model.n_iter_ == (update - 1) // 10


# An interrupt may come in the callback by which hypothesis watches the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_hundred_interrupts_at_any_moment_leave_a_whole_epoch():
    draw, n_interrupted = random.Random(0), 0
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(100):
            model = network(max_iter=3000)
            # Long before the 3000 epochs are over.
            signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.001, 0.15))
            n_interrupted += interrupted_anywhere(model)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert n_interrupted > 10


def interrupted_anywhere(model):
    try:
        return interrupted(model)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
