"""OrtSGDClassifier for Dask collections."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from distributed import Client
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skort.dask.base import DASK_CONSTRAINTS, DaskFit, dask_parameters
from skort.dask.parts import is_collection
from skort.dask.predictions import predicted
from skort.estimators import classifier as local
from skort.estimators.names import (
    Auto,
    ClassificationLossName,
    DtypeName,
    OptimizerName,
    PenaltyName,
    ScheduleName,
    SolverName,
)
from skort.estimators.predictions import gives_probabilities
from skort.objective.base import ScoreLoss
from skort.objective.penalties import Penalty
from skort.optim.callbacks import Callback
from skort.optim.optimizers import Optimizer

__all__ = ["OrtSGDClassifier"]


class OrtSGDClassifier(DaskFit, local.OrtSGDClassifier):
    """
    Classification on the workers of a Dask cluster, for data in the partitions of Dask collections.

    In every round, the partitions are dealt to a few groups. Each group goes once through its rows, all groups at the
    same time. Up to five times in a round, the weights and the optimizer's memory are averaged over the groups, and all
    groups go on from the mean, with momentum. A round counts as an epoch. The result depends on the data, the
    partitions, the parameters and `n_groups`. It does not depend on the workers: on processors of one type, it is the
    same to the last bit with one worker or many, and after a worker dies.

    All other parameters and attributes are those of `skort.OrtSGDClassifier`, without `n_total` and `device`.

    The steps of a pipeline in `estimator` are fitted to the rows of all partitions, as scikit-learn would fit them:
    `StandardScaler`, `MinMaxScaler`, `MaxAbsScaler`, `OneHotEncoder`, `OrdinalEncoder`, `SimpleImputer` (but for the
    median), steps that need no fit, and `ColumnTransformer` and `Pipeline` of these. Any other step is refused by name:
    fit it on rows that are typical of all rows, and put `FrozenEstimator(fitted_step)` in its place.

    Parameters
    ----------
    estimator : estimator or onnx.ModelProto, default=None
        As in `skort.OrtSGDClassifier`. The same holds for all parameters but the last two.
    client : distributed.Client, default=None
        The client of the cluster. None: the one that was made last. Copies by pickle have none.
    n_groups : int, default=None
        The number of groups, at most one per partition. None: 2, for any number of workers. With one group, a round is
        an epoch of `skort.OrtSGDClassifier`, on one worker.

    See Also
    --------
    skort.OrtSGDClassifier : The same for data in memory.

    Notes
    -----
    Local steps with averaging are described in [1]_, the momentum in [2]_; the page "Beyond one machine" says more.

    Callbacks are called on the client; they have no `on_batch_end`. `t_` is the number of updates of the group with the
    most rows. `scoring` and `score` are sums over rows: "accuracy" and "neg_log_loss".

    References
    ----------
    .. [1] Stich, S. U., Local SGD converges fast and communicates little, ICLR 2019, arXiv:1805.09767.
    .. [2] Douillard, A. et al., DiLoCo: Distributed low-communication training of language models, arXiv:2311.08105.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import make_classification
    >>> from skort.dask import OrtSGDClassifier
    >>> X, y = make_classification(1000, 5, n_informative=3, n_redundant=0, random_state=0)
    >>> X, y = da.from_array(X, chunks=(250, 5)), da.from_array(y, chunks=250)
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"):  # doctest: +SKIP
    ...     model = OrtSGDClassifier(max_iter=20, tol=None, random_state=0).fit(X, y)
    ...     score = model.score(X, y)
    >>> round(score, 2)  # doctest: +SKIP
    0.91
    """

    _local = local.OrtSGDClassifier
    _parameter_constraints = {**dask_parameters(local.OrtSGDClassifier._parameter_constraints), **DASK_CONSTRAINTS}
    _parameters = tuple(dask_parameters(local.OrtSGDClassifier._parameter_constraints))

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
        n_jobs: int | None = None,
        average: bool | int = False,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        callbacks: list[Callback] | None = None,
        verbose: int = 0,
        client: Client | None = None,
        n_groups: int | None = None,
    ):
        self.estimator = estimator
        self.solver, self.loss, self.epsilon = solver, loss, epsilon
        self.penalty, self.alpha, self.l1_ratio = penalty, alpha, l1_ratio
        self.optimizer, self.max_grad_norm = optimizer, max_grad_norm
        self.learning_rate, self.eta0, self.power_t = learning_rate, eta0, power_t
        self.batch_size, self.max_iter = batch_size, max_iter
        self.tol, self.n_iter_no_change = tol, n_iter_no_change
        self.early_stopping, self.validation_fraction, self.scoring = early_stopping, validation_fraction, scoring
        self.class_weight = class_weight
        self.shuffle, self.standardize, self.trainable = shuffle, standardize, trainable
        self.dtype, self.n_jobs = dtype, n_jobs
        self.average, self.random_state = average, random_state
        self.warm_start, self.callbacks, self.verbose = warm_start, callbacks, verbose
        self.client, self.n_groups = client, n_groups

    # False: the steps of a pipeline in `estimator` validate their own parameters.
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None, X_val=None, y_val=None, *, coef_init=None, intercept_init=None):
        """
        Train on the partitions of collections; an earlier fit is forgotten.

        Parameters
        ----------
        X : dask Array of shape (n_samples, n_features), or DataFrame
            Of arrays or of sparse matrices. Partitions may have different sizes, or no rows.
        y : dask Array of shape (n_samples,) or (n_samples, n_labels), or Series
            Class labels; the classes are those of all partitions. Where all sizes are known it is cut as X is;
            otherwise it must have as many partitions.
        sample_weight : dask Array of shape (n_samples,), or Series, default=None
            Weights of the rows, not negative and not all zero.
        X_val, y_val : dask Array or DataFrame, default=None
            A validation set: it is scored after every round.
        coef_init, intercept_init : array-like, default=None
            Initial weights of a linear model.

        Returns
        -------
        self : object

        Raises
        ------
        TypeError
            For anything but Dask collections.
        ValueError
            For a parameter, X, y or `sample_weight` that is not as described, and where the training diverges.
        ClusterError
            Where the cluster cannot go on: no workers, workers that die, or no scheduler; a `RuntimeError`.

        Warns
        -----
        ConvergenceWarning, UserWarning
            As `skort.OrtSGDClassifier.fit`.
        """
        return self._fit_collections((X, y, sample_weight), (X_val, y_val), (coef_init, intercept_init))

    def predict(self, X):
        """
        Predict class labels, lazily where X is a collection.

        Parameters
        ----------
        X : dask Array of shape (n_samples, n_features), DataFrame, or array-like

        Returns
        -------
        y : dask Array, or ndarray, of shape (n_samples,) or (n_samples, n_labels)
            With the partitions of X.
        """
        return predicted(self.to_local(), "predict", X, self._columns())

    def score(self, X, y, sample_weight=None):
        """
        Return the accuracy of predictions; no row leaves its worker.

        Parameters
        ----------
        X : dask Array of shape (n_samples, n_features), DataFrame, or array-like
        y : dask Array of shape (n_samples,) or (n_samples, n_labels), Series, or array-like
        sample_weight : dask Array of shape (n_samples,), Series, or array-like, default=None

        Returns
        -------
        score : float
        """
        if not is_collection(X):
            return self.to_local().score(X, y, sample_weight)
        return self._score_collections(X, y, sample_weight)

    def decision_function(self, X):
        """
        Return the raw scores, lazily where X is a collection.

        Parameters
        ----------
        X : dask Array of shape (n_samples, n_features), DataFrame, or array-like

        Returns
        -------
        score : dask Array, or ndarray, of shape (n_samples,) or (n_samples, n_classes)
        """
        n_scores = self._n_scores()
        return predicted(self.to_local(), "decision_function", X, () if n_scores == 1 else (n_scores,))

    @available_if(gives_probabilities)
    def predict_proba(self, X):
        """
        Return the probabilities of the classes, lazily where X is a collection; see `skort.OrtSGDClassifier`.

        Parameters
        ----------
        X : dask Array of shape (n_samples, n_features), DataFrame, or array-like

        Returns
        -------
        probabilities : dask Array, or ndarray, of shape (n_samples, n_classes)
        """
        return self._class_columns("predict_proba", X)

    @available_if(gives_probabilities)
    def predict_log_proba(self, X):
        """
        Return the logarithms of the probabilities, lazily where X is a collection; see `skort.OrtSGDClassifier`.

        Parameters
        ----------
        X : dask Array of shape (n_samples, n_features), DataFrame, or array-like

        Returns
        -------
        log_probabilities : dask Array, or ndarray, of shape (n_samples, n_classes)
        """
        return self._class_columns("predict_log_proba", X)

    def _class_columns(self, method, X):
        """Return predictions of one column a class."""
        check_is_fitted(self)
        return predicted(self.to_local(), method, X, (len(self.classes_),))
