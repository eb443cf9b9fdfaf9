"""The fitted model of an estimator: its predictions, and its export to ONNX and scikit-learn."""

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skort.common.user_warning import warn_user
from skort.estimators.data.nesting import layers
from skort.estimators.data.row_forms import ids_in_range
from skort.estimators.data.rows import blocks
from skort.estimators.data.targets import EncodedTarget, NamedOutputs
from skort.estimators.literals import ModelProto
from skort.estimators.model.wrapped import Preprocessing, TargetTransform, WrappedModel
from skort.exceptions import NotExportableError
from skort.objective.loss import ScoreLoss, source_key
from skort.optim.batches import is_wide
from skort.optim.row_change import RowChange

if TYPE_CHECKING:
    from skort.graphs.layers import Layer
    from skort.graphs.score_graph import ScoreGraph
    from skort.graphs.sklearn.transformers import StepGraphs
    from skort.runtime.device import Device
    from skort.runtime.sessions import InferenceModel

# More weights than this are constants of the model that predicts.
_MANY_WEIGHTS = 2**17


@dataclass(frozen=True, eq=False)
class Model:
    """The result of a fit: weights, the steps before the model, and the meaning of the score."""

    #: The user's model, unfitted. If the user changes `estimator` after the fit, the fitted model
    #: stays as it is.
    inner: WrappedModel
    #: The fitted steps before the trained graph.
    preprocessing: Preprocessing
    #: The trained graph with its weights.
    score_graph: "ScoreGraph"
    #: The loss. Its inverse link turns the raw score into a prediction.
    loss: ScoreLoss
    #: ndarray of shape (n_classes,) or None. The labels of a classifier, sorted. None: a regressor.
    classes: np.ndarray | None
    #: Whether y has one dimension.
    single_output: bool
    #: The transformation of y before the training of a regressor.
    target_transform: TargetTransform
    #: The loss's own weights, by name.
    loss_weights: dict[str, np.ndarray] = field(default_factory=dict)
    #: The outputs of an ONNX model, if the columns of y belong to outputs with names.
    outputs: NamedOutputs | None = None
    #: Whether the weights were drawn for columns of scale one, and are not yet in the units of X.
    is_drawn: bool = False

    @property
    def multi_label(self) -> bool:
        """Whether the model is a classifier whose rows may have several labels."""
        return self.classes is not None and not self.single_output

    def labels(self, numbers: np.ndarray) -> np.ndarray:
        """Return the labels for numbers of classes. Indicators of a multi-label y stay."""
        return numbers if self.multi_label or self.classes is None else self.classes[numbers]

    @property
    def inverse_link(self) -> Any:
        """The ONNX function from the raw score to the prediction or the probabilities, or None."""
        return self.loss.inverse_link_function(self.score_graph.n_outputs)

    @functools.cached_property
    def onnx(self) -> ModelProto:
        """The deployable model."""
        return self._deployable(self.preprocessing.exported())

    @property
    def served(self) -> ModelProto:
        """
        The deployable model.

        Its input has whole numbers if the given ONNX model takes them, and rows of the shape that
        the X of the fit had.
        """
        from skort.graphs.onnx_models.inputs import with_given_input, with_input_of_rows

        model = with_given_input(self.onnx, None if self.has_steps else self.inner.model)
        row_shape = self.inner.row_shape
        return with_input_of_rows(model, row_shape) if row_shape else model

    def warn_of_renamed_outputs(self) -> None:
        """Warn if an output of the deployable model has another name, because a column has its."""
        from skort.graphs.export import LABEL, PREDICTION, PROBABILITIES

        of_regressor = list(self.named_outputs) or [PREDICTION]
        usual = of_regressor if self.classes is None else [LABEL, PROBABILITIES]
        pairs = zip(usual, (output.name for output in self.onnx.graph.output), strict=False)
        if renamed := [f"{new!r} instead of {old!r}" for old, new in pairs if old != new]:
            warn_user(
                "X has columns with the names of outputs: in the file, the names of these outputs "
                f"are {', '.join(renamed)}."
            )

    def _deployable(self, steps, *, in_float64=False):
        """
        Return the deployable model after `steps`, which are ONNX or None.

        `in_float64` gives probabilities in float64.
        """
        from skort.graphs.export import classifier_model, regressor_model

        graph = self.score_graph
        link = self.inverse_link
        if self.classes is None:
            return regressor_model(graph, steps, link, self._inverse_target(), self.named_outputs)

        options = {"multi_label": self.multi_label, "in_float64": in_float64}
        return classifier_model(graph, self.classes, steps, link, **options)

    @property
    def named_outputs(self) -> dict[str, int]:
        """The trained outputs of an ONNX model: name -> number of columns. Empty without names."""
        return self.loss.widths or {}

    def _inverse_target(self):
        """Return the inverse of the transformer of y as an ONNX function, or None."""
        from skort.graphs.sklearn.converters import target_inverse

        transformer = self.target_transform.transformer
        return None if transformer is None else target_inverse(transformer)

    def warn_without_onnx(self) -> None:
        """Warn if the fitted model will have no ONNX, and say why."""
        from skort.graphs.export import label_tensor

        try:
            self.preprocessing.exported()
            if self.classes is None:
                self._inverse_target()
            else:
                label_tensor(self.classes)
        except NotExportableError as error:
            warn_user(f"The fitted model will have no ONNX: {error}")

    @functools.cached_property
    def inference(self) -> "InferenceModel":
        """
        The model that predicts from transformed rows.

        It returns numbers of classes instead of labels, and targets before their inverse transform.
        """
        from skort.graphs.export import PREDICTION, SCORE
        from skort.runtime.sessions import InferenceModel

        bare = self._bare()
        # `run` subtracts the offset of the rows, and adds the offset of the score in float64.
        graph = bare.for_inference
        bare = bare if graph is bare.score_graph else dataclasses.replace(bare, score_graph=graph)
        weights = bare.score_graph.arrays

        # The products with many weights are faster if the weights are constants.
        if sum(array.size for array in weights.values()) > _MANY_WEIGHTS:
            weights = {}
            structure = None
        else:
            link = source_key(bare.inverse_link)
            n_classes = None if bare.classes is None else len(bare.classes)
            structure = (
                graph.key,
                n_classes,
                bare.single_output,
                link,
                tuple(bare.named_outputs.items()),
            )

        inner_results = (
            (PREDICTION,) * bool(self.named_outputs) if self.classes is None else (SCORE,)
        )
        model = functools.partial(bare._deployable, None, in_float64=True)
        return InferenceModel(model, inner_results, weights, structure)

    @property
    def for_inference(self) -> "ScoreGraph":
        """
        The score graph of rows minus their offset.

        Without an inverse link, the score graph also lacks the offset of the target.
        """
        from skort.graphs.layers import OFFSET, TARGET_OFFSET
        from skort.graphs.standardized import without_offsets

        names = (OFFSET, TARGET_OFFSET) if self.inverse_link is None else (OFFSET,)
        return without_offsets(self.score_graph, names)

    def _bare(self):
        """Return the model without the steps, labels and target transform of scikit-learn."""
        if self.classes is None:
            numbers = None
            is_bare = self.target_transform.transformer is None
        else:
            numbers = np.arange(len(self.classes))
            is_bare = self.classes.dtype == numbers.dtype and np.array_equal(self.classes, numbers)

        if is_bare and not self.has_steps:
            return self

        return dataclasses.replace(
            self.without_steps(), classes=numbers, target_transform=TargetTransform()
        )

    @functools.cached_property
    def step_graphs(self) -> "StepGraphs":
        """The graphs of the last steps before the trained graph, with their own weights."""
        from skort.graphs.sklearn.transformers import trainable_steps

        return trainable_steps(self.preprocessing.transformers, self.preprocessing.dtype)

    @property
    def has_steps(self) -> bool:
        """Whether scikit-learn transforms X before the model."""
        return self.preprocessing.transformers is not None

    @functools.cached_property
    def linear_weights(self) -> tuple[np.ndarray, np.ndarray] | None:
        """
        The read-only coefficients and intercepts of a linear model, or None.

        Their shapes are (n_features,) or (n_outputs, n_features), and (n_outputs,).
        """
        from skort.graphs.standardized import linear_weights

        linear = linear_weights(self.score_graph)
        if linear is None:
            return None

        for array in linear:
            array.flags.writeable = False
        coef, intercept = linear
        return (coef[0] if self.classes is None and self.single_output else coef), intercept

    def weights(self) -> dict[str, np.ndarray]:
        """Return copies of all weights, trained or frozen, by their names in `onnx`."""
        graphs = [*self.step_graphs.graphs.values(), self.score_graph]
        return {name: array.copy() for graph in graphs for name, array in graph.arrays.items()}

    def transform(self, X: Any) -> Any:
        """Return X after the steps before the model."""
        return self.inner.checked(self.preprocessing.transform(X))

    @ids_in_range()
    def run(self, output: str, X: Any, device: "Device") -> np.ndarray:
        """
        Return an output or an inner result of the deployable model for transformed rows.

        The rows run in blocks of a few MB.
        """
        from skort.graphs.layers import TARGET_OFFSET

        # `is_wide` looks at the number of columns only. So the prediction of a row is the same,
        # whatever the other rows.
        model, matrix = self._after_product() if is_wide(X) else (self, None)
        (name, change) = model.read_input
        run = model.inference.run
        parts = [run(output, {name: change(rows)}, device) for rows in blocks(X, matrix)]
        result = (parts[0] if len(parts) == 1 else np.concatenate(parts))[: X.shape[0]]
        offset = self.score_graph.arrays.get(TARGET_OFFSET)

        return (
            result
            if offset is None or self.inverse_link is not None
            else result.astype(np.float64) + offset
        )

    @functools.cached_property
    def read_input(self) -> tuple[str, RowChange]:
        """The name of the input of `inference`, and the change of rows before it."""
        from skort.graphs.layers import OFFSET

        graph = self.score_graph
        return graph.input_name, RowChange(graph.arrays.get(OFFSET), None, graph.dtype)

    def _after_product(self):
        """
        Return the model that predicts from products of rows and a matrix, and the matrix.

        Return this model and None if its graph does not begin with such a product.
        """
        layer, rest = self.product
        if layer is None:
            return self, None

        # The weights with which predictions run now.
        arrays = {**self.for_inference.arrays, **self.inference.weights}
        rest.inference.weights = {name: arrays[name] for name in rest.score_graph.arrays}
        return rest, arrays[layer.coefficient].reshape(self.score_graph.n_features, -1)

    @functools.cached_property
    def product(self) -> "tuple[Layer | None, Model]":
        """The first layer, if only its product reads X, and the model after this product."""
        from skort.graphs.standardized import after_first_product, product_layer

        # `product_layer` looks for a trained layer. Here, the layer may also be frozen.
        graph = dataclasses.replace(self.score_graph, trained=self.score_graph.weight_names)
        layer = product_layer(graph)
        if layer is None:
            return None, self

        return layer, dataclasses.replace(
            self.without_steps(), score_graph=after_first_product(graph, layer)
        )

    def with_weights(self, weights: dict[str, np.ndarray]) -> "Model":
        """Return the model with other weights of the score graph and of the loss, by name."""
        score_graph = self.score_graph.with_weights(self.without_loss_weights(weights))
        of_loss = {name: weights.get(name, array) for name, array in self.loss_weights.items()}
        return dataclasses.replace(
            self, score_graph=score_graph, loss_weights=of_loss, is_drawn=False
        )

    def at(self, weights: dict[str, np.ndarray]) -> "Model":
        """Return the model with other trained weights. It shares the session of this model."""
        model = self.with_weights(weights)
        vars(model).update(
            {name: vars(self)[name] for name in ("inference", "product") if name in vars(self)}
        )

        # Models of the same structure share a session: all their weights are inputs.
        model.inference.weights = model.for_inference.arrays
        return model

    @property
    def trained_weights(self) -> dict[str, np.ndarray]:
        """The trained weights, not copied: those of the score graph, then those of the loss."""
        return {**self.score_graph.trained_arrays, **self.loss_weights}

    def with_loss_weights(self, weights: dict[str, np.ndarray]) -> "Model":
        """Return the model with values of the loss's own weights."""
        if not weights:
            return self

        return dataclasses.replace(
            self,
            loss_weights={name: w.astype(self.score_graph.dtype) for name, w in weights.items()},
        )

    def without_loss_weights(self, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the weights of the score graph among some trained weights."""
        return {name: array for name, array in weights.items() if name not in self.loss_weights}

    def shown_attributes(self) -> dict[str, Any]:
        """Return the fitted attributes for the labels and for the weights of the loss."""
        return self.loss_attributes() | ({} if self.classes is None else {"classes_": self.classes})

    def loss_attributes(self) -> dict[str, np.ndarray | float]:
        """Return the fitted attributes for the weights of the loss, such as `scale_`."""
        attributes = self.loss.fitted_attributes(self.loss_weights)
        return {
            name: array.item() if self.single_output else array
            for name, array in attributes.items()
        }

    def by_columns(self) -> "Model":
        """Return the model with predictions as columns, even if y was a dict."""
        if self.outputs is None or not self.outputs.by_name:
            return self
        return dataclasses.replace(self, outputs=dataclasses.replace(self.outputs, by_name=False))

    def without_steps(self) -> "Model":
        """Return the model for rows that the steps have already transformed."""
        preprocessing = dataclasses.replace(
            self.preprocessing, transformers=None, graph=None, obstacle=None
        )
        return dataclasses.replace(self, preprocessing=preprocessing)

    def for_stream(self, loss: ScoreLoss, encoded: EncodedTarget) -> "Model":
        """Return the model for more rows of a stream. The loss may have changed."""
        n_outputs = encoded.target.shape[1]
        if n_outputs != self.score_graph.n_outputs:
            raise ValueError(
                f"y has {n_outputs} outputs, earlier calls had {self.score_graph.n_outputs}."
            )
        if self.classes is not None and encoded.single_output != self.single_output:
            raise ValueError("y must be multi-label in all calls, or in none of them.")

        outputs = loss.widths or {}
        if list(outputs.items()) != list(self.named_outputs.items()):
            raise ValueError(
                f"loss has the outputs {', '.join(outputs) or 'none'}, earlier calls had "
                f"{', '.join(self.named_outputs) or 'none'}, in this order. Call fit."
            )
        if set(loss.weight_names) != set(self.loss_weights):
            raise ValueError(
                f"loss={type(loss).__name__} has other trained weights than "
                f"{type(self.loss).__name__}, the loss of earlier calls. Call fit."
            )

        return dataclasses.replace(
            self, loss=loss, single_output=encoded.single_output, outputs=encoded.outputs
        )

    def going_on_from(self, other: "Model") -> "Model":
        """Return the model with the trained weights of another model, for `warm_start`."""
        from skort.graphs.standardized import with_moved_offsets

        weights, own = other.score_graph.trained_arrays, self.score_graph.trained_arrays
        shapes, expected = (
            {name: w.shape for name, w in arrays.items()} for arrays in (weights, own)
        )
        same_classes = np.array_equal(np.asarray(other.classes), np.asarray(self.classes))
        if shapes != expected or not same_classes:
            theirs, ours = next(
                (theirs, ours)
                for theirs, ours in zip(
                    _traits(other, shapes), _traits(self, expected), strict=True
                )
                if theirs != ours
            )
            # The next fit fits the steps anew: an encoder may find fewer categories.
            cure = ", or partial_fit, which keeps the fitted steps" if self.has_steps else ""
            raise ValueError(
                "warm_start=True continues from the weights of the last fit, but that fit had "
                f"{theirs}, and this one has {ours}. Use warm_start=False{cure}."
            )

        # A loss with other own weights begins with its initial ones.
        weights = weights | {
            name: w for name, w in other.loss_weights.items() if name in self.loss_weights
        }
        # The offsets of the other model keep the digits of its weights.
        graph = with_moved_offsets(self.score_graph, other.score_graph.arrays)
        weights = {name: w.astype(self.score_graph.dtype) for name, w in weights.items()}

        return dataclasses.replace(self, score_graph=graph).with_weights(weights)

    def starting_at(self, coef_init: Any, intercept_init: Any) -> "Model":
        """Return the linear model with the user's initial coefficients and intercepts."""
        from skort.graphs.standardized import in_score_order, linear_weights, with_moved_offsets

        linear = linear_weights(self.score_graph)
        if linear is None:
            raise ValueError("coef_init and intercept_init are for linear models only.")

        names = self.score_graph.weight_names
        weights = {}
        if coef_init is not None:
            weights[names.coefficients[0]] = _like(linear[0], coef_init, "coef_init")
        if intercept_init is not None:
            if not names.intercepts:
                raise ValueError(
                    "intercept_init is for a model with an intercept, and this model has none."
                )
            weights[names.intercepts[0]] = _like(linear[1], intercept_init, "intercept_init")

        model = dataclasses.replace(self, score_graph=with_moved_offsets(self.score_graph, {}))
        arrays = self.score_graph.arrays
        weights = {
            name: in_score_order(self.score_graph, values, back=True).T.reshape(arrays[name].shape)
            for name, values in weights.items()
        }

        return model.with_weights(
            {name: values.astype(arrays[name].dtype, "C") for name, values in weights.items()}
        )

    def checked_weights(self, weights: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        """Return the user's values of weights, checked, in the dtype of the model."""
        from skort.graphs.onnx_models.weights import check_by_name, weight_array

        check_by_name(weights)
        known = self.score_graph.arrays | self.loss_weights
        dtype = self.score_graph.dtype

        for name in weights:
            if name not in known:
                raise ValueError(
                    f"weights: the model has no weight {name!r}. Its weights are "
                    f"{', '.join(known)}."
                )

        return {
            name: weight_array(name, values, known[name].shape, dtype)
            for name, values in weights.items()
        }

    def original(self) -> ModelProto:
        """Return the user's ONNX model with the trained weights."""
        from onnx import numpy_helper

        from skort.graphs.layers import OFFSET, TARGET_OFFSET
        from skort.graphs.onnx_models.weights import with_weights
        from skort.graphs.standardized import with_moved_offsets

        model = self.inner.model
        if isinstance(model, BaseEstimator):
            raise ValueError(
                "original=True returns the given ONNX model with its trained weights, but "
                f"estimator={type(model).__name__} is not one. Use to_onnx(), or to_sklearn()."
            )

        given = {
            i.name: numpy_helper.to_array(i)
            for i in model.graph.initializer
            if i.name in (OFFSET, TARGET_OFFSET)
        }
        arrays = with_moved_offsets(self.score_graph, given).arrays
        return with_weights(model, {name: arrays[name] for name in self.score_graph.trainable})

    def to_sklearn(self, feature_names: Any = None) -> Any:
        """Return the model as plain scikit-learn, see `WrappedModel.to_sklearn`."""
        from skort.graphs.initialization import score_model

        model = self.inner.to_sklearn(
            self.preprocessing,
            self.score_graph,
            self.target_transform,
            classes=self.classes,
            single_output=self.single_output,
            has_link=self.classes is None and self.inverse_link is not None,
        )
        *_, (last, _) = layers(model, is_fitted=True)
        for name, value in self.loss_attributes().items():
            setattr(score_model(last), name, value)
        if feature_names is not None and not self.inner.has_steps:
            model.feature_names_in_ = feature_names

        return model


def _like(weights, values, name):
    """
    Return the values of a parameter in the shape and dtype of weights.

    The values for a single output may have any shape of the right size.
    """
    from skort.graphs.onnx_models.weights import finite_array

    values = finite_array(values, name, weights.dtype)
    if len(weights) == 1 and values.size == weights.size:
        values = values.reshape(weights.shape)
    if values.shape != weights.shape:
        raise ValueError(
            f"Provided {name} does not match dataset: it has the shape {values.shape}, the model "
            f"{weights.shape}."
        )

    return values


def _traits(model, shapes):
    """Return what a warm start may find to be different, as text: the plainest first."""
    graph = model.score_graph
    classes = None if model.classes is None else np.asarray(model.classes).tolist()
    return (
        f"{graph.n_features} features",
        f"the classes {classes}",
        f"{graph.n_outputs} outputs",
        f"weights of the shapes {shapes}",
    )
