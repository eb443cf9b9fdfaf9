"""The faults of a custom loss, before its training and if this fails."""

from typing import TYPE_CHECKING

import numpy as np

from skort.common.user_warning import warn_user
from skort.estimators.data.row_forms import missing_id
from skort.estimators.variables.faults import (
    DIGITS,
    DISTANCES,
    STEPS,
    WRONG,
    falls_without_end,
    most_exact,
)
from skort.estimators.variables.score_losses import ScoreLosses, reads_together, score_units
from skort.exceptions import NotTrainableError
from skort.objective.custom import Loss, parsed, used_inputs
from skort.objective.loss import ScoreLoss
from skort.optim.standardization import moments

if TYPE_CHECKING:
    from skort.graphs.score_graph import ScoreGraph

# Derivatives that are so much smaller than the largest one may vanish by rounding in the value.
_ROUNDED = 1e-6
# The number of rows at which a gradient is compared.
_N_ROWS = 8
# The scores near y, in standard deviations from its mean.
_NEAR = np.linspace(-3.0, 3.0, 13)
# A loss may be the same at all scores near the target.
_NEAR_AND_FAR = 1.0, 100.0, 1e4
# Scores of classes that a good model gives, the smallest first.
_REACHED = 10.0, -10.0, 20.0, -20.0, 50.0, -50.0, 100.0, -100.0
# Logarithms of large and small predictions.
_REACHED_LOGARITHMS = 10.0, -10.0, 20.0, -20.0
# So far is a score from a whole number of standard deviations.
_KINK = 0.0137
#: The end of the fault of a loss without a lower bound.
UNLESS_BOUNDED = "Check its sign, unless a penalty bounds it."
# What to write in place of the Log of a Sigmoid.
_OF_SIGMOID = (
    "Softplus(-score) is -Log(Sigmoid(score)) at any score, and Softplus(score) is "
    "-Log(1 - Sigmoid(score)) and Log(1 + Exp(score))."
)
# What no score of a class becomes if it changes nothing where its target is 0, or 1, and the cure.
_OF_TARGET = (
    "small: in a loss of the margin, use 2 * target - 1 in place of target; to another loss, add a "
    "term with 1 - target.",
    "large: add a term with target.",
)
# The number of columns at which scores are tried, one column at a time.
_N_COLUMNS = 8


def check_differentiable(loss: ScoreLoss, n_outputs: int) -> None:
    """Raise a NotTrainableError that names an operator for which no solver has a gradient."""
    if loss.gradient_function(n_outputs) is not None:
        return

    from skort.graphs.differentiable import runtime_gradient
    from skort.graphs.gradient.reverse import rule_gradient
    from skort.objective.objective import Objective
    from skort.solvers.derived_gradients import check_loss

    objective = Objective(loss, None, (), n_outputs, np.dtype(np.float32))
    try:
        check_loss(objective, 1, rule_gradient)
    except NotTrainableError:
        try:
            check_loss(objective, 1, runtime_gradient)
        except NotTrainableError:
            pass
        else:
            return
        raise


def warn_of_custom_loss(
    loss: ScoreLoss, target: np.ndarray, score_graph: "ScoreGraph", *, is_classifier: bool
) -> None:
    """
    Warn, before a training, of a custom loss with a wrong gradient, or none, or without a lower
    bound, or that is the same at all scores of a class, or with a least value for a first class
    that predicts the second, or that is no number at scores that a training may reach.

    Raise a NotTrainableError if it does not use the target. A part of a sum need not.
    """
    fault = _fault_before(loss, target, is_classifier) if isinstance(loss, Loss) else ""
    fault = fault or fault_at_scores(loss, target, score_graph, is_classifier=is_classifier)
    if fault:
        warn_user(fault)


def _fault_before(loss, target, is_classifier):
    """Return the fault of a loss, whatever the scores that a training reaches, or ""."""
    # What is wrong with its form comes first.
    loss.value_function(target.shape[1])
    if "target" not in used_inputs(parsed("loss: value", loss.value)):
        raise NotTrainableError("loss: its value does not use the target.")
    _check_columns(loss, target.shape[1], is_classifier)

    losses = _most_exact(loss, target.shape[1])
    fault = (
        _wrong_gradient(losses, target)
        or _no_gradient(losses, target)
        or _no_lower_bound(losses, target)
    )
    if not fault and is_classifier:
        fault = _same_at_all_scores(losses, target.shape[1])
    if not fault and is_classifier and target.shape[1] == 1:
        fault = _no_negative_score(losses)
    return _of(loss, fault) if fault else ""


def _check_columns(loss, n_outputs, is_classifier):
    """Raise a NotTrainableError for a loss that reads a column which score and target lack."""
    row = np.ones((1, n_outputs))
    try:
        ScoreLosses(loss, n_outputs).of_rows(row, row)
    except Exception as error:  # an error of the runtime is no ValueError
        column = missing_id(error)
        if column is None:
            return
    else:
        return

    has = "one column" if n_outputs == 1 else f"{n_outputs} columns"
    cure = "has. Give y with"
    if is_classifier:
        cure = f"a classifier of {max(2, n_outputs)} classes trains. Use a regressor, and y of"
    raise NotTrainableError(
        f"loss: it reads column {column[0]} of score or target, which have {has}, as "
        f"{'' if is_classifier else 'y '}{cure} {column[0] + 1} columns."
    )


def fault_of(loss: ScoreLoss, target: np.ndarray) -> str:
    """
    Return the fault of a custom loss whose training fails, and what to do about it; "" if none is
    found.

    Its gradient is not the derivative of its value, or is zero at all scores, or its value is no
    number near y, or falls without end.
    """
    if not isinstance(loss, Loss):
        return ""

    losses = _most_exact(loss, target.shape[1])
    in_float32 = ScoreLosses(loss, target.shape[1])
    fault = (
        _wrong_gradient(losses, target)
        or _no_number(in_float32, target, _beginnings(loss, target))
        or _no_gradient(losses, target)
        or _no_lower_bound(losses, target)
    )
    return _of(loss, fault) if fault else ""


def fault_at_scores(
    loss: ScoreLoss, target: np.ndarray, score_graph: "ScoreGraph", *, is_classifier: bool
) -> str:
    """
    Return the fault of a custom loss, or of a part of a sum, that is no number at a score that a
    training may reach, or has a gradient that is none, and what to do about it; "" if there is none.
    """
    # A model may end with an operator that bounds its score.
    parts = () if score_graph.last_layer is None else loss.custom_parts
    faults = (_fault_at_scores(part, target, score_graph, is_classifier) for part in parts)
    return next(filter(None, faults), "")


def _fault_at_scores(loss, target, score_graph, is_classifier):
    """Return the fault of a custom loss at scores that a training may reach, or ""."""
    losses = ScoreLosses(loss, target.shape[1], score_graph.dtype.name)
    scores, targets = _reached(losses, loss, target, is_classifier)
    if not scores.size:
        return ""

    values = losses.of_rows(scores, targets)
    slopes = (losses.gradients if losses.has_gradient else losses.derived_gradients)(
        scores, targets
    )
    slopes = np.zeros_like(scores) if slopes is None else slopes
    is_number = np.isfinite(values) & np.isfinite(slopes).all(axis=1)
    if is_number.all():
        return ""

    row = int(np.argmin(is_number))
    what = f"is {values[row]}"
    if np.isfinite(values[row]):
        what = f"has a gradient of {slopes[row][~np.isfinite(slopes[row])][0]}"
    where = _place(scores[row], targets[row], is_classifier)
    return _of(
        loss,
        f"{what} in {losses.dtype} at {where}. A training that reaches such a score diverges, or "
        f"begins again at a smaller rate. {_stable_form(loss, is_classifier)}",
    )


def _reached(losses, loss, target, is_classifier):
    """Return scores and targets of rows that a training may reach, the most usual ones first."""
    n_outputs = target.shape[1]
    if is_classifier:
        return _scores_of_classes(n_outputs)

    y = _small_usual_large(target)
    if loss.inverse_link_function(n_outputs) is None:
        # No score is at its target: a loss may have a kink there.
        scores = _near(loss, target)[np.argsort(np.abs(_NEAR))] + _KINK * _units(loss, target)[1]
    elif _no_number(losses, target, _near(loss, target)):
        # The scores of some links are positive by design.
        scores = np.empty((0, n_outputs))
    else:
        scores = np.outer(_REACHED_LOGARITHMS, np.ones(n_outputs))

    return np.repeat(scores, len(y), axis=0), np.tile(y, (len(scores), 1))


def _near(loss, target):
    """Return scores near y, or near zero if they are not in units of y."""
    n_outputs = target.shape[1]
    if loss.inverse_link_function(n_outputs) is not None:
        return np.outer(_NEAR, np.ones(n_outputs))
    mean, unit = _units(loss, target)
    return mean + _NEAR[:, None] * unit


def _units(loss, target):
    """Return the means and the units of the columns of the score."""
    mean, unit = target.mean(axis=0), _unit(target)
    return score_units(loss, mean, unit) if reads_together(loss, len(mean)) else (mean, unit)


def _beginnings(loss, target):
    """Return scores that a model may begin at: near y, and zero."""
    return np.concatenate([_near(loss, target), np.zeros((1, target.shape[1]))])


def _small_usual_large(target):
    """Return the least, the median and the largest y."""
    return np.quantile(target, [0.0, 0.5, 1.0], axis=0, method="nearest")


def _scores_of_classes(n_outputs):
    """Return scores and targets of rows: one column is not zero, for its class and another one."""
    moved = np.eye(n_outputs)[:_N_COLUMNS]
    others = np.roll(np.eye(n_outputs), 1, axis=0)[:_N_COLUMNS] if n_outputs > 1 else 1 - moved
    scores = [score * moved for score in _REACHED for _ in range(2)]
    return np.concatenate(scores), np.concatenate([moved, others] * len(_REACHED))


def _place(score, target, is_classifier):
    """Return the score and the target of a row as text."""
    if not is_classifier or len(score) == 1:
        return f"the score {_shown(score)}, for the target {_shown(target)}"
    column = int(np.argmax(np.abs(score)))
    of_row = "this" if target[column] else "another"
    return f"the score {score[column]:.4g} of a class, for a row of {of_row} class"


def _stable_form(loss, is_classifier):
    """Return what to write in place of operators that leave the finite numbers."""
    used = {node.op_type for node in parsed("loss: value", loss.value).node}
    cures = []
    if "Log" in used and ("Sigmoid" in used or (is_classifier and "Exp" in used)):
        cures.append(_OF_SIGMOID)
    if {"Log", "Softmax"} <= used:
        cures.append("LogSoftmax is Log of Softmax at any score.")
    return " ".join(cures) or "Bound what Exp, Log, Pow, Sqrt or Div get, as by Clip."


def _of(loss, fault):
    """Return a sentence on the fault of a loss."""
    return f"The loss {parsed('loss: value', loss.value).name!r} {fault}"


def _most_exact(loss, n_outputs):
    """Return the losses of rows in the most exact dtype that their operators have."""
    point = np.ones((1, n_outputs))

    def run(losses):
        losses.of_rows(point, point)
        if losses.has_gradient:
            losses.gradients(point, point)

    return most_exact(lambda dtype: ScoreLosses(loss, n_outputs, dtype), run)


def _no_gradient(losses, target):
    """Return a sentence on a derived gradient that is zero at near and at far scores, or ""."""
    # The least and the largest y are among them: a rare class may be the only one with a gradient.
    y = target[:: -(-len(target) // _N_ROWS)]
    y = np.concatenate([y, _small_usual_large(target)]).astype(np.float64)
    away = np.linspace(-1.93, 1.87, y.size).reshape(y.shape) * _unit(target)
    for factor in _NEAR_AND_FAR:
        found = None if losses.has_gradient else losses.derived_gradients(y + factor * away, y)
        # NaN counts as a gradient here: its fault is another one.
        if found is None or found.any():
            return ""
    return (
        "has a gradient of zero at all scores, so that nothing is trained: operators with steps, "
        "such as Sign or Greater, have no other one. Write a loss that falls with the score, "
        "or give its gradient."
    )


def _wrong_gradient(losses, target):
    """Return a sentence on a gradient that is far from finite differences of the value, or ""."""
    if not losses.has_gradient:
        return ""

    unit = _unit(target)
    y = target[:: -(-len(target) // _N_ROWS)].astype(np.float64)
    # No score is at its target: a loss may have a kink there.
    score = y + np.linspace(-1.93, 1.87, y.size).reshape(y.shape) * unit
    given = losses.gradients(score, y)
    found, rounding = _differences(losses, score, y, STEPS[losses.dtype.name] * unit)

    # The user may choose any gradient of steps, such as Round.
    tells = np.isfinite(found) & (found != 0)

    with np.errstate(all="ignore"):
        sizes = np.fmax(np.abs(given), np.abs(found))
        sizes = np.where(tells, np.nan_to_num(sizes, nan=np.inf), 0.0)
        errors = np.nan_to_num(np.abs(given - found), nan=np.inf)
        largest = np.max(sizes, initial=0.0, where=np.isfinite(sizes))
        is_wrong = (errors > WRONG * sizes) & (sizes > _ROUNDED * largest + rounding)
    if not is_wrong.any():
        return ""

    row, column = np.unravel_index(np.argmax(np.where(is_wrong, errors, -1.0)), errors.shape)
    of_column = f" of column {column}" if y.shape[1] > 1 else ""
    return (
        "has a gradient that is not the derivative of its value: at the score "
        f"{score[row, column]:.4g}{of_column}, for the target {y[row, column]:.4g}, it is {given[row, column]:.4g}, "
        f"and a finite difference of the value is {found[row, column]:.4g}. Correct the gradient, "
        "or leave it out, unless that is meant."
    )


def _differences(losses, score, target, steps):
    """Return central differences of losses by each column, and a bound of their rounding."""
    n_outputs = score.shape[1]
    shifts = np.eye(n_outputs) * steps
    scores = np.concatenate([score + sign * shift for shift in shifts for sign in (1, -1)])
    values = losses.of_rows(scores, np.tile(target, (2 * n_outputs, 1)))
    above, below = np.moveaxis(values.reshape(n_outputs, 2, -1), 1, 0)

    with np.errstate(all="ignore"):
        found = (above - below) / (2 * steps[:, None])
        rounding = DIGITS[losses.dtype.name] * (np.abs(above) + np.abs(below)) / steps[:, None]
    return found.T, rounding.T / WRONG


def _no_number(losses, target, scores):
    """Return a sentence on a value that is no number at scores, with some y, or ""."""
    for each in _small_usual_large(target):
        values = losses.of_rows(scores, np.tile(each, (len(scores), 1)))
        is_none = ~np.isfinite(values)
        if is_none.any():
            row = int(np.argmax(is_none))
            return (
                f"is {values[row]} at the score {_shown(scores[row])}, for the target "
                f"{_shown(each)}, and no number at {is_none.sum()} of {len(scores)} scores from "
                f"{_shown(scores[0])} to {_shown(scores[len(_NEAR) - 1])}. A model may begin at any "
                "of them. Change what Log, Sqrt, Pow, Div or Exp get in the value."
            )
    return ""


def _no_lower_bound(losses, target):
    """Return a sentence on a value that falls as fast far from y as near it, or ""."""
    unit = _unit(target)
    y = target[np.concatenate([target.argmin(axis=0), target.argmax(axis=0)])].astype(np.float64)
    # No other column is at its target: a density may have a pole there.
    begin = y + 0.9 * unit
    columns = np.tile(np.eye(target.shape[1]), (2, 1)) * unit

    for side in (columns, -columns):
        values = np.array([losses.of_rows(begin + d * side, y) for d in DISTANCES])
        sizes = np.abs(begin).max(axis=1) + DISTANCES[-1] * unit.max() + np.abs(values[0])
        is_endless = falls_without_end(values, DIGITS[losses.dtype.name] * sizes)

        if is_endless.any():
            row = int(np.argmax(is_endless))
            return (
                f"seems to have no lower bound: for the target {_shown(y[row])}, it is "
                f"{values[0, row]:.3g} at a score {DISTANCES[0]:,.0f} standard deviations away, and "
                f"{values[1, row]:.3g} at {DISTANCES[1]:,.0f}. {UNLESS_BOUNDED}"
            )
    return ""


def _same_at_all_scores(losses, n_outputs):
    """Return a sentence on a loss that no score of a class changes, for one of its targets, or ""."""
    of_class = np.eye(n_outputs)[0]
    of_others = np.roll(of_class, 1) if n_outputs > 1 else 0 * of_class
    scores = np.outer([*_NEAR, *_REACHED], of_class)

    for value, target in enumerate((of_others, of_class)):
        values = losses.of_rows(scores, np.tile(target, (len(scores), 1)))
        with np.errstate(invalid="ignore"):
            is_same = np.ptp(values) <= DIGITS[losses.dtype.name] * np.abs(values[0])

        if is_same:
            return (
                f"is the same at all scores where the target is {value}, so that nothing makes such "
                f"a score {_OF_TARGET[value]}"
            )
    return ""


def _no_negative_score(losses):
    """Return a sentence on a loss of a first class that no negative score makes smaller, or ""."""
    values = losses.of_rows(_NEAR[:, None], np.zeros((len(_NEAR), 1)))
    if not np.isfinite(values).any():
        return ""

    # If several scores are least, the first is the most negative.
    least = _NEAR[np.nanargmin(values)]
    if least < 0:
        return ""

    cure = "use 2 * target - 1 in place of target" if least == 0 else "check its sign"
    return (
        f"is least at the score {least:.2g} for the first class, whose target is 0, and a score "
        f"above 0 predicts the second: {cure}."
    )


def _shown(values):
    """Return a score or a target as text."""
    texts = [f"{value:.4g}" for value in values]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _unit(target):
    """Return the standard deviations of the target's columns, or 1 for constant columns."""
    deviation = moments(target, None)[1]
    return np.where(deviation > 0, deviation, 1.0)
