"""`fit_batches`: a training on batches of the user's own."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context, is_classifier

from skort.estimators.first_pass import FirstPass, repeatable
from skort.estimators.labels import class_labels
from skort.estimators.nesting import FIT_STEP_FIRST, layers, split, steps_to_fit
from skort.estimators.together import fitted_together
from skort.estimators.training_rows import RowsInBatches, RowsInMemory

__all__ = ["BatchesMixin"]


class BatchesMixin:
    """The method `fit_batches` of an estimator, and the rows of its `fit`."""

    estimator: Any
    early_stopping: bool
    batch_size: int | str
    _fit_to: Callable[..., Any]
    _end_fit: Callable[..., Any]

    @_fit_context(prefer_skip_nested_validation=False)
    def fit_batches(
        self,
        batches: Iterable[Any] | Callable[[], Iterable[Any]],
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> "BatchesMixin":
        """
        Train on batches of your own, in their order; an earlier fit is forgotten.

        Everything else is as in `fit`: schedules, stopping, validation sets, history and checkpoints. One pass over the
        batches comes before the training, and each epoch is one pass. X is never in memory as a whole. The scales of
        the columns and the learning rate come from about 4 million values of it. The labels of a classifier and the
        sample weights of all rows are kept.

        Parameters
        ----------
        batches : iterable, or callable that returns one
            Each batch is (X, y) or (X, y, sample_weight), a tuple or a list, with parts as for `fit`, or from any
            library with DLPack, such as tensors of torch. The batches are read several times, which a list or a
            `DataLoader` allows. Every pass has to give the same rows, in any order. An iterator can be read only once,
            so it is refused: give a function that returns a new one; it is called for every pass.
        X_val, y_val : array-like, default=None
            A validation set, as for `fit`. `early_stopping=True` needs it: no rows of batches are held out.
        classes : array-like of shape (n_classes,), default=None
            The labels of a classifier. None: those in the batches.

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        ValueError
            For what `fit` refuses, with the number of the batch; for batches that cannot be read again, or that have
            another number of rows in a later pass; and for steps before the model that need a fit. After an error the
            estimator is as it was before, with one exception: after an error of a callback, it is fitted up to the last
            whole epoch, if there is one.
        NotTrainableError, RuntimeNotAvailableError
            As `fit` does.

        Warns
        -----
        ConvergenceWarning, UserWarning
            As `fit` does.

        Notes
        -----
        With `batch_size="auto"`, each batch makes one update. With a number, larger batches, such as files, are split
        into parts of so many rows. `shuffle` has no effect: the rows are used in the order of the batches.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skort import OrtSGDRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> batches = [(X[i : i + 50], y[i : i + 50]) for i in range(0, len(X), 50)]
        >>> model = OrtSGDRegressor(random_state=0).fit_batches(batches)
        >>> round(model.score(X, y), 2)
        0.52
        """
        for name in steps_to_fit(self.estimator):
            raise ValueError(f"fit_batches does not fit the step {name!r} before the model. {FIT_STEP_FIRST}")
        if self.early_stopping and X_val is None:
            raise ValueError("early_stopping=True cannot hold out rows of batches: give X_val and y_val.")
        is_labelled = is_classifier(self)
        if classes is not None and not is_labelled:
            raise ValueError("classes is for classifiers, and this is a regressor.")
        passes = repeatable(batches)
        steps, *_ = split(self.estimator)
        first = FirstPass.over(passes(), has_labels=is_labelled, has_steps=bool(steps))
        known = _known_classes(self.estimator, classes, first.all_labels)
        rows = RowsInBatches(passes, first, self.batch_size)
        return self._fit_to(rows, X_val=X_val, y_val=y_val, classes=known)

    def _fit(self, X, y, sample_weight, **options):
        """Train on rows in memory, or take over a training that was made with others."""
        made = fitted_together(self, X, y, sample_weight, options)
        if made is not None:
            return self._end_fit(made.draft, made.outcome, None, made.own)
        return self._fit_to(RowsInMemory(X, y, sample_weight), **options)


def _known_classes(estimator, classes, labels):
    """Return the classes that are given, or those of a fitted model inside, or those in the batches."""
    *_, (model, is_fitted) = layers(estimator)
    if classes is None and is_fitted:
        classes = getattr(model, "classes_", None)
    known = None if classes is None else class_labels(classes)
    if labels is None:
        return known
    seen = np.unique(labels)
    unknown = [] if known is None else np.setdiff1d(seen, known).tolist()
    if unknown:
        raise ValueError(f"batches: y contains labels that are not among the known classes: {unknown}.")
    return seen if known is None else known
