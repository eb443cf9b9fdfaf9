"""scikit-learn's own callbacks (`set_callbacks`, since scikit-learn 1.9) in a training of skort."""

from typing import TYPE_CHECKING, Any

from skort.optim.training import Training

if TYPE_CHECKING:
    from skort.common.sklearn_types import Predictor as CallbackSupportMixin
else:
    try:
        from sklearn.callback import CallbackSupportMixin
    except ImportError:  # scikit-learn < 1.9

        class CallbackSupportMixin:
            """Replaces the class of scikit-learn 1.9: older versions have no callbacks."""


def has_callbacks(estimator: Any) -> bool:
    """Return whether `set_callbacks` was called on an estimator, or on a meta-estimator around it."""
    # Each fit of a search of scikit-learn has a context of callbacks, even if there are none.
    return bool(vars(estimator).get("_skl_callbacks"))


class SklearnCallbacks:
    """
    Runs the callbacks that `set_callbacks` got, of the estimator or of a meta-estimator. The epochs
    are the tasks of the fit.
    """

    def __init__(self, estimator: Any, given: Any, max_iter: int):
        weights = given.sample_weight
        metadata = None if weights is None else {"sample_weight": weights}
        self._data = {"estimator": estimator, "X": given.X, "y": given.y, "metadata": metadata}
        self._context = estimator._init_callback_context(max_subtasks=max_iter)
        self._n_left = max_iter

    def on_train_begin(self, training: Training) -> None:
        """Begin the fit."""
        self._context.call_on_fit_task_begin(**self._data)

    def on_epoch_end(self, training: Training) -> None:
        """
        Begin and end the task of an epoch.

        A training that restarted may have more epochs than were announced: they have no task.
        """
        if self._n_left == 0:
            return

        self._n_left -= 1
        epoch = self._context.subcontext(task_name="epoch").call_on_fit_task_begin(**self._data)
        if self._end(epoch, training):
            training.stop()

    def on_train_end(self, training: Training) -> None:
        """End the fit."""
        self._end(self._context, training)

    def _end(self, context, training):
        return context.call_on_fit_task_end(
            **self._data, reconstruction_attributes=lambda: vars(training.trained_model())
        )
