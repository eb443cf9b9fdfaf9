"""The number of rows in a step, and the size of a training."""

from collections.abc import Set
from typing import Any, NamedTuple

from skort.estimators.planning.decision import YOURS, Decision, rule, yours

# As in MLPClassifier.
_BATCH_ROWS = 200
#: The rows of a batch of a stream, chosen by `python -m benchmarks.rules --only batches`.
STREAM_ROWS = 16
#: The reason if the user gives the batches.
YOUR_BATCHES = "your batches have so many"
#: The reason if the first call of a stream decides.
OF_FIRST_CALL = "the first call of a stream has so many rows, or more than 16"
#: The reason if it is "auto" again in a stream, after a number.
AUTO_AGAIN = "the first batches had so many rows"
#: The reason of a smaller one.
OF_SPREAD = "columns are correlated: a row of a larger batch has less than half of its rate"


@rule("batches")
def batch_rows(
    batch_size: int | str = "auto",
    *,
    is_stream: bool = False,
    spread: tuple[float, float] | None = None,
    n_columns: int = 1,
) -> int:
    """
    A batch has 200 rows; a batch of a stream has the rows of the first call, at most 16, and fewer
    if the columns of a linear model are correlated.
    """
    if not isinstance(batch_size, str):
        return int(batch_size)
    if not is_stream:
        return _BATCH_ROWS
    if spread is None:
        return STREAM_ROWS

    # For rows of squared norm q and largest eigenvalue L, the stable rate of a row in a batch of m
    # rows is 1 / ((m - 1) L + q). It is at least half of that in 16 rows of independent columns,
    # whose eigenvalues are q / n_columns.
    largest, norm = spread
    of_independent = norm * (1 + (STREAM_ROWS - 1) / n_columns)
    if norm + (STREAM_ROWS - 1) * largest <= 2 * of_independent:
        return STREAM_ROWS
    return 1 + int((2 * of_independent - norm) / largest)


def batch_decision(batch_size: int, *, is_stream: bool) -> Decision:
    """Return the decision on a number of rows that skort chooses."""
    if is_stream:
        return Decision(batch_size, OF_FIRST_CALL, "batch_size")
    return Decision(batch_size, "a batch has 200 rows, if there are as many", "batch_size")


def chosen_batches(
    estimator: Any, left_open: Set[str], n_rows: int, *, are_given: bool, is_stream: bool
) -> Decision:
    """Return the decision on the rows of a batch. If the user gives batches, the largest has `n_rows`."""
    if "batch_size" not in left_open:
        one = "; all rows are one batch, and an epoch is one update"
        is_one = not is_stream and int(estimator.batch_size) > n_rows
        because = f"{YOURS}{one if is_one else ''}"
        return yours(int(estimator.batch_size), "batch_size", because)
    if are_given:
        return Decision(n_rows, YOUR_BATCHES, "batch_size")
    return batch_decision(n_rows, is_stream=is_stream)


class TrainingSize(NamedTuple):
    """
    The size of a training. The strength of a model's own penalty and the number of planned epochs
    depend on it.
    """

    #: The sum and the mean of the sample weights of all training rows, class weights included.
    weight_sum: float
    mean_weight: float
    batch_size: int
    #: The number of columns of the raw score.
    n_outputs: int
    #: The number of batches in an epoch.
    n_batches: int = 1

    @property
    def n_rows(self) -> int:
        """The number of rows trained on."""
        return round(self.weight_sum / self.mean_weight)

    def of_stream(self, n_rows: int) -> "TrainingSize":
        """
        Return the size of a stream that begins with so many rows. Sample weights multiply its
        losses as they are.
        """
        return self._replace(weight_sum=float(n_rows), mean_weight=1.0)

    @classmethod
    def of(cls, weight_sum: float, n_rows: int, batch_size: int, n_outputs: int) -> "TrainingSize":
        """Return the size of a training on rows of positive sample weight."""
        n_batches = -(-n_rows // batch_size)
        return cls(weight_sum, weight_sum / n_rows, min(batch_size, n_rows), n_outputs, n_batches)
