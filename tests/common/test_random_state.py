"""Generators are those of numpy, and a training has one of its own."""

# ruff: noqa: NPY002  (the global generator is what is tested)

import copy
import pickle

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.callbacks import Checkpoint
from skort.common.random_state import generator_of, seeded


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32 - 1, np.int64(7), np.uint32(2**32 - 1)])
def test_seeded_draws_as_numpy_does(seed):
    ours, theirs = seeded(seed), np.random.RandomState(seed)
    for draw in ("permutation", "randint"):
        np.testing.assert_array_equal(getattr(ours, draw)(1000), getattr(theirs, draw)(1000))
    np.testing.assert_array_equal(ours.standard_normal(999), theirs.standard_normal(999))


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeded_refuses_what_numpy_refuses(seed):
    with pytest.raises(ValueError, match=r"between 0 and 2\*\*32 - 1"):
        seeded(seed)


@pytest.mark.parametrize("bit_generator", [np.random.MT19937, np.random.PCG64, np.random.Philox])
def test_generator_of_goes_on_from_a_state(bit_generator):
    theirs = np.random.RandomState(bit_generator(3))
    theirs.standard_normal(5)
    ours = generator_of(theirs.get_state(legacy=False))
    np.testing.assert_array_equal(ours.standard_normal(100), theirs.standard_normal(100))


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda generator: pickle.loads(pickle.dumps(generator))]
)
def test_a_copy_draws_the_same(copied):
    ours = seeded(5)
    ours.permutation(10)
    np.testing.assert_array_equal(copied(ours).randint(100, size=50), ours.randint(100, size=50))


RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = (X[:, 0] > 0).astype(int)

# What fails before, in and after the first epoch.
FAILURES = [
    {"eta0": 1e30},
    {"trainable": "no such weight"},
    {"early_stopping": True, "validation_fraction": 0.001},
    {"early_stopping": True, "scoring": lambda *args: 1 / 0},
]


def network(**options):
    return OrtSGDClassifier(
        MLPClassifier(hidden_layer_sizes=(4,)), **{"max_iter": 3, "tol": None, **options}
    )


def draws(generator):
    return generator.normal(size=3).tolist()


@pytest.mark.parametrize("failure", FAILURES)
def test_a_fit_that_fails_draws_nothing_from_the_callers_generator(failure):
    theirs = np.random.RandomState(3)
    with pytest.raises((ValueError, ZeroDivisionError)):
        network(random_state=theirs, **failure).fit(X, Y)
    assert draws(theirs) == draws(np.random.RandomState(3))


@pytest.mark.parametrize("failure", FAILURES)
def test_a_fit_that_fails_does_not_rewind_the_global_generator(failure):
    np.random.seed(0)
    first = np.random.rand()
    np.random.seed(0)
    with pytest.raises((ValueError, ZeroDivisionError)):
        network(**failure).fit(X, Y)
    assert np.random.rand() != first


@pytest.mark.parametrize("kind", ["MT19937", "PCG64"])
def test_a_fit_draws_from_the_callers_generator_as_if_it_were_its_own(kind):
    def generator():
        return np.random.RandomState(getattr(np.random, kind)(3))

    theirs = generator()
    first, second = (network(random_state=theirs).fit(X, Y) for _ in range(2))
    assert draws(theirs) != draws(generator())
    assert (first.predict_proba(X) != second.predict_proba(X)).any()
    np.testing.assert_array_equal(
        first.predict_proba(X), network(random_state=generator()).fit(X, Y).predict_proba(X)
    )


def test_an_instance_is_the_seed_that_it_was_made_of():
    for_int, for_instance = (
        network(random_state=seed).fit(X, Y) for seed in (5, np.random.RandomState(5))
    )
    np.testing.assert_array_equal(for_int.predict_proba(X), for_instance.predict_proba(X))


def test_a_seed_of_the_global_generator_repeats_a_fit():
    fits = []
    for _ in range(2):
        np.random.seed(4)
        fits.append(network().fit(X, Y))
    np.testing.assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))
    assert (network().fit(X, Y).predict_proba(X) != fits[0].predict_proba(X)).any()


def test_going_on_from_a_checkpoint_leaves_the_global_generator_alone(tmp_path):
    path = tmp_path / "training"
    OrtSGDRegressor(max_iter=2, tol=None, random_state=0, callbacks=[Checkpoint(path)]).fit(X, Y)
    np.random.seed(9)
    expected = np.random.RandomState(9)
    # The one draw is the seed of the training.
    expected.randint(2**32, dtype=np.uint32)
    OrtSGDRegressor(max_iter=4, tol=None, callbacks=[Checkpoint(resume_from=path)]).fit(X, Y)
    assert np.random.normal(size=3).tolist() == draws(expected)
