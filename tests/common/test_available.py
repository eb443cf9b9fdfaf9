"""Methods that exist where a check passes."""

import inspect
import operator
import traceback

import pytest

from skort.common.available import available_if


def may_open(door):
    if door.is_locked:
        raise AttributeError("the door is locked. Unlock it.")
    return True


class Door:
    def __init__(self, is_locked):
        self.is_locked = is_locked

    @available_if(may_open)
    def open(self, width):
        """Open it."""
        return self._open(width)

    def _open(self, width):
        return 2 * width


def test_a_method_exists_where_its_check_passes():
    assert Door(False).open(3) == 6
    assert hasattr(Door(False), "open") and not hasattr(Door(True), "open")
    # As scikit-learn's metadata routing looks for methods.
    assert inspect.isfunction(Door.open) and Door.open.__doc__ == "Open it."


def test_the_last_line_of_the_error_says_why_it_does_not():
    with pytest.raises(AttributeError) as raised:
        Door(True).open(3)
    assert (
        str(raised.value) == "This 'Door' has no attribute 'open': the door is locked. Unlock it."
    )
    # As in scikit-learn, whose tests look for it.
    assert isinstance(raised.value.__cause__, AttributeError)


def test_python_does_not_lead_to_a_private_method():
    with pytest.raises(AttributeError) as raised:
        operator.attrgetter("open")(Door(True))
    (line,) = traceback.format_exception_only(raised.type, raised.value)
    assert line.endswith("Unlock it.\n")
