"""OrtSGDClassifier."""

from collections.abc import Callable
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from skort.descent.callbacks import Callback
from skort.descent.optimizers import Optimizer
from skort.estimators.base import BaseOrtSGD
from skort.estimators.before_fit import can_partial_fit
from skort.estimators.labels import encoded, streamed_classes
from skort.estimators.names import (
    Auto,
    ClassificationLossName,
    DtypeName,
    OptimizerName,
    PenaltyName,
    ScheduleName,
    SolverName,
)
from skort.estimators.nesting import layers
from skort.estimators.predictions import ClassifierPredictions
from skort.estimators.sample_weight import with_class_weight
from skort.objective.base import ScoreLoss
from skort.objective.losses import CLASSIFICATION_LOSSES
from skort.objective.penalties import Penalty

__all__ = ["OrtSGDClassifier"]


class OrtSGDClassifier(ClassifierMixin, ClassifierPredictions):
    r"""
    Classification by mini-batch gradient descent on ONNX Runtime.

    Minimises, batch by batch,

    .. math:: J(w) = \frac{\sum_i s_i \, loss(y_i, score_i)}{\sum_i s_i} + \alpha \, penalty(w)

    over the weights of a scikit-learn model, where :math:`s_i` are the sample weights times the class weights, and the
    score is the raw score, before any sigmoid or softmax. Two classes have one score, by default the log-loss of its
    sigmoid and the gradient :math:`p - y`; more classes have one score each, by default the log-loss of their softmax
    and the gradient :math:`p - onehot(y)`. The loss is computed from the raw score and finite for every finite score.
    `save_onnx` writes the fitted model as an ONNX file.

    Parameters
    ----------
    estimator : estimator or onnx.ModelProto, default=None
        The model to train: any linear classifier or neural network of scikit-learn, or a `Pipeline` that ends in one.
        None: `LogisticRegression()` with an l2 penalty of 1e-4, of the weights of standardised columns. Its
        architecture and its objective are used (`fit_intercept`, `hidden_layer_sizes`, `C`, `alpha`, ...), not its own
        training parameters, such as `max_iter`: a warning names those that are not at their defaults. The estimator
        itself is not changed. The steps of a
        pipeline before the model are cloned, fitted once on all rows, and part of the exported model; they get X as it
        is, and no `sample_weight`, as in scikit-learn's own pipelines. `FrozenEstimator(fitted)`: a fitted model or
        pipeline, whose weights are the initial ones and whose steps are not fitted again. It may be of another type,
        where its ONNX graph has weights with a gradient. `onnx.ModelProto`: one input of floats, one output of floats;
        its weights are the initial ones. It is not changed.
    solver : {"auto", "graph", "agent", "session", "module"}, default="auto"
        What makes the gradient steps: "graph" for the whole step as one ONNX graph, on any onnxruntime; "agent" for
        ONNX Runtime's TrainingAgent; "session" for its TrainingSession (float32; Linux x86-64, Python 3.10 and 3.11);
        "module" for its on-device API (float32, "sgd" and "adam", no l1 term). All make the same steps. "auto": the
        fastest of the first three that the model and the other parameters allow: "graph", or "agent" for more than
        500,000 weights and where an operator of the model, or an optimizer of your own, has no rule for "graph".
    loss : str or loss instance, default="auto"
        "auto": that of the model inside, such as the squared hinge of a `LinearSVC`; "log_loss" where it has none.
        "log_loss", "hinge", "squared_hinge", "modified_huber" or "perceptron"; "squared_error", "huber",
        "epsilon_insensitive" or "squared_epsilon_insensitive" of the labels -1 and 1; or an instance of
        `skort.objective.LabelHuber`, of another class there, or of `skort.objective.Loss` for a loss of your own.
        More than two classes are trained together by the softmax of "log_loss", and one against the rest by the others
        and by `skort.objective.OneVsRestLogLoss()`.
        A multi-label y has "log_loss", summed over one sigmoid a label, as in `MLPClassifier`.
        `predict_proba` exists for "log_loss" and "modified_huber".
    epsilon : float or "auto", default="auto"
        "auto": that of the model inside, or 0.1. Of "huber" the distance from the label at which the loss becomes
        linear, of the two "epsilon_insensitive" losses the distance that costs nothing. An instance has its own.
    penalty : {"auto", "l1", "l2", "elasticnet"}, penalty instance or None, default="auto"
        "auto": that of the model inside, in its own units: a long fit ends at scikit-learn's own optimum. Where it has
        none, `alpha` alone means "l2". The penalty is that of the weights that multiply inputs; intercepts have none,
        but for liblinear's models (`LinearSVC`, `LinearSVR`, `LogisticRegression(solver="liblinear")`). "l1" makes
        weights exactly zero, in mini-batches too (but see `average`). An instance has its own `alpha` and
        `l1_ratio`: `skort.objective.ElasticPenalty` by weight; `skort.objective.Penalty` is one of your own.
    alpha : float or "auto", default="auto"
        Strength of the penalty, not negative. "auto": that of the model inside, for instance 1 / (C S) of a
        `LogisticRegression`, with S the sum of the sample weights of the fit, or of the first `partial_fit` (but see
        `n_total`); 1e-4 for a penalty that the model inside does not have.
    l1_ratio : float, "auto" or None, default="auto"
        "auto": that of the model inside, or 0.15. Of "elasticnet": between 0 for "l2" and 1 for "l1". Others may have
        None.
    n_total : int or None, default=None
        Number of rows of a whole stream, of which a call has only a part: S is so many times their mean sample weight.
    optimizer : {"sgd", "momentum", "nesterov", "adam"} or Optimizer, default="sgd"
        How a gradient changes the weights: "sgd" for :math:`w \leftarrow w - \eta g`, "momentum", "nesterov" and
        "adam" for `Momentum()`, `Nesterov()` and `Adam()` of `skort.optimizers`, which may be given with other
        parameters. Solver "session" has "sgd" and "adam". Momentum moves the weights about ten times as far as "sgd"
        at the same learning rate; "adam" suits one of 0.001 to 0.01.
    max_grad_norm : float or None, default=None
        A gradient whose Euclidean norm over all weights is larger is shortened to this norm. Not for solver "session".
    learning_rate : {"adaptive", "constant", "invscaling", "optimal"} or callable, default="adaptive"
        "adaptive" for `eta0`, and a fifth of it, at most four times, whenever the training would end because of `tol`
        (in `partial_fit` it does not fall); "constant" for :math:`\eta = eta0`; "invscaling" for
        :math:`\eta = eta0 / t^{power\_t}`; "optimal" for :math:`\eta = 1 / (\alpha (t_0 + t - 1))` with
        :math:`t_0 = \alpha^{-3/4}`, where t counts the updates from 1. Or any function of t, such as `Cosine()` and
        `Warmup()` of `skort.schedules`.
    eta0 : float or "auto", default="auto"
        Initial learning rate, positive. "auto": of a linear model 1 / L, where L bounds how fast the gradient changes
        along a step; of a network 0.2; with momentum as much less as it moves farther; with "adam" 0.01 of a linear
        model, 0.001 of a network. Where a training at such a rate diverges, or ends no better than it began, it begins
        again at a tenth, at most three times. `eta0_` is the rate that was used.
    power_t : float, default=0.25
        Exponent of "invscaling".
    batch_size : int or "auto", default="auto"
        Rows a batch, at most all rows; "auto" for min(200, n_samples). The last batch of an epoch may be shorter.
    max_iter : int, default=1000
        Largest number of epochs.
    tol : float or None, default=1e-4
        Training ends where the objective of an epoch was above the best one minus `tol` for `n_iter_no_change` epochs
        in a row (learning rate "adaptive": where it can no longer fall). None: after `max_iter` epochs.
    n_iter_no_change : int, inf or "auto", default="auto"
        See `tol`. "auto": 3, but of a linear model as many epochs as 30 updates take, and with momentum as many as
        twice the updates that a gradient counts in. `numpy.inf`: `tol` ends no training.
    early_stopping : bool, default=False
        Whether the score of a validation set takes the place of the loss, and the weights of its best epoch are
        restored. It is `X_val`, `y_val` of `fit`, or a random part of the rows, of each class the same.
    validation_fraction : float, default=0.1
        The part of the rows that `early_stopping` holds out, between 0 and 1.
    scoring : str, callable or None, default=None
        How the validation set is scored, as in `sklearn.model_selection.cross_val_score`. None: by `score`.
    class_weight : dict, "balanced", "auto" or None, default="auto"
        "auto": that of the model inside, or None. Weights of the classes, label -> weight, which the sample weights are
        multiplied with; a label that is not there has weight 1. More than two classes, trained one against the rest,
        have it in their own column only, as in `SGDClassifier` and `LinearSVC` (but for `RidgeClassifier` inside).
        "balanced" gives all classes the same total weight. None: all 1.
    shuffle : bool, default=True
        Whether every epoch takes the rows in a new random order. More than 131,072 rows are shuffled in windows, each
        of random blocks of consecutive rows, whose rows are dealt out like cards.
    standardize : "auto" or bool, default="auto"
        Whether the training works on columns of X, and on a y of regression, with mean zero and standard deviation one.
        This is a change of variables: the objective and all that the fitted estimator shows are in the units of X and
        y, as `standardization_` took them. It makes the training fast, and `eta0` and `tol` independent of the units.
        "auto": wherever the trained weights can take it back; a sparse X is divided by one number. True: an error where
        X cannot be standardized. False: the steps are those of X and y as they are.
    trainable : str, list of str or None, default=None
        Names of the weights to train, or patterns with `*`, `?` and `[...]`; all others stay as they are, bit for bit.
        `weights_` shows the names, also those of the steps of a pipeline, such as "standardscaler/offset". None: the
        weights of the model.
    dtype : {"float32", "float64"}, default="float32"
        Type of the weights, of the arithmetic, and of the exported model's input. "float64" is not for solver
        "session".
    device : str, default="cpu"
        What trains and predicts: "cpu"; "cuda" or "cuda:1" for a GPU of NVIDIA's, the first or second one, by solver
        "graph". The rows, the weights and what the optimizer remembers stay on the GPU for the whole fit. Where the GPU
        is missing, `fit` raises an error and predictions are made on the CPU, with a warning.
    n_jobs : int, default=None
        Number of threads of each operator on the CPU, in `fit` and in predictions of 1000 rows and more. None means 1
        unless in a `joblib.parallel_config` context. -1 means using all processors, -2 all but one. All of these are 1
        in a worker of joblib, as in `GridSearchCV(n_jobs=2)`. It pays in large batches: see "Threads and devices".
    average : bool or int, default=False
        The fitted weights are the mean of the weights after each update: True from the first update on, an int n from
        the n-th on, once there are so many. With an l1 penalty, a mean is zero only where all of its weights are.
    random_state : int, RandomState instance or None, default=None
        Draws the initial weights of hidden layers and the order of the rows.
    warm_start : bool, default=False
        Whether `fit` begins with the weights of the last fit. All else begins anew.
    callbacks : list or None, default=None
        Objects with some of the methods of `skort.callbacks.Callback`, such as `on_epoch_end`, called in their order
        with the training (`skort.callbacks.Training`); `skort.callbacks` brings some.
    verbose : int, default=0
        1: a tqdm bar over epochs with the objective, in a terminal or a notebook. 2: a line an epoch.

    Attributes
    ----------
    solver_ : str
        The solver that made the steps: "graph", "agent", "session" or "module".
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted; the numbers from 0 to n_labels - 1 after a multi-label y.
    weights_ : dict of str to ndarray
        Copies of all weights, trained or not, by their names in `onnx_`; `trainable_`: which were trained.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients, where the model is linear. After a pipeline's steps: of the transformed features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts, where the model is linear.
    onnx_ : onnx.ModelProto
        The deployable model. Its input "X" has shape (any, `n_features_in_`), of a DataFrame that a pipeline takes each
        column is an input of shape (any, 1); its outputs are "label", of shape (any,), and "probabilities", of shape
        (any, n_classes). After a multi-label y "label" has shape (any, n_labels).
    loss_curve_ : list of float
        The objective of each epoch: the mean over its batches, each before its update.
    loss_ : float
        The objective of the last epoch.
    best_loss_ : float or None
        The smallest objective of an epoch; None with `early_stopping`, as in `MLPClassifier`.
    validation_scores_ : list of float or None
        The validation score after each epoch; None without a validation set.
    best_validation_score_ : float or None
        The largest of them.
    history_ : dict of str to list
        Of each epoch: "loss" (without the penalty), "objective", "eta" and "gradient_norm" (of its last update; the
        gradient is that by the weights of the training, of standardized columns), "seconds", "validation_score",
        "restarts" where there were some, and what callbacks add. `pandas.DataFrame(history_)` is a table.
    eta0_ : float
        Learning rate of the first update, after any restart.
    standardization_ : Standardization or None
        What the training subtracted from X and y (`mean`, `target_mean`) and divided them by (`scale`, `target_scale`).
    n_iter_ : int
        Number of epochs, those of `partial_fit` included.
    t_ : int
        Number of updates.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen in `fit`, where X had string names.

    See Also
    --------
    OrtSGDRegressor : The same for regression.
    sklearn.linear_model.SGDClassifier : Linear classification by gradient descent, one row at a time.
    sklearn.neural_network.MLPClassifier : Neural networks by gradient descent.

    Notes
    -----
    The loss is that of `sklearn.linear_model.LogisticRegression` (user guide 1.1.11), the penalty that of
    `SGDClassifier`, whatever the size of the batch. Row i of a batch of m rows counts :math:`s_i / (\bar s m)`, with
    :math:`\bar s` the mean weight of all rows: the gradient of a random batch is on average that of J, with
    `batch_size=1` too. The pages "How it works" and "Scales of the data and the learning rate" say how scikit-learn's
    differ, and what `standardize` and `eta0` do.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skort import OrtSGDClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OrtSGDClassifier(random_state=0).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.99
    """

    _losses = CLASSIFICATION_LOSSES
    _parameter_constraints = {
        **BaseOrtSGD._parameter_constraints,
        "loss": [StrOptions({"auto", *_losses}), HasMethods(["value_function", "gradient_function"])],
        "epsilon": [StrOptions({"auto"}), Interval(Real, 0, float(np.finfo(np.float32).max), closed="both")],
        "class_weight": [StrOptions({"auto", "balanced"}), dict, None],
    }
    _parameters = tuple(_parameter_constraints)
    _default_loss = "log_loss"

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        *,
        solver: SolverName = "auto",
        loss: ClassificationLossName | ScoreLoss = "auto",
        epsilon: float | Auto = "auto",
        penalty: PenaltyName | Penalty | None = "auto",
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
        class_weight: dict | Literal["auto", "balanced"] | None = "auto",
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
        self.solver, self.loss, self.epsilon = solver, loss, epsilon
        self.penalty, self.alpha, self.l1_ratio, self.n_total = penalty, alpha, l1_ratio, n_total
        self.optimizer, self.max_grad_norm = optimizer, max_grad_norm
        self.learning_rate, self.eta0, self.power_t = learning_rate, eta0, power_t
        self.batch_size, self.max_iter = batch_size, max_iter
        self.tol, self.n_iter_no_change = tol, n_iter_no_change
        self.early_stopping, self.validation_fraction, self.scoring = early_stopping, validation_fraction, scoring
        self.class_weight = class_weight
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
    ) -> "OrtSGDClassifier":
        """
        Train on X and y; an earlier fit is forgotten.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers, finite; or what the first step of a pipeline in `estimator` takes: a DataFrame, texts, sparse rows.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Class labels of at least two classes: ints, strings, bools or floats; others, such as dates, are
            predicted, but have no ONNX. With a `MLPClassifier` in `estimator` it may be multi-label: 1 where a row has
            a label, 0 elsewhere.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative and not all zero. A row of weight zero is in no batch. The steps of a
            pipeline in `estimator` are fitted on all rows, without weights.
        X_val, y_val : array-like, default=None
            A validation set, like X and y: it is scored after every epoch (`validation_scores_`), and decides when
            training ends where `early_stopping` is True.
        coef_init, intercept_init : array-like, default=None
            Initial weights of a linear model, of the shapes of `coef_` and `intercept_`, in place of zeros and of those
            of `warm_start` or a fitted model.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For a parameter, X, y or `sample_weight` that is not as described, and where the training diverges. After
            any error the estimator is as it was before, but for an error of a callback after the first epoch: then it
            is fitted up to the last whole epoch.
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
            Where a step of a pipeline cannot be part of an ONNX model: then everything works but the export, which
            raises the same message. Where a step gives other values as ONNX than in scikit-learn. Where a
            `KeyboardInterrupt` ended the training: then it is fitted up to the last whole epoch.
        """
        return self._fit(X, y, sample_weight, X_val=X_val, y_val=y_val, init=(coef_init, intercept_init))

    @available_if(can_partial_fit)
    @_fit_context(prefer_skip_nested_validation=False)
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> "OrtSGDClassifier":
        """
        Make one epoch over X and y, from where the last call of `partial_fit` or `fit` ended.

        The optimizer's memory, the count of updates, averages and the order of the rows go on, also in a copy that was
        pickled. Exists where the steps of a pipeline in `estimator` need no fit: they are stateless or a
        `FrozenEstimator`. Raises what `fit` raises, and a `ValueError` where `early_stopping` is True.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Class labels, as in `fit`.
        classes : array-like of shape (n_classes,), default=None
            All class labels; the numbers from 0 to n_labels - 1 for a multi-label y. Needed in the first call, then
            None or the same.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, relative to their mean in this call.

        Returns
        -------
        self : object
        """
        return self._partial_fit(X, y, sample_weight, streamed_classes(self, classes))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        *_, (model, _) = layers(self.estimator)
        tags.classifier_tags.multi_label = type(model).__name__ == "MLPClassifier"
        return tags

    def _default(self):
        # scikit-learn's models take most of the time of `import skort`.
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression()

    def _encode(self, y, classes):
        """Return y as one column, and as 0 and 1: one column for two classes, one column a class for more."""
        return encoded(y, classes, self.dtype)

    def _weighted(self, sample_weight, X, encoded, class_weight):
        sample_weight, encoded = super()._weighted(sample_weight, X, encoded, class_weight)
        if class_weight is None:
            return sample_weight, encoded
        return with_class_weight(sample_weight, class_weight, encoded)
