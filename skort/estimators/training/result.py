"""What a training leaves, which an estimator takes over."""

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skort.estimators.data.rows import TrainingData
from skort.estimators.model.model import Model
from skort.estimators.training.config import TrainConfig
from skort.optim.schedules import rate
from skort.optim.state import TrainState


class Ending(NamedTuple):
    """How a training ended, for whoever began it: nothing that a fitted model keeps."""

    error: BaseException | None
    no_better: bool
    #: All rows, or some that stand for all; None where nothing is said of them.
    rows: TrainingData | None
    #: The loss of the best constant prediction of the validation set; None where that is not what decides.
    prior: float | None = None


#: Of a result that an estimator keeps.
NO_ENDING = Ending(None, False, None)


@dataclass(frozen=True, eq=False)
class FitResult:
    """What a training leaves: the model, and all that the next one goes on from. Files keep equal weights once."""

    config: TrainConfig
    model: Model
    state: TrainState
    solver_name: str = ""
    batch_size: int = 0
    n_batches: int | None = None
    is_sparse: bool = False
    #: Epochs before this training.
    n_before: int = 0
    #: Learning rate of the first update; None where there was none.
    first_eta: float | None = None
    ending: Ending = NO_ENDING
    #: Those of the trained weights, in a copy that has the weights of the state alone.
    shapes: dict[str, tuple[int, ...]] | None = None

    @property
    def new_losses(self) -> list[float]:
        """The objective of each epoch of this training."""
        return self.state.history["objective"][self.n_before : self.state.n_epochs]

    @property
    def eta0(self) -> float:
        """Learning rate of the first update, or of the one that a resumed training would have begun with."""
        return self.state.rate_scale * rate(self.config.schedule, 1) if self.first_eta is None else self.first_eta

    def with_weights(self, weights: dict[str, np.ndarray]) -> "FitResult":
        """Return the result with other weights; the optimizer's memory begins from scratch."""
        state = dataclasses.replace(self.state, solver=None, live=None)
        return dataclasses.replace(self, model=self.model.with_weights(weights), state=state)

    def packed(self) -> "FitResult":
        """Return what a file holds: the weights once, and nothing of this process."""
        packed = dataclasses.replace(self, state=dataclasses.replace(self.state, live=None), ending=NO_ENDING)
        made, known = self._of_state(), self.model.trained_weights
        if made is None or not all(np.array_equal(array, known[name]) for name, array in made.items()):
            return packed
        shapes = {name: array.shape for name, array in known.items()}
        empty = {name: np.empty(0, array.dtype) for name, array in self.model.score_graph.trained_arrays.items()}
        return dataclasses.replace(packed, model=_with_arrays(self.model, empty), shapes=shapes)

    def unpacked(self) -> "FitResult":
        """Return what was `packed`."""
        if self.shapes is None:
            return self
        trained = self.model.score_graph.trained_arrays
        zeros = {name: np.zeros(self.shapes[name], array.dtype) for name, array in trained.items()}
        whole = dataclasses.replace(self, model=_with_arrays(self.model, zeros), shapes=None)
        return dataclasses.replace(whole, model=whole.model.with_weights(whole._of_state()))

    def _of_state(self):
        """Return the trained weights of the model as those of the state make them; None where it has none."""
        from skort.solvers.flat_weights import views

        vector, arrays = (self.state.solver or {}).get("weights"), self.model.trained_weights
        if vector is None or vector.size != sum(array.size for array in arrays.values()):
            return None
        graph = self.model.score_graph
        variables = self.config.variables(graph, self.state.standardization)
        made = variables.model_weights(views(vector, arrays))
        return {name: np.array(array) for name, array in made.items()}


def _with_arrays(model, arrays):
    """Return a model whose score graph has arrays of other shapes by name."""
    graph = dataclasses.replace(model.score_graph, arrays={**model.score_graph.arrays, **arrays})
    return dataclasses.replace(model, score_graph=graph)


def result_of(estimator: Any) -> FitResult:
    """Return what the last training of an estimator left; a NotFittedError before one."""
    result = vars(estimator).get("_result")
    if result is None:
        check_is_fitted(estimator)
    return result
