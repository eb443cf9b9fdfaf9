"""OrtSGDClassifier."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit, log_softmax

from skort.common.available import available_if
from skort.common.sklearn_private import StrOptions, fit_context
from skort.estimators.base import BaseOrtSGD
from skort.estimators.data.known_labels import model_labels
from skort.estimators.data.nesting import can_partial_fit, layers
from skort.estimators.data.targets import streamed_classes
from skort.estimators.did_you_mean import explained_arguments
from skort.estimators.literals import (
    Auto,
    BaseEstimator,
    ClassificationLossName,
    DtypeName,
    ModelProto,
    OptimizerName,
    PenaltyName,
    Rows,
    ScheduleName,
    SolverName,
)
from skort.estimators.planning.loss_and_penalty import loss_before_fit
from skort.estimators.regressor import OrtSGDRegressor
from skort.objective.loss import CLASSIFICATION_LOSSES, ScoreLoss
from skort.objective.penalties import WeightPenalty
from skort.optim.callbacks import AnyCallback
from skort.optim.optimizers import Optimizer

if TYPE_CHECKING:
    from skort.common.sklearn_types import ClassifierMixin
else:
    from sklearn.base import ClassifierMixin

Own = TypeVar("Own", bound="OrtSGDClassifier")

# ONNX Runtime adds up the probabilities of a row one after the other. With more classes than
# this, their sum may differ from one by more than 1e-15.
_MANY_CLASSES = 20


def gives_probabilities(classifier: BaseOrtSGD) -> bool:
    """Raise an AttributeError if the loss, or after a fit the fitted loss, has no probabilities."""
    result = vars(classifier).get("_result")
    loss = loss_before_fit(classifier) if result is None else result.model.loss
    if (
        loss is None
        or "classifier" not in loss.estimator_types
        or loss.inverse_link_function(1) is None
    ):
        name = classifier.loss
        shown = repr(name) if isinstance(name, str) else f"{type(name).__name__}(...)"
        if name == "auto" and loss is not None:
            shown = f"{type(loss).__name__}(), which the model inside has"
        raise AttributeError(
            f"probability estimates are not available for loss={shown}. Use "
            'loss="log_loss" or "modified_huber", or put CalibratedClassifierCV of '
            "sklearn.calibration around the classifier."
        )
    return True


def _documented(cls: type[Own]) -> type[Own]:
    """Replace lines such as {solver} in a docstring by entries of `OrtSGDRegressor`'s docstring."""
    entry = re.compile(r"^(\w+) : .*\n(?: {4}.*\n)*", re.MULTILINE)
    entries = {
        found[1]: found[0]
        for found in entry.finditer(inspect.cleandoc(OrtSGDRegressor.__doc__ or ""))
    }
    names = re.compile(r"^\{([\w,\s]+)\}\n", re.MULTILINE)
    docstring = inspect.cleandoc(cls.__doc__ or "")
    cls.__doc__ = names.sub(
        lambda found: "".join(map(entries.__getitem__, re.findall(r"\w+", found[1]))), docstring
    )

    return cls


@_documented
class OrtSGDClassifier(ClassifierMixin, BaseOrtSGD):
    r"""
    Classification by mini-batch gradient descent on ONNX Runtime.

    It minimises, batch by batch,

    .. math:: J(w) = \frac{\sum_i s_i \, loss(y_i, score_i)}{\sum_i s_i} + \alpha \, penalty(w)

    over the weights w of a scikit-learn model. :math:`s_i` are the sample weights times the class
    weights. The default loss is the log-loss. With two classes, the model has one raw score, and
    its sigmoid is a probability. With more classes, the model has one raw score for each class, and
    their softmax gives the probabilities. `save_onnx` writes the fitted model as an ONNX file.

    The first ten parameters are those that most fits need. The others are in groups: the model
    (from `trainable` on), the objective (from `penalty` on), the optimizer (from `learning_rate`
    on), batches (from `shuffle` on), stopping (from `tol` on) and computing (from `solver` on).
    :doc:`/parameters` has them in tables.

    Parameters
    ----------
    estimator : estimator or onnx.ModelProto, default=None
        The model to train: a linear classifier or neural network of scikit-learn, a
        `skort.networks.TabularNetwork`, a `Pipeline` that ends in one of them,
        `FrozenEstimator(fitted)`, or an ONNX model. None is a logistic regression with a
        small l2 penalty, see `penalty`. `fit` trains a clone, which has fitted weights only in a
        `FrozenEstimator`. See :doc:`/pipelines`.
    loss : str, loss instance or None, default="auto"
        A name, or an instance such as `skort.objective.OneVsRestLogLoss()`. "auto" takes the loss
        of the model inside, or "log_loss" if that model has none. None takes the loss that an ONNX
        training graph computes. "log_loss" and "modified_huber" give probabilities. A multi-label y
        needs "log_loss". See :doc:`/losses`.
    class_weight : dict, "balanced", "auto" or None, default="auto"
        A factor for the sample weights of each class, by label. For text labels, a number stands
        for the label that is written like it: 1 for "1", not for "01". "auto" takes the class
        weights of the model inside. See :doc:`/objective`.
    {alpha, optimizer, eta0, batch_size, max_iter}
    early_stopping : bool or "auto", default="auto"
        Whether the training ends when the score of a validation set no longer improves. The
        validation set is given to `fit`, or `fit` holds out rows of each class. After the training,
        `fit` restores the weights of an earlier epoch if they are clearly better. "auto" holds
        out no rows, but a fitted model in a `FrozenEstimator` keeps its weights unless others are
        better in cross-validation. With False, it is trained to the end on all rows. See
        :doc:`/stopping` and :doc:`/fine_tuning`.
    {random_state}

    Other Parameters
    ----------------
    {trainable, standardize, dtype, penalty, l1_ratio}
    epsilon : float or "auto", default="auto"
        A distance of the score from the label. Beyond it, the loss "huber" is linear. Within it,
        the loss "epsilon_insensitive" is zero. "auto" takes the value of the model inside, or 0.1.
    {n_total, learning_rate, power_t, max_grad_norm, average, shuffle, warm_start, tol, n_iter_no_change,
    validation_fraction, scoring, solver, device, n_jobs, callbacks, verbose}

    Attributes
    ----------
    {solver_, optimizer_}
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted; after a multi-label y, 0 to n_labels - 1.
    {weights_}
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients of a linear model. After the transformers of a pipeline, they belong to the
        transformed columns. `coef_` and `intercept_` are read-only; `set_weights` changes them.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts of a linear model.
    {onnx_, loss_curve_, loss_, best_loss_, validation_scores_, best_validation_score_,
    initial_validation_score_, history_, stopping_reason_, eta0_, standardization_,
    n_iter_, t_, n_features_in_, feature_names_in_}

    See Also
    --------
    OrtSGDRegressor : The same for regression.
    sklearn.linear_model.SGDClassifier : Linear models, one row at a time.
    sklearn.neural_network.MLPClassifier : Neural networks.

    Notes
    -----
    The default loss is the loss of `sklearn.linear_model.LogisticRegression`. The penalty has the
    formula of `SGDClassifier`, whatever the batch size. See :doc:`/objective` and
    :doc:`/how_it_works`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skort import OrtSGDClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OrtSGDClassifier(random_state=0).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.99
    """

    __module__ = "skort"
    classes_: np.ndarray
    class_weight: dict[Any, float] | Literal["auto", "balanced"] | None
    _parameter_constraints = {
        **BaseOrtSGD._parameter_constraints,
        "loss": [
            StrOptions({"auto", *CLASSIFICATION_LOSSES}),
            *BaseOrtSGD._parameter_constraints["loss"],
        ],
        "class_weight": [StrOptions({"auto", "balanced"}), dict, None],
    }

    def __init__(  # noqa: PLR0913  # the parameters
        self,
        estimator: BaseEstimator | ModelProto | None = None,
        *,
        loss: ClassificationLossName | ScoreLoss | None = "auto",
        class_weight: dict[Any, float] | Literal["auto", "balanced"] | None = "auto",
        alpha: float | Auto = "auto",
        optimizer: OptimizerName | Optimizer = "auto",
        eta0: float | Auto = "auto",
        batch_size: int | Auto = "auto",
        max_iter: int | Auto = "auto",
        early_stopping: bool | Auto = "auto",
        random_state: int | np.random.RandomState | None = None,
        trainable: str | list[str] | None = None,
        standardize: bool | Auto = "auto",
        dtype: DtypeName = "float32",
        penalty: PenaltyName | WeightPenalty | None = "auto",
        l1_ratio: float | Auto | None = "auto",
        epsilon: float | Auto = "auto",
        n_total: int | None = None,
        learning_rate: ScheduleName | Callable[[int], float] = "auto",
        power_t: float = 0.25,
        max_grad_norm: float | None = None,
        average: bool | int | Auto = "auto",
        shuffle: bool = True,
        warm_start: bool = False,
        tol: float | Auto | None = "auto",
        n_iter_no_change: int | float | Auto = "auto",
        validation_fraction: float = 0.1,
        scoring: str | Callable[..., Any] | None = None,
        solver: SolverName = "auto",
        device: str = "cpu",
        n_jobs: int | str | None = "auto",
        callbacks: Sequence[AnyCallback] | None = None,
        verbose: int = 0,
    ):
        self._store(locals())

    @available_if(can_partial_fit)
    @explained_arguments
    @fit_context
    def partial_fit(
        self: Own,
        X: Rows,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Own:
        """
        Make one pass over X and y, and continue where the last `partial_fit` or `fit` ended.

        The description of `OrtSGDRegressor.partial_fit` holds here, too. For a stream of texts, give
        ``penalty=None, optimizer="adam", learning_rate="constant", eta0=0.1``: :doc:`/text_and_sparse`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Class labels, as in `fit`.
        classes : array-like of shape (n_classes,), default=None
            All class labels. For a multi-label y, they are the numbers from 0 to n_labels - 1. The
            first call needs them, unless the fitted or ONNX model in `estimator` has them. Later calls take
            None or the same labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. They multiply the gradients as they are, not divided by their mean.
            If all of them are zero, the call changes nothing.

        Returns
        -------
        self : object
        """
        if classes is None and not hasattr(self, "classes_"):
            *_, (model, is_fitted) = layers(self.estimator)
            classes = model_labels(model, is_fitted, y)
        return self._partial_fit(X, y, sample_weight, streamed_classes(self, classes))

    @explained_arguments
    def predict(self, X: Rows) -> np.ndarray:
        """
        Predict class labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels. After a multi-label y, they are int64: 1 if the row has the label, else 0.
        """
        from skort.graphs.export import LABEL

        fitted = self._model()
        return fitted.labels(self._run(fitted, LABEL, X))

    @explained_arguments
    def decision_function(self, X: Rows) -> np.ndarray:
        """
        Return the raw scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        score : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores in float64. With two classes there is one score, and `predict` returns
            `classes_[1]` if it is positive. Each label of a multi-label y has its own score.
        """
        score = self._score(self._model(), X)
        return score.ravel() if score.shape[1] == 1 else score

    def _score(self, fitted, X):
        from skort.graphs.export import SCORE

        return self._run(fitted, SCORE, X).astype(np.float64)

    @available_if(gives_probabilities)
    @explained_arguments
    def predict_proba(self, X: Rows) -> np.ndarray:
        """
        Return the probabilities of the classes.

        The method exists with the losses "log_loss" and "modified_huber".

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities in float64, computed from the raw scores. Each row sums to one within
            1e-15. After a multi-label y, each label has its own probability.
        """
        from skort.graphs.export import PROBABILITIES

        fitted = self._model()
        probabilities = self._run(fitted, PROBABILITIES, X)
        if probabilities.shape[1] > _MANY_CLASSES and not fitted.multi_label:
            probabilities /= np.add.reduce(probabilities, axis=1, keepdims=True)
        return probabilities

    @available_if(gives_probabilities)
    @explained_arguments
    def predict_log_proba(self, X: Rows) -> np.ndarray:
        """
        Return the logarithms of the probabilities of the classes.

        The method exists with the losses that have `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Logarithms in float64. With "log_loss", they are computed from the raw scores, and stay
            finite even if a probability is rounded to zero. With "modified_huber", they are minus
            infinity for a probability of zero.
        """
        from skort.graphs.export import PROBABILITIES

        fitted = self._model()
        if not fitted.loss.is_logistic:
            with np.errstate(divide="ignore"):
                return np.log(self._run(fitted, PROBABILITIES, X))

        score = self._score(fitted, X)
        if fitted.multi_label:
            return log_expit(score)
        if score.shape[1] == 1:
            return log_expit(np.hstack([-score, score]))

        return log_softmax(log_expit(score) if fitted.loss.one_against_rest else score, axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        *_, (model, _) = layers(self.estimator)
        tags.classifier_tags.multi_label = type(model).__name__ == "MLPClassifier"
        return tags


# doctest skips a class whose `__module__` names another module; it finds the examples here.
__test__: dict[str, type] = {"OrtSGDClassifier": OrtSGDClassifier}
