"""A box whose content copies leave behind."""

import copy
import pickle
import threading

import pytest

from skort.runtime.no_pickle import NoPickle


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda box: pickle.loads(pickle.dumps(box))])
def test_copies_are_empty_and_the_original_is_not(copied):
    box = NoPickle()
    # A lock can neither be copied nor pickled.
    lock = threading.Lock()
    box.put(lock)
    assert copied(box).look() is None
    assert copied(box).take() is None
    assert box.look() is lock
    assert box.take() is lock
    assert box.take() is None
