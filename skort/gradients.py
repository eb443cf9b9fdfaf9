"""The gradient of a model as ONNX graphs, for a loss and a training loop outside skort."""

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skort.estimators.data.row_forms import ids_in_range

if TYPE_CHECKING:
    import onnx

    from skort.estimators.checked_gradient import check_gradient
    from skort.solvers.graph.gradient_sessions import GradientSessions
    from skort.solvers.part_graph import part_graph

__all__ = [
    "ForwardBackward", "GradientGraphs", "Gradients", "Saved", "check_gradient", "gradient_graphs",
    "initial_model", "part_graph",
]  # fmt: skip

_WHERE = {
    "check_gradient": "skort.estimators.checked_gradient",
    "part_graph": "skort.solvers.part_graph",
}


# To a type checker, a module with this function would have every name.
if not TYPE_CHECKING:

    def __getattr__(name):
        """Import a function when it is first asked for: both need onnx."""
        if name not in _WHERE:
            raise AttributeError(f"module 'skort.gradients' has no attribute {name!r}")
        return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


class GradientGraphs(NamedTuple):
    """
    A model and its gradient, for one number of rows, as two models of standard operators.

    Parameters
    ----------
    forward : onnx.ModelProto
        Its inputs are X and the weights, by their names. Its outputs are the score, and then the
        results that the backward model needs.
    backward : onnx.ModelProto
        Its inputs are "skort_score_gradient", the derivative of a loss by the score, and then
        inputs and outputs of the forward model, by their names. Its outputs are the derivatives by
        X, if it was asked for, and by each trained weight: "coef_gradient" is the derivative by
        "coef".

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from skort.gradients import gradient_graphs, initial_model
    >>> graphs = gradient_graphs(initial_model(LinearRegression(), 2), batch_size=10)
    >>> [output.name for output in graphs.backward.graph.output]
    ['coef_gradient', 'intercept_gradient']
    """

    forward: "onnx.ModelProto"
    backward: "onnx.ModelProto"


def gradient_graphs(
    model: Any,
    *,
    trainable: str | list[str] | None = None,
    batch_size: int,
    input_gradient: bool = False,
    dtype: str | None = None,
) -> GradientGraphs:
    """
    Return a model and its gradient as two ONNX models of standard operators.

    Any ONNX Runtime runs them. `ForwardBackward` runs them on arrays, for any number of rows.

    Parameters
    ----------
    model : onnx.ModelProto, estimator or Pipeline
        An ONNX model of one input and one output of floats, both of shape (any, columns); a fitted
        estimator of skort or scikit-learn; or a Pipeline of numeric steps that ends in one. The
        score of an ONNX model is its output. The score of a classifier is its `decision_function`
        or, without this method, the input of the sigmoid or softmax. The score of a regressor is
        its prediction, before a log link or the inverse of a `TransformedTargetRegressor` inside an
        estimator of skort.
    trainable : str or list of str, default=None
        The weights that get a gradient: names, or patterns with `*`, `?` and `[...]`. None: the
        weights of the last step; for an estimator of skort, the weights that it trains.
    batch_size : int
        The number of rows. Gradients are sums over the rows.
    input_gradient : bool, default=False
        Whether to compute the gradient with respect to X, too.
    dtype : {"float32", "float64"}, default=None
        None: the dtype of the ONNX model or of the estimator of skort; float32 for an estimator of
        scikit-learn.

    Returns
    -------
    graphs : GradientGraphs
        The models `forward` and `backward`.

    Raises
    ------
    NotTrainableError
        If an operator between a weight and the score has no gradient. The error names the operator.
    NotFittedError, ValueError
        For an estimator that is not fitted, a name in `trainable` that no weight has, another dtype
        than that of the model, and a step of a Pipeline that cannot be converted to ONNX.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skort.gradients import gradient_graphs
    >>> model = LinearRegression().fit([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [1.0, 2.0, 3.0])
    >>> forward, backward = gradient_graphs(model, batch_size=3)
    >>> [i.name for i in forward.graph.input]
    ['X', 'coef', 'intercept']
    >>> [i.name for i in backward.graph.input], [o.name for o in backward.graph.output]
    (['skort_score_gradient', 'X'], ['coef_gradient', 'intercept_gradient'])
    """
    from skort.estimators.score_graph_of import score_graph_of
    from skort.graphs.gradient.forward_backward import forward_backward

    if not isinstance(batch_size, int | np.integer) or batch_size < 1:
        raise ValueError(f"batch_size must be an int of at least 1, got {batch_size!r}.")

    score_graph = score_graph_of(model, trainable, dtype)
    return GradientGraphs(
        *forward_backward(score_graph, int(batch_size), input_gradient=input_gradient)
    )


def initial_model(
    estimator: Any,
    n_features: int,
    n_outputs: int = 1,
    *,
    dtype: str = "float32",
    random_state: Any = None,
) -> "onnx.ModelProto":
    """
    Return an unfitted linear model or neural network of scikit-learn as ONNX,
    at its initial weights.

    Parameters
    ----------
    estimator : estimator
        The initial weights of a linear model are zero. Those of a network are random, by the rule
        of scikit-learn.
    n_features : int
        The number of columns of X.
    n_outputs : int, default=1
        Number of columns of the score: 1 for a regression of one target or two classes.
    dtype : {"float32", "float64"}, default="float32"
    random_state : int, RandomState or None, default=None
        The source of the random weights.

    Returns
    -------
    model : onnx.ModelProto
        X -> raw score.

    Raises
    ------
    NotTrainableError
        For other estimators.

    Examples
    --------
    >>> from sklearn.neural_network import MLPClassifier
    >>> from skort.gradients import initial_model
    >>> model = initial_model(MLPClassifier(hidden_layer_sizes=(20,)), n_features=8, n_outputs=3, random_state=0)
    >>> {i.name: tuple(i.dims) for i in model.graph.initializer}
    {'coefficient': (8, 20), 'coefficient1': (20, 3), 'intercepts': (1, 20), 'intercepts1': (1, 3)}
    """
    from sklearn.utils import check_random_state

    from skort.estimators.training.without_rows import check_sizes
    from skort.graphs.initialization import initial_score_graph
    from skort.graphs.score_graph import ScoreSpec
    from skort.graphs.trainable import check_trainable

    if not hasattr(estimator, "get_params"):
        raise ValueError(
            f"estimator must be an estimator of scikit-learn, got {type(estimator).__name__}."
        )
    if dtype not in ("float32", "float64"):
        raise ValueError(f'dtype must be "float32" or "float64", got {dtype!r}.')

    check_trainable(estimator)
    check_sizes(n_features=n_features, n_outputs=n_outputs)
    spec = ScoreSpec(n_features, n_outputs, np.dtype(dtype))

    return initial_score_graph(estimator, spec, check_random_state(random_state)).model


class Gradients(NamedTuple):
    """
    The gradients of a loss.

    Parameters
    ----------
    weights : ndarray of shape (n_weights,)
        The gradient with respect to the trained weights, as one vector. `ForwardBackward.views`
        returns its parts by name.
    X : ndarray of shape (n_samples, n_features) or None
        The gradient with respect to X; None without `input_gradient`.
    """

    weights: np.ndarray
    X: np.ndarray | None


class Saved:
    """
    The results that a forward keeps for its backward. The backward releases them.

    Parameters
    ----------
    sessions : GradientSessions
        The sessions of the `ForwardBackward` whose forward returned it. No other object may use it.
    state : tuple
        The pair of sessions, X, the weights, and the results between X and the score.
    """

    def __init__(self, sessions: "GradientSessions", state: tuple[Any, ...]):
        self.sessions = sessions
        self._state: tuple[Any, ...] | None = state

    @property
    def is_released(self) -> bool:
        """Whether a backward has released the results."""
        return self._state is None

    def state(self, *, keep: bool = False) -> tuple[Any, ...]:
        """
        Return the kept results, and release them unless `keep`.

        Raise a ValueError if they were released before.
        """
        if self._state is None:
            raise ValueError(
                "saved was released by an earlier backward. Call forward again, or keep it for "
                "several: backward(saved, score_gradient, keep=True)."
            )

        state = self._state
        if not keep:
            self._state = None
        return state


class ForwardBackward:
    """
    A model whose score and gradient are computed on arrays, for a custom loss and update.

    Parameters
    ----------
    model, trainable, input_gradient, dtype
        As for `gradient_graphs`.
    n_jobs : int, default=None
        Threads of a matrix product: None is 1, -1 all cores.

    Attributes
    ----------
    weights : ndarray of shape (n_weights,)
        The trained weights as one vector, at first the weights of the model. Change it in place.

    Notes
    -----
    A new number of rows takes some milliseconds. The graphs for the last 32 numbers of rows are
    kept, for all models of the same structure. Several threads may use the same object.

    Examples
    --------
    One step of gradient descent on the squared error:

    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skort.gradients import ForwardBackward, initial_model
    >>> X, y = np.array([[1, 0], [0, 2]], np.float32), np.array([[1], [2]], np.float32)
    >>> layer = ForwardBackward(initial_model(LinearRegression(), 2))
    >>> score, saved = layer.forward(X)
    >>> gradients = layer.backward(saved, (score - y) / len(y))
    >>> layer.views(gradients.weights)
    {'coef': array([[-0.5],
           [-2. ]], dtype=float32), 'intercept': array([-1.5], dtype=float32)}
    >>> layer.weights -= 0.1 * gradients.weights
    """

    def __init__(
        self,
        model: Any,
        *,
        trainable: str | list[str] | None = None,
        input_gradient: bool = False,
        dtype: str | None = None,
        n_jobs: int | None = None,
    ):
        from skort.estimators.score_graph_of import DifferentiableModel

        self._model = DifferentiableModel(
            model, trainable, dtype, n_jobs, input_gradient=input_gradient
        )
        self._sessions = self._model.sessions
        graph = self._model.graph
        self._input_gradient = input_gradient
        self._dtype, self._n_features, self._n_outputs = (
            graph.dtype,
            graph.n_features,
            graph.n_outputs,
        )
        self.weights: np.ndarray = self._model.weights()
        self._n_weights = self.weights.size

    def views(self, vector: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """
        Return the parts of a vector of all trained weights, by their names and in their shapes,
        without a copy.

        Parameters
        ----------
        vector : ndarray of shape (n_weights,), default=None
            Weights, or a gradient. None: `weights`.

        Raises
        ------
        ValueError
            For another shape.
        """
        if vector is None:
            return self._model.views(self.weights)
        if np.shape(vector) != self.weights.shape:
            raise ValueError(
                f"vector must have the shape {self.weights.shape} of the weights, got "
                f"{np.shape(vector)}."
            )

        return self._model.views(vector)

    @ids_in_range()
    def forward(
        self, X: ArrayLike, *, training: bool = True, weights: ArrayLike | None = None
    ) -> tuple[np.ndarray, Saved | None]:
        """
        Compute the score.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            A numpy array, or another array with DLPack in the memory of the CPU, with the dtype of
            the model. If it is C-contiguous, it is read without a copy.
        training : bool, default=True
            False: nothing is kept for a backward, and a new number of rows takes no extra time.
        weights : array of shape (n_weights,), default=None
            None: the attribute `weights`.

        Returns
        -------
        score : ndarray of shape (n_samples, n_outputs)
            A new array.
        saved : Saved or None
            The argument of `backward`. X and the weights must not change before that call. None
            with `training=False`.

        Raises
        ------
        ValueError
            For another dtype, shape or device, and for no rows.
        """
        X = _as_array(X, "X", self._dtype, (None, self._n_features))
        vector = _as_array(
            self.weights if weights is None else weights, "weights", self._dtype, (self._n_weights,)
        )
        arrays = self._sessions.arrays(vector, self._model.frozen)
        if not training:
            return self._sessions.score(X, arrays), None

        pair = self._sessions.pair(len(X), input_gradient=self._input_gradient)
        score, kept = self._sessions.forward(pair, X, arrays)
        return score, Saved(self._sessions, (pair, X, arrays, kept))

    def backward(self, saved: Saved, score_gradient: ArrayLike, *, keep: bool = False) -> Gradients:
        """
        Compute the gradients of a loss.

        Parameters
        ----------
        saved : Saved
            From `forward` of this object. Several forwards may come before their
            backwards, in any order.
        score_gradient : array of shape (n_samples, n_outputs)
            The derivative of the loss with respect to the score, in one of the forms of X.
        keep : bool, default=False
            Whether `saved` is kept for another backward.

        Returns
        -------
        gradients : Gradients
            New arrays.

        Raises
        ------
        ValueError
            If `saved` was released before or comes from another object; and for the reasons of
            `forward`.
        """
        if not isinstance(saved, Saved):
            raise ValueError(
                "saved must be the second value that forward(X) returns, got "
                f"{type(saved).__name__}."
            )
        if saved.sessions is not self._sessions:
            raise ValueError(
                "saved comes from another ForwardBackward: call backward of the one whose "
                "forward returned it."
            )

        pair, X, arrays, kept = saved.state(keep=True)
        dy = _as_array(score_gradient, "score_gradient", self._dtype, (len(X), self._n_outputs))
        gradients = Gradients(*self._sessions.backward(pair, dy, X, arrays, kept))
        saved.state(keep=keep)

        return gradients

    def to_onnx(self) -> "onnx.ModelProto":
        """Return X -> score as ONNX, with the weights as they are now."""
        return self._trained().model

    def to_estimator(self) -> Any:
        """
        Return a fitted copy of the estimator, with the weights as they are now.

        Raises
        ------
        ValueError
            If the model is not an estimator, if weights of steps before the model are trained, or
            if scikit-learn has no place for the weights.
        """
        return self._model.to_estimator(self._trained())

    def _trained(self):
        return self._model.graph.with_weights(
            {name: array.copy() for name, array in self.views().items()}
        )


def _as_array(array: Any, name: str, dtype: np.dtype, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return an array with DLPack as a C-contiguous ndarray; it is not copied if it is one."""
    from skort.estimators.data.rows import as_array

    given = np.asarray(as_array(array, name))
    if given.dtype != dtype:
        raise ValueError(
            f"{name} has the dtype {given.dtype}, and the model computes in {dtype}: cast it."
        )
    if len(given.shape) != len(shape) or any(
        n not in (None, m) for n, m in zip(shape, given.shape, strict=True)
    ):
        expected = (
            f"({', '.join('any' if n is None else str(n) for n in shape)}{',' * (len(shape) == 1)})"
        )
        raise ValueError(f"{name} has the shape {given.shape}, and the model takes {expected}.")
    if not len(given):
        raise ValueError(f"{name} has no rows.")

    return np.ascontiguousarray(given)
