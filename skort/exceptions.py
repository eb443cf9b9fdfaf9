"""The errors of skort that are not plain `ValueError`s."""

__all__ = ["DivergedError", "NotExportableError", "NotTrainableError", "RuntimeNotAvailableError"]


class DivergedError(ValueError):
    """
    The loss or the weights of a training are no longer finite.

    Examples
    --------
    >>> import numpy as np
    >>> from skort import OrtSGDRegressor
    >>> from skort.exceptions import DivergedError
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> try:
    ...     OrtSGDRegressor(eta0=10, standardize=False).fit(X, X.sum(axis=1))
    ... except DivergedError as error:
    ...     print(str(error).partition(":")[0])
    Training diverged
    """


class NotExportableError(ValueError, AttributeError):
    """
    A part of the fitted model cannot be written as ONNX. Everything but the export works.

    The error is an `AttributeError`, too, like scikit-learn's `NotFittedError`. So
    `hasattr(model, "onnx_")` is False.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from skort.exceptions import NotExportableError
    >>> from skort.gradients import gradient_graphs
    >>> model = make_pipeline(FunctionTransformer(np.abs), LinearRegression()).fit(
    ...     [[0], [-1]], [0, 1]
    ... )
    >>> try:
    ...     gradient_graphs(model, batch_size=1)
    ... except NotExportableError as error:
    ...     print(str(error).partition(" cannot")[0])
    model: the step 'functiontransformer'
    """


class NotTrainableError(ValueError):
    """
    The model has no gradient that mini-batch training could follow.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from skort import OrtSGDRegressor
    >>> from skort.exceptions import NotTrainableError
    >>> try:
    ...     OrtSGDRegressor(DecisionTreeRegressor()).fit([[0], [1]], [0, 1])
    ... except NotTrainableError as error:
    ...     print(str(error).partition(":")[0])
    estimator=DecisionTreeRegressor cannot be trained by gradient descent
    """


class RuntimeNotAvailableError(ImportError):
    """
    The installed ONNX Runtime lacks an API or a device that is needed.

    Examples
    --------
    A program that uses a GPU if there is one:

    >>> from skort import OrtSGDRegressor
    >>> from skort.exceptions import RuntimeNotAvailableError
    >>> X, y = [[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0]
    >>> try:
    ...     model = OrtSGDRegressor(device="cuda").fit(X, y)
    ... except RuntimeNotAvailableError:
    ...     model = OrtSGDRegressor().fit(X, y)
    >>> model.coef_.shape
    (1,)
    """
