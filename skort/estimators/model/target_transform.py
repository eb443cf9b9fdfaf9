"""The y of a `TransformedTargetRegressor`: its transform, and the inverse for predictions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array

from skort.estimators.data.targets import EncodedTarget


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
