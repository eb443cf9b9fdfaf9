"""The values of an estimator in files: plain ones, and names of classes that stay when modules move."""

import dataclasses
import functools
import importlib
from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator

from skort.common.blas import aligned
from skort.common.component import PLAIN, Completed, completed, parameter_names, what_was_completed
from skort.version import __version__

#: The version of the format. It grows when earlier versions can no longer read the files.
FORMAT = 1

_FORMAT = "skort_format"
_VERSION = "skort_version"
_KIND = "skort"
# A public class is written as "module.name".
_PUBLIC = ("callbacks", "networks", "objective", "optimizers", "schedules")
# The names of other classes in files, and the present homes of these classes. The names never
# change.
_INNER = {
    "ClassWeighted": "skort.objective.combined.ClassWeighted",
    "Decision": "skort.estimators.planning.decision.Decision",
    "Device": "skort.runtime.device.Device",
    "FitResult": "skort.estimators.training.result.FitResult",
    "Model": "skort.estimators.model.model.Model",
    "ModelPenalty": "skort.objective.penalties.ModelPenalty",
    "MultiLabelLogLoss": "skort.objective.classification.MultiLabelLogLoss",
    "NamedOutputs": "skort.estimators.data.targets.NamedOutputs",
    "OutputLosses": "skort.objective.combined.OutputLosses",
    "Preprocessing": "skort.estimators.model.wrapped.Preprocessing",
    "ScoreGraph": "skort.graphs.score_graph.ScoreGraph",
    "ScoreLoss": "skort.objective.loss.ScoreLoss",
    "SklearnObjective": "skort.objective.sklearn_objectives.SklearnObjective",
    "Standardization": "skort.optim.standardization.Standardization",
    "Strength": "skort.objective.penalties.Strength",
    "TargetTransform": "skort.estimators.model.wrapped.TargetTransform",
    "RateChoice": "skort.estimators.planning.rate.RateChoice",
    "Plan": "skort.estimators.planning.plan.Plan",
    "TrainingData": "skort.estimators.data.rows.TrainingData",
    "TrainState": "skort.optim.state.TrainState",
    "TrainingSize": "skort.estimators.planning.epochs.TrainingSize",
    "UnitFreeL2": "skort.objective.penalties.UnitFreeL2",
    "Update": "skort.optim.update.Update",
    "WeightPenalty": "skort.objective.penalties.WeightPenalty",
    "Weights": "skort.graphs.score_graph.Weights",
    "WrappedModel": "skort.estimators.model.wrapped.WrappedModel",
}
_LEAVES = PLAIN | {bytes}
_NAMES = {path: name for name, path in _INNER.items()}


def to_plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """
    Return the attributes of an estimator as files hold them. Objects of the user and of
    scikit-learn stay as they are.
    """
    plain = _Walk(_plain)
    return {
        **{name: plain(value) for name, value in attributes.items()},
        _FORMAT: FORMAT,
        _VERSION: __version__,
    }


def from_plain(state: dict[str, Any]) -> dict[str, Any]:
    """
    Return the attributes that `to_plain` wrote. Raise a ValueError for values that this version
    cannot read.
    """
    if state.get(_FORMAT, FORMAT) > FORMAT:
        raise ValueError(
            f"This estimator was written by skort {state[_VERSION]}, a newer version, in format "
            f"{state[_FORMAT]}. skort {__version__} reads formats up to {FORMAT}: update skort, or "
            "serve the ONNX file of the model."
        )

    restored = _Walk(_restored)
    # Damaged bytes raise errors of all kinds.
    try:
        return {
            name: restored(value)
            for name, value in state.items()
            if name not in (_FORMAT, _VERSION)
        }
    except Exception as error:
        raise ValueError(
            "This estimator cannot be read: its file is damaged, or holds parts that this version "
            f"of skort does not have ({error}). Fit it again, or serve the ONNX file of the model."
        ) from error


class _Walk:
    """
    Changes all parts of a value. Parts that are the same object stay one object, and unchanged
    values stay themselves.
    """

    def __init__(self, change: Callable[[Any, "_Walk"], Any]):
        self._change = change
        # An id is unique as long as its value lives, so the value is kept.
        self._seen: dict[int, tuple[Any, Any]] = {}

    def __call__(self, value: Any) -> Any:
        if type(value) in _LEAVES:
            return value
        if id(value) not in self._seen:
            self._seen[id(value)] = value, self._change(value, self)
        return self._seen[id(value)][1]

    def parts(self, value: Any) -> Any:
        """Return a dict, list or tuple with changed parts; any other value as it is."""
        if type(value) is dict:
            changed = {key: self(part) for key, part in value.items()}
            return (
                changed if any(changed[key] is not part for key, part in value.items()) else value
            )
        if type(value) not in (list, tuple):
            return value

        items = [self(part) for part in value]
        return (
            type(value)(items)
            if any(a is not b for a, b in zip(items, value, strict=True))
            else value
        )


def _plain(value, walk):
    kind = type(value)
    if kind is dict and _KIND in value:
        return {_KIND: "dict", "items": [[key, walk(part)] for key, part in value.items()]}
    if kind is frozenset:
        return {_KIND: "frozenset", "items": sorted(value)}
    if isinstance(value, type):
        name = _name(value)  # type: ignore[arg-type]  # classes are hashable
        return value if name is None else {_KIND: "class", "name": name}
    if isinstance(value, Completed):
        given, base = what_was_completed(value)
        return {_KIND: "completed", "value": given, "base": _name(base)}
    if kind.__module__.startswith("onnx.") and hasattr(kind, "SerializeToString"):
        return {_KIND: "onnx", "name": kind.__name__, "bytes": value.SerializeToString()}

    name = _name(kind)  # type: ignore[arg-type]
    if name is None:
        return walk.parts(value)

    return {_KIND: name, **{key: walk(part) for key, part in _fields(value).items()}}


def _fields(value):
    """
    Return the fields of an object of skort by name, but for those of a data class at their
    defaults.
    """
    if isinstance(value, dict):
        return {"columns": dict(value)}
    if isinstance(value, tuple):
        return value._asdict()  # type: ignore[attr-defined]  # it is a NamedTuple
    if not _has_fields_only(type(value)):
        return vars(value)

    values = {field: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {field.name: part for field, part in values.items() if part is not field.default}


@functools.cache
def _name(kind):
    """Return the name of a class of skort in files, or None for another class."""
    module, _, public = kind.__module__.partition(".")
    if module == "skort" and public in _PUBLIC:
        return f"{public}.{kind.__qualname__}"
    return _NAMES.get(f"{kind.__module__}.{kind.__qualname__}")


@functools.cache
def _class(name):
    module, _, attribute = _INNER.get(name, f"skort.{name}").rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _restored(value, walk):
    if type(value) is not dict or _KIND not in value:
        # Buffers of pickle's protocol 5 may begin at any address.
        return aligned(walk.parts(value))

    fields = dict(value)
    name = fields.pop(_KIND)
    special = _SPECIAL.get(name)
    if special is not None:
        return special(walk, **fields)

    kind = _class(name)
    fields = {key: walk(part) for key, part in fields.items()}
    if issubclass(kind, dict):
        return kind(fields["columns"])
    if issubclass(kind, tuple) or _has_fields_only(kind):
        return kind(**fields)

    # First the parameters, to which a later version may have added some, then all other attributes.
    names = parameter_names(kind)
    restored = kind(**{key: part for key, part in fields.items() if key in names})
    vars(restored).update(fields)

    return restored


def _has_fields_only(kind: type) -> bool:
    """
    Return whether the fields of a data class are all that its objects have. A component has
    attributes, too.
    """
    return dataclasses.is_dataclass(kind) and not issubclass(kind, BaseEstimator)


_SPECIAL: dict[str, Callable[..., Any]] = {
    "dict": lambda walk, items: {key: walk(part) for key, part in items},
    "frozenset": lambda walk, items: frozenset(items),
    "class": lambda walk, name: _class(name),
    "completed": lambda walk, value, base: completed(value, _class(base)),
    "onnx": lambda walk, name, bytes: getattr(importlib.import_module("onnx"), name).FromString(
        bytes
    ),
}
