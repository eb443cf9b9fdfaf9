"""scikit-learn's own callbacks (`set_callbacks`, since scikit-learn 1.9) on the trainings of this package."""

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """There are no callbacks to support."""


__all__ = ["CallbackSupportMixin", "SklearnCallbacks", "sklearn_callbacks"]


def sklearn_callbacks(estimator, X, y, sample_weight):
    """
    Return, as a list, the callback that calls those of `set_callbacks`, here or in a meta-estimator.

    Parameters
    ----------
    estimator : BaseOrtSGD
    X, y, sample_weight : array-like
        As given to `fit`.

    Returns
    -------
    callbacks : list of SklearnCallbacks
        Empty where `set_callbacks` was not called.
    """
    if vars(estimator).keys().isdisjoint({"_skl_callbacks", "_parent_callback_ctx"}):
        return []
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    return [SklearnCallbacks(estimator, {"X": X, "y": y, "metadata": metadata})]


class SklearnCallbacks:
    """
    Tells scikit-learn's callbacks of a fit, and of its epochs as tasks of it.

    Parameters
    ----------
    estimator : BaseOrtSGD
    data : dict
        X, y and metadata of the fit, as a scorer takes them.
    """

    def __init__(self, estimator, data):
        self._estimator = estimator
        self._data = {"estimator": estimator, **data}
        self._context = estimator._init_callback_context(max_subtasks=estimator.max_iter)

    def on_train_begin(self, training):
        """Begin the fit."""
        self._context.call_on_fit_task_begin(**self._data)

    def on_epoch_end(self, training):
        """Begin and end an epoch."""
        epoch = self._context.subcontext(task_name="epoch").call_on_fit_task_begin(**self._data)
        if self._end(epoch, training):
            training.stop()

    def on_train_end(self, training):
        """End the fit."""
        self._end(self._context, training)

    def _end(self, context, training):
        return context.call_on_fit_task_end(
            **self._data, reconstruction_attributes=lambda: vars(training.trained_model())
        )
