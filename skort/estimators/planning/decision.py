"""The decisions of a training, and the rules behind them."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

Rule = TypeVar("Rule", bound=Callable[..., Any])


class Decision(NamedTuple):
    """One decision of a training."""

    value: Any
    #: The reason, as the end of a sentence.
    because: str
    #: The parameters of the estimator that change it.
    change_with: str = ""

    @property
    def is_yours(self) -> bool:
        """Whether a parameter of the estimator made the decision."""
        return self.because.startswith(YOURS)


#: The reason of a decision that a parameter made.
YOURS = "you set it"

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
