"""A model as a layer of torch: `OnnxModule`. It needs torch: ``pip install torch``."""

from typing import Any, Literal

import numpy as np

try:
    import torch
except ImportError as _error:
    raise ImportError(
        f"skort.torch needs torch ({_error}). Install it: pip install torch."
    ) from _error
from torch import nn

from skort.estimators.data.row_forms import ids_in_range
from skort.estimators.score_graph_of import DifferentiableModel
from skort.runtime.cache import NoPickle
from skort.solvers.base import flat, views
from skort.solvers.graph.gradient_sessions import GradientSessions

__all__ = ["OnnxModule"]


class OnnxModule(nn.Module):
    """
    A model as a layer of torch: ONNX Runtime computes it, and any optimizer of torch trains it.

    Its gradients, with respect to its weights and to its input, are those of the same layers of
    torch. So the module can be anywhere between other layers. It has no sigmoid or softmax at the
    end: for a classifier, use a loss that takes logits.

    Parameters
    ----------
    model : onnx.ModelProto, estimator or Pipeline
        As for `skort.gradients.gradient_graphs`, with the same errors. The weights start at those
        of the model.
    trainable, dtype
        As for `skort.gradients.gradient_graphs`.
    n_jobs : int, default=None
        Threads of a matrix product: None is 1, -1 all cores.

    Attributes
    ----------
    weights : torch.nn.Parameter of shape (n_weights,)
        The trained weights as one vector. It is the only parameter, so the time of an optimizer's
        step does not depend on the number of layers. `named_weights` returns its parts.
    frozen : torch.Tensor of shape (n_frozen,)
        The other weights as one vector, a buffer.

    Raises
    ------
    NotTrainableError
        If an operator between a weight and the score has no gradient. The error names the operator.
    ValueError
        For a name in `trainable` that no weight has, and for the reasons of
        `skort.gradients.gradient_graphs`.

    Notes
    -----
    The module computes on the CPU. `eval()` changes nothing, because no part of the model behaves
    differently in training. Under `torch.no_grad()`, nothing is kept for a backward. The weights
    must not change between a forward and its backward; torch checks this. A second derivative
    raises an error. A new number of rows takes some milliseconds, as for `ForwardBackward`. With
    `torch.compile`, wrap the module in `torch.compiler.disable(module)`; the layers around it are
    compiled. Use `to_onnx`, not `torch.jit` or `torch.export`. Of the transforms of `torch.func`,
    only `functional_call` works.

    Examples
    --------
    >>> import torch
    >>> from sklearn.neural_network import MLPClassifier
    >>> from skort.gradients import initial_model
    >>> from skort.torch import OnnxModule
    >>> head = OnnxModule(
    ...     initial_model(MLPClassifier(hidden_layer_sizes=(20,)), n_features=8, n_outputs=3, random_state=0)
    ... )
    >>> network = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), head)
    >>> optimizer = torch.optim.Adam(network.parameters())
    >>> loss = torch.nn.functional.cross_entropy(
    ...     network(torch.ones(10, 5)), torch.zeros(10, dtype=torch.int64)
    ... )
    >>> loss.backward()
    >>> optimizer.step()
    >>> {name: tuple(part.shape) for name, part in head.named_weights(head.weights.grad).items()}
    {'coefficient': (8, 20), 'coefficient1': (20, 3), 'intercepts': (1, 20), 'intercepts1': (1, 3)}
    """

    def __init__(
        self,
        model: Any,
        *,
        trainable: str | list[str] | None = None,
        dtype: str | None = None,
        n_jobs: int | None = None,
    ):
        super().__init__()
        self._model = DifferentiableModel(model, trainable, dtype, n_jobs)
        #: The sessions that run the model.
        self.sessions: GradientSessions = self._model.sessions
        self._graph = self._model.graph
        self._frozen_arrays = self._model.frozen
        self._dtype, self._n_features = (
            getattr(torch, str(self._graph.dtype)),
            self._graph.n_features,
        )
        self._views = NoPickle()
        self.weights: nn.Parameter = nn.Parameter(torch.from_numpy(self._model.weights()))
        self._n_weights = self.weights.numel()
        frozen = (
            flat(self._frozen_arrays) if self._frozen_arrays else np.empty(0, self._graph.dtype)
        )
        self.register_buffer("frozen", torch.from_numpy(frozen))

    @ids_in_range()
    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """
        Compute the score.

        Parameters
        ----------
        X : torch.Tensor of shape (n_samples, n_features)
            A tensor on the CPU, of the dtype of the model. If it is contiguous, it is read in
            place.

        Returns
        -------
        score : torch.Tensor of shape (n_samples, n_outputs)

        Raises
        ------
        ValueError
            For an X of another dtype, shape or device or without rows, and for a module that was
            moved to another device or dtype.
        """
        weights = self.weights
        self._check(X, weights)
        if torch.is_grad_enabled() and (X.requires_grad or weights.requires_grad):
            return _Score.apply(X, weights, self)
        return torch.from_numpy(self.sessions.score(_array(X), self.arrays(weights)))

    def named_weights(
        self, vector: "torch.Tensor | Literal['weights']" = "weights"
    ) -> dict[str, torch.Tensor]:
        """
        Return the parts of a vector of all trained weights, by their names and in their shapes,
        without a copy.

        Parameters
        ----------
        vector : torch.Tensor of shape (n_weights,), or "weights", default="weights"
            A vector such as `weights.grad`. "weights": the attribute `weights`. A gradient goes
            through its parts, for instance that of a penalty on some of them.

        Raises
        ------
        ValueError
            For another shape, and for None, which is the value of `weights.grad` before a backward.
        """
        if isinstance(vector, str) and vector == "weights":
            vector = self.weights
        if not isinstance(vector, torch.Tensor) or vector.shape != self.weights.shape:
            given = (
                f"a tensor of shape {tuple(vector.shape)}"
                if isinstance(vector, torch.Tensor)
                else repr(vector)
            )
            raise ValueError(
                f"vector must be a tensor of shape {tuple(self.weights.shape)}, got {given}. "
                "weights.grad is None before a backward."
            )

        return self._model.views(vector)

    def to_onnx(self) -> Any:
        """Return X -> score as an ONNX model, with the weights as they are now."""
        return self._trained().model

    def to_estimator(self) -> Any:
        """
        Return a fitted copy of the estimator that the module was made from,
        with the weights as they are now.

        Raises
        ------
        ValueError
            If the module was made from an ONNX model, if weights of steps before the model are
            trained, or if scikit-learn has no place for the weights.
        """
        return self._model.to_estimator(self._trained())

    def arrays(self, weights: torch.Tensor) -> dict[str, np.ndarray]:
        """
        Return all weights as arrays that are views of tensors.

        The arrays are kept while the tensors stay at the same addresses.
        """
        frozen = self.frozen if self._frozen_arrays else None
        place = weights.data_ptr(), 0 if frozen is None else frozen.data_ptr()

        kept = self._views.look()
        if kept is None or kept[0] != place:
            if not weights.is_contiguous() or weights.numel() != self._n_weights:
                raise ValueError(
                    f"weights must be a contiguous vector of {self._n_weights} numbers, got shape "
                    f"{tuple(weights.shape)} and strides {weights.stride()}."
                )

            others = {} if frozen is None else views(frozen.numpy(), self._frozen_arrays)
            kept = place, self.sessions.arrays(weights.detach().numpy(), others)
            self._views.put(kept)

        return kept[1]

    def extra_repr(self) -> str:
        """Return the shapes for `repr`."""
        return f"{self._n_features}, {self._graph.n_outputs}, n_weights={self.weights.numel()}"

    def _trained(self):
        arrays = {**self._frozen_arrays, **self._graph.trained_arrays}
        return self._graph.with_weights(
            views(torch.cat([self.frozen, self.weights.detach()]).numpy(), arrays)
        )

    def _check(self, X, weights):
        """Raise a ValueError if ONNX Runtime cannot take X or the weights."""
        if not isinstance(X, torch.Tensor):
            raise ValueError(f"X must be a tensor, got {type(X).__name__}: use torch.from_numpy.")

        _check_kind("X", X, self._dtype)
        _check_kind("The module", weights, self._dtype)
        if X.dim() != 2 or X.size(1) != self._n_features:
            raise ValueError(
                f"X has the shape {tuple(X.shape)}, and the model takes (any, {self._n_features})."
            )
        if not X.size(0):
            raise ValueError("X has no rows.")


def _check_kind(name, tensor, dtype):
    if tensor.layout is not torch.strided:
        raise ValueError(f"{name} is a sparse tensor: use .to_dense().")
    if not tensor.is_cpu:
        raise ValueError(
            f"{name} is on the device {tensor.device}: OnnxModule computes on the CPU, use .cpu()."
        )
    if tensor.dtype is not dtype:
        raise ValueError(
            f"{name} has the dtype {tensor.dtype}, and the model computes in {dtype}: cast it."
        )


def _array(tensor):
    """Return a tensor as a C-contiguous array, without a copy if possible."""
    # The test takes less time than a new tensor.
    if tensor.requires_grad:
        tensor = tensor.detach()
    return (tensor if tensor.is_contiguous() else tensor.contiguous()).numpy()


class _Score(torch.autograd.Function):
    """The score of an `OnnxModule`, with its gradient."""

    @staticmethod
    def forward(ctx, X, weights, module):
        pair = module.sessions.pair(X.size(0), input_gradient=ctx.needs_input_grad[0])
        array, kept = module.sessions.forward(pair, _array(X), module.arrays(weights))
        score = torch.from_numpy(array)

        # torch frees these tensors after the backward, and checks that nobody changed them before
        # it.
        ctx.save_for_backward(
            X, weights, *(score if part is array else torch.from_numpy(part) for part in kept)
        )
        ctx.module = module
        ctx.pair = pair

        return score

    @staticmethod
    def backward(ctx, score_gradient):
        X, weights, *kept = ctx.saved_tensors
        module = ctx.module
        by_weights, by_X = module.sessions.backward(
            ctx.pair,
            _array(score_gradient),
            _array(X),
            module.arrays(weights),
            [_array(part) for part in kept],
        )
        gradients = [
            None if array is None else torch.from_numpy(array) for array in (by_X, by_weights)
        ]

        if torch.is_grad_enabled():
            gradients = [
                None if g is None else _Once.apply(g, X, weights, score_gradient) for g in gradients
            ]

        return *gradients, None


class _Once(torch.autograd.Function):
    """
    A gradient that cannot be differentiated again.

    It depends on `tensors`. Without this function, torch would take it for a constant.
    """

    @staticmethod
    def forward(ctx, gradient, *tensors):
        return gradient

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError(
            "OnnxModule has no second derivative. Remove the terms that depend on its gradient "
            "from the loss, or detach the gradient."
        )
