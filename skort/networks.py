"""Networks for tables that scikit-learn does not have."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Literal

import numpy as np

from skort.common.component import OF_FILES, Component, name_their_parameters, reads_no_file
from skort.common.elsewhere import asked_of
from skort.common.sklearn_private import Interval, StrOptions

if TYPE_CHECKING:
    from skort.graphs.score_graph import ScoreGraph, ScoreSpec

__all__ = ["TabularNetwork"]

# To a type checker, a module with this function would have every name.
if not TYPE_CHECKING:
    __getattr__ = asked_of(__name__)

Activation = Literal["relu", "tanh", "logistic", "identity"]


_TRAINED = "OrtSGDRegressor(network) or OrtSGDClassifier(network) trains it"
_OF_FILE = f"{_TRAINED}, and pickle or joblib read the trained estimator"


@reads_no_file(_OF_FILE)
class TabularNetwork(Component):
    r"""
    A network for tables: layers with dropout, and embeddings of categories and of numbers.

    It goes into the parameter `estimator` of an `OrtSGDRegressor` or an `OrtSGDClassifier`, alone
    or at the end of a Pipeline. It has no `fit` of its own.

    The columns that an `OrdinalEncoder` makes, at the end of the steps before it, are ids of
    categories. Each id has a row of trained numbers, its embedding. All other columns are numbers.
    A layer computes

    .. math:: h_{l+1} = \mathrm{dropout}(f(h_l W_l + b_l)),

    where :math:`h_0` has the numbers of a row, their embeddings and those of its ids. The last layer
    has a column for each output, and only :math:`W` and :math:`b`.

    Parameters
    ----------
    hidden : int or sequence of int, default=(256, 128)
        The number of units of each hidden layer.
    activation : {"relu", "tanh", "logistic", "identity"}
        The function :math:`f`.
    dropout : float, default=0.0
        The part of the units of each hidden layer that is zero in a step, drawn anew for each row.
        The others are divided by 1 - dropout. Predictions use all units.
    embeddings : "auto", int or None, default="auto"
        The size of the embeddings. "auto" is 8, if there are ids. None: ids are numbers like all
        others.
    numeric_embedding : {"auto", "piecewise"} or None, default="auto"
        How :math:`h_0` has a number :math:`x`. None: as it is. "piecewise": also as the parts that
        it fills of bins with the edges :math:`e_0 < e_1 < \dots`, each of them one half of

        .. math:: \min(1, \max(0, (x - e_k) / (e_{k+1} - e_k))).

        The edges are quantiles of the column at 17 equal steps, of at most 10,000 evenly spaced
        rows of the fit, or of the first rows of a stream. A column of one or two values has no
        bins. X has to be dense, with means of at most 16,384 standard deviations in float32.
        "auto" is "piecewise" for such X with at least 5,000 rows in memory, of at most 32 numbers,
        and None otherwise, as with Dask and in a stream of smaller batches.

    Raises
    ------
    ValueError
        In the fit, for a parameter out of its range, and for rows that "piecewise" does not take.

    Notes
    -----
    An id that the encoder did not see in the fit, or that is missing, has an embedding of its own:
    zeros, unless such ids are among the training rows. The encoder has to give it a number that is
    no id: ``OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1,
    encoded_missing_value=-1)``.

    With "piecewise", the means and scales of the numbers and the edges of their bins are those of
    the rows without their sample weights. They are in `weights_`, but are not trained, so
    `standardize` has no columns of X left to standardise.

    References
    ----------
    Y. Gorishniy et al., "Revisiting Deep Learning Models for Tabular Data", NeurIPS 2021.

    Y. Gorishniy et al., "On Embeddings for Numerical Features in Tabular Deep Learning", NeurIPS
    2022.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OrdinalEncoder
    >>> from skort import OrtSGDRegressor
    >>> from skort.networks import TabularNetwork
    >>> X = pd.DataFrame({"city": ["Bern", "Rome", "Oslo", "Rome"] * 25, "size": range(100)})
    >>> y = X["size"] + X["city"].map({"Bern": 30, "Rome": 0, "Oslo": 60})
    >>> ids = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    >>> columns = make_column_transformer((ids, ["city"]), remainder="passthrough")
    >>> network = TabularNetwork(hidden=(16,))
    >>> model = OrtSGDRegressor(make_pipeline(columns, network), random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> new = pd.DataFrame({"city": ["Oslo", "Paris"], "size": [50, 50]})
    >>> model.predict(new).shape
    (2,)
    """

    _other_names = {
        "hidden": ("hidden_layer_sizes", "hidden_layers", "layers", "units", "hidden_size"),
        "activation": ("act", "nonlinearity"),
        "dropout": ("dropout_rate", "drop_rate", "p"),
        "embeddings": ("embedding", "embedding_size", "embedding_dim"),
        "numeric_embedding": ("numeric_embeddings", "bins", "n_bins"),
    }
    #: What advice on columns of text names.
    encoder_of_text = 'OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)'
    _parameter_constraints = {
        "hidden": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "activation": [StrOptions(set(Activation.__args__))],  # type: ignore[attr-defined]
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "embeddings": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "numeric_embedding": [StrOptions({"auto", "piecewise"}), None],
    }

    def __init__(
        self,
        hidden: int | Sequence[int] = (256, 128),
        *,
        activation: Activation = "relu",
        dropout: float = 0.0,
        embeddings: int | Literal["auto"] | None = "auto",
        numeric_embedding: Literal["auto", "piecewise"] | None = "auto",
    ):
        self.hidden = hidden
        self.activation = activation
        self.dropout = dropout
        self.embeddings = embeddings
        self.numeric_embedding = numeric_embedding

    def initial_score_graph(
        self, spec: "ScoreSpec", random_state: np.random.RandomState
    ) -> "ScoreGraph":
        """
        Return the network as ONNX with its initial weights. The estimators of skort call it.

        Parameters
        ----------
        spec : ScoreSpec
            The numbers of columns, outputs and categories, and the dtype.
        random_state : RandomState

        Returns
        -------
        score_graph : ScoreGraph
        """
        from skort.graphs.tabular_network import tabular_graph

        return tabular_graph(self, spec, random_state)

    # To a type checker, a class with this method has every attribute.
    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Say what trains the network."""
            advice = _OF_FILE if name in OF_FILES else _TRAINED
            raise AttributeError(
                f"'TabularNetwork' object has no attribute {name!r}"
                f"{'' if name.startswith('_') else f': {advice}'}."
            )


name_their_parameters([TabularNetwork])
