import copy
import pickle

import numpy as np
import pytest

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


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda generator: pickle.loads(pickle.dumps(generator))])
def test_a_copy_draws_the_same(copied):
    ours = seeded(5)
    ours.permutation(10)
    np.testing.assert_array_equal(copied(ours).randint(100, size=50), ours.randint(100, size=50))
