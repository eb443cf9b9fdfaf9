"""The fitted steps around a model: those before it transform X, and a transformer may change y."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.utils import check_array

from skort.estimators.data.dates import check_dates, date_columns, dates_in_steps
from skort.estimators.data.row_forms import is_in_range, kept_dtypes
from skort.estimators.data.step_errors import one_column, step_error
from skort.estimators.data.targets import EncodedTarget
from skort.exceptions import NotExportableError

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Preprocessing:
    """The fitted steps before the trained graph: in scikit-learn, and as ONNX for deployment."""

    #: A fitted Pipeline, or None.
    transformers: Any
    #: The steps as ONNX.
    graph: "onnx.ModelProto | None"
    #: float32 or float64: the dtype of the transformed X.
    dtype: DTypeLike
    #: Why the steps have no ONNX: the message of the error that an export raises.
    obstacle: str | None = None

    @classmethod
    def of(cls, transformers: Any, some_rows: Any, dtype: DTypeLike) -> "Preprocessing":
        """Return fitted steps with their ONNX, compared with scikit-learn on `some_rows`."""
        from skort.graphs.sklearn.transformers import DatesError, transformer_graph

        if transformers is None:
            return cls(None, None, dtype)

        try:
            return cls(transformers, transformer_graph(transformers, some_rows, dtype), dtype)
        except NotExportableError as error:
            return cls(transformers, None, dtype, str(error))
        except DatesError as error:
            raise dates_in_steps(_among(error.args, some_rows)) from None

    def exported(self) -> "onnx.ModelProto | None":
        """Return the steps as ONNX, or None if there are no steps."""
        if self.obstacle is not None:
            raise NotExportableError(self.obstacle)
        return self.graph

    def transform(self, X: Any) -> Any:
        """Return X after the steps: an array or a CSR matrix of `dtype`."""
        if self.transformers is None:
            return X
        if self.graph is not None and date_columns(X):
            _check_dates(self.graph, X)
        return transformed(self.transformers, self.transformers.transform, X, self.dtype)


def _check_dates(graph, X):
    """Raise an error for columns of dates that the steps, and so the file, take for numbers."""
    from skort.graphs.sklearn.transformers import numeric_names

    if refused := _among(numeric_names(graph), X):
        raise dates_in_steps(refused)


def _among(inputs, X):
    """Return the columns of X with dates, as `date_columns` does, that some inputs have."""
    if hasattr(X, "columns"):
        return [name for name in date_columns(X) if str(name) in inputs]
    return [name for name in date_columns(X) if "X" in inputs or f"x{name}" in inputs]


def transformed(steps: Any, transform: Callable[[Any], Any], X: Any, dtype: DTypeLike) -> Any:
    """Return what a method of steps makes of X, as numbers; an error names what they refused."""
    try:
        result = transform(X)
        check_dates(result, X)
        rows = numbers(result, dtype)
    except (ValueError, TypeError, AttributeError) as error:
        raise step_error(error, X, steps) from None

    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if rows.shape[0] != n_rows:
        raise ValueError(
            f"The steps before the model return another number of rows than X has: {rows.shape[0]}, "
            f"not {n_rows}. {one_column(X, steps)}"
        )
    return rows


def numbers(X: Any, dtype: DTypeLike) -> Any:
    """Return a transformed X as a C-contiguous array of numbers or a CSR matrix, or raise."""
    checks = {"order": "C", "accept_sparse": "csr", "input_name": "transformed X"}
    rows = check_array(X, dtype=kept_dtypes(X, dtype), **checks)
    return rows if is_in_range(rows, dtype) else check_array(rows, dtype=dtype, **checks)


@dataclass(frozen=True)
class TargetTransform:
    """A fitted transformer of y."""

    #: None: the training takes y as it is.
    transformer: Any = None
    #: Whether the steps before the model are inside the `TransformedTargetRegressor`.
    encloses_steps: bool = False

    def transformed(self, y: np.ndarray) -> np.ndarray:
        """Return y, of one or two dimensions, as a transformed matrix."""
        columns = y.reshape(len(y), -1)
        if self.transformer is None:
            return columns

        return check_array(
            self.transformer.transform(columns), dtype=np.float64, input_name="transformed y"
        )

    def applied(self, encoded: EncodedTarget) -> EncodedTarget:
        """Return an encoded y with the transformed target."""
        if self.transformer is None:
            return encoded
        return encoded._replace(target=self.transformed(encoded.y))

    def for_steps(self, y: np.ndarray) -> np.ndarray:
        """Return the y that the steps before the model are fitted to."""
        if not self.encloses_steps or self.transformer is None:
            return y
        columns = self.transformed(y)
        return columns.ravel() if columns.shape[1] == 1 else columns

    def inverse(self, prediction: np.ndarray) -> np.ndarray:
        """Return predictions, of shape (n_samples, n_outputs), in the units of y."""
        if self.transformer is None:
            return prediction
        return np.asarray(self.transformer.inverse_transform(prediction)).reshape(
            len(prediction), -1
        )
