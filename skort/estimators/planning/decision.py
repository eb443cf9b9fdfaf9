"""The decisions of a training, and the rules behind them."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

Rule = TypeVar("Rule", bound=Callable[..., Any])

#: The reason of a decision that a parameter made.
YOURS = "you set it"


class Decision(NamedTuple):
    """One decision of a training."""

    value: Any
    #: The reason, as the end of a sentence.
    because: str
    #: The parameters of the estimator that change it.
    change_with: str = ""
    #: Whether a parameter of the estimator made it.
    is_yours: bool = False


def yours(value: Any, change_with: str, because: str = YOURS) -> Decision:
    """Return a decision that a parameter of the estimator made."""
    return Decision(value, because, change_with, is_yours=True)


#: The value of the decision on the first weights of a training, if they are not new.
FITTED_WEIGHTS = "fitted ones"

#: Every rule, by the matter that it decides, in the order of the table of a plan.
RULES: dict[str, list[Callable[..., Any]]] = {}


def rule(matter: str) -> Callable[[Rule], Rule]:
    """Return the decorator of a rule: the pages of the documentation quote its docstring."""

    def add(function: Rule) -> Rule:
        RULES.setdefault(matter, []).append(function)
        return function

    return add


def sentence(function: Callable[..., Any]) -> str:
    """Return what a rule does, in the one sentence of its docstring."""
    return " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
