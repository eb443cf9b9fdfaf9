"""One gradient step at a time: the loop is the user's."""

import copy
import math
from numbers import Real
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier

from skort.estimators.classifier import OrtSGDClassifier
from skort.estimators.data.row_forms import ids_in_range
from skort.estimators.data.rows import as_array, blocks, knowing, prepared
from skort.estimators.regressor import OrtSGDRegressor
from skort.estimators.training.data_source import BatchShape
from skort.estimators.training.run import TrainRun
from skort.estimators.training.without_effect import warn_of_own_loss
from skort.estimators.training.without_rows import model_without_data
from skort.objective.loss import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from skort.optim.batches import fill

__all__ = ["Step"]


class Step:
    r"""
    Makes one gradient step of a model, on one batch, in each call.
    You write the loop over epochs and batches.

    A step on m rows of positive sample weight :math:`s_i` changes the weights by the gradient of

    .. math:: J(w) = \frac{1}{m} \sum_{i=1}^m s_i \, loss(y_i, score_i) + penalty(w)

    at a rate of eta times m / `batch_size`. This is the step that the estimators make. With the
    same batches, the same initial weights and `standardize=False`, both end at the same weights,
    bit for bit; an l1 penalty needs `n_total`, and may differ by rounding. The estimators divide
    sample weights by their mean over all rows. A `Step` does not know all rows, and uses the
    weights as they are.

    Parameters
    ----------
    estimator : OrtSGDRegressor, OrtSGDClassifier, predictor of scikit-learn or onnx.ModelProto
        The model to train. An estimator of skort also gives its parameters, such as `dtype` and
        `average`, and its weights if it is fitted. It may be any other model that skort trains,
        without steps before it. In a `FrozenEstimator`, a model starts at its fitted weights. An
        ONNX model is a classifier if `classes` are given. The penalty of a model such as `Ridge` or
        `LogisticRegression` depends on the number of all rows: give an estimator of skort with
        `n_total`, or `penalty`.
    loss : str, ScoreLoss or None, default="auto"
        "auto" means the value of the estimator of skort, here and for the parameters below. For
        other models, it is the default of the estimators.
    penalty : str, Penalty or None, default="auto"
        As for the estimators.
    optimizer : str or Optimizer, default="auto"
        As for the estimators. "auto" is "sgd", for networks too.
    solver : {"auto", "graph", "agent", "session", "module"}, default="auto"
        The API of ONNX Runtime that makes the steps. With "agent", you can call `forward`,
        `backward` and `update` one by one.
    batch_size : int or "auto", default="auto"
        The largest number of rows of a batch. "auto" is 200 for other models. Batches of fewer rows
        make shorter steps. Rows of weight zero fill them up: to the size of the first batch until a
        batch is larger, and then to `batch_size`.
    n_features : int, default=None
        The number of columns of X. A fitted model or an ONNX model knows it; then it may be None.
    n_outputs : int, default=None
        For a regressor, the number of columns of y. None: as in a fitted model or an ONNX model,
        otherwise one.
    classes : array-like of shape (n_classes,), default=None
        The labels of a classifier. None: the labels of a fitted classifier.

    Attributes
    ----------
    solver : str
        The solver that makes the steps.
    objective : float
        The objective on the last batch, before its update; NaN before the first one.
    gradient_norm : float
        The Euclidean norm of the gradient of the last step, before `max_grad_norm` shortens it; 0
        before the first one.

    Raises
    ------
    ValueError
        For a parameter that is not as described, for a parameter that is missing, and for a
        pipeline with steps before the model.
    NotTrainableError
        If the model cannot be trained. This is a `ValueError`.
    RuntimeNotAvailableError
        If the installed ONNX Runtime lacks what the solver needs. This is an `ImportError`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skort import Step
    >>> X = np.random.RandomState(0).normal(size=(100, 2)).astype(np.float32)
    >>> y = X @ [1, 2] + 3
    >>> step = Step(LinearRegression(), n_features=2, batch_size=10)
    >>> for epoch in range(20):
    ...     losses = [step.step(X[i : i + 10], y[i : i + 10], eta=0.1) for i in range(0, 100, 10)]
    >>> {name: w.ravel().round(3).tolist() for name, w in step.weights().items()}
    {'coef': [1.0, 2.0], 'intercept': [3.0]}
    >>> bool(losses[-1] < 1e-6)
    True
    """

    def __init__(  # noqa: PLR0913  # the parameters
        self,
        estimator: Any,
        *,
        loss: Any = "auto",
        penalty: Any = "auto",
        optimizer: Any = "auto",
        solver: str = "auto",
        batch_size: int | str = "auto",
        n_features: int | None = None,
        n_outputs: int | None = None,
        classes: ArrayLike | None = None,
    ):
        from skort.runtime.sessions import InferenceModel

        given = {
            "loss": loss,
            "penalty": penalty,
            "optimizer": optimizer,
            "solver": solver,
            "batch_size": batch_size,
        }
        given = {
            name: value
            for name, value in given.items()
            if not (isinstance(value, str) and value == "auto")
        }
        whole = _as_estimator(estimator, loss, has_classes=classes is not None).set_params(**given)
        plan, self._encoder, state = model_without_data(whole, n_features, n_outputs, classes)
        warn_of_own_loss(whole, whole.estimator)
        model = self._encoder.model
        graph = model.score_graph
        self._plan = plan
        self._start = state
        self._n_total = whole.n_total
        run = self._run_of(plan.batch_size)
        self._scale = run.variables.sample_weight_scale(graph.n_outputs)
        self._variables = run.variables
        self.solver: str = run.solver_name

        # The step of a solver, which has more methods than a training loop needs.
        self._solver: Any = run.step
        self._has_rows = False
        self.objective: float = math.nan
        self._scorer = InferenceModel(
            lambda: graph.model, (), dict(graph.arrays), ("score", graph.key)
        )
        self._scored = knowing(whole, self._encoder.columns)
        self._is_forward = self._is_backward = self._has_gradient = False
        self._part = 1.0

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A Step cannot be copied or pickled: it holds a session of ONNX Runtime. Keep its "
            "state(), and restore it in a new Step."
        )

    @ids_in_range()
    def step(
        self,
        X: ArrayLike,
        y: ArrayLike,
        eta: float,
        sample_weight: ArrayLike | None = None,
        *,
        score: bool = False,
    ) -> Any:
        """
        Make one update.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            From numpy, or from any library with DLPack. A full batch that is C-contiguous and has
            the dtype of the training is read without a copy. The names of the columns of a
            DataFrame are not checked.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs), or dict of str to array-like
            Targets or labels. If the loss is a dict: a dict with the same names, or all
            columns side by side.
        eta : float
            The learning rate of a batch of `batch_size` rows. Fewer rows make a shorter step.
        sample_weight : array-like of shape (n_rows,), default=None
            The sample weights, which are used as they are. None: all ones.
        score : bool, default=False
            Whether to return the raw score, too.

        Returns
        -------
        loss : float
            The first term of :math:`J`, without the penalty, before the update. It is not checked:
            if the training diverges, it is infinity or NaN.
        score : ndarray of shape (n_rows, n_outputs)
            The raw score before the update, only with `score=True`.

        Raises
        ------
        ValueError
            For rows that do not fit the model, or for more rows than `batch_size`. Nothing
            is changed then.
        """
        eta = _rate(eta)
        self._put(X, y, sample_weight)
        scores = self.forward(X) if score else None

        # A diverging training overflows, and the loss shows it.
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            self._solver.step(eta * self._part, 1.0)
        self._is_forward = False
        self._is_backward = False
        self._has_gradient = True
        self.objective, loss = self._solver.means()

        return (loss, scores) if score else loss

    @ids_in_range()
    def forward(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        training: bool = False,
    ) -> Any:
        """
        Compute the raw score; with `training=True` the objective, for a `backward` that follows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Any number of rows; at most `batch_size` with `training=True`.
        y, sample_weight : array-like, default=None
            As for `step`, with `training=True` only.
        training : bool, default=False
            True needs solver "agent".

        Returns
        -------
        result : ndarray of shape (n_rows, n_outputs) or float
            The raw score with the present weights; with `training=True`, the objective.

        Raises
        ------
        ValueError
            As for `step`, and for `training=True` with another solver.
        """
        if training:
            self._agent()
            if y is None:
                raise ValueError("y is needed with training=True: the objective depends on it.")

            self._put(X, y, sample_weight)
            self.objective = self._agent().forward()
            self._is_forward = True
            self._is_backward = False

            return self.objective

        rows = self._variables.rows(prepared(self._scored, self._encoder.model, _matrix(X)))
        graph = self._encoder.model.score_graph
        self._scorer.weights = {
            **graph.arrays,
            **self._encoder.model.without_loss_weights(self.weights()),
        }
        parts = [
            self._scorer.run(graph.score_name, {graph.input_name: part}) for part in blocks(rows)
        ]

        return np.concatenate(parts)[: rows.shape[0]]

    def backward(self) -> dict[str, np.ndarray]:
        """
        Compute the gradients of the objective of the last `forward(training=True)`;
        needs solver "agent".

        Returns
        -------
        gradients : dict of str to ndarray
            The gradients by the names of `weights`. They do not contain the l1 term, which the
            update adds. You may change them, also by ``gradients[name] = array``: `update` uses what
            is in them. The next `backward` overwrites them.

        Raises
        ------
        ValueError
            If no `forward(training=True)` came before.
        """
        solver = self._agent()
        if not self._is_forward:
            raise ValueError("Call forward(X, y, training=True) before each backward().")

        self._is_forward = False
        self._is_backward = True
        self._has_gradient = True

        return solver.backend.backward()

    @property
    def gradient_norm(self) -> float:
        """The norm of the last gradient."""
        return self._solver.gradient_norm()

    def gradients(self) -> dict[str, np.ndarray]:
        """
        Return copies of the gradients of the last step, by the names of `weights`;
        not with solver "session".

        They are the gradients of the objective without its l1 term, before `max_grad_norm` shortens
        them.
        """
        from skort.solvers.base import views

        if self.solver == "session":
            raise ValueError(
                'solver="session" does not show its gradients. Use solver="graph" or "agent".'
            )
        if not self._has_gradient:
            raise ValueError("Call step(X, y, eta) before gradients().")

        return views(self._solver.backend.last_gradient().copy(), self._solver.weights())

    def update(self, eta: float) -> None:
        """
        Change the weights by the gradients of the last `backward`; needs solver "agent".

        Parameters
        ----------
        eta : float
            Learning rate.

        Raises
        ------
        ValueError
            If no `backward` came before.
        """
        solver = self._agent()
        eta = _rate(eta)
        if not self._is_backward:
            raise ValueError("Call backward() before each update().")

        self._is_backward = False
        solver.backend.update(eta * self._part)

    def weights(self) -> dict[str, np.ndarray]:
        """
        Return copies of the trained weights, by the names of the ONNX graph;
        with `average`, their mean.
        """
        return self._solver.weights()

    def state(self) -> dict[str, np.ndarray]:
        """
        Return copies of all arrays that the next step needs:
        the weights, and the optimizer's memory.
        """
        return self._solver.state()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """
        Continue, to the last bit, from a state of this or another `Step` of the same model.

        Parameters
        ----------
        state : dict of str to ndarray
            The result of `state`, or of `numpy.load` for a file that
            `numpy.savez(path, **step.state())` wrote.

        Raises
        ------
        ValueError
            If the state is that of another model, optimizer or dtype.
        """
        if not hasattr(state, "keys"):
            raise ValueError(f"state must be what state() returned, got {type(state).__name__}.")
        self._solver.restore({name: np.asarray(state[name]) for name in state})
        self._is_forward = self._is_backward = False

    def to_onnx(self) -> Any:
        """Return the model with the present weights, as `OrtSGDRegressor.to_onnx` gives it."""
        return self._encoder.model.with_weights(self.weights()).served

    def training_graphs(self) -> dict[str, Any]:
        """
        Return every ONNX graph that a step runs, by name:
        see `OrtSGDRegressor.training_graphs`.
        """
        return self._solver.training_graphs()

    def _put(self, X, y, sample_weight):
        """Put rows into the batch of the solver."""
        rows, target, sample_weight = self._encoder(_matrix(X), y, sample_weight)
        n_rows = len(target)
        size = self._plan.batch_size
        if n_rows > size:
            raise ValueError(
                f"X has {n_rows} rows, but batch_size={size}: give fewer rows, or a "
                "larger batch_size."
            )

        if sample_weight is not None and 0 < np.count_nonzero(sample_weight) < n_rows:
            # As `fit` leaves them out.
            kept = np.flatnonzero(sample_weight)
            rows, target, sample_weight = rows[kept], target[kept], sample_weight[kept]

        rows = self._variables.rows(rows)
        target = self._variables.target(target)
        self._make_room(len(target))
        count = fill(
            self._solver.batch, rows, target, sample_weight, self._scale, self._solver.read
        )
        self._part = count / size

    def _run_of(self, n_rows):
        """Return a run at the initial weights, for batches of `n_rows` rows."""
        n_batches = None if self._n_total is None else -(-self._n_total // self._plan.batch_size)
        run = TrainRun.of(
            self._plan, self._encoder.model, self._start, BatchShape(n_rows), n_batches
        )
        return run.with_step(self._start)

    def _make_room(self, n_rows):
        """Let the solver's batch have room for some rows, and at first for these rows alone."""
        # A `fit` on fewer rows than a batch has one batch of all rows. One that is filled up would
        # give other last bits.
        needed = self._plan.batch_size if self._has_rows else n_rows
        room = len(self._solver.batch)
        self._has_rows = True
        if n_rows > room or needed < room:
            state = self._solver.state()
            run = self._run_of(needed)
            run.step.restore(state)
            self._solver = run.step
            self.solver = run.solver_name

    def _agent(self) -> Any:
        """Return the solver, whose step has parts; raise a ValueError if it is not "agent"."""
        if self.solver != "agent":
            raise ValueError(
                f'solver="{self.solver}" makes forward, backward and update in one run. Use step, '
                'or solver="agent".'
            )

        return self._solver


def _as_estimator(model, loss, *, has_classes):
    """Return a copy of an estimator of skort, or a new one around another model."""
    if isinstance(model, (OrtSGDClassifier, OrtSGDRegressor)):
        return copy.copy(model)
    if has_classes or (isinstance(model, BaseEstimator) and is_classifier(model)):
        return OrtSGDClassifier(model)
    if isinstance(loss, str) and loss in CLASSIFICATION_LOSSES and loss not in REGRESSION_LOSSES:
        raise ValueError(f"Give classes: loss={loss!r} is that of a classifier.")

    return OrtSGDRegressor(model)


def _matrix(X):
    """Return the rows of X without the names of their columns."""
    return X.to_numpy() if hasattr(X, "iloc") else as_array(X, "X")


def _rate(eta):
    """Return a learning rate as a float."""
    if not isinstance(eta, Real) or not math.isfinite(eta) or eta < 0:
        raise ValueError(f"eta must be a finite number that is not negative, got {eta!r}.")
    return float(eta)
