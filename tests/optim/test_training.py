"""A training, and what watches it."""

from skort.optim.training import Watchers


class Judging:
    def __init__(self, judges):
        self.judges = judges


def test_the_judge_is_the_callback_that_declares_to_be_one():
    judge = Judging(True)
    assert Watchers([object(), Judging(False), judge]).judge is judge
    assert Watchers([object(), Judging(False)]).judge is None
    assert Watchers().judge is None
