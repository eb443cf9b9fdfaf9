"""OrtSGDRegressor."""

from collections.abc import Callable
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from skort.estimators.base import BaseOrtSGD
from skort.estimators.before_fit import can_partial_fit, loss_before_fit
from skort.estimators.data.data_source import GivenRows
from skort.estimators.literals import Auto, DtypeName, OptimizerName, PenaltyName, ScheduleName, SolverName
from skort.estimators.predictions import RegressorPredictions
from skort.objective.loss import ScoreLoss
from skort.objective.losses import REGRESSION_LOSSES
from skort.objective.penalties import WeightPenalty
from skort.optim.callbacks import Callback
from skort.optim.optimizers import Optimizer


class OrtSGDRegressor(RegressorPredictions):
    r"""
    Regression by mini-batch gradient descent on ONNX Runtime.

    It minimises, batch by batch,

    .. math:: J(w) = \frac{\sum_i s_i \, loss(y_i, score_i)}{\sum_i s_i} + \alpha \, penalty(w)

    over the weights w of a scikit-learn model. :math:`s_i` are the sample weights. With several outputs, the loss of a
    row is the mean over them. `save_onnx` writes the fitted model as an ONNX file.

    Parameters
    ----------
    estimator : estimator or onnx.ModelProto, default=None
        The model to train: any linear regressor or neural network of scikit-learn, or a `Pipeline` that ends in one.
        None: `LinearRegression()` with an l2 penalty of 1e-4 on the weights of standardised columns. skort uses its
        architecture and its objective (`fit_intercept`, `hidden_layer_sizes`, `alpha`, ...), not its training
        parameters, such as `max_iter`: a warning names those that are not at their defaults. The model is not changed:
        a clone of it is trained. The steps of a pipeline before the model are cloned, fitted once on all rows, and
        exported with the model. They get X as it is, and no `sample_weight`, as in scikit-learn's pipelines.
        `FrozenEstimator(fitted)` starts from the weights of a fitted model or pipeline, and does not fit its steps
        again. The fitted model may be of any type whose ONNX graph has weights with a gradient.
        `TransformedTargetRegressor`: its transformer is fitted to y, and the model is trained on the transformed y;
        predictions and scores are in units of y. `onnx.ModelProto`: one input of floats, and one output of floats for
        each loss. Training starts from its weights.
    solver : {"auto", "graph", "agent", "session", "module"}, default="auto"
        What makes the gradient steps. All solvers make the same steps. "graph": the whole step is one ONNX graph, which
        any onnxruntime runs. "agent": TrainingAgent of ONNX Runtime. "session": its TrainingSession (float32; Linux
        x86-64, Python 3.10 and 3.11). "module": its on-device API (float32, "sgd" and "adam", no l1 term). "auto": the
        fastest of the first three that can train the model with these parameters. This is "graph", or "agent" for more
        than 500,000 weights and where "graph" has no rule for an operator of the model or for an optimizer of your own.
    loss : str, loss instance or dict of str to either, default="auto"
        "auto": the loss of the model inside, such as the quantile loss of a `QuantileRegressor`; "squared_error" if it
        has none. A name, such as "squared_error", "absolute_error", "huber", "epsilon_insensitive", "quantile" or
        "poisson"; the page on losses has all of them. An instance, such as
        `skort.objective.Huber(epsilon=2)`, or `skort.objective.Loss` for a loss of your own. With "poisson" (y not
        negative) and "gamma" (y positive), the score is the logarithm of the prediction. A dict gives a loss to each
        output of an ONNX model, by name; their sum is minimised.
    epsilon : float or "auto", default="auto"
        In units of y. With "huber": the distance from y at which the loss becomes linear. With the two
        "epsilon_insensitive" losses: the distance that costs nothing. "auto": the value of the model inside, or 0.1. An
        instance has its own.
    quantile : float or "auto", default="auto"
        With the loss "quantile": the quantile to predict, between 0 and 1. "auto": the value of the model inside, or
        0.5.
    penalty : {"auto", "l1", "l2", "elasticnet"}, penalty instance or None, default="auto"
        "auto": the penalty of the model inside, in its own units, so that a long fit ends at scikit-learn's optimum. If
        the model has none, `alpha` alone means "l2". The penalty covers the weights that multiply inputs. It covers
        intercepts only for liblinear's models (`LinearSVC`, `LinearSVR`, `LogisticRegression(solver="liblinear")`),
        and where an instance has `intercepts`. "l1" makes weights exactly zero, in mini-batches too (but see
        `average`). An instance has its own `alpha` and `l1_ratio`: `skort.objective.ElasticPenalty` has a strength for
        each weight, `skort.objective.Penalty` is a penalty of your own.
    alpha : float or "auto", default="auto"
        Strength of the penalty, not negative. "auto": that of the model inside, for instance 1 / (C S) for
        `LogisticRegression(C)`, where S is the sum of the sample weights of the fit, or of the first `partial_fit` (but
        see `n_total`). If the model inside does not have this penalty, "auto" is 1e-4.
    l1_ratio : float, "auto" or None, default="auto"
        With "elasticnet": the share of l1, from 0 (as "l2") to 1 (as "l1"). "auto": the value of the model inside, or
        0.15. Other penalties do not use it; it may be None.
    n_total : int or None, default=None
        Number of rows of a whole stream, if a call gets only a part of them. S is then this number times the mean
        sample weight of the call.
    optimizer : str or Optimizer, default="sgd"
        How a gradient changes the weights: "sgd" (:math:`w \leftarrow w - \eta g`), "momentum", "nesterov", "adam", or
        the name of another class of `skort.optimizers`; give an instance to set its parameters. Solver "session" has
        "sgd" and "adam" only. At the same learning rate, momentum moves the weights about ten times as far as "sgd".
        For "adam", rates of 0.001 to 0.01 are good.
    max_grad_norm : float or None, default=None
        The largest Euclidean norm of a gradient, over all weights. A longer gradient is shortened to this norm. Not for
        solver "session".
    learning_rate : {"adaptive", "constant", "invscaling", "optimal"} or callable, default="adaptive"
        "adaptive": `eta0`, which falls to a fifth whenever the training would end because of `tol`, at most four times
        (in `partial_fit` it does not fall). "constant": :math:`\eta = eta0`. "invscaling": :math:`\eta = eta0 /
        t^{power\_t}`. "optimal": :math:`\eta = 1 / (\alpha (t_0 + t - 1))` with :math:`t_0 = \alpha^{-3/4}`. t counts
        the updates from 1. Or any function of t, such as `Cosine()` and `Warmup()` of `skort.schedules`.
    eta0 : float or "auto", default="auto"
        The first learning rate, positive. "auto": 1 / L for a linear model, where L bounds how fast the gradient
        changes along a step; 0.2 for a network. Momentum moves the weights farther, and gets a rate that is as much
        smaller. With "adam": 0.01 for a linear model, 0.001 for a network. If a training with "auto" diverges, or ends
        no better than it began, it begins again at a tenth of the rate, at most three times. `eta0_` is the rate that
        was used.
    power_t : float, default=0.25
        Exponent of "invscaling".
    batch_size : int or "auto", default="auto"
        Number of rows of a batch, at most all rows. "auto": min(200, n_samples). The last batch of an epoch may have
        fewer.
    max_iter : int, default=1000
        Largest number of epochs.
    tol : float or None, default=1e-4
        The training ends if the objective stays above the best one minus `tol` for `n_iter_no_change` epochs in a row.
        With the learning rate "adaptive", the rate falls first; the training ends when it can no longer fall. `tol` is
        in units of the objective of the standardised y; with `early_stopping`, of the score. None: the training makes
        `max_iter` epochs.
    n_iter_no_change : int, inf or "auto", default="auto"
        See `tol`. "auto": at least 3; for a linear model as many epochs as 30 updates take; with momentum enough epochs
        for twice the updates in which a gradient counts. `numpy.inf`: `tol` does not end the training.
    early_stopping : bool, default=False
        Whether the score of a validation set decides when the training ends, in place of the objective. The weights of
        the best epoch are restored. The set is `X_val`, `y_val` of `fit`, or a random part of the rows, which is not
        trained on.
    validation_fraction : float, default=0.1
        The part of the rows that `early_stopping` holds out, between 0 and 1.
    scoring : str, callable or None, default=None
        How the validation set is scored, as in `sklearn.model_selection.cross_val_score`. None: by the method `score`.
    shuffle : bool, default=True
        Whether every epoch takes the rows in a new random order. More than 131,072 rows are shuffled window by window.
        A window consists of random blocks of consecutive rows.
    standardize : "auto" or bool, default="auto"
        Whether the training works on standardised data: columns of X, and a y of regression, with mean zero and
        standard deviation one. The objective, and everything that the fitted estimator shows, stay in the units of X
        and y. The training becomes faster, and `eta0` and `tol` do not depend on the units. "auto": wherever the
        trained weights can be converted back; a sparse X is divided by one number. True: an error where X cannot be
        standardised. False: the steps are those of X and y as they are. `standardization_` has the means and scales.
    trainable : str, list of str or None, default=None
        Names of the weights to train, or patterns with `*`, `?` and `[...]`. All others stay as they are, bit for bit.
        `weights_` shows the names, also those of a pipeline's steps, such as "standardscaler/offset". None: the weights
        of the model.
    dtype : {"float32", "float64"}, default="float32"
        Type of the weights, of the arithmetic, and of the exported model's input. Solver "session" has "float32" only.
    device : str, default="cpu"
        What trains and predicts: "cpu", or an NVIDIA GPU, with solver "graph": "cuda" is the first one, "cuda:1" the
        second. The rows, the weights and the optimizer's memory stay on the GPU for the whole fit. If the GPU is
        missing, `fit` raises an error; predictions are made on the CPU, with a warning.
    n_jobs : int, default=None
        Number of threads that share an operator on the CPU, in `fit` and in predictions of at least 1,000 rows. None
        means 1, unless in a `joblib.parallel_config` context. -1 means all processors, -2 all but one. In a worker of
        joblib, as in `GridSearchCV(n_jobs=2)`, all of these mean 1. Threads help with large batches: see "Threads and
        devices".
    average : bool or int, default=False
        Whether the fitted weights are the mean of the weights after each update. True: from the first update on. An int
        n: from the n-th update on, if there are so many. With an l1 penalty, a mean is zero only if all of its weights
        are.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights of hidden layers, and of the order of the rows.
    warm_start : bool, default=False
        Whether `fit` starts with the weights of the last fit. Everything else begins from scratch.
    callbacks : list or None, default=None
        Objects with some of the methods of `skort.callbacks.Callback`, such as `on_epoch_end`. skort calls them in
        their order, with the training (`skort.callbacks.Training`). `skort.callbacks` has some that are ready to use.
    verbose : int, default=0
        1: a progress bar over epochs, or one line where there is no terminal. 2: a table. Both say why the training
        ended.

    Attributes
    ----------
    solver_ : str
        The solver that made the steps: "graph", "agent", "session" or "module".
    weights_ : dict of str to ndarray
        Copies of all weights, trained or not, by their names in `onnx_`. `trainable_` names those that were trained.
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients of a linear model. Behind a pipeline's steps: of the transformed columns. In a
        `TransformedTargetRegressor`: for the transformed y. Read-only, as `intercept_` is: `set_weights` changes the
        model.
    intercept_ : ndarray of shape (1,) or (n_outputs,)
        Intercepts of a linear model.
    scale_ : float or ndarray of shape (n_outputs,)
        Scale of the residuals, with a `HuberRegressor` inside or the loss `skort.objective.ConcomitantHuber`.
    onnx_ : onnx.ModelProto
        The deployable model. Its input "X" has shape (any, `n_features_in_`). If a pipeline got a DataFrame, each
        column is an input of shape (any, 1). Its output "variable" has shape (any, n_outputs).
    loss_curve_ : list of float
        The objective of each epoch: the mean over its batches, each computed before its update.
    loss_ : float
        The objective of the last epoch.
    best_loss_ : float or None
        The smallest objective of an epoch; None with `early_stopping`, as in `MLPClassifier`.
    validation_scores_ : list of float or None
        The validation score after each epoch; None without a validation set.
    best_validation_score_ : float or None
        The largest validation score; None without a validation set.
    history_ : dict of str to list
        A list with one value per epoch for each of: "loss" (without the penalty), "objective", "eta" and
        "gradient_norm" (of the last update; the gradient is that of the training, on standardised columns), "seconds",
        "validation_score", "restarts" if there were any, and what callbacks record. `pandas.DataFrame(history_)` is a
        table.
    stopping_reason_ : str or None
        Why the training ended, as a sentence; None after a `partial_fit`.
    eta0_ : float
        Learning rate of the first update, after any restart.
    standardization_ : Standardization or None
        What the training subtracted from X and y (`mean`, `target_mean`), and what it divided them by (`scale`,
        `target_scale`). None if it took them as they are.
    n_iter_ : int
        Number of epochs, including those of `partial_fit`.
    t_ : int
        Number of updates.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen in `fit`, where X had string names.

    See Also
    --------
    OrtSGDClassifier : The same for classification.
    sklearn.linear_model.SGDRegressor : Linear regression by gradient descent, one row at a time.
    sklearn.neural_network.MLPRegressor : Neural networks by gradient descent.

    Notes
    -----
    Loss and penalty have the formulas of `sklearn.linear_model.SGDRegressor` (user guide 1.5.8), for any size of the
    batch. In a batch of m rows, row i has the weight :math:`s_i / (\bar s m)`, where :math:`\bar s` is the mean weight
    of all rows. So the gradient of a random batch is on average the gradient of J. The page "How it works" lists the
    differences to scikit-learn. The page "Preparing data" explains `standardize` and `eta0`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skort import OrtSGDRegressor
    >>> X, y = load_diabetes(return_X_y=True, scaled=False)
    >>> model = OrtSGDRegressor(random_state=0).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.51
    """

    _parameter_constraints = {
        **BaseOrtSGD._parameter_constraints,
        "loss": [StrOptions({"auto", *REGRESSION_LOSSES}), HasMethods(["value_function", "gradient_function"]), dict],
        "epsilon": [StrOptions({"auto"}), Interval(Real, 0, float(np.finfo(np.float32).max), closed="both")],
        "quantile": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        *,
        solver: SolverName = "auto",
        loss: str | ScoreLoss | dict[str, str | ScoreLoss] = "auto",
        epsilon: float | Auto = "auto",
        quantile: float | Auto = "auto",
        penalty: PenaltyName | WeightPenalty | None = "auto",
        alpha: float | Auto = "auto",
        l1_ratio: float | Auto | None = "auto",
        n_total: int | None = None,
        optimizer: OptimizerName | Optimizer = "sgd",
        max_grad_norm: float | None = None,
        learning_rate: ScheduleName | Callable[[int], float] = "adaptive",
        eta0: float | Auto = "auto",
        power_t: float = 0.25,
        batch_size: int | Auto = "auto",
        max_iter: int = 1000,
        tol: float | None = 1e-4,
        n_iter_no_change: int | float | Auto = "auto",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        scoring: str | Callable | None = None,
        shuffle: bool = True,
        standardize: bool | Auto = "auto",
        trainable: str | list[str] | None = None,
        dtype: DtypeName = "float32",
        device: str = "cpu",
        n_jobs: int | None = None,
        average: bool | int = False,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        callbacks: list[Callback] | None = None,
        verbose: int = 0,
    ):
        self.estimator = estimator
        self.solver, self.loss, self.epsilon, self.quantile = solver, loss, epsilon, quantile
        self.penalty, self.alpha, self.l1_ratio, self.n_total = penalty, alpha, l1_ratio, n_total
        self.optimizer, self.max_grad_norm = optimizer, max_grad_norm
        self.learning_rate, self.eta0, self.power_t = learning_rate, eta0, power_t
        self.batch_size, self.max_iter, self.tol, self.n_iter_no_change = batch_size, max_iter, tol, n_iter_no_change
        self.early_stopping, self.validation_fraction, self.scoring = early_stopping, validation_fraction, scoring
        self.shuffle, self.standardize, self.trainable = shuffle, standardize, trainable
        self.dtype, self.device, self.n_jobs = dtype, device, n_jobs
        self.average, self.random_state = average, random_state
        self.warm_start, self.callbacks, self.verbose = warm_start, callbacks, verbose

    # False: the steps of a pipeline in `estimator` are fitted, and validate their own parameters.
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        *,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
    ) -> "OrtSGDRegressor":
        """
        Train on X and y; an earlier fit is forgotten.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers, or what the first step of a pipeline in `estimator` takes: a DataFrame, texts, sparse rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or dict of str to such arrays
            Targets, finite numbers. If `loss` is a dict: a dict with the same names, or columns in the order of `loss`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative and not all zero. A row of weight zero is in no batch. The steps of a
            pipeline in `estimator` are fitted on all rows, without weights.
        X_val, y_val : array-like, default=None
            A validation set, like X and y. It is scored after every epoch (`validation_scores_`). With
            `early_stopping=True`, it decides when the training ends.
        coef_init, intercept_init : array-like, default=None
            Initial weights of a linear model, of the shapes of `coef_` and `intercept_`. They replace zeros, and the
            weights of `warm_start` or of a fitted model.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For a parameter, X, y or `sample_weight` that is not as described, and where the training diverges. After an
            error the estimator is as it was before, with one exception: after an error of a callback, it is fitted up
            to the last whole epoch, if there is one.
        NotTrainableError
            Where `estimator` is not a model that can be trained; a `ValueError`.
        RuntimeNotAvailableError
            Where the installed ONNX Runtime lacks the API that `solver` needs, or cannot use `device`; an
            `ImportError`.

        Warns
        -----
        ConvergenceWarning
            Where `max_iter` ended the training before `tol` did, and where it ended no better than it began.
        UserWarning
            Where a step of a pipeline cannot be part of an ONNX model, or gives other values as ONNX than in
            scikit-learn: then everything works except the export, which raises the same message. Where a
            `KeyboardInterrupt` ended the training: then the estimator is fitted up to the last whole epoch.
        """
        return self._fit(GivenRows(X, y, sample_weight), X_val=X_val, y_val=y_val, init=(coef_init, intercept_init))

    @available_if(can_partial_fit)
    @_fit_context(prefer_skip_nested_validation=False)
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "OrtSGDRegressor":
        """
        Make one epoch over X and y, from where the last call of `partial_fit` or `fit` ended.

        It continues with the same optimizer's memory, count of updates, averages and random generator, also in a copy
        that was pickled. The method exists only if the steps of a pipeline in `estimator` need no fit: they are
        stateless or a `FrozenEstimator`. It raises what `fit` raises, and a `ValueError` if `early_stopping` is True.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, relative to their mean in this call.

        Returns
        -------
        self : object
        """
        return self._partial_fit(X, y, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        loss = loss_before_fit(self)
        tags.target_tags.positive_only = loss is not None and loss.needs_positive_target
        return tags
