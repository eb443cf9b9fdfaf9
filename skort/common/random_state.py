"""Random generators that take no time to make; that of a training is its own."""

import copy
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from sklearn.utils import check_random_state


class _Unseeded(ISeedSequence):
    """Seeds a generator whose state is replaced at once: numpy's own seeds take a tenth of a small fit."""

    def generate_state(self, n_words, dtype=np.uint32):
        """Return zeros; numpy reads a list faster than an array."""
        return [0] * n_words


# numpy's types know no other seeds than its own.
_UNSEEDED: Any = _Unseeded()


def seeded(seed: int) -> np.random.RandomState:
    """Return what `numpy.random.RandomState(seed)` does, in a thirtieth of its time."""
    generator = np.random.RandomState(np.random.MT19937(_UNSEEDED))
    generator.seed(seed)
    return generator


def generator_of(state: dict[str, Any]) -> np.random.RandomState:
    """Return a new random generator in a state as from `RandomState.get_state(legacy=False)`."""
    name = state["bit_generator"]
    generator = np.random.RandomState(getattr(np.random, name)(_UNSEEDED if name == "MT19937" else 0))
    generator.set_state(state)
    return generator


def own_generator(random_state):
    """Return the generator of a training: a copy of a RandomState, one of a seed, which None draws from numpy's."""
    if _is_own(random_state):
        return copy.deepcopy(random_state)
    if isinstance(random_state, Integral):
        return seeded(int(random_state))
    return seeded(check_random_state(random_state).randint(2**32, dtype=np.uint32))


def advance(random_state, state):
    """Let a RandomState of the caller go on in the state that a training, which did not fail, left its copy in."""
    # A training that went on from a checkpoint may have gone on with another kind of generator.
    if _is_own(random_state) and random_state.get_state(legacy=False)["bit_generator"] == state["bit_generator"]:
        random_state.set_state(state)


def _is_own(random_state):
    """Return whether it is a generator of the caller: numpy's global one is not."""
    return isinstance(random_state, np.random.RandomState) and random_state is not check_random_state(None)
