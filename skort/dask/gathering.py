"""The partitions of a fit, and what has to be known of all of them first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from distributed import Future
from sklearn.base import is_classifier

from skort.dask.cluster import Cluster
from skort.dask.parts import delayed_parts
from skort.dask.survey import Split, Survey, held_out, merged_surveys, survey
from skort.estimators.own_terms import TrainingSize
from skort.estimators.sample_weight import ClassWeight, balanced

__all__ = ["Counted", "Gathered", "gather"]


class Counted(NamedTuple):
    """
    How much rows count.

    Parameters
    ----------
    by_class : ndarray of shape (n_classes,) or None
        What the sample weights of each class are multiplied by.
    of_positives : ndarray of shape (n_classes,) or None
        What the rows of each class count in the column of their class.
    weight_sum : float
    n_rows : int
        Those of a positive weight.
    """

    by_class: np.ndarray | None
    of_positives: np.ndarray | None
    weight_sum: float
    n_rows: int

    def size(self, batch_size: int | str, n_outputs: int) -> TrainingSize:
        """Return the size of the training."""
        largest = 200 if batch_size == "auto" else int(batch_size)
        mean_weight = self.weight_sum / self.n_rows
        return TrainingSize(self.weight_sum, mean_weight, min(largest, self.n_rows), n_outputs)


@dataclass(frozen=True, eq=False)
class Gathered:
    """
    The partitions of a fit.

    Parameters
    ----------
    cluster : Cluster
    parts : sequence of Future
        Of `Part`.
    validation : sequence of Future, or None
        Those of the validation set.
    survey : Survey
        Of the parts, and of the classes of all rows.
    is_weighted : bool
        Whether there are sample weights.
    """

    cluster: Cluster
    parts: Sequence[Future]
    validation: Sequence[Future] | None
    survey: Survey
    is_weighted: bool

    def counted(self, class_weight: ClassWeight | None, classes: np.ndarray | None) -> Counted:
        """
        Return how much rows count.

        Parameters
        ----------
        class_weight : ClassWeight or None
        classes : ndarray of shape (n_classes,) or None
            All classes, seen or not.

        Raises
        ------
        ValueError
            Where no row counts, and for class weights and several labels a row.
        """
        totals, counts, all_counts = self.survey.totals, self.survey.counts, self.survey.all_counts
        by_class = None
        if class_weight is not None:
            if classes is None or self.survey.classes is None:
                raise ValueError("class_weight is for one label a row, and y has several. Use sample_weight.")
            places = np.searchsorted(classes, self.survey.classes)
            totals, counts, all_counts = (
                np.bincount(places, each, minlength=len(classes)) for each in (totals, counts, all_counts)
            )
            if class_weight.given == "balanced":
                by_class = balanced(all_counts if class_weight.balances_rows else totals)
            else:
                by_class = class_weight.by_class(classes, classes, None)
        of_positives = None
        if class_weight is not None and class_weight.of_positives and len(classes) > 2:  # type: ignore[arg-type]
            by_class, of_positives = None, by_class
        factors = np.ones(len(totals)) if by_class is None else by_class
        n_rows = int(np.sum(counts[factors > 0]))
        if n_rows == 0:
            raise ValueError("No row has a positive sample weight: there is nothing to train on.")
        return Counted(by_class, of_positives, float(totals @ factors), n_rows)


def gather(estimator: Any, cluster: Cluster, data: tuple, validation: tuple, random_state: Any) -> Gathered:
    """
    Let the workers compute the partitions, and survey them.

    Parameters
    ----------
    estimator : DaskFit
    cluster : Cluster
    data : tuple
        X, y and the sample weights, or None.
    validation : tuple
        X_val and y_val, or twice None.
    random_state : numpy.random.RandomState
        Draws which rows are held out.

    Raises
    ------
    TypeError, ValueError
        As `delayed_parts` and `survey` do.
    """
    X_val, y_val = validation
    given = [X_val is not None, y_val is not None]
    if any(given) and not all(given):
        there, missing = ("X_val", "y_val") if given[0] else ("y_val", "X_val")
        raise ValueError(f"{there} was given without {missing}: a validation set needs both.")
    parts, validation_parts = cluster.computed(delayed_parts(*data)), None
    surveyed = parts
    if all(given):
        validation_parts = cluster.computed(delayed_parts(X_val, y_val, None, ("X_val", "y_val")))
    elif estimator.early_stopping:
        seed = int(random_state.randint(2**32, dtype=np.uint32))
        split = Split(estimator.validation_fraction, seed, is_classifier(estimator))
        parts, validation_parts = (cluster.each(held_out, surveyed, split, kind) for kind in (False, True))
    distinct = [parts] if surveyed is parts else [parts, surveyed]
    surveys = [cluster.each(survey, each, is_classifier(estimator)) for each in distinct]
    found = cluster.values([cluster.merged(merged_surveys, each) for each in surveys])
    train, whole = found[0], found[-1]
    if train.head is None:
        raise ValueError("X has no rows to train on.")
    if whole.classes is not None and len(whole.classes) != len(train.classes):
        lost = np.setdiff1d(whole.classes, train.classes).tolist()
        raise ValueError(
            f"early_stopping=True holds out all rows of the classes {lost}: lower validation_fraction, or give X_val "
            "and y_val."
        )
    return Gathered(cluster, parts, validation_parts, train, data[2] is not None)
