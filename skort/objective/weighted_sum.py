"""A weighted sum of losses."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import make_union

from skort.common.component import Component
from skort.objective.combined import check_part
from skort.objective.custom import ROWS, result_shape
from skort.objective.loss import FunctionSource, InUnits, ScoreLoss, source_key


def _of_all(name: str) -> Any:
    """Return a property that is True if the attribute `name` of all losses is True."""
    return property(lambda weighted: all(getattr(loss, name) for _, loss in weighted.losses))


@dataclass(eq=False, repr=False)
class WeightedSum(Component, ScoreLoss):
    r"""
    A weighted sum of losses of the same score.

    .. math:: loss(y, s) = \sum_k c_k \, loss_k(y, s), \qquad
        \frac{\partial loss}{\partial s} = \sum_k c_k \frac{\partial loss_k}{\partial s}

    Parameters
    ----------
    losses : list of (float or array-like of shape (n_outputs,), loss instance)
        Pairs of a weight :math:`c_k` and a loss. A weight is not negative. It is one number, or an
        array with a number for each column of y. The losses are in units of y, and must not have
        trained weights of their own. In regression, all losses must make the same prediction from a
        score.

    Notes
    -----
    The losses have names as in `sklearn.pipeline.make_union`: the class in lower case, followed by
    "-1", "-2" and so on if several losses have the same class. A search can set the loss "huber",
    its weight and its parameters:
    ``GridSearchCV(model, {"loss__huber_weight": [0.2, 0.6], "loss__huber__epsilon": [0.1, 1.0]})``.

    A classifier has `predict_proba` only if all losses give the same probabilities.

    Examples
    --------
    >>> from skort import OrtSGDRegressor
    >>> from skort.objective import Huber, SquaredError, WeightedSum
    >>> loss = WeightedSum([(0.4, SquaredError()), (0.6, Huber(epsilon=1.0))])
    >>> model = OrtSGDRegressor(loss=loss).set_params(
    ...     loss__huber__epsilon=2.0, loss__squarederror_weight=0.1
    ... )
    >>> model.loss
    WeightedSum(losses=[(0.1, SquaredError()), (0.6, Huber(epsilon=2.0))])
    """

    __module__ = "skort.objective"
    _parameter_constraints = {"losses": [list, tuple]}
    losses: list[tuple[Any, ScoreLoss]]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters: `losses` and, with `deep`, the parameters of the named losses."""
        params: dict[str, Any] = {"losses": self.losses}
        if not (deep and _are_pairs(self.losses)):
            return params

        for name, (weight, loss) in zip(_names(self.losses), self.losses, strict=True):
            params |= {name: loss, f"{name}_weight": weight}
            if isinstance(loss, Component):
                params |= {f"{name}__{key}": value for key, value in loss.get_params().items()}

        return params

    def set_params(self, **params: Any) -> "WeightedSum":
        """Set parameters by the names of `get_params`. The error for another name lists these."""
        self.losses = params.pop("losses", self.losses)
        pairs = self.losses if _are_pairs(self.losses) else []
        parts = {name: list(pair) for name, pair in zip(_names(pairs), pairs, strict=True)}
        places = {name: (part, 1) for name, part in parts.items()}
        places |= {f"{name}_weight": (part, 0) for name, part in parts.items()}
        nested: dict[str, dict[str, Any]] = {}

        for key, value in params.items():
            name, has_part, parameter = key.partition("__")
            if has_part and name in parts:
                nested.setdefault(name, {})[parameter] = value
            elif key in places:
                part, place = places[key]
                part[place] = value
            else:
                known = ", ".join(
                    ["losses", *(each for name in parts for each in (name, f"{name}_weight"))]
                )
                raise ValueError(
                    f"Invalid parameter {key!r} for WeightedSum. Valid parameters are: {known}."
                )

        for name, values in nested.items():
            parts[name][1].set_params(**values)
        if params:
            self.losses = [tuple(part) for part in parts.values()]
        return self

    def _validate_params(self):
        super()._validate_params()
        if not (_are_pairs(self.losses) and self.losses):
            raise ValueError(
                f"loss: WeightedSum takes a list of (weight, loss), got {self.losses!r}."
            )

        for weight, loss in self.losses:
            array = np.asarray(weight)
            if (
                array.dtype.kind not in "biuf"
                or array.ndim > 1
                or not np.all((array >= 0) & np.isfinite(array))
            ):
                raise ValueError(
                    f"loss: the weights of a WeightedSum must be numbers >= 0, got {weight!r}."
                )

            check_part("loss: WeightedSum", loss)

        if not any(np.any(weight) for weight, _ in self.losses):
            raise ValueError("loss: all weights of the WeightedSum are zero.")
        if not self.estimator_types:
            kinds = ", ".join(
                f"{type(loss).__name__} of a {' or '.join(loss.estimator_types)}"
                for _, loss in self.losses
            )
            raise ValueError(
                f"loss: WeightedSum takes losses of the same kind of estimator, got {kinds}."
            )
        if "regressor" in self.estimator_types and not self._has_one_link(1):
            names = ", ".join(type(loss).__name__ for _, loss in self.losses)
            raise ValueError(
                f"loss: WeightedSum takes losses with the same prediction for a score, got {names}."
            )

    @property
    def estimator_types(self) -> tuple[str, ...]:  # type: ignore[override]
        """The estimators that can minimise all losses."""
        kinds = [loss.estimator_types for _, loss in self.losses]
        return tuple(kind for kind in kinds[0] if all(kind in others for others in kinds))

    one_against_rest = _of_all("one_against_rest")
    is_logistic = _of_all("is_logistic")
    is_robust = _of_all("is_robust")
    is_least_at_zero = _of_all("is_least_at_zero")

    @property
    def custom_parts(self) -> tuple[ScoreLoss, ...]:  # type: ignore[override]
        """The custom losses whose weights are not zero."""
        counted = [loss for weight, loss in self.losses if np.any(weight)]
        return tuple(part for loss in counted for part in loss.custom_parts)

    @property
    def has_units(self) -> bool:  # type: ignore[override]
        """
        Whether all losses have `in_units`.

        With an inverse link, all columns of y must also have the same weights.
        """
        has_link = self.losses[0][1].inverse_link_function(1) is not None
        counts_the_same = not any(np.ndim(weight) for weight, _ in self.losses)
        return all(loss.has_units for _, loss in self.losses) and (counts_the_same or not has_link)

    @property
    def smooth_instead(self) -> str | None:  # type: ignore[override]
        """The name of a smooth loss to use instead of the first loss with a kink, or None."""
        return next((loss.smooth_instead for _, loss in self.losses if loss.smooth_instead), None)

    @property
    def typical_curvature(self) -> float | None:  # type: ignore[override]
        """One if each loss has a curvature or a typical curvature, else None."""
        return (
            None
            if None in (loss.curvature(1) or loss.typical_curvature for _, loss in self.losses)
            else 1.0
        )

    def value_function(self, n_outputs: int) -> FunctionSource:
        """Return the ONNX function `(score, target) => (loss)`."""
        shapes = {"score": (ROWS, n_outputs), "target": (ROWS, n_outputs)}
        sources = [loss.value_function(n_outputs) for _, loss in self.losses]
        columns = [result_shape("loss: value", source, shapes)[1] for source in sources]

        for (weight, loss), n in zip(self.losses, columns, strict=True):
            if np.ndim(weight) and (n != n_outputs or np.shape(weight) != (n_outputs,)):
                what = f"{n_outputs} columns" if n == n_outputs else "one value for all columns"
                raise ValueError(
                    f"loss: the weights of {type(loss).__name__} have shape {np.shape(weight)}, "
                    f"but it has {what}."
                )

        # A loss with one column is added to each column of the others.
        repeats = [max(columns) // n for n in columns]
        factors = [factor / n for factor, n in zip(self._factors(n_outputs), repeats, strict=True)]
        return _sum_of(sources, factors, "loss")

    def gradient_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return the ONNX function `(score, target) => (gradient)`, or None if it is derived."""
        sources = []
        for weight, loss in self.losses:
            source = loss.gradient_function(n_outputs)
            # A column of the user's loss may depend on several scores.
            if source is None or (np.ndim(weight) and not loss.is_elementwise):
                return None
            sources.append(source)

        return _sum_of(sources, self._factors(n_outputs), "gradient")

    def inverse_link_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return the common inverse link of all losses, or None if they differ."""
        return (
            self.losses[0][1].inverse_link_function(n_outputs)
            if self._has_one_link(n_outputs)
            else None
        )

    def _has_one_link(self, n_outputs):
        return (
            len({source_key(loss.inverse_link_function(n_outputs)) for _, loss in self.losses}) == 1
        )

    def weight_scale(self, n_outputs: int) -> float:
        """Return the scale of the first loss. `_factors` adapts the others to it."""
        return self.losses[0][1].weight_scale(n_outputs)

    def _factors(self, n_outputs):
        """Return the factors of the losses, for sample weights with the scale of the first one."""
        scale = self.weight_scale(n_outputs)
        return [
            np.asarray(w, float) * (loss.weight_scale(n_outputs) / scale) for w, loss in self.losses
        ]

    def in_units(self, scale: float) -> InUnits:
        """
        Return the loss of targets and scores divided by a number.

        The largest weights of its losses add up to one.
        """
        parts = [loss.in_units(scale) for _, loss in self.losses]
        weights = [np.asarray(weight, float) for weight, _ in self.losses]
        unit = float(sum(np.max(w) * part.unit for w, part in zip(weights, parts, strict=True)))
        scaled = [
            w * (part.unit * part.weight / unit) for w, part in zip(weights, parts, strict=True)
        ]
        largest = float(sum(np.max(w) for w in scaled))
        offset, by_mean = (
            float(
                sum(np.max(w) * getattr(part, name) for w, part in zip(weights, parts, strict=True))
            )
            for name in ("offset", "offset_by_mean")
        )
        pairs = [(w / largest, part.loss) for w, part in zip(scaled, parts, strict=True)]

        return InUnits(WeightedSum(pairs), unit, offset, largest, by_mean)

    def curvature(self, n_outputs: int) -> float | None:
        """Return a bound of the second derivative of a row's loss by its score, or None."""
        total = 0.0
        for factor, (_, loss) in zip(self._factors(n_outputs), self.losses, strict=True):
            curvature = loss.curvature(n_outputs)
            if curvature is None:
                return None
            total += float(np.max(factor)) * curvature

        return total

    def check_target(self, target: np.ndarray) -> None:
        """Raise a ValueError for targets that one of the losses cannot take."""
        for _, loss in self.losses:
            loss.check_target(target)


def _names(pairs):
    """Return the names of the losses."""
    return [name for name, _ in make_union(*(loss for _, loss in pairs)).transformer_list]


def _are_pairs(losses):
    return isinstance(losses, (list, tuple)) and all(
        isinstance(p, (list, tuple)) and len(p) == 2 for p in losses
    )


def _sum_of(sources, factors, result):
    """Return the weighted sum of some functions of score and target, as a function."""
    from skort.common.onnx_text import Fragment

    fragment = Fragment(np.float64)
    total = ""
    for i, (source, factor) in enumerate(zip(sources, factors, strict=True)):
        part = f"part{i}"
        product = f"product{i}"
        fragment.call(source, ["score", "target"], [part])
        fragment.constant(f"factor{i}", np.asarray(factor, np.float64))
        fragment.node("Mul", [f"factor{i}", part], [product])

        if total:
            fragment.node("Add", [total, product], [f"sum{i}"])
            product = f"sum{i}"

        total = product

    fragment.node("Identity", [total], [result])
    return fragment.as_function("weighted_sum", ["score", "target"], [result])
