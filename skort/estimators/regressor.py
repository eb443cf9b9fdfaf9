"""OrtSGDRegressor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from skort.common.available import available_if
from skort.common.sklearn_private import Interval, StrOptions, fit_context
from skort.estimators.base import BaseOrtSGD
from skort.estimators.data.nesting import can_partial_fit
from skort.estimators.data.targets import columns_of
from skort.estimators.did_you_mean import explained_arguments
from skort.estimators.literals import (
    Auto,
    BaseEstimator,
    DtypeName,
    ModelProto,
    OptimizerName,
    PenaltyName,
    RegressionLossName,
    Rows,
    ScheduleName,
    SolverName,
    Targets,
)
from skort.estimators.planning.loss_and_penalty import loss_before_fit
from skort.objective.loss import REGRESSION_LOSSES, ScoreLoss
from skort.objective.penalties import WeightPenalty
from skort.optim.callbacks import AnyCallback
from skort.optim.optimizers import Optimizer

if TYPE_CHECKING:
    from skort.common.sklearn_types import RegressorMixin
else:
    from sklearn.base import RegressorMixin

Own = TypeVar("Own", bound="OrtSGDRegressor")


class OrtSGDRegressor(RegressorMixin, BaseOrtSGD):
    r"""
    Regression by mini-batch gradient descent on ONNX Runtime.

    It minimises, batch by batch,

    .. math:: J(w) = \frac{\sum_i s_i \, loss(y_i, score_i)}{\sum_i s_i} + \alpha \, penalty(w)

    over the weights w of a scikit-learn model. :math:`s_i` are the sample weights. With several
    outputs, the loss of a row is the mean of the losses of its outputs. `save_onnx` writes the
    fitted model as an ONNX file.

    The first ten parameters are those that most fits need. The others are in groups: the model
    (from `trainable` on), the objective (from `l1_ratio` on), the optimizer (from `learning_rate`
    on), batches (from `shuffle` on), stopping (from `tol` on) and computing (from `solver` on).
    :doc:`/parameters` has them in tables.

    Parameters
    ----------
    estimator : estimator or onnx.ModelProto, default=None
        The model to train: a linear regressor or neural network of scikit-learn, a
        `skort.networks.TabularNetwork`, a `Pipeline` that ends in one of them,
        `FrozenEstimator(fitted)`, or an ONNX model. None is a linear regression with a
        small l2 penalty, see `penalty`. `fit` trains a clone, which has fitted weights only in a
        `FrozenEstimator`. See :doc:`/pipelines`.
    loss : str, loss instance, dict of str to either, or None, default="auto"
        A name, or an instance such as `skort.objective.Huber(epsilon=2)`. For an ONNX model with
        several outputs, a dict gives the loss of each output by its name. "auto" takes the loss of
        the model inside, or "squared_error" if that model has none. None takes the loss that an
        ONNX training graph computes. See :doc:`/losses`.
    penalty : {"auto", "l1", "l2", "elasticnet"}, penalty instance or None, default="auto"
        A name, or an instance such as `skort.objective.ElasticPenalty()`. "auto" takes the penalty
        of the model inside. With `estimator=None`, "auto" is "l2" on the weights of standardised
        columns, while `penalty="l2"` is on those of the columns as they are. In most models,
        intercepts have no penalty. See :doc:`/objective`.
    alpha : float or "auto", default="auto"
        Strength of the penalty. In a network, and in the default `penalty` with `estimator=None`,
        it is on the weights of standardised columns. "auto" takes the value of the model inside, or
        1e-4.
    optimizer : str or Optimizer, default="auto"
        How a gradient changes the weights: "sgd", "momentum", "nesterov", "adam", "lbfgs", or an
        instance. "auto" is "lbfgs" for a linear model with a smooth objective and dense rows in
        memory, and `skort.optimizers.Adam` with weight decay for a network. A linear model is
        trained by "sgd" if the loss or the penalty may have a kink, if X is sparse or comes in
        parts, or if a solver other than "graph" or one of these parameters is given: `batch_size`,
        `learning_rate`, `eta0`, `average`, `max_grad_norm`, `early_stopping`, `n_iter_no_change`
        and `shuffle`. See :doc:`/learning_rates`.
    eta0 : float or "auto", default="auto"
        The first learning rate of every optimizer and schedule. "auto" computes the rate from the
        data, or takes the default rate of the optimizer. If the training then diverges, it restarts
        at a tenth of the rate. In a stream of a linear model, it is the rate of a row, see
        :doc:`/stopping`. See :doc:`/learning_rates`.
    batch_size : int or "auto", default="auto"
        Number of rows of a batch. A shorter batch of m rows makes a step with m / `batch_size` of
        the learning rate, so that every row counts the same. "auto" is min(200, n_samples). In
        `partial_fit`, "auto" is the number of rows of the first call, at most 16.
    max_iter : int or "auto", default="auto"
        Largest number of epochs, or of iterations of "lbfgs". "auto" is 1,000 for a linear model.
        For a network, "auto" is a number from 20 to 300 that depends on the rows.
    early_stopping : bool or "auto", default="auto"
        Whether the training ends when the score of a validation set no longer improves. The
        validation set is given to `fit`, or `fit` holds out some rows. After the training, `fit`
        restores the weights of an earlier epoch if they are clearly better. "auto" holds
        out no rows, but a fitted model in a `FrozenEstimator` keeps its weights unless others are
        better in cross-validation. With False, it is trained to the end on all rows. See
        :doc:`/stopping` and :doc:`/fine_tuning`.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights of hidden layers and of the order of rows.

    Other Parameters
    ----------------
    trainable : str, list of str or None, default=None
        Names or patterns of the weights to train. All other weights stay, bit for bit. None trains
        the weights of the model. See :doc:`/fine_tuning`.
    standardize : "auto" or bool, default="auto"
        Whether the training gives the columns of X, and the y of a regressor, mean zero and
        standard deviation one. The fitted weights are in the units of the data. "auto" standardises
        whenever the model and the loss allow it, and gives columns of a new network that say more
        about y a larger deviation. See :doc:`/learning_rates`.
    dtype : {"float32", "float64"}, default="float32"
        Type of the weights, the arithmetic and the input of the exported model. If float32 cannot
        hold the weights, as for a column of values near 1e-46, the model is in float64.
    l1_ratio : float, "auto" or None, default="auto"
        The share of l1 in "elasticnet", from 0 to 1. "auto" takes the value of the model inside,
        or 0.15.
    epsilon : float or "auto", default="auto"
        A distance of the prediction from y. Beyond it, the loss "huber" is linear. Within it, the
        loss "epsilon_insensitive" is zero. "auto" takes the value of the model inside, or 0.1.
    quantile : float or "auto", default="auto"
        The quantile that the loss "quantile" predicts. "auto" takes the value of the model inside,
        or 0.5.
    n_total : int or None, default=None
        Number of rows of the whole data set, for a stream that gives `partial_fit` a part of them
        in each call. See :doc:`/objective`.
    learning_rate : {"auto", "adaptive", "constant", "invscaling", "optimal"} or callable, default="auto"
        How the learning rate changes. "adaptive" begins with `eta0` and divides the rate by five at
        each plateau, at most four times. A callable, such as `skort.schedules.Cosine()`, returns
        the rate for the number of the update. "auto" is "adaptive" for a linear model, and a cosine
        that falls to zero at the last epoch for a network. See :doc:`/learning_rates`.
    power_t : float, default=0.25
        Exponent of the schedule "invscaling". No other schedule reads it.
    max_grad_norm : float or None, default=None
        The largest Euclidean norm of a gradient. A longer gradient is shortened to this norm. The
        solvers "session" and "module" refuse it.
    average : "auto", bool or int, default="auto"
        Whether the fitted weights are the mean of the weights after each update. A number n is the
        first update that counts. "auto" is a mean of recent weights in a stream of a linear model
        whose rate falls with the rows, and False elsewhere. See :doc:`/learning_rates`.
    shuffle : bool, default=True
        Whether every epoch takes the rows in another order. Many rows are shuffled
        :ref:`window by window <shuffling>`. It has no effect on "lbfgs", which uses all rows at
        once, and in `fit_batches`.
    warm_start : bool, default=False
        Whether `fit` starts with the weights of the last fit. All else of the plan is that of a new
        model, but a network that knows the new rows has a smaller rate: see :doc:`/fine_tuning`.
        Transformers inside are fitted again, to the new rows: see :doc:`/stopping`.
    tol : float, "auto" or None, default="auto"
        The smallest improvement of an epoch. The training ends after `n_iter_no_change` epochs
        without it. The objective and the loss of a validation set have to fall by more than `tol`
        times their best value. The score of `scoring` has to rise by more than `tol`. For "lbfgs",
        `tol` is the largest entry of the gradient at the end. With None, the training makes all
        `max_iter` epochs. "auto" is 1e-3, and 0 for the loss of a validation set; for "lbfgs", it
        is 2e-6, or 1e-8 in float64. In float32, a linear model ends, too, when the gradient tells
        that the objective is within 1e-9 of the least one. For a network, "auto" is None, unless
        `early_stopping`, `n_iter_no_change` or "adaptive" is given. See :doc:`/stopping`.
    n_iter_no_change : int, inf or "auto", default="auto"
        Number of epochs without improvement after which the training ends, see `tol`. "auto" is
        5 epochs, or more with momentum, with few batches per epoch and after many epochs. With
        `early_stopping`, "auto" is at least 10 epochs, and at least half of the epochs of a
        cosine that falls to zero. With `numpy.inf`, `tol` does not end the training. It has no
        effect on "lbfgs", and with `tol=None`.
    validation_fraction : float, default=0.1
        The part of the rows that `early_stopping` holds out. It has no effect without
        `early_stopping`, and if `fit` gets `X_val`.
    scoring : str, callable or None, default=None
        How the validation set is scored, as in `sklearn.model_selection.cross_val_score`. With
        None, the score is minus the loss.
    solver : {"auto", "graph", "agent", "session", "module"}, default="auto"
        The backend that makes the steps. All solvers give the same result, or raise an error for a
        model that they cannot train. "auto" takes the fastest one for the model. See
        :doc:`/how_it_works`.
    device : str, default="cpu"
        "cpu", or an NVIDIA GPU such as "cuda" or "cuda:1", which needs the solver "graph". See
        :doc:`/speed`.
    n_jobs : "auto", int or None, default="auto"
        Number of threads on the CPU for one operator of ONNX Runtime. "auto" gives a fit as many
        free cores as the work of one step can use, and a prediction one thread. None is 1, unless a
        `joblib.parallel_config` says otherwise. -1 is all cores. See :doc:`/speed`.
    callbacks : list or None, default=None
        Objects with some of the methods of `skort.callbacks.Callback`. See :doc:`/stopping`.
    verbose : int, default=0
        1 shows a progress bar of the epochs, or one line if there is no terminal. 2 prints a table.

    Attributes
    ----------
    solver_ : str
        The solver that made the steps.
    optimizer_ : Optimizer
        The optimizer that made the updates.
    weights_ : dict of str to ndarray
        Copies of all weights, by their names in `onnx_`. `trainable_` has the names of the trained
        weights.
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients of a linear model. After transformers of X or y, they belong to the transformed
        columns. `coef_` and `intercept_` are read-only; `set_weights` changes them.
    intercept_ : ndarray of shape (1,) or (n_outputs,)
        Intercepts of a linear model.
    scale_ : float or ndarray of shape (n_outputs,)
        Scale of the residuals. It exists with a `HuberRegressor` inside, or with the loss
        `skort.objective.ConcomitantHuber`.
    onnx_ : onnx.ModelProto
        The model that predicts, as `save_onnx` writes it. See :doc:`/serving`.
    loss_curve_ : list of float
        The objective of each epoch: the mean of the objectives of its batches, each computed before
        the update of that batch.
    loss_ : float
        The objective of the last epoch.
    best_loss_ : float or None
        The smallest objective of an epoch; None with `early_stopping`.
    validation_scores_ : list of float or None
        The score of the validation set after each epoch: minus the loss without the penalty, or the
        score of `scoring`. Larger is better. None without a validation set.
    best_validation_score_ : float or None
        The largest validation score.
    initial_validation_score_ : float or None
        The validation score of the fitted weights that the training began at: those of a
        `FrozenEstimator`, of an ONNX model or of `warm_start`. The fit is better than the old model
        where `best_validation_score_` is larger. None without a validation set, for a new model,
        and after a `partial_fit`.
    history_ : dict of str to list
        One value per epoch for each of "loss" (without the penalty), "objective", "eta",
        "gradient_norm", "seconds", "validation_score", "restarts", and what callbacks record.
    stopping_reason_ : str or None
        A sentence that says why the training ended. None after a `partial_fit`.
    eta0_ : float
        Learning rate of the first update; in a stream of a linear model, of a row of it. After a
        restart, it is the rate of the restart. 1 for "lbfgs", which needs none.
    standardization_ : Standardization or None
        The means that the training subtracted from X and y, and the scales that it divided them by:
        `mean`, `scale`, `target_mean`, `target_scale`. None if it left X and y as they were.
    n_iter_ : int
        Number of epochs, including those of `partial_fit`.
    t_ : int
        Number of updates.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the columns of X had strings as names.

    See Also
    --------
    OrtSGDClassifier : The same for classification.
    sklearn.linear_model.SGDRegressor : Linear models, one row at a time.
    sklearn.neural_network.MLPRegressor : Neural networks.

    Notes
    -----
    The loss and the penalty have the formulas of `sklearn.linear_model.SGDRegressor`, whatever the
    batch size. See :doc:`/objective`. :doc:`/how_it_works` lists the differences from scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skort import OrtSGDRegressor
    >>> X, y = load_diabetes(return_X_y=True, scaled=False)
    >>> model = OrtSGDRegressor(random_state=0).fit(X, y)
    >>> round(model.score(X, y), 1)
    0.5
    """

    __module__ = "skort"
    quantile: float | Auto
    _parameter_constraints = {
        **BaseOrtSGD._parameter_constraints,
        "loss": [
            StrOptions({"auto", *REGRESSION_LOSSES}),
            dict,
            *BaseOrtSGD._parameter_constraints["loss"],
        ],
        "quantile": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(  # noqa: PLR0913  # the parameters
        self,
        estimator: BaseEstimator | ModelProto | None = None,
        *,
        loss: RegressionLossName
        | ScoreLoss
        | Mapping[str, RegressionLossName | ScoreLoss]
        | None = "auto",
        penalty: PenaltyName | WeightPenalty | None = "auto",
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
        l1_ratio: float | Auto | None = "auto",
        epsilon: float | Auto = "auto",
        quantile: float | Auto = "auto",
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
    def partial_fit(self: Own, X: Rows, y: Targets, sample_weight: ArrayLike | None = None) -> Own:
        """
        Make one pass over X and y, and continue where the last `partial_fit` or `fit` ended.

        The scales and the learning rate of a stream come from its first rows. `partial_fit` keeps
        the first rows until there are 20 of them; until then, the model predicts the best constant.
        Later calls may have any number of rows. :doc:`/text_and_sparse` has the settings of Adam for
        a stream of texts.

        A call is one epoch: `max_iter`, `tol`, `n_iter_no_change`, `validation_fraction` and
        `warm_start` have no effect. Each call continues with the optimizer's memory, the count of
        updates, the averages and the random generator of the call before it. A pickled copy
        continues in the same way. The method fits no step of a pipeline in `estimator`. It exists
        after a `fit`, whose steps stay as they are, or if the steps need no fit, because they are
        stateless or a `FrozenEstimator`. It raises the errors of `fit`, and a `ValueError` if
        `early_stopping` is True.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. They multiply the gradients as they are, not divided by their mean.
            If all of them are zero, the call changes nothing.

        Returns
        -------
        self : object
        """
        return self._partial_fit(X, y, sample_weight)

    @explained_arguments
    def predict(self, X: Rows) -> np.ndarray | Any:
        """
        Predict targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs), or dict of str to such arrays
            Predictions in float64, in the shape of the y of `fit`. If that y was a dict, they are a
            dict with the same names.
        """
        from skort.graphs.export import PREDICTION

        model = self._model()
        prediction = model.target_transform.inverse(
            self._run(model, PREDICTION, X).astype(np.float64)
        )
        if model.outputs is not None and model.outputs.by_name:
            return model.outputs.split(prediction)

        return prediction.ravel() if model.single_output else prediction

    def score(self, X: Rows, y: Targets, sample_weight: ArrayLike | None = None) -> float:
        """
        Return R², the coefficient of determination of the predictions: the mean over all columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or dict of str to array-like
            Targets, in the form of the y of `fit`. A dict has the names of the outputs of an ONNX
            model.
        sample_weight : array-like of shape (n_samples,), default=None
        """
        from sklearn.metrics import r2_score

        prediction = self.predict(X)
        target, prediction = (columns_of(self.loss, each) for each in (y, prediction))
        return float(r2_score(target, prediction, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        loss = loss_before_fit(self)
        tags.target_tags.positive_only = loss is not None and loss.needs_positive_target
        # As PoissonRegressor: scikit-learn's checks of several outputs have negative targets.
        tags.target_tags.multi_output = not tags.target_tags.positive_only
        return tags


# doctest skips a class whose `__module__` names another module; it finds the examples here.
__test__: dict[str, type] = {"OrtSGDRegressor": OrtSGDRegressor}
