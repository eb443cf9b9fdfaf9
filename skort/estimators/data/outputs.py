"""Several outputs of an ONNX model: their columns, and what a regressor does with a y by their names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length


@dataclass(frozen=True)
class NamedOutputs:
    """The outputs of an ONNX model that a regressor trains, in the order of its parameter `loss`."""

    #: The number of columns of each.
    widths: dict[str, int]
    #: Those of whose targets y had one dimension.
    vectors: frozenset[str] = frozenset()
    #: Whether y was a dict, and predictions are one.
    by_name: bool = False

    @classmethod
    def of(cls, model: Any, names: tuple[str, ...], y: Any) -> "NamedOutputs":
        """Return the outputs that a y is the target of."""
        from skort.graphs.onnx_models.onnx_score_graph import output_widths

        declared = output_widths(model, names)
        if isinstance(y, Mapping):
            _check_names(names, y)
            dims = {name: np.ndim(y[name]) for name in names}
            widths = {name: 1 if dims[name] < 2 else np.shape(y[name])[1] for name in names}
            for name, width in declared.items():
                if width not in (None, widths[name]):
                    raise ValueError(
                        f"y[{name!r}] has {widths[name]} columns, but that output of the ONNX model has {width}."
                    )
            return cls(widths, frozenset(name for name in names if dims[name] < 2), by_name=True)
        # Where the model does not say how many columns an output has, it is one.
        widths = {name: width or 1 for name, width in declared.items()}
        n_columns = 1 if np.ndim(y) < 2 else np.shape(y)[1]
        if n_columns != sum(widths.values()):
            listed = ", ".join(f"{name} ({width})" for name, width in widths.items())
            raise ValueError(f"y has {n_columns} columns, but the outputs have {sum(widths.values())}: {listed}.")
        return cls(widths)

    def split(self, columns: np.ndarray) -> dict[str, np.ndarray]:
        """Return columns by the names of their outputs, in the shapes of the y of `fit`."""
        ends = np.cumsum(list(self.widths.values()))[:-1]
        parts = dict(zip(self.widths, np.split(columns, ends, axis=1), strict=True))
        return {name: part.ravel() if name in self.vectors else part for name, part in parts.items()}


def columns_of(loss: Any, y: Any) -> Any:
    """Return a y by names as columns, in the order of the loss; another y as it is."""
    if not isinstance(y, Mapping):
        if isinstance(loss, dict) and hasattr(y, "columns") and {*y.columns} == {*loss}:
            return y[[*loss]]
        return y
    if not isinstance(loss, dict):
        raise ValueError(f"y is a dict of the outputs {', '.join(map(str, y))}: give loss as a dict by the same names.")
    _check_names(tuple(loss), y)
    check_consistent_length(*y.values())
    return np.column_stack([np.asarray(y[name]) for name in loss])


def _check_names(names, y):
    if {*y} != {*names}:
        raise ValueError(f"y has the outputs {', '.join(map(str, y)) or 'none'}, but loss has {', '.join(names)}.")
