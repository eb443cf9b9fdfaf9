"""Learning rates against their formulas, scikit-learn's and torch's."""

import ast
import copy
import inspect
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone

from skort.optim.schedules import (
    SCHEDULES,
    Adaptive,
    Constant,
    Cosine,
    Cyclic,
    InvScaling,
    Optimal,
    Warmup,
    advice_to_lower,
    is_steady,
    largest_rate,
)


@pytest.mark.parametrize("t", [1, 2, 81, 10**6])
def test_constant(t):
    assert Constant(eta0=0.3)(t) == 0.3


@pytest.mark.parametrize("t, eta", [(1, 0.3), (16, 0.15), (81, 0.1), (10**8, 0.003)])
def test_inv_scaling(t, eta):
    assert InvScaling(eta0=0.3, power_t=0.25)(t) == pytest.approx(eta)


def test_inv_scaling_ends_at_zero():
    assert InvScaling(eta0=0.3, power_t=1000)(10) == 0


@pytest.mark.parametrize("alpha", [1e-6, 1e-4, 0.1, 10.0])
def test_optimal_is_the_heuristic_of_scikit_learn(alpha):
    # As written there: t0 from the typical size of a weight, for a loss whose derivative at
    # -typw is at most 1.
    typw = np.sqrt(1.0 / np.sqrt(alpha))
    t0 = 1.0 / (typw * alpha)
    np.testing.assert_allclose(Optimal(alpha).simulate(50), 1.0 / (alpha * (t0 + np.arange(50))))


def test_adaptive_falls_to_a_fifth_as_often_as_it_may():
    schedule, etas = Adaptive(eta0=1e-4, max_falls=3), []
    while schedule.on_bad_epochs():
        etas.append(schedule(7))
    assert etas == pytest.approx([2e-5, 4e-6, 8e-7])
    assert not Adaptive(max_falls=0).on_bad_epochs()


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda schedule: pickle.loads(pickle.dumps(schedule))]
)
def test_adaptive_goes_on_in_a_copy_and_begins_anew_in_a_clone(copied):
    schedule = Warmup(Adaptive(eta0=0.1), n_updates=1)
    assert schedule.on_bad_epochs()
    assert copied(schedule)(1) == pytest.approx(0.02)
    assert clone(schedule)(1) == 0.1


def test_cosine_is_torchs():
    torch = pytest.importorskip("torch")
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.3)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20, eta_min=0.05)
    etas = []
    for _ in range(21):
        etas.append(theirs.get_last_lr()[0])
        optimizer.step()
        theirs.step()
    np.testing.assert_allclose(Cosine(n_updates=20, eta0=0.3, eta1=0.05).simulate(21), etas)


def test_cosine_stays_at_its_end():
    etas = Cosine(n_updates=10, eta0=0.3, eta1=0.1).simulate(40)
    assert etas[[0, 5]] == pytest.approx([0.3, 0.2])
    assert (np.diff(etas[:11]) < 0).all()
    np.testing.assert_allclose(etas[10:], 0.1)


def test_cyclic_rises_and_falls_along_straight_lines():
    etas = Cyclic(n_updates=8, eta0=0.1, eta1=0.5).simulate(24)
    np.testing.assert_allclose(etas, [0.1, 0.2, 0.3, 0.4, 0.5, 0.4, 0.3, 0.2] * 3)
    # An odd cycle has its largest rate between two updates.
    np.testing.assert_allclose(
        Cyclic(n_updates=5, eta0=0.0001, eta1=1.0).simulate(6).max(), 0.80002
    )
    np.testing.assert_allclose(Cyclic(n_updates=1, eta0=0.3, eta1=1.0).simulate(3), 0.3)


def test_cyclic_is_torchs():
    torch = pytest.importorskip("torch")
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
    theirs = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=0.5, step_size_up=7)
    etas = []
    for _ in range(40):
        etas.append(theirs.get_last_lr()[0])
        optimizer.step()
        theirs.step()
    np.testing.assert_allclose(Cyclic(n_updates=14, eta0=0.1, eta1=0.5).simulate(40), etas)


@pytest.mark.parametrize(
    "schedule", [Constant(0.3), InvScaling(0.3), Cosine(50, 0.3), Optimal(0.1), lambda t: 1 / t]
)
def test_warmup_is_a_share_of_the_schedule_inside(schedule):
    t = np.arange(1, 31)
    inside = np.array([schedule(i) for i in range(1, 31)])
    np.testing.assert_allclose(
        Warmup(schedule, n_updates=10).simulate(30), inside * np.minimum(1, t / 10)
    )
    assert not Warmup(schedule).on_bad_epochs()


def test_warmup_reaches_into_the_schedule_inside():
    schedule = Warmup(Cosine(n_updates=5)).set_params(schedule__eta0=0.7)
    assert schedule.schedule.eta0 == 0.7
    assert clone(schedule).get_params()["schedule__eta0"] == 0.7


@pytest.mark.parametrize("n_updates", [0, -1, 1.5])
def test_a_warmup_and_a_cycle_have_an_update_or_more(n_updates):
    for schedule in (
        Warmup(Cosine(), n_updates=n_updates),
        Cosine(n_updates=n_updates),
        Cyclic(n_updates=n_updates),
    ):
        name = type(schedule).__name__
        with pytest.raises(
            ValueError, match=f"The 'n_updates' parameter of {name} must be an int in the range"
        ):
            schedule.simulate(3)


@pytest.mark.parametrize(
    "schedule", [cls() for cls in [*SCHEDULES.values(), Cosine, Cyclic, Warmup]], ids=repr
)
def test_simulate_gives_the_first_rates(schedule):
    np.testing.assert_array_equal(schedule.simulate(5), [schedule(t) for t in (1, 2, 3, 4, 5)])
    assert len(schedule.simulate(0)) == 0


@pytest.mark.parametrize(
    "schedule, largest",
    [
        (Constant(eta0=0.3), 0.3),
        (InvScaling(eta0=0.3), 0.3),
        (Adaptive(eta0=0.3), 0.3),
        (Optimal(alpha=1e-4), 10.0),
        (Cosine(eta0=0.1, eta1=0.2), 0.2),
        (Cosine(n_updates=5, eta0=0.3), 0.3),
        (Cyclic(n_updates=6, eta0=0.3, eta1=0.7), 0.7),
        (Warmup(Cosine(eta0=0.3)), 0.3),
        (Warmup(), 0.01),
    ],
    ids=repr,
)
def test_no_rate_is_above_the_largest_one(schedule, largest):
    assert largest_rate(schedule) == pytest.approx(largest, rel=1e-12)
    assert schedule.simulate(2000).max() <= largest * (1 + 1e-12)


def test_the_largest_rate_of_other_callables_is_not_known():
    class Own(Constant):
        def __call__(self, t):
            return t

    assert [
        largest_rate(s) for s in (lambda t: 0.1, Own(), Warmup(lambda t: 0.1), Warmup(Own()))
    ] == [None] * 4


def test_what_is_the_same_for_all_updates_of_an_epoch():
    class Own(Constant):
        def __call__(self, t):
            return 1 / t

    assert is_steady(Constant()) and is_steady(Adaptive())
    for schedule in (InvScaling(), Optimal(), Cosine(), Cyclic(), Own(), lambda t: 0.1):
        assert not is_steady(schedule)


@pytest.mark.parametrize("schedule_type", [*SCHEDULES.values(), Cosine, Cyclic, Warmup])
def test_defaults_are_those_of_the_docstring(schedule_type):
    documented = dict(
        re.findall(r"^(\w+) : .*default=([^\s,]+)$", inspect.getdoc(schedule_type), re.MULTILINE)
    )
    parameters = inspect.signature(schedule_type).parameters
    given = {name: p.default for name, p in parameters.items() if p.default is not p.empty}
    assert given == {name: ast.literal_eval(default) for name, default in documented.items()}


def test_a_schedule_says_what_lowers_its_rates():
    assert advice_to_lower(Constant()) == "lower eta0"
    assert advice_to_lower(lambda t: 1 / t) == "lower eta0"
    # Its first rate follows from alpha.
    assert advice_to_lower(Optimal()) == 'use learning_rate="constant"'
