"""The source of the rows of a training: arrays in memory, or the user's batches."""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from skort.estimators.data.first_pass import FirstPass, named_batch, numbered
from skort.estimators.data.row_forms import flat_rows
from skort.estimators.data.rows import (
    Columns,
    DataStatistics,
    TrainingData,
    as_array,
    training_rows,
)
from skort.estimators.data.sample_weight import ClassWeight, weighted
from skort.estimators.data.targets import EncodedTarget, target_encoder
from skort.estimators.model.model import Model
from skort.estimators.planning.epochs import TrainingSize
from skort.estimators.planning.plan import Plan
from skort.estimators.planning.scaling import dense_if_narrow
from skort.estimators.variables.reparametrization import Reparametrization
from skort.optim.batches import Batches, EpochSize, UserBatches


class BatchShape(NamedTuple):
    """The number of rows of a batch, and whether the steps multiply these as sparse rows."""

    batch_size: int
    are_sparse: bool = False


class DataSource(Protocol):
    """A source of the rows of a training, as the model takes them."""

    def statistics(self) -> DataStatistics:
        """Return the statistics of the rows, for the variables and the learning rate."""

    def batches(
        self, plan: Plan, variables: Reparametrization, random_state: np.random.RandomState
    ) -> Any:
        """Return the batches of the training, like `Batches`, in the variables of the training."""

    def step(self, run: Any, model: Model, state: Any) -> Any:
        """Return the step of the training: the solver of the run, or a step on other machines."""

    @property
    def all_rows(self) -> TrainingData | None:
        """All rows, or None if they are not in memory."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """All rows, as arrays."""

    data: TrainingData

    @property
    def all_rows(self) -> TrainingData | None:
        """All rows."""
        return self.data

    def statistics(self) -> DataStatistics:
        """Return the statistics of all rows."""
        return DataStatistics(self.data)

    def batches(
        self, plan: Plan, variables: Reparametrization, random_state: np.random.RandomState
    ) -> Any:
        """Return batches of rows in random order."""
        return batches_in_memory(plan, self.data, variables, random_state)

    def step(self, run: Any, model: Model, state: Any) -> Any:
        """Return the step of the run."""
        return run.step


def batches_in_memory(
    plan: Plan,
    data: TrainingData,
    variables: Reparametrization,
    random_state: np.random.RandomState,
    weight: float = 1.0,
    copies: int = 1,
) -> Batches:
    """
    Return batches of rows in random order. `weight` multiplies all sample weights. The copies of a
    row share its weight.
    """
    X, target, sample_weight = data
    return Batches(
        variables.rows(X),
        variables.target(target),
        sample_weight,
        batch_size=plan.rows_of_batch(X),
        shuffle=plan.shuffle,
        random_state=random_state,
        sample_weight_scale=variables.sample_weight_scale(target.shape[1]) * weight / copies,
        copies=copies,
        rows_of_a_step=plan.rate.rows_of_a_step,
    )


@dataclass(frozen=True, eq=False)
class InBatches(InMemory):
    """The user's batches, read again in every epoch. `data` are evenly spaced rows of them."""

    rows: "GivenBatches"
    encoder: "RowEncoder"

    @property
    def all_rows(self) -> TrainingData | None:
        """None: only some of the rows are in memory."""
        return None

    def batches(
        self, plan: Plan, variables: Reparametrization, random_state: np.random.RandomState
    ) -> Any:
        """Return the user's batches. Batches of more than `batch_size` rows are divided."""
        encoder = self.encoder
        # Either the loss has the class weights, those of the plan, or the rows have them.
        class_weight = None if plan.class_weight is not None else encoder.class_weight
        weights = self.rows.weights(class_weight, encoder.model.classes)

        def encode(X, y, sample_weight=None):
            # A single batch may have only rows of weight zero, which the encoder would refuse.
            if sample_weight is None or np.any(as_array(sample_weight, "sample_weight")):
                return encoder(X, y, sample_weight)
            X, target, _ = encoder(X, y)
            return TrainingData(X, target, np.zeros(len(target)))

        def epoch():
            for X, target, sample_weight in numbered(self.rows.passes(), encode):
                yield variables.rows(X), variables.target(target), sample_weight

        size = EpochSize(
            n_rows=sum(self.rows.first.sizes)
            if weights is None
            else int(np.count_nonzero(weights)),
            n_batches=self.rows.n_batches,
            batch_size=plan.size.batch_size,
            rows_of_a_step=plan.batch_size,
        )
        return UserBatches(
            epoch,
            size,
            sample_weight=weights,
            sample_weight_scale=variables.sample_weight_scale(self.data.target.shape[1]),
            random_state=random_state,
        )


@dataclass(eq=False)
class KnownRows:
    """
    The same rows for several fits, which differ only in the strength of the penalty. Their
    statistics, batches and Gram matrices are found once.
    """

    source: DataSource
    _batches: Any = None
    _standardization: Any = None
    _grams: Any = None

    @functools.cached_property
    def statistics(self) -> DataStatistics:
        """The statistics of the rows, for the variables and the learning rate."""
        return self.source.statistics()

    def batches(
        self, plan: Plan, variables: Reparametrization, random_state: np.random.RandomState
    ) -> Any:
        """Return the batches of the rows in the variables of a training."""
        if self._batches is None or self._standardization != variables.standardization:
            self._batches = self.source.batches(plan, variables, random_state)
            self._standardization = variables.standardization
            self._grams = None

        return self._batches

    @property
    def grams(self) -> Any:
        """The `Grams` of the batches."""
        from skort.solvers.whitening import Grams

        if self._grams is None:
            self._grams = Grams()
        return self._grams


@dataclass(frozen=True, eq=False)
class GivenRows:
    """All rows of a fit, as the user gave them."""

    X: Any
    y: Any
    sample_weight: Any

    #: The parameter `batch_size` of the estimator decides how many rows a batch has.
    batch_size: ClassVar[int | None] = None

    def class_weight(
        self, class_weight: ClassWeight | None, encoded: EncodedTarget
    ) -> ClassWeight | None:
        """Return the class weights as they are."""
        return class_weight

    def named(self, error: ValueError, again: Callable[[Any, Any], Any]) -> ValueError:
        """Return an error of the rows. `again` repeats what raised it for some X and y."""
        return error

    def absent(self, encoded: EncodedTarget) -> list[Any]:
        """Return the labels that are known, but that no row that counts has."""
        return absent_labels(encoded.classes, encoded.y, self.sample_weight)

    def size(
        self,
        batch_size: int,
        encoded: EncodedTarget,
        weights: np.ndarray | None,
        class_weight: ClassWeight | None,
    ) -> TrainingSize:
        """Return the size of a training on the encoded rows."""
        return _size(len(encoded.target), weights, batch_size, encoded)

    def source(self, data: TrainingData, encoder: "RowEncoder") -> InMemory:
        """Return the source of the rows in memory."""
        return InMemory(data)


def absent_labels(classes: Any, labels: Any, sample_weight: Any) -> list[Any]:
    """Return the classes that no label of a row of positive weight is; none of a multi-label y."""
    if classes is None or np.ndim(labels) != 1:
        return []
    counted = labels if sample_weight is None else labels[np.asarray(sample_weight) > 0]
    return np.asarray(classes)[~np.isin(classes, np.unique(counted))].tolist()


def _size(n_rows, weights, batch_size, encoded):
    """Return the size of a training on `n_rows` rows. Rows of sample weight zero do not count."""
    weight_sum = float(n_rows if weights is None else np.sum(weights))
    n_rows = n_rows if weights is None else int(np.count_nonzero(weights))
    return TrainingSize.of(weight_sum, n_rows, batch_size, encoded.target.shape[1])


@dataclass(frozen=True, eq=False)
class GivenBatches(GivenRows):
    """Evenly spaced rows of the user's batches, and a function that begins a pass over them."""

    passes: Callable[[], Iterator[Any]]
    first: FirstPass
    #: Larger batches are divided into parts of so many rows. "auto": no batch is divided.
    largest: int | str

    def class_weight(
        self, class_weight: ClassWeight | None, encoded: EncodedTarget
    ) -> ClassWeight | None:
        """Return the class weights. "balanced" becomes numbers that all labels decide."""
        if class_weight is None or encoded.classes is None or self.first.all_labels is None:
            return class_weight
        return class_weight.of_rows(encoded.classes, self.first.all_labels, self.first.all_weights)

    def named(self, error: ValueError, again: Callable[[Any, Any], Any]) -> ValueError:
        """Return an error of the rows with the number of the batch, if one batch has it alone."""
        try:
            again(self.X, self.y)
        except ValueError:
            return named_batch(self.passes(), error, again)
        # It is no error of rows. Another pass over the batches may take minutes.
        return error

    def absent(self, encoded: EncodedTarget) -> list[Any]:
        """Return the labels that are known, but that no row that counts has."""
        labels = self.first.all_labels
        return (
            [] if labels is None else absent_labels(encoded.classes, labels, self.first.all_weights)
        )

    def weights(self, class_weight: ClassWeight | None, classes: Any) -> np.ndarray | None:
        """Return the weights of all rows, or None if all rows count the same."""
        weights = self.first.all_weights
        labels = self.first.all_labels
        if class_weight is None or labels is None:
            return weights

        by_row = class_weight.by_class(classes, labels, weights)[np.searchsorted(classes, labels)]
        return by_row if weights is None else weights * by_row

    def size(
        self,
        batch_size: int,
        encoded: EncodedTarget,
        weights: np.ndarray | None,
        class_weight: ClassWeight | None,
    ) -> TrainingSize:
        """Return the size of a training on all rows."""
        weights = self.weights(
            None if encoded.class_weight is not None else class_weight, encoded.classes
        )
        size = _size(sum(self.first.sizes), weights, self.batch_size, encoded)
        return size._replace(n_batches=self.n_batches)

    @property
    def n_batches(self) -> int:
        """The number of batches of an epoch."""
        return sum(-(-n // self.batch_size) for n in self.first.sizes)

    @property
    def batch_size(self) -> int:  # type: ignore[override]  # only batches have one to compute
        """The number of rows of the largest batch, or of the parts into which it is divided."""
        largest = max(self.first.sizes)
        return largest if isinstance(self.largest, str) else min(int(self.largest), largest)

    def source(self, data: TrainingData, encoder: "RowEncoder") -> InBatches:
        """Return the source of the batches."""
        return InBatches(data, self, encoder)


def encoded_rows(
    estimator: Any, model: Model, X: Any, y: Any, columns: Columns
) -> tuple[Any, EncodedTarget]:
    """
    Return the rows of X, validated for a model that exists, and y as the target of its training.

    X must have the given columns. The steps before the model do not transform it.
    """
    encoder = target_encoder(estimator, y)
    has_steps = model.has_steps
    X = X if has_steps else flat_rows(model.inner.model, X)
    rows, y, _ = training_rows(
        estimator, X, encoder.columns(y), has_steps=has_steps, columns=columns
    )
    return rows, model.target_transform.applied(encoder.encode(y, model.classes))


@dataclass(frozen=True, eq=False)
class RowEncoder:
    """Turns the user's rows, which must have the given columns, into training data of a model."""

    estimator: Any
    columns: Columns
    model: Model
    class_weight: ClassWeight | None

    def __call__(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingData:
        """Return training data from arrays of numpy or a library with DLPack. y may be a dict."""
        model = self.model
        if y is None:
            raise ValueError("y is needed: the loss depends on it.")

        X = as_array(X, "X")
        if isinstance(y, Mapping):
            y = {name: as_array(column, f"y[{name!r}]") for name, column in y.items()}
        else:
            y = as_array(y, "y")

        if sample_weight is not None:
            sample_weight = as_array(sample_weight, "sample_weight")
        rows, encoded = encoded_rows(self.estimator, model, X, y, self.columns)
        n_outputs = encoded.target.shape[1]
        expected = model.score_graph.n_outputs
        if n_outputs != expected:
            raise ValueError(f"y has {n_outputs} outputs, but the model has {expected}.")

        sample_weight, encoded = weighted(sample_weight, rows, encoded, self.class_weight)
        model.loss.check_target(encoded.target)
        X = dense_if_narrow(model.transform(rows))
        return TrainingData(X, encoded.target, sample_weight)
