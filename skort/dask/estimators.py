"""OrtSGDRegressor and OrtSGDClassifier for Dask collections."""

import inspect
from collections.abc import Callable
from numbers import Integral
from typing import Any

from distributed import Client
from sklearn.utils.validation import check_is_fitted

from skort.common.available import available_if
from skort.common.sklearn_private import Interval
from skort.dask.base import DaskFit
from skort.estimators import classifier, regressor
from skort.estimators.base import BaseOrtSGD
from skort.estimators.classifier import gives_probabilities

# Parameters that do not exist here: the number of rows is known, and workers train on the CPU.
_NOT_HERE = ("n_total", "device")
# Parameters that the local estimators do not have.
_CONSTRAINTS: dict[str, list] = {
    "client": [Client, None],
    "n_groups": [Interval(Integral, 1, None, closed="left"), None],
}
_TYPES = {"client": "Client | None", "n_groups": "int | None"}
# The common part of both docstrings.
_DESCRIPTION = """\
A round is a pass over all rows, and counts as an epoch. In every round, the partitions are divided
among a few groups. All groups train at the same time, each on its own rows. Up to five times in a
round, the weights and the optimizer's memory are averaged over the groups, and all groups continue
from the mean, with momentum. The result depends on the data, the partitions, the parameters and
`n_groups`. It does not depend on the number of workers, or on a worker that dies: on processors of
one type, it is the same to the last bit.

All other parameters and attributes are those of `skort.{name}`, without `n_total` and `device`.

The steps of a pipeline in `estimator` are fitted to the rows of all partitions, with the same
result as in scikit-learn. These steps can be fitted: `StandardScaler`, `MinMaxScaler`,
`MaxAbsScaler`, `OneHotEncoder`, `OrdinalEncoder`, `SimpleImputer` (except for the median), steps
that need no fit, and `ColumnTransformer` and `Pipeline` of these. Any other step raises an error
that names it. Fit such a step on rows that are typical of all rows, and put
`FrozenEstimator(fitted_step)` in its place.

Parameters
----------
estimator : estimator or onnx.ModelProto, default=None
    As in `skort.{name}`. The same holds for all parameters but the last two.
client : distributed.Client, default=None
    The client of the cluster. None takes the client that was made last. A pickled copy has None.
n_groups : int, default=None
    The number of groups, at most one per partition. None is 2, for any number of workers. With one
    group, a round is an epoch of `skort.{name}` on one worker.

See Also
--------
skort.{name} : The same for data in memory.

Notes
-----
Local steps with averaging are described in [1]_, and the momentum in [2]_. The page "Beyond one
machine" says more.

Callbacks run on the client, and must not have `on_batch_end`. `t_` is the number of updates of the
group with the most rows. `scoring` must be one of the scores that are sums over rows:"""
_REFERENCES = """\
References
----------
.. [1] Stich, S. U., Local SGD converges fast and communicates little, ICLR 2019, arXiv:1805.09767.
.. [2] Douillard, A. et al., DiLoCo: Distributed low-communication training of language models, arXiv:2311.08105."""


def _for_dask(local: type[BaseOrtSGD]) -> Callable[[type], Any]:
    """Return a decorator that gives a class the parameters of a local estimator and of Dask."""
    parameters = inspect.signature(local.__init__).parameters
    own = [
        inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=t)
        for n, t in _TYPES.items()
    ]
    signature = inspect.Signature(
        [*(each for name, each in parameters.items() if name not in _NOT_HERE), *own]
    )
    constraints = {
        name: each for name, each in local._parameter_constraints.items() if name not in _NOT_HERE
    }

    def init(self, *args, **kwargs):
        values = signature.bind(self, *args, **kwargs)
        values.apply_defaults()
        self._store(values.arguments)

    init.__name__, init.__signature__ = "__init__", signature  # type: ignore[attr-defined]

    def decorated(cls):
        init.__qualname__ = f"{cls.__qualname__}.__init__"
        cls.__init__, cls._local = init, local
        cls._parameter_constraints = {**constraints, **_CONSTRAINTS}
        cls.__doc__ = inspect.cleandoc(cls.__doc__).format(
            _DESCRIPTION.format(name=cls.__name__), _REFERENCES
        )

        return cls

    return decorated


def _predicting(name: str, what: str) -> Any:
    """Return the method `name` of the classifier. `what` describes its result."""

    def method(self, X):
        check_is_fitted(self)
        n_columns = self._n_scores() if name == "decision_function" else len(self.classes_)
        return self._predicted(name, X, () if n_columns == 1 else (n_columns,))

    method.__name__ = name
    method.__doc__ = f"""
        Return the {what}, lazily if X is a Dask collection; see `skort.OrtSGDClassifier`.

        Parameters
        ----------
        X : dask Array of shape (n_samples, n_features), DataFrame, or array-like

        Returns
        -------
        values : dask Array, or ndarray, of shape (n_samples,) or (n_samples, n_classes)
        """
    return method


@_for_dask(regressor.OrtSGDRegressor)
class OrtSGDRegressor(DaskFit, regressor.OrtSGDRegressor):
    """
    Regression on the workers of a Dask cluster, for data in the partitions of Dask collections.

    {} "r2", "neg_mean_squared_error",
    "neg_root_mean_squared_error" and "neg_mean_absolute_error".

    {}

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import make_regression
    >>> from skort.dask import OrtSGDRegressor
    >>> X, y = make_regression(1000, 5, random_state=0)
    >>> X, y = da.from_array(X, chunks=(250, 5)), da.from_array(y, chunks=250)
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"):  # doctest: +SKIP
    ...     model = OrtSGDRegressor(max_iter=20, tol=None, random_state=0).fit(X, y)
    ...     score = model.score(X, y)
    >>> round(score, 2)  # doctest: +SKIP
    1.0
    """

    __module__ = "skort.dask"


@_for_dask(classifier.OrtSGDClassifier)
class OrtSGDClassifier(DaskFit, classifier.OrtSGDClassifier):
    """
    Classification on the workers of a Dask cluster, for data in the partitions of Dask collections.

    {} "accuracy" and "neg_log_loss".

    {}

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

    __module__ = "skort.dask"

    decision_function = _predicting("decision_function", "raw scores")
    predict_proba = available_if(gives_probabilities)(_predicting("predict_proba", "probabilities"))
    predict_log_proba = available_if(gives_probabilities)(
        _predicting("predict_log_proba", "logarithms of probabilities")
    )
