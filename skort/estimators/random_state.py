"""The random generator of a training, which is its own."""

import copy
from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from skort.common.random_state import seeded

__all__ = ["advance", "own_generator"]


def own_generator(random_state):
    """
    Return the generator of a training.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        An instance is copied. None: the seed is drawn from numpy's global generator, as by any draw.

    Returns
    -------
    generator : numpy.random.RandomState

    Examples
    --------
    >>> import numpy as np
    >>> from skort.estimators.random_state import own_generator
    >>> theirs = np.random.RandomState(0)
    >>> own_generator(theirs).randint(100), own_generator(0).randint(100), theirs.randint(100)
    (44, 44, 44)
    """
    if _is_own(random_state):
        return copy.deepcopy(random_state)
    if isinstance(random_state, Integral):
        return seeded(int(random_state))
    return seeded(check_random_state(random_state).randint(2**32, dtype=np.uint32))


def advance(random_state, state):
    """
    Let the caller's generator go on where a training that did not fail left its copy.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        Only an instance of the caller's own is changed.
    state : dict
        As from `RandomState.get_state(legacy=False)`.
    """
    # A training that went on from a checkpoint may have gone on with another kind of generator.
    if _is_own(random_state) and random_state.get_state(legacy=False)["bit_generator"] == state["bit_generator"]:
        random_state.set_state(state)


def _is_own(random_state):
    return isinstance(random_state, np.random.RandomState) and not _is_global(random_state)


def _is_global(generator):
    return generator is check_random_state(None)
