"""
The steps and the model that the user put inside an estimator; the fitted steps: those before the
model transform X, and a transformer may change y.
"""

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from skort.common.component import own_copy
from skort.common.own_graph import makes_graph
from skort.estimators.data.dates import check_dates, date_columns, dates_in_steps
from skort.estimators.data.known_labels import model_labels
from skort.estimators.data.nesting import split, target_of, thawed
from skort.estimators.data.row_forms import is_in_range, kept_dtypes, row_shape
from skort.estimators.data.step_errors import one_column, step_error
from skort.estimators.data.targets import EncodedTarget
from skort.exceptions import NotExportableError, NotTrainableError

if TYPE_CHECKING:
    import onnx

    from skort.graphs.score_graph import ScoreGraph, ScoreSpec


@dataclass(frozen=True)
class Preprocessing:
    """The fitted steps before the trained graph: in scikit-learn, and as ONNX for deployment."""

    #: A fitted Pipeline, or None.
    transformers: Any
    #: The steps as ONNX.
    graph: "onnx.ModelProto | None"
    #: float32 or float64: the dtype of the transformed X.
    dtype: DTypeLike
    #: Why the steps have no ONNX: the message of the error that an export raises.
    obstacle: str | None = None

    @classmethod
    def of(cls, transformers: Any, some_rows: Any, dtype: DTypeLike) -> "Preprocessing":
        """Return fitted steps with their ONNX, compared with scikit-learn on `some_rows`."""
        from skort.graphs.sklearn.transformers import DatesError, transformer_graph

        if transformers is None:
            return cls(None, None, dtype)

        try:
            return cls(transformers, transformer_graph(transformers, some_rows, dtype), dtype)
        except NotExportableError as error:
            return cls(transformers, None, dtype, str(error))
        except DatesError as error:
            raise dates_in_steps(_among(error.args, some_rows)) from None

    def exported(self) -> "onnx.ModelProto | None":
        """Return the steps as ONNX, or None if there are no steps."""
        if self.obstacle is not None:
            raise NotExportableError(self.obstacle)
        return self.graph

    def transform(self, X: Any) -> Any:
        """Return X after the steps: an array or a CSR matrix of `dtype`."""
        if self.transformers is None:
            return X
        if self.graph is not None and date_columns(X):
            _check_dates(self.graph, X)
        return transformed(self.transformers, self.transformers.transform, X, self.dtype)


@dataclass(frozen=True)
class TargetTransform:
    """A fitted transformer of y."""

    #: None: the training takes y as it is.
    transformer: Any = None
    #: Whether the steps before the model are inside the `TransformedTargetRegressor`.
    encloses_steps: bool = False

    def transformed(self, y: np.ndarray) -> np.ndarray:
        """Return y, of one or two dimensions, as a transformed matrix."""
        columns = y.reshape(len(y), -1)
        if self.transformer is None:
            return columns

        return check_array(
            self.transformer.transform(columns), dtype=np.float64, input_name="transformed y"
        )

    def applied(self, encoded: EncodedTarget) -> EncodedTarget:
        """Return an encoded y with the transformed target."""
        if self.transformer is None:
            return encoded
        return encoded._replace(target=self.transformed(encoded.y))

    def for_steps(self, y: np.ndarray) -> np.ndarray:
        """Return the y that the steps before the model are fitted to."""
        if not self.encloses_steps or self.transformer is None:
            return y
        columns = self.transformed(y)
        return columns.ravel() if columns.shape[1] == 1 else columns

    def inverse(self, prediction: np.ndarray) -> np.ndarray:
        """Return predictions, of shape (n_samples, n_outputs), in the units of y."""
        if self.transformer is None:
            return prediction
        return np.asarray(self.transformer.inverse_transform(prediction)).reshape(
            len(prediction), -1
        )


@dataclass(frozen=True)
class WrappedModel:
    """The steps, cloned, and the model that the user put inside an estimator."""

    #: A Pipeline of clones of the steps before the model, or None. Steps that the user fitted are
    #: frozen.
    transformers: Any
    #: The model to train.
    model: Any
    #: Whether the training starts from the weights of the fitted model.
    is_fitted: bool
    #: The name of the model's step.
    name: str
    #: The estimator that transforms y. None: y is not transformed.
    target: Any = None
    #: Whether the steps before the model are inside `target`.
    target_encloses_steps: bool = False
    #: Whether it is the default model: the user gave none.
    is_default: bool = False
    #: The shape of a row of the X of the fit, if it has several dimensions.
    row_shape: tuple[int, ...] = ()

    @classmethod
    def of(cls, estimator: Any) -> "WrappedModel":
        """Return the steps and the model of an estimator."""
        steps, model, is_fitted, name = split(estimator)
        for key, step in steps:
            if isinstance(step, type):
                raise ValueError(
                    f"estimator: the step {key!r} is a class: give an instance, {step.__name__}()."
                )
            if not hasattr(step, "transform"):
                raise ValueError(
                    f"estimator: the step {key!r} before the model is not a "
                    f"transformer, got {step!r}."
                )

        memory = estimator.memory if isinstance(estimator, Pipeline) else None
        transformers = clone(Pipeline(steps, memory=memory)) if steps else None
        return cls(transformers, model, is_fitted, name, *target_of(estimator))

    @classmethod
    def inside(cls, estimator: Any) -> "WrappedModel":
        """Return the steps and the model inside an estimator of skort; check the model."""
        is_classifier = isinstance(estimator, ClassifierMixin)
        if estimator.estimator is None:
            # At the top, these imports would take most of the time of `import skort`.
            from sklearn.linear_model import LinearRegression, LogisticRegression

            model = LogisticRegression() if is_classifier else LinearRegression()
            return cls(None, model, False, type(model).__name__.lower(), is_default=True)
        from skort.graphs.trainable import check_trainable

        wrapped = cls.of(estimator.estimator)
        kind = "classifier" if is_classifier else "regressor"
        check_trainable(wrapped.model, is_fitted=wrapped.is_fitted)

        # An ONNX model or a TabularNetwork is neither a classifier nor a regressor.
        if (
            isinstance(wrapped.model, BaseEstimator)
            and not makes_graph(wrapped.model)
            and get_tags(wrapped.model).estimator_type != kind
        ):
            other = {
                "regressor": "OrtSGDClassifier for classifiers",
                "classifier": "OrtSGDRegressor for regressors",
            }
            raise NotTrainableError(
                f"estimator={type(wrapped.model).__name__} is not a {kind}: use {other[kind]}."
            )

        return wrapped

    def with_rows_of(self, X: Any) -> "WrappedModel":
        """Return the same for rows of X, which may have the shape of an ONNX model's input."""
        shape = () if self.has_steps else row_shape(self.model, X)
        return dataclasses.replace(self, row_shape=shape) if shape else self

    @property
    def sized_model(self) -> Any:
        """The model. The input of an ONNX model states the sizes of the rows of X."""
        if not self.row_shape:
            return self.model

        from skort.graphs.onnx_models.inputs import with_row_sizes

        return with_row_sizes(self.model, self.row_shape)

    @property
    def draws_weights(self) -> bool:
        """
        Whether the training starts at random weights.

        A fitted model and an ONNX model bring their own weights.
        """
        return not self.is_fitted and isinstance(self.model, BaseEstimator)

    @property
    def is_network(self) -> bool:
        """Whether the model is a network of scikit-learn, or one with a graph of its own."""
        from skort.graphs.initialization import FAMILY

        return FAMILY.get(type(self.model)) == "neural network" or makes_graph(self.model)

    @functools.cached_property
    def has_steps(self) -> bool:
        """Whether there are steps before the model."""
        return self.transformers is not None

    @property
    def fitted_model(self) -> Any:
        """The fitted model that the training continues, or None."""
        from skort.graphs.initialization import score_model

        return score_model(self.model) if self.is_fitted else None

    def check_columns(self, X: Any) -> None:
        """
        Raise an error if X does not have the columns of the fitted model or the ONNX model.

        Steps before the model check their columns themselves.
        """
        if not self.has_steps and self.is_fitted and isinstance(self.model, BaseEstimator):
            validate_data(self.model, X, reset=False, skip_check_array=True)
        if (
            not self.has_steps
            and not isinstance(self.model, BaseEstimator)
            and hasattr(X, "columns")
        ):
            from skort.graphs.onnx_models.inputs import given_inputs

            inputs = [i.name for i in given_inputs(self.model.graph)]
            columns = [str(name) for name in X.columns]
            if columns != inputs and sorted(columns) == sorted(inputs):
                raise ValueError(
                    f"X has the columns {columns}, but the inputs of the ONNX model are {inputs}: "
                    f"give X[{inputs}]."
                )

    def checked(self, X: Any) -> Any:
        """Return X; raise an error if an ONNX model takes whole numbers and a column has others."""
        if not isinstance(self.model, BaseEstimator) and not scipy.sparse.issparse(X):
            from skort.graphs.onnx_models.inputs import check_whole

            check_whole(self.model.graph, X)
        return X

    def known_classes(self, classes: Any, y: Any = None) -> Any:
        """Return the classes that are given, or known from a fitted or an ONNX model, or None."""
        if self.draws_weights:
            return classes

        name = "y" if classes is None else "classes"
        labels = model_labels(
            self.sized_model, self.is_fitted, y if classes is None else classes, name
        )
        if labels is None or classes is None:
            return classes if labels is None else labels
        if not np.array_equal(labels, classes):
            raise ValueError(
                f"classes={classes} are not those of the "
                f"{'fitted' if isinstance(self.model, BaseEstimator) else 'ONNX model in'} "
                f"estimator: {labels}."
            )

        return labels

    def check_labels(self, encoded: EncodedTarget) -> None:
        """Raise an error if the model cannot be trained on the several labels of a row."""
        if encoded.multi_label and not self.is_network:
            advice = (
                "each row has one label, so give y.argmax(axis=1)."
                if encoded.is_one_hot
                else "use MLPClassifier() as estimator, or MultiOutputClassifier(OrtSGDClassifier())."
            )
            raise ValueError(
                f"estimator={type(self.model).__name__} cannot be trained on a multi-label y: {advice}"
            )

        if self.is_fitted and self.is_network and hasattr(self.model, "classes_"):
            fitted = self.model.out_activation_ == "logistic" and self.model.n_outputs_ > 1
            if fitted != encoded.multi_label:
                kinds = "one label per row", "several labels per row"
                raise ValueError(
                    f"y has {kinds[encoded.multi_label]}, the fitted estimator had {kinds[fitted]}."
                )

    def fit_target(self, y: Any) -> TargetTransform:
        """Return the transformer of y, fitted to it."""
        target = self.target
        encloses_steps = self.target_encloses_steps
        if target is None:
            return TargetTransform()
        if isinstance(target, FrozenEstimator):
            return TargetTransform(target.transformer_, encloses_steps)
        if isinstance(target.transformer, FrozenEstimator):
            check_is_fitted(target.transformer.estimator)
            return TargetTransform(target.transformer, encloses_steps)

        from sklearn.dummy import DummyRegressor

        # scikit-learn checks and fits the transformer. The regressor of this fit does not matter.
        alone = clone(target).set_params(regressor=DummyRegressor())
        return TargetTransform(alone.fit(np.zeros((len(y), 1)), y).transformer_, encloses_steps)

    def fit(
        self,
        X: Any,
        y: Any,
        spec: "Callable[..., ScoreSpec]",
        random_state: np.random.RandomState,
        trainable: Any,
    ) -> tuple[Preprocessing, Any, "ScoreGraph"]:
        """
        Fit the steps, and return (steps, X, score graph).

        The returned steps end before the first trained step, X is transformed by them, and the
        score graph begins with the first trained step.
        """
        from skort.graphs.export import check_names
        from skort.graphs.initialization import initial_score_graph
        from skort.graphs.sklearn.transformers import sample, trainable_steps
        from skort.graphs.trainable import select_trainable

        transformers = self.transformers
        raw_X = X
        some_rows = None if transformers is None else sample(X)
        dtype = spec(0).dtype

        if transformers is not None:
            fit_transform = functools.partial(transformers.fit_transform, y=y)
            X = transformed(transformers, fit_transform, X, dtype)

        score_graph = initial_score_graph(
            self.sized_model,
            spec_of_rows(spec, transformers, X),
            random_state,
            is_fitted=self.is_fitted,
        )
        if trainable is not None:
            first, score_graph = select_trainable(
                score_graph, trainable_steps(transformers, dtype), trainable
            )
            if first is not None and transformers is not None:
                transformers = transformers[:first] if first else None
                X = numbers(raw_X if transformers is None else transformers.transform(raw_X), dtype)

        preprocessing = Preprocessing.of(transformers, some_rows, dtype)
        if not self.is_default:
            check_names(score_graph, has_steps=transformers is not None)
        return preprocessing, self.checked(X), score_graph

    def without_data(self) -> "WrappedModel":
        """Return the same with an unfitted clone of the model, for the fitted model to keep."""
        if self.is_default or not isinstance(self.model, BaseEstimator):
            return self
        return dataclasses.replace(self, model=own_copy(self.model, clone))

    def to_sklearn(
        self,
        preprocessing: Preprocessing,
        score_graph: "ScoreGraph",
        target_transform: TargetTransform,
        *,
        classes: np.ndarray | None,
        single_output: bool,
        has_link: bool,
    ) -> Any:
        """Return the fitted steps and the model, with trained weights, as plain scikit-learn."""
        from skort.graphs.initialization import FAMILY, has_log_link, score_model, trained_model
        from skort.graphs.standardized import uncentred_arrays

        name = type(self.model).__name__
        if type(score_model(self.model)) not in FAMILY:
            raise ValueError(
                f"estimator={name} cannot be returned as a scikit-learn model: use to_onnx(); "
                "FrozenEstimator(fitted) or partial_fit trains it on new rows."
            )
        if has_link and not has_log_link(self.model):
            raise ValueError(
                f"estimator={name} predicts its score, but the loss took the score for the "
                "logarithm of the prediction: use to_onnx(), or train a model with a log link, "
                "such as PoissonRegressor."
            )

        steps, kept = (
            [] if part is None else part.steps
            for part in (self.transformers, preprocessing.transformers)
        )
        if len(kept) < len(steps):
            raise ValueError(
                f"Weights of the step {steps[len(kept)][0]!r} were trained, and that step of "
                "scikit-learn cannot hold them: use to_onnx()."
            )

        names = score_graph.weight_names
        arrays = uncentred_arrays(score_graph, np.float64)
        coefs = [arrays[name].copy() for name in names.coefficients]
        intercepts = [arrays[name].flatten() for name in names.intercepts if name in arrays]
        intercepts = intercepts or [np.zeros(coefs[-1].shape[1], coefs[-1].dtype)]

        # A TransformedTargetRegressor trains one column as a y of one dimension.
        one_column = single_output if self.target is None else score_graph.n_outputs == 1
        model = trained_model(self.model, coefs, intercepts, classes, single_output=one_column)
        whole = (
            Pipeline([*((key, thawed(step)) for key, step in kept), (self.name, model)])
            if steps
            else model
        )
        if self.target is None:
            return whole
        if self.target_encloses_steps or not steps:
            return _with_target(self.target, whole, target_transform, single_output)

        whole.steps[-1] = (
            self.name,
            _with_target(self.target, model, target_transform, single_output),
        )
        return whole


def _with_target(target, model, transform, single_output):
    """Return a fitted `TransformedTargetRegressor` around a fitted model."""
    fitted = clone(thawed(target))
    fitted.regressor_ = model
    fitted.transformer_ = transform.transformer
    fitted._training_dim = 1 if single_output else 2
    return fitted


def spec_of_rows(spec: "Callable[..., ScoreSpec]", transformers: Any, X: Any) -> "ScoreSpec":
    """Return the requirements of rows of X, which the steps have transformed."""
    from skort.optim.standardization import moments

    of_ids: dict[str, Any] = {}
    if transformers is not None:
        from skort.graphs.sklearn.encoders import category_counts, step_behind_ids

        of_ids = {
            "categories": category_counts(transformers, X.shape[1]),
            "behind_ids": step_behind_ids(transformers),
        }
    return spec(X.shape[1], rows=X, moments=functools.partial(moments, X, None), **of_ids)


def transformed(steps: Any, transform: Callable[[Any], Any], X: Any, dtype: DTypeLike) -> Any:
    """Return what a method of steps makes of X, as numbers; an error names what they refused."""
    try:
        result = transform(X)
        check_dates(result, X)
        rows = numbers(result, dtype)
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        are_fitted = getattr(transform, "__name__", "") == "transform"
        raise step_error(error, X, steps, are_fitted=are_fitted) from None

    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if rows.shape[0] != n_rows:
        raise ValueError(
            f"The steps before the model return another number of rows than X has: {rows.shape[0]}, "
            f"not {n_rows}. {one_column(X, steps)}"
        )
    return rows


def numbers(X: Any, dtype: DTypeLike) -> Any:
    """Return a transformed X as a C-contiguous array of numbers or a CSR matrix, or raise."""
    checks = {"order": "C", "accept_sparse": "csr", "input_name": "transformed X"}
    rows = check_array(X, dtype=kept_dtypes(X, dtype), **checks)
    return rows if is_in_range(rows, dtype) else check_array(rows, dtype=dtype, **checks)


def _check_dates(graph, X):
    """Raise an error for columns of dates that the steps, and so the file, take for numbers."""
    from skort.graphs.sklearn.transformers import numeric_names

    if refused := _among(numeric_names(graph), X):
        raise dates_in_steps(refused)


def _among(inputs, X):
    """Return the columns of X with dates, as `date_columns` does, that some inputs have."""
    if hasattr(X, "columns"):
        return [name for name in date_columns(X) if str(name) in inputs]
    return [name for name in date_columns(X) if "X" in inputs or f"x{name}" in inputs]
