"""The loop with a solver of numpy alone: steps, stopping, divergence."""

import numpy as np
import pytest

from skort.descent.batches import Batch, Batches
from skort.descent.loop import minimise
from skort.descent.schedules import Adaptive, Constant, InvScaling


class MeanSolver:
    """Fits one number w to the target: J = sum_i v_i (w - y_i)^2 / 2."""

    def __init__(self, batch_size, start=0.0):
        self.batch = Batch.empty(batch_size, 1, 1, np.float64)
        self.w = start
        self.etas = []

    def step(self, eta):
        self.etas.append(eta)
        residual = self.w - self.batch.target
        objective = 0.5 * float((self.batch.sample_weight * residual**2).sum())
        self.w -= eta * float((self.batch.sample_weight * residual).sum())
        return objective

    def weights(self):
        return {"w": np.array(self.w)}


class ScriptedSolver(MeanSolver):
    """Reports the objectives that it is given, one a step."""

    def __init__(self, objectives, w=0.0):
        super().__init__(batch_size=1)
        self.objectives = iter(objectives)
        self.w = w

    def step(self, eta):
        return next(self.objectives)


def batches(y, batch_size=None, shuffle=False):
    y = np.asarray(y, dtype=float)[:, None]
    return Batches(y, y, None, batch_size=batch_size or len(y), shuffle=shuffle, random_state=np.random.RandomState(0))


def run(solver, data, schedule=None, *, max_iter=100, tol=None, n_iter_no_change=5, **options):
    return minimise(
        solver,
        data,
        schedule or Constant(0.5),
        max_iter=max_iter,
        tol=tol,
        n_iter_no_change=n_iter_no_change,
        **options,
    )


def test_full_batches_follow_the_closed_form():
    descent = run(MeanSolver(4), batches([1.0, 2.0, 3.0, 6.0]), max_iter=7)
    # w_t = mean (1 - (1 - eta)^t), J_t = (w_t - mean)^2 / 2 + var / 2
    assert descent.weights["w"] == pytest.approx(3 * (1 - 0.5**7))
    assert descent.loss_curve == pytest.approx([0.5 * (3 * 0.5**t) ** 2 + 0.5 * 3.5 for t in range(7)])
    assert descent.n_updates == 7
    assert descent.converged


def test_loss_of_an_epoch_is_the_mean_over_its_rows():
    # eta is so small that w stays 0: J = mean of y^2 / 2, whatever the batches.
    descent = run(MeanSolver(2), batches([1.0, 2.0, 5.0], batch_size=2), Constant(1e-12), max_iter=1)
    assert descent.loss_curve == pytest.approx([0.5 * 30 / 3])
    assert descent.n_updates == 2


def test_schedule_counts_updates_from_one():
    solver = MeanSolver(2)
    run(solver, batches([1.0, 2.0, 3.0], batch_size=2), InvScaling(eta0=1.0, power_t=1.0), max_iter=2)
    assert solver.etas == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])


@pytest.mark.parametrize(
    "objectives, n_iter",
    [
        # Falls by 1 > tol, then stays: two bad epochs in a row end it.
        ([5, 4, 4, 4, 4, 4], 4),
        # One good epoch between the bad ones starts the count anew.
        ([5, 5, 3, 3, 3, 3], 5),
        # Falling by less than tol is bad, against the best value so far.
        ([5, 4.95, 4.9, 1, 0], 3),
        # Falling by exactly tol is not bad.
        ([5, 4.5, 4, 3.5], None),
    ],
)
def test_stops_after_bad_epochs_in_a_row(objectives, n_iter):
    tol = 0.5 if n_iter is None else 0.1
    max_iter = len(objectives)
    descent = run(ScriptedSolver(objectives), batches([0.0]), max_iter=max_iter, tol=tol, n_iter_no_change=2)
    assert len(descent.loss_curve) == (n_iter or max_iter)
    assert descent.converged == (n_iter is not None)


def test_a_rate_that_falls_after_bad_epochs_prolongs_the_training():
    # Two bad epochs in a row end a rate; 4e-6 / 5 is the first rate at most 1e-6, and the last.
    solver = MeanSolver(1)
    descent = run(solver, batches([0.0]), Adaptive(4e-6), tol=0.1, n_iter_no_change=2)
    assert solver.etas == pytest.approx([4e-6] * 3 + [8e-7] * 2)
    assert descent.converged


def test_without_tol_all_epochs_are_run():
    descent = run(ScriptedSolver([1.0] * 20), batches([0.0]), max_iter=20)
    assert len(descent.loss_curve) == 20


def test_on_epoch_end_sees_each_objective():
    seen = []
    run(ScriptedSolver([3.0, 2.0]), batches([0.0]), max_iter=2, on_epoch_end=seen.append)
    assert seen == [3.0, 2.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_ends_it_at_once(bad):
    solver = ScriptedSolver([1.0, bad, 1.0])
    with pytest.raises(
        ValueError, match=r"loss became infinite or NaN in epoch 2.*learning rate of 0\.5.*StandardScaler"
    ):
        run(solver, batches([0.0]), max_iter=3)
    assert next(solver.objectives) == 1.0


@pytest.mark.parametrize("max_iter", [1, 3])
def test_weights_that_are_not_finite_end_it_with_their_epoch(max_iter):
    solver = ScriptedSolver([1.0, 2.0, 3.0], w=np.inf)
    with pytest.raises(ValueError, match="weights became infinite or NaN in epoch 1"):
        run(solver, batches([0.0]), max_iter=max_iter)
    assert next(solver.objectives) == 2.0
