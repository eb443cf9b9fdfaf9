"""The trainings: data, a model and the way it is trained, the same for all contenders."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.special import expit, log_softmax, softmax
from sklearn.base import BaseEstimator, is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor

__all__ = ["Problem", "blobs", "classification", "regression"]


@dataclass(frozen=True)
class Problem:
    """
    A training with the same data, initial weights, batches,
    updates and dtype for every contender that can use them.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        In float32.
    y : ndarray of shape (n_samples,)
        Numbers in float32, or labels 0, 1, ...
    model : estimator
        An unfitted linear model or neural network (ReLU) of scikit-learn.
    batch_size, n_epochs : int
    eta : float
        The learning rate of all updates.
    momentum : float, default=0.0
        Nesterov's momentum.
    seed : int, default=0
    """

    X: np.ndarray
    y: np.ndarray
    model: BaseEstimator
    batch_size: int
    n_epochs: int
    eta: float
    momentum: float = 0.0
    seed: int = 0

    @property
    def is_classifier(self):
        return is_classifier(self.model)

    @property
    def is_linear(self):
        return isinstance(self.model, (LinearRegression, LogisticRegression))

    @property
    def n_steps(self):
        """Number of updates of a training."""
        return self.n_epochs * -(-len(self.X) // self.batch_size)

    @property
    def has_scikit_learn(self):
        """Whether scikit-learn makes these updates: its linear models make one for each row."""
        return not self.is_linear or self.batch_size == 1

    @property
    def n_outputs(self):
        n_classes = self.y.max() + 1 if self.is_classifier else 1
        return n_classes if n_classes > 2 else 1

    @cached_property
    def target(self):
        """The target, of shape (n_samples, n_outputs): numbers, 0 or 1, or one-hot rows."""
        if self.n_outputs == 1:
            return self.y.astype(np.float32)[:, None]
        return np.eye(self.n_outputs, dtype=np.float32)[self.y]

    def start(self):
        """
        Return the initial weights and the order of the rows.

        Returns
        -------
        layers : list of (ndarray of shape (fan_in, fan_out), ndarray of shape (fan_out,))
            Zeros for linear models, scikit-learn's Glorot rule for neural networks.
        orders : iterator over ndarray of shape (n_samples,)
            The order of the rows in each epoch, as in skort; scikit-learn has the same order in
            the first epoch.
        """
        random_state = np.random.RandomState(self.seed)
        layers = [
            tuple(
                self._initial(random_state, shape, np.sqrt(6 / sum(sizes)))
                for shape in (sizes, sizes[1:])
            )
            for sizes in pairwise([self.X.shape[1], *self._hidden, self.n_outputs])
        ]
        return layers, (random_state.permutation(len(self.X)) for _ in range(self.n_epochs))

    @property
    def _hidden(self):
        return () if self.is_linear else np.ravel(self.model.hidden_layer_sizes).tolist()

    def _initial(self, random_state, shape, bound):
        if self.is_linear:
            return np.zeros(shape, np.float32)
        return random_state.uniform(-bound, bound, shape).astype(np.float32)

    def head(self, score):
        """
        Return the prediction from a raw score:
        the score itself, or the probability of each class or of class 1.
        """
        if not self.is_classifier:
            return score
        return expit(score) if self.n_outputs == 1 else softmax(score, axis=1)

    def loss(self, score):
        """Return the mean loss of raw scores of all rows."""
        score = np.asarray(score, np.float64).reshape(len(self.X), -1)
        if not self.is_classifier:
            return float(np.mean((score - self.target) ** 2) / 2)
        if self.n_outputs == 1:
            score = np.column_stack([np.zeros(len(score)), score])
        return float(-log_softmax(score, axis=1)[np.arange(len(score)), self.y].mean())


def regression(n_rows, n_features, hidden=(), noise=0.5, **options):
    """Return a regression of a sum, some waves and noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features), np.float32)
    y = X @ (rng.standard_normal(n_features) / np.sqrt(n_features)) + np.sin(2 * X[:, 0])
    y = (y + noise * rng.standard_normal(n_rows)).astype(np.float32)
    return Problem(
        X, y, MLPRegressor(hidden_layer_sizes=hidden) if hidden else LinearRegression(), **options
    )


def classification(n_rows, n_features, hidden=(), **options):
    """Return a classification by the sign of the same kind of sum."""
    made = regression(n_rows, n_features, **options)
    return Problem(made.X, (made.y > 0).astype(int), _classifier(hidden), **options)


def blobs(n_rows, n_features, n_classes, hidden=(), **options):
    """Return a classification of overlapping clouds."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n_rows)
    X = rng.standard_normal((n_rows, n_features), np.float32)
    X += 0.2 * rng.standard_normal((n_classes, n_features), np.float32)[y]
    return Problem(X, y, _classifier(hidden), **options)


def _classifier(hidden):
    return MLPClassifier(hidden_layer_sizes=hidden) if hidden else LogisticRegression()
