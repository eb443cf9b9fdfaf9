"""Building a training model step by step, as onnxruntime.training.onnxblock does."""

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import numpy_helper

from skort.artifacts.sources import LOSS, Source, check_batch_size, model_source
from skort.graphs.trainable import matching
from skort.solvers.module.models import eval_model, training_model


class TrainingBuilder:
    """
    Build the training model of an ONNX model step by step.

    Parameters
    ----------
    model : onnx.ModelProto
        A model in float32. It is not changed.
    batch_size : int or None, default=None
        See `save_training_artifacts`.

    Raises
    ------
    ValueError
        For a model of another type, and a `batch_size` below 1.

    Examples
    --------
    >>> import onnx.parser
    >>> from skort.artifacts import TrainingBuilder
    >>> line = onnx.parser.parse_model('''
    ... <ir_version: 8, opset_import: ["" : 17]>
    ... line (float[N, 2] X) => (float[N, 1] score) <float[2, 1] coef = {1, 2}, float[1] intercept = {0}>
    ... { product = MatMul (X, coef)  score = Add (product, intercept) }''')
    >>> builder = TrainingBuilder(line, batch_size=4)
    >>> builder.requires_grad("coef")
    >>> builder.build("squared_error")
    'loss'
    >>> trainable, frozen = builder.parameters()
    >>> [p.name for p in trainable], [p.name for p in frozen]
    (['coef'], ['intercept'])
    >>> training, evaluation = builder.to_model_proto()
    >>> [output.name for output in training.graph.output]
    ['loss', 'coef_grad.accumulation.out']
    """

    def __init__(self, model: onnx.ModelProto, *, batch_size: int | None = None):
        if not isinstance(model, onnx.ModelProto):
            raise ValueError(f"model must be an onnx.ModelProto, got {model!r}.")

        check_batch_size(batch_size)
        self._model = model
        self._batch_size = batch_size
        self._requires_grad: dict[str, bool] = {}
        self._source: Source | None = None

    def requires_grad(self, name: str, value: bool = True) -> None:
        """
        Set whether a parameter is trained. By default, coefficients and intercepts are trained.

        Parameters
        ----------
        name : str
            The name of a parameter, or a pattern with `*`, `?` and `[...]`.
        value : bool, default=True
            True: the parameter is trained, and parameters that no call has named are not. False:
            the parameter is not trained.
        """
        self._requires_grad[name] = value

    def build(
        self, loss: Any, *, additional_output_names: Sequence[str] = (), sample_weight: bool = False
    ) -> str:
        """
        Return the name of the output with the loss, after adding the losses to the model.

        Parameters
        ----------
        loss : str, ScoreLoss, dict or None
            See `save_training_artifacts`.
        additional_output_names : sequence of str, default=()
            Further results that the training and the eval model return.
        sample_weight : bool, default=False
            Whether each batch has sample weights.

        Raises
        ------
        ValueError
            For unknown names, and for the reasons of `save_training_artifacts`.
        """

        def source(names):
            return model_source(
                self._model, loss, names, additional_output_names, sample_weight=sample_weight
            )

        named, frozen = (
            [n for n, value in self._requires_grad.items() if value == v] for v in (True, False)
        )
        built = source(named or None)

        if frozen:
            stay = matching(frozen, [*built.training.trainable, *built.training.frozen])
            built = source([name for name in built.training.trainable if name not in stay])

        self._source = built
        return LOSS

    def parameters(self) -> tuple[list[onnx.TensorProto], list[onnx.TensorProto]]:
        """Return the trainable and the frozen parameters; raise a RuntimeError before `build`."""
        blueprint = self._built().training
        trainable, frozen = (
            [numpy_helper.from_array(array, name) for name, array in arrays.items()]
            for arrays in (blueprint.trainable, blueprint.frozen)
        )
        return trainable, frozen

    def to_model_proto(self) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        """
        Return the training model and the eval model, after `build`.

        Raises
        ------
        RuntimeError
            Before `build`.
        NotTrainableError
            If an operator has no gradient.
        RuntimeNotAvailableError
            If `batch_size` is None and the installed ONNX Runtime is not a build for training.
        """
        source = self._built()
        return training_model(source.training, self._batch_size), eval_model(source.eval)

    def _built(self):
        if self._source is None:
            raise RuntimeError("The training model is not built yet: call build(loss) first.")
        return self._source
