"""The loss of rows that are not trained on: as in the objective, without the penalty."""

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

from skort.estimators.data.rows import TrainingData
from skort.estimators.variables.reparametrization import Reparametrization

if TYPE_CHECKING:
    from skort.estimators.planning.plan import Plan
    from skort.graphs.score_graph import ScoreGraph

# Up to so many values, rows are kept in the variables of the training; more are changed for every
# use, in blocks of so many.
_FEW = _BLOCK = 2**20
# The most rows that tell how well a network knows them.
_MANY_ROWS = 5000
# A model that is better than the best constant by a smaller part of the constant's loss, and by
# fewer standard errors, may be so by chance.
_SMALL = 1e-3
_ERRORS = 2.0
# A model that changes the loss of most rows, and that of all together, by a smaller part is a
# constant, whatever chance says. A rare column changes few rows, but these by much. Labels may be
# right although the probabilities hardly differ.
_NOTHING, _NOTHING_OF_CLASSES = 1e-2, 1e-5
# The logarithm of zero is taken as that of this number.
_TINY = 1e-30
# The quantiles of the targets that are compared as constant predictions, and the number of constants
# around the best of them.
_QUANTILES = np.arange(0.05, 1.0, 0.05)
_N_BETWEEN = 21


def some_of(rows: TrainingData, most: int = _MANY_ROWS) -> TrainingData:
    """Return at most so many evenly spaced rows."""
    step = -(-rows.X.shape[0] // most)
    return rows if step == 1 else rows.taken(slice(None, None, step))


class RowLoss:
    """
    The mean loss of prepared rows at any weights, in the units of the model. `total` is the sum of
    the rows' weights.
    """

    def __init__(
        self,
        plan: "Plan",
        score_graph: "ScoreGraph",
        variables: Reparametrization,
        rows: TrainingData,
    ):
        from skort.objective.objective import Objective

        n_outputs = score_graph.n_outputs
        self._variables = variables
        self._is_classifier = plan.is_classifier

        # A loss takes a third of the work of a step.
        n_rows = min(rows.X.shape[0], max(1, _BLOCK // score_graph.n_features)) // 3
        self._device = plan.device_for(score_graph, n_rows)
        self._objective = Objective(variables.loss, None, (), n_outputs, score_graph.dtype)
        self._X, self._target = rows.X, variables.target(rows.target)
        weights = np.ones(len(self._target)) if rows.sample_weight is None else rows.sample_weight
        self.total: float = float(weights.sum())
        scaled = weights * (variables.sample_weight_scale(n_outputs) / self.total)
        self._weights = scaled.astype(score_graph.dtype)[:, None]
        self._mean = weights @ self._target.astype(np.float64) / self.total
        self._target_mean = float(np.mean(self._mean))
        self._set_model(variables.graph(score_graph))

    def _set_model(self, graph):
        """
        Make the model of the losses. It begins after the product of sparse rows if the training
        computes that outside the graph.
        """
        from skort.graphs.standardized import after_first_product, product_layer
        from skort.solvers.loss_graph import loss_model

        is_sparse = scipy.sparse.issparse(self._X) and self._variables.row_factor is not None
        self._product = product_layer(graph) if is_sparse else None

        if self._product is not None:
            self._shape = graph.n_features, -1
            graph = after_first_product(graph, self._product)

        self._arrays, self._input = graph.arrays, graph.input_name
        self._model = loss_model(self._objective, graph)

    @functools.cached_property
    def _loss_of_score(self):
        """The model from scores to the losses of the rows."""
        from skort.solvers.loss_graph import loss_model

        return loss_model(self._objective)

    @functools.cached_property
    def _kept(self):
        """The inputs of few rows. None: there are many, or products are the inputs."""
        return list(self._changed()) if self._X.size <= _FEW and self._product is None else None

    def at(self, weights: dict[str, np.ndarray]) -> float:
        """Return the loss at weights of the training and weights of the loss."""
        from skort.objective.objective import LOSS

        return self._variables.objective(
            float(sum(self._results(LOSS, weights))), self._target_mean
        )

    def rise(self, weights: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> np.ndarray:
        """
        Return the difference between the losses at two sets of weights, and its squared standard
        error times `total`.
        """
        return self._summed(self._of_model(weights) - self._of_model(others))

    def rise_to_score(self, score: np.ndarray, weights: dict[str, np.ndarray]) -> np.ndarray:
        """Return what `rise` does, from the model at weights to a constant raw score."""
        return self._summed(self._of_score(score, weights) - self._of_model(weights))

    def _summed(self, of_rows):
        """Return the sum of differences of rows, and its squared standard error times `total`."""
        return np.array([of_rows.sum(), self.total * (of_rows @ of_rows)])

    def _results(self, name, weights):
        """Yield a result of the model for each block of rows."""
        weights = {**self._arrays, **weights}
        X = self._X

        if self._product is not None:
            inverse = self._variables.row_change.inverse
            of_X = weights.pop(self._product.coefficient).reshape(self._shape)
            X = X @ (of_X if inverse is None else of_X * np.reshape(inverse, (-1, 1)))

        for block in self._changed(X) if self._kept is None else self._kept:
            yield self._model.run(name, {**block, **weights}, self._device)

    def _changed(self, X=None) -> Iterator[dict[str, np.ndarray]]:
        """
        Yield the inputs of the model but for its weights, block by block. X has the products of the
        rows, if these are the inputs.
        """
        from skort.objective.objective import SAMPLE_WEIGHT, TARGET

        change = self._variables.row_change
        X = self._X if self._product is None else X
        length = max(1, _BLOCK // X.shape[1])

        for start in range(0, X.shape[0], length):
            part = slice(start, start + length)
            rows = X[part]
            if self._product is None:
                rows = change(rows.toarray() if scipy.sparse.issparse(rows) else rows)
            yield {
                self._input: rows.astype(change.dtype, copy=False),
                TARGET: self._target[part],
                SAMPLE_WEIGHT: self._weights[part],
            }

    def summary(self) -> np.ndarray:
        """
        Return the numbers behind constant predictions: the mean of the targets, and quantiles of
        each column.
        """
        return np.vstack([self._mean, np.quantile(self._target, _QUANTILES, axis=0)])

    def best_constant(self, weights: dict[str, np.ndarray]) -> float:
        """Return the loss of the best constant prediction, at the loss's own weights."""
        return float(np.fmin.reduce(self.of_constants(self.summary(), weights)))

    def best_constant_score(self, weights: dict[str, np.ndarray]) -> np.ndarray:
        """Return the raw score of the best constant prediction, or nearly the best."""
        summary = self.summary()
        losses = np.nan_to_num(self.of_constants(summary, weights), nan=np.inf)
        return self._constants(summary)[int(np.argmin(losses))]

    def best_intercept(self, weights: dict[str, np.ndarray], intercept: str) -> np.ndarray:
        """Return the intercept, by its name, of a last layer that predicts the best constant."""
        given = weights[intercept]
        return self.best_constant_score(weights).astype(given.dtype).reshape(given.shape)

    def of_constants(self, summary: np.ndarray, weights: dict[str, np.ndarray]) -> np.ndarray:
        """Return the losses of several constant predictions, of which one is the best, or nearly."""
        with np.errstate(all="ignore"):
            losses = [self._of_score(score, weights).sum() for score in self._constants(summary)]
            return np.array(
                [self._variables.objective(float(loss), self._target_mean) for loss in losses]
            )

    def is_clearly_better(self, weights: dict[str, np.ndarray]) -> bool:
        """
        Return whether the loss at weights is below the best constant's by more than a small part,
        or by more than chance.
        """
        if not self.has_several_targets:
            # No model is better than the constant that equals all targets.
            return True

        with np.errstate(all="ignore"):
            constants, ours = self._of_constants(weights), self._of_model(weights)
            constant = self._best_of(constants)
            if not self._is_classifier:
                between = self._of_scores(self._between(constants), weights)
                constant = self._best_of(np.vstack([constant, between]))
            # For a classifier, it is zero.
            perfect = 0.0 if self._is_classifier else self._of_score(self._perfect, weights)

        if not constant.any():
            # The loss ignores such differences.
            return False
        gains = constant - ours
        gaps = constant - perfect
        most = gaps.sum()
        if not most > 0:
            return True
        # No score changes the loss of the other rows. Constants of balanced classes are equal, and
        # tell none.
        changes = np.ptp(constants, axis=0) > 0
        counted = changes if changes.any() else slice(None)
        nothing = _NOTHING_OF_CLASSES if self._is_classifier else _NOTHING
        changes_few = np.median(np.abs(gains[counted])) < nothing * np.median(np.abs(gaps[counted]))
        if changes_few and gains.sum() < _NOTHING * most:
            return False
        return gains.sum() > min(_SMALL * most, _ERRORS * np.sqrt(gains @ gains))

    def is_clearly_worse(self, weights: dict[str, np.ndarray]) -> bool:
        """
        Return whether the loss at weights is above the best constant's by more than two standard
        errors.
        """
        with np.errstate(all="ignore"):
            constant = self._best_of(self._of_constants(weights))
            losses = self._of_model(weights) - constant
            if not np.isfinite(losses).all():
                return True
            return bool(losses.sum() > _ERRORS * np.sqrt(losses @ losses))

    @property
    def has_several_targets(self) -> bool:
        """Whether the rows that count have more than one target."""
        return bool(np.ptp(self._counted, axis=0).any())

    @property
    def n_rows(self) -> int:
        """The number of rows that count."""
        return len(self._counted)

    @property
    def _counted(self):
        """The targets of the rows that count."""
        return self._target[self._weights[:, 0] > 0]

    def _of_constants(self, weights):
        """Return the weighted losses of the rows at constant scores, (n_scores, n_rows)."""
        return self._of_scores(self._constants(self.summary()), weights)

    def _between(self, constants):
        """
        Return constant scores around the best quantile of the targets, whose losses are given after
        that of the mean. That of a Huber loss is between two quantiles.
        """
        best = int(np.argmin(np.fmin(constants[1:].sum(axis=1), np.inf)))
        around = [best, best + 2]
        least, most = np.quantile(self._target, np.r_[0.0, _QUANTILES, 1.0][around], axis=0)
        between = least + np.linspace(0.0, 1.0, _N_BETWEEN)[:, None] * (most - least)
        return np.log(np.maximum(between, _TINY)) if self._has_link else between

    def _best_of(self, constants):
        """Return the losses at the best of several constant scores."""
        return constants[np.argmin(np.fmin(constants.sum(axis=1), np.inf))]

    def _of_model(self, weights):
        """Return the weighted losses of the rows at weights of the training."""
        from skort.solvers.loss_graph import ROW_LOSSES

        losses = np.concatenate([*self._results(ROW_LOSSES, weights)])
        return losses.sum(axis=1, dtype=np.float64)

    def _constants(self, summary):
        """Return constant scores, of which one is the best, or nearly."""
        if self._is_classifier:
            # The best scores of a log-loss of one column, of several columns, of a square, and of a
            # loss with a kink.
            share = np.clip(summary[0], 1e-6, 1 - 1e-6)
            return np.array(
                [np.log(share / (1 - share)), np.log(share), 2 * share - 1, np.sign(2 * share - 1)]
            )

        return np.log(np.maximum(summary, _TINY)) if self._has_link else summary

    @property
    def _perfect(self):
        """The scores that equal the targets."""
        return np.log(np.maximum(self._target, _TINY)) if self._has_link else self._target

    @property
    def _has_link(self):
        return self._variables.loss.inverse_link_function(len(self._mean)) is not None

    def _of_scores(self, scores, weights):
        """Return the weighted losses of the rows at several scores, (n_scores, n_rows)."""
        # Few runs are faster: each takes longer than the losses of hundreds of rows.
        n_rows = len(self._target)
        at_once = max(1, _BLOCK // self._target.size)
        losses = []

        for start in range(0, len(scores), at_once):
            some = scores[start : start + at_once]
            each = (len(some), 1)
            of_some = self._of_score(
                np.repeat(some, n_rows, axis=0),
                weights,
                np.tile(self._target, each),
                np.tile(self._weights, each),
            )
            losses.append(of_some.reshape(len(some), n_rows))

        return np.concatenate(losses)

    def _of_score(self, score, weights, target=None, row_weights=None):
        """
        Return the weighted losses of the rows at one score, or at a score for each row. Other
        targets and weights may be given.
        """
        from skort.objective.objective import SAMPLE_WEIGHT, TARGET
        from skort.solvers.loss_graph import ROW_LOSSES, SCORE

        target = self._target if target is None else target
        scores = np.empty_like(target)
        scores[:] = score
        inputs = {
            SCORE: scores,
            TARGET: target,
            SAMPLE_WEIGHT: self._weights if row_weights is None else row_weights,
        }
        inputs |= {name: weights[name] for name in self._variables.loss.weight_names}

        return self._loss_of_score.run(ROW_LOSSES, inputs).sum(axis=1, dtype=np.float64)
