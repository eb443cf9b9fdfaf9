"""OrtSGDRegressor."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from skort.common.available import available_if
from skort.estimators.base import BaseOrtSGD
from skort.estimators.data.targets import columns_of
from skort.estimators.literals import Auto, DtypeName, ModelProto, OptimizerName, PenaltyName, ScheduleName, SolverName
from skort.estimators.model.nesting import can_partial_fit
from skort.estimators.planning.objective import loss_before_fit
from skort.objective.loss import REGRESSION_LOSSES, ScoreLoss
from skort.objective.penalties import WeightPenalty
from skort.optim.callbacks import Callback
from skort.optim.optimizers import Optimizer


class OrtSGDRegressor(RegressorMixin, BaseOrtSGD):
    r"""
    Regression by mini-batch gradient descent on ONNX Runtime.

    It minimises, batch by batch,

    .. math:: J(w) = \frac{\sum_i s_i \, loss(y_i, score_i)}{\sum_i s_i} + \alpha \, penalty(w)

    over the weights w of a scikit-learn model. :math:`s_i` are the sample weights. With several outputs, the loss of a
    row is the mean over them. `save_onnx` writes the fitted model as an ONNX file.

    Parameters
    ----------
    estimator : estimator or onnx.ModelProto, default=None
        The model to train: a linear regressor or neural network of scikit-learn, a `Pipeline` that ends in one, or
        `FrozenEstimator(fitted)`; None: `LinearRegression()`. A clone is trained. See :doc:`/pipelines`.
    solver : {"auto", "graph", "agent", "session", "module"}, default="auto"
        The backend. All give the same result, or refuse. "auto": the fastest for the model. See :doc:`/how_it_works`.
    loss : str, loss instance, dict of str to either, or None, default="auto"
        A name, an instance such as `skort.objective.Huber(epsilon=2)`, or a dict of them by the outputs of an ONNX
        model. "auto": that of the model inside, or "squared_error". None: that which an ONNX training graph computes.
        See :doc:`/losses`.
    epsilon : float or "auto", default="auto"
        The distance from y at which "huber" becomes linear, or which costs nothing with "epsilon_insensitive". "auto":
        that of the model inside, or 0.1.
    quantile : float or "auto", default="auto"
        The quantile that the loss "quantile" predicts. "auto": that of the model inside, or 0.5.
    penalty : {"auto", "l1", "l2", "elasticnet"}, penalty instance or None, default="auto"
        A name or an instance, such as `skort.objective.ElasticPenalty`. "auto": that of the model inside. Intercepts
        mostly have none. See :doc:`/objective`.
    alpha : float or "auto", default="auto"
        Strength of the penalty; in a network, on the weights of standardised columns. "auto": that of the model inside,
        or 1e-4.
    l1_ratio : float, "auto" or None, default="auto"
        The share of l1 in "elasticnet", from 0 to 1. "auto": that of the model inside, or 0.15.
    n_total : int or None, default=None
        Number of rows of a whole stream, where a call gets a part of them. See :doc:`/objective`.
    optimizer : str or Optimizer, default="auto"
        How a gradient changes the weights: "sgd", "momentum", "nesterov", "adam", "lbfgs", or an instance. "auto":
        "sgd"; for a network `skort.optimizers.Adam` with weight decay. See :doc:`/learning_rates`.
    max_grad_norm : float or None, default=None
        The largest Euclidean norm of a gradient; a longer one is shortened to it. Not for solver "session".
    learning_rate : {"auto", "adaptive", "constant", "invscaling", "optimal"} or callable, default="auto"
        "adaptive": `eta0`, divided by five at each plateau, four times at most. Or a function of the number of the
        update, such as `skort.schedules.Cosine()`. "auto": "adaptive"; for a network a cosine that comes to zero
        with the last epoch. See :doc:`/learning_rates`.
    eta0 : float or "auto", default="auto"
        The first learning rate, of whatever optimizer and schedule. "auto": from the data or the optimizer, and a
        tenth of it if the training diverges. See :doc:`/learning_rates`.
    power_t : float, default=0.25
        Exponent of "invscaling".
    batch_size : int or "auto", default="auto"
        Number of rows of a batch. A batch of m rows makes a step of m / `batch_size` of the learning rate: every row
        counts the same. "auto": min(200, n_samples); in `partial_fit`, the rows of the first call, at most 16.
    max_iter : int or "auto", default="auto"
        Largest number of epochs. "auto": 1,000; of a network 20 to 300, by the number of rows.
    tol : float, "auto" or None, default="auto"
        The training ends after `n_iter_no_change` epochs in which no fall of the objective, or of the validation loss,
        was more than `tol` times itself, or no rise of the score of `scoring` more than `tol`. For "lbfgs": the largest
        entry of the gradient. None: after `max_iter` epochs. "auto": 1e-3; 0 for a validation loss; None for a network
        without `early_stopping`, `n_iter_no_change` and "adaptive". See :doc:`/stopping`.
    n_iter_no_change : int, inf or "auto", default="auto"
        "auto": 10 with `early_stopping`, and half of the epochs of a cosine; else 5, and more with momentum, for
        few batches and after many epochs. `numpy.inf`: `tol` does not end the training.
    early_stopping : bool, default=False
        Whether a validation set, given to `fit` or held out, ends the training, and earlier weights, if clearly better,
        are restored. See :doc:`/stopping`.
    validation_fraction : float, default=0.1
        The part of the rows that is held out.
    scoring : str, callable or None, default=None
        How the validation set is scored, as in `sklearn.model_selection.cross_val_score`. None: by minus its loss.
    shuffle : bool, default=True
        Whether every epoch takes the rows in another order, many rows :ref:`window by window <shuffling>`.
    standardize : "auto" or bool, default="auto"
        Whether columns of X, and the y of a regressor, have mean zero and standard deviation one in the training. The
        fitted weights stay in the units of the data. "auto": where possible. See :doc:`/learning_rates`.
    trainable : str, list of str or None, default=None
        Names or patterns of the weights to train; all others stay, bit for bit. None: the weights of the model. See
        :doc:`/fine_tuning`.
    dtype : {"float32", "float64"}, default="float32"
        Type of the weights, of the arithmetic, and of the exported model's input. A model whose weights float32 cannot
        hold, as those of a column of 1e-46, is one of float64.
    device : str, default="cpu"
        "cpu", or with solver "graph" an NVIDIA GPU: "cuda", "cuda:1". See :doc:`/speed`.
    n_jobs : "auto", int or None, default="auto"
        Threads of an operator on the CPU. "auto": in a fit as many free cores as a step has work for; None: mostly 1;
        -1: all. See :doc:`/speed`.
    average : bool or int, default=False
        Whether the fitted weights are the mean over all updates, or from the n-th on. See
        :doc:`/learning_rates`.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights of hidden layers and of the order of rows.
    warm_start : bool, default=False
        Whether `fit` starts with the weights of the last fit.
    callbacks : list or None, default=None
        Objects with some of the methods of `skort.callbacks.Callback`. See :doc:`/stopping`.
    verbose : int, default=0
        1: a progress bar over epochs, or one line where there is no terminal. 2: a table.

    Attributes
    ----------
    solver_ : str
        The solver that made the steps.
    optimizer_ : Optimizer
        The optimizer that made them.
    weights_ : dict of str to ndarray
        Copies of all weights, by their names in `onnx_`. `trainable_` names the trained ones.
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients of a linear model, for the transformed columns and y if there are such. Read-only, as `intercept_`
        is: `set_weights` changes the model.
    intercept_ : ndarray of shape (1,) or (n_outputs,)
        Intercepts of a linear model.
    scale_ : float or ndarray of shape (n_outputs,)
        Scale of the residuals, with a `HuberRegressor` inside or the loss `skort.objective.ConcomitantHuber`.
    onnx_ : onnx.ModelProto
        The model that predicts, as `save_onnx` writes it. See :doc:`/serving`.
    loss_curve_ : list of float
        The objective of each epoch: the mean over its batches, each before its update.
    loss_ : float
        The objective of the last epoch.
    best_loss_ : float or None
        The smallest objective of an epoch; None with `early_stopping`.
    validation_scores_ : list of float or None
        After each epoch: minus the loss, without the penalty, or `scoring`. Larger is better.
    best_validation_score_ : float or None
        The largest validation score.
    history_ : dict of str to list
        One value per epoch for each of "loss" (without the penalty), "objective", "eta", "gradient_norm", "seconds",
        "validation_score", "restarts", and what callbacks record.
    stopping_reason_ : str or None
        Why the training ended, as a sentence; None after a `partial_fit`.
    eta0_ : float
        Learning rate of the first update, after any restart.
    standardization_ : Standardization or None
        What X and y were centred and divided by: `mean`, `scale`, `target_mean`, `target_scale`.
    n_iter_ : int
        Number of epochs, including those of `partial_fit`.
    t_ : int
        Number of updates.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X had string names.

    See Also
    --------
    OrtSGDClassifier : The same for classification.
    sklearn.linear_model.SGDRegressor : Linear models, one row at a time.
    sklearn.neural_network.MLPRegressor : Neural networks.

    Notes
    -----
    Loss and penalty have the formulas of `sklearn.linear_model.SGDRegressor`, for any size of the batch. See
    :doc:`/objective`, and :doc:`/how_it_works` for the differences to scikit-learn.

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
    _parameter_constraints = {
        **BaseOrtSGD._parameter_constraints,
        "loss": [StrOptions({"auto", *REGRESSION_LOSSES}), dict, *BaseOrtSGD._parameter_constraints["loss"]],
        "quantile": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        estimator: BaseEstimator | ModelProto | None = None,
        *,
        solver: SolverName = "auto",
        loss: str | ScoreLoss | dict[str, str | ScoreLoss] | None = "auto",
        epsilon: float | Auto = "auto",
        quantile: float | Auto = "auto",
        penalty: PenaltyName | WeightPenalty | None = "auto",
        alpha: float | Auto = "auto",
        l1_ratio: float | Auto | None = "auto",
        n_total: int | None = None,
        optimizer: OptimizerName | Optimizer = "auto",
        max_grad_norm: float | None = None,
        learning_rate: ScheduleName | Callable[[int], float] = "auto",
        eta0: float | Auto = "auto",
        power_t: float = 0.25,
        batch_size: int | Auto = "auto",
        max_iter: int | Auto = "auto",
        tol: float | Auto | None = "auto",
        n_iter_no_change: int | float | Auto = "auto",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        scoring: str | Callable | None = None,
        shuffle: bool = True,
        standardize: bool | Auto = "auto",
        trainable: str | list[str] | None = None,
        dtype: DtypeName = "float32",
        device: str = "cpu",
        n_jobs: int | str | None = "auto",
        average: bool | int = False,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        callbacks: list[Callback] | None = None,
        verbose: int = 0,
    ):
        self._store(locals())

    @available_if(can_partial_fit)
    @_fit_context(prefer_skip_nested_validation=False)
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> OrtSGDRegressor:
        """
        Make one pass over X and y, from where the last call of `partial_fit` or `fit` ended.

        The first rows of a stream decide its scales and its learning rate: they wait until there are 20 of them, and
        the model predicts the best constant until then. Later calls may have any number of rows.

        A call continues with the same optimizer's memory, count of updates, averages and random generator, also in a
        copy that was pickled. The method exists only if the steps of a pipeline in `estimator` need no fit: they are
        stateless or a `FrozenEstimator`. It raises what `fit` raises, and a `ValueError` if `early_stopping` is True.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, which multiply their gradients as they are. A call in which all are zero changes
            nothing.

        Returns
        -------
        self : object
        """
        return self._partial_fit(X, y, sample_weight)

    def predict(self, X: ArrayLike) -> np.ndarray | dict[str, np.ndarray]:
        """
        Predict targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs), or dict of str to such arrays
            In float64, in the shape of the y of `fit`. If that was a dict: a dict with the same names.
        """
        from skort.graphs.export import PREDICTION

        model = self._model()
        prediction = model.target_transform.inverse(self._run(model, PREDICTION, X).astype(np.float64))
        if model.outputs is not None and model.outputs.by_name:
            return model.outputs.split(prediction)
        return prediction.ravel() if model.single_output else prediction

    def score(self, X, y, sample_weight=None):
        """
        Return the coefficient of determination of the predictions, R², the mean over all columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or dict of str to array-like
            In the form of the y of `fit`; a dict by the names of the outputs of an ONNX model.
        sample_weight : array-like of shape (n_samples,), default=None
        """
        from sklearn.metrics import r2_score

        prediction = self.predict(X)
        target, prediction = (columns_of(self.loss, each) for each in (y, prediction))
        return r2_score(target, prediction, sample_weight=sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        loss = loss_before_fit(self)
        tags.target_tags.positive_only = loss is not None and loss.needs_positive_target
        return tags


# Where doctest is to find the examples of a class that says that it is elsewhere.
__test__ = {"OrtSGDRegressor": OrtSGDRegressor}
