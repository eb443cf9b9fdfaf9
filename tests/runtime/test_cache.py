"""What is kept, for how long, and who has it; a box whose content copies leave behind."""

import collections
import copy
import gc
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from skort.runtime.cache import LRUCache, NoPickle, SessionPool, forget


class Borrower:
    pass


def test_the_things_used_last_are_kept():
    kept, made = LRUCache(2), collections.Counter()

    def get(key):
        def make():
            made[key] += 1
            return key.upper()

        return kept.get(key, make)

    assert [get(key) for key in "abaca"] == list("ABACA")
    assert made == {"a": 1, "b": 1, "c": 1}
    get("b")
    assert made["b"] == 2
    forget()
    get("a")
    assert made["a"] == 2


def test_a_thing_has_one_borrower_at_a_time():
    lent, numbers = SessionPool(3), iter(range(100))
    first, second = Borrower(), Borrower()
    things = [lent.borrow("key", borrower, lambda: next(numbers)) for borrower in (first, second)]
    assert things == [0, 1]
    del first
    third = Borrower()
    assert lent.borrow("other key", third, lambda: next(numbers)) == 2
    assert lent.borrow("key", third, lambda: next(numbers)) == 0
    assert lent.borrow("key", third, lambda: next(numbers)) == 3


def test_few_are_kept_that_nobody_uses():
    lent, numbers, borrower = SessionPool(1), iter(range(100)), Borrower()
    for _ in range(2):
        lent.borrow("key", borrower, lambda: next(numbers))
    del borrower
    gc.collect()
    borrower = Borrower()
    things = [lent.borrow("key", borrower, lambda: next(numbers)) for _ in range(2)]
    assert things in ([0, 2], [1, 2])


def test_threads_do_not_get_the_same_thing():
    lent, numbers = SessionPool(50), iter(range(10_000))
    used = collections.Counter()

    def use(_):
        for _ in range(200):
            borrower = Borrower()
            thing = lent.borrow("key", borrower, lambda: next(numbers))
            used[thing] += 1
            assert used[thing] == 1
            used[thing] -= 1
            del borrower

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))
    assert next(numbers) <= 8


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda box: pickle.loads(pickle.dumps(box))]
)
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
