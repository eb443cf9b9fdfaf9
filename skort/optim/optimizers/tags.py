"""The traits that an optimizer declares, and the optimizers by name."""

from typing import Any, Literal, NamedTuple

from skort.common.component import Component

#: The optimizers by name: each class gives its own.
OPTIMIZERS: dict[str, type["NamedOptimizer"]] = {}


class LinearUpdate(NamedTuple):
    """An update that is a linear recurrence: that of `Momentum`, or that of `Nesterov`."""

    momentum: float = 0.0
    is_ahead: bool = False


class OptimizerTags(NamedTuple):
    """
    The traits of an optimizer, as `sklearn.utils.get_tags` gives those of an estimator;
    by default none.
    """

    #: The limit of `step_length` for a constant learning rate of one; None: there is none, or
    #: it is not known.
    gain: float | None = None
    #: About how many updates a gradient counts in.
    memory: float = 1.0
    #: How fast coefficients shrink beside the update.
    weight_decay: float = 0.0
    #: The learning rates of `eta0="auto"` for a linear model, a network and its stream, where
    #: there is no gain.
    first_rates: tuple[float, float, float] = (1e-2, 1e-2, 1e-2)
    #: None where the update is no such recurrence.
    linear: LinearUpdate | None = None
    #: ONNX Runtime's own update that is the same; None: it has none.
    runtime: Literal["SGD", "AdamW"] | None = None
    #: Whether a weight's update depends on its own gradients alone.
    is_elementwise: bool = False
    #: Whether weights without a gradient may be left as they are.
    is_lazy: bool = False
    #: Whether it has a method `minimise`, which makes the updates of a fit itself, from the
    #: gradient over all rows.
    is_full: bool = False


class NamedOptimizer(Component):
    """
    An optimizer that declares its traits;
    with a name, it is a value of the parameter `optimizer`.
    """

    def __init_subclass__(cls, *, name: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if name is not None:
            OPTIMIZERS[name] = cls
            cls.__module__ = "skort.optimizers"

    @property
    def tags(self) -> OptimizerTags:
        """The traits of the optimizer."""
        return OptimizerTags()


def optimizer_tags(optimizer: Any) -> OptimizerTags:
    """
    Return the traits of an optimizer. A subclass inherits those of its steps' size,
    not those of its update.
    """
    if not isinstance(optimizer, NamedOptimizer):
        return OptimizerTags()

    tags = optimizer.tags
    if "tags" in vars(type(optimizer)):
        return tags

    # The class declares no tags of its own, and may have another update.
    return tags._replace(linear=None, runtime=None, is_elementwise=False, is_lazy=False)
