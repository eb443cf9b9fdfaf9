"""The traits that callbacks declare, and their order."""

from skort.callbacks import Checkpoint, EarlyStopping
from skort.optim.watchers import Watchers, declares, in_order


class Last:
    comes_last = True


class Judging:
    def __init__(self, judges):
        self.judges = judges


def test_a_callback_has_the_traits_that_it_declares():
    assert declares(Last(), "comes_last")
    assert declares(Checkpoint(), "comes_last")
    assert not declares(EarlyStopping(), "comes_last")
    assert not declares(object(), "judges")


def test_callbacks_stay_in_their_order_but_for_the_last_ones():
    first, second, last, checkpoint = EarlyStopping(), object(), Last(), Checkpoint()
    assert in_order((last, first, checkpoint, second)) == [first, second, last, checkpoint]
    assert in_order(()) == []


def test_the_judge_is_the_callback_that_declares_to_be_one():
    judge = Judging(True)
    assert Watchers([object(), Judging(False), judge]).judge is judge
    assert Watchers([object(), Judging(False)]).judge is None
    assert Watchers().judge is None
