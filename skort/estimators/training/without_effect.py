"""Warnings of parameters without effect, and of a model inside that is trained as another one."""

from numbers import Real
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator

from skort.common.user_warning import warn_user
from skort.estimators.planning.loss_and_penalty import losses_of, named_loss, strengths_inside
from skort.estimators.planning.optimizer import first_rates_of
from skort.objective.penalties import PENALTIES
from skort.optim.schedules import SCHEDULES, Constant, InvScaling

if TYPE_CHECKING:
    from skort.estimators.training.result import FitResult
    from skort.objective.sklearn_objectives import SklearnObjective

# The numbers that a part takes from the estimator if it is given by name, with the kind of the
# part.
_SHARED = {
    "alpha": "penalty",
    "l1_ratio": "penalty",
    "epsilon": "loss",
    "quantile": "loss",
    "power_t": "learning_rate",
}
# The defaults of numbers that are not "auto".
_DEFAULTS = {"power_t": InvScaling.power_t}
# A penalty of this strength would hide the loss of quantiles, so the user means a quantile.
_LEAST_QUANTILE = 0.05


def warn_of_other_terms(
    estimator: Any, model: Any, inside: "SklearnObjective", result: "FitResult"
) -> None:
    """
    Warn, once, that the model inside is trained as another one, or that some of its parameters are
    not used.
    """
    sentences = []
    is_full = result.plan.is_full
    unused = dict(inside.unused)
    # The solver "lbfgs" of a network is used, if nothing asks for steps.
    if inside.is_full and is_full:
        unused.pop("solver", None)
    # A seed of the estimator replaces it, and the optimum of a linear model needs none.
    if estimator.random_state is not None or (is_full and result.model.score_graph.is_linear):
        unused.pop("random_state", None)

    # An ONNX model has no objective that the training could change.
    is_open = any(
        isinstance(term, str) and term == "auto" for term in (estimator.loss, estimator.penalty)
    )
    if is_open and isinstance(model, BaseEstimator) and inside.trained_as is not None:
        sentences.append(inside.trained_as)
    ours = type(estimator).__name__
    listed = [f"{theirs} (set {parameter} of {ours})" for theirs, parameter in unused.items()]
    if not isinstance(estimator.alpha, str):
        listed += [
            f"{theirs} (alpha of {ours} takes its place)" for theirs in _replaced(estimator, model)
        ]
    if listed:
        name = type(model).__name__
        sentences.append(f"These parameters of {name} are not used: {', '.join(listed)}.")

    if sentences:
        warn_user("estimator: " + " ".join(sentences))
    warn_of_own_loss(estimator, model)


def _replaced(estimator, model):
    """
    Return the parameters of the model inside that set the strength of its penalty, if the user has
    set them. alpha replaces them.
    """
    from skort.objective.sklearn_objectives import defaults_of

    names = strengths_inside(estimator)
    defaults = defaults_of(type(model)) if names else {}  # type: ignore[arg-type]  # classes are hashable
    # An SGDRegressor of older versions of scikit-learn has a C that is no parameter.
    known = [name for name in names if name in defaults]
    return [name for name in known if getattr(model, name) != defaults[name]]


def warn_of_scoring(estimator: Any, *, is_stream: bool) -> None:
    """Warn that `scoring` has nothing to score."""
    why = "partial_fit scores nothing. Leave scoring out."
    if not is_stream:
        why = (
            "there is no validation set. Give fit X_val and y_val, set early_stopping=True, or "
            "leave scoring out."
        )

    warn_user(f"scoring={estimator.scoring!r} has no effect: {why}")


def warn_of_late_average(first: Any, n_updates: int) -> None:
    """Warn that a fit ended before the first update that `average` counts."""
    if first > n_updates:
        warn_user(
            f"average={first} has no effect: the fit made {n_updates} updates, and the average begins "
            f"with update {first}. It counts batches, where scikit-learn counts rows. Set a smaller "
            "number, or average=True."
        )


def warn_of_unused(estimator: Any, inside: "SklearnObjective") -> None:
    """
    Warn of each number that belongs to a loss, a penalty or a schedule, if the chosen one does not
    take it. There is no warning if the user chose that by name.
    """
    if not isinstance(estimator.learning_rate, str):
        _warn_of_first_rate(estimator)

    if not (set_ones := [name for name in _SHARED if _is_set(estimator, name)]):
        return

    _warn_of_alpha_for_quantile(estimator)
    used = _taken(estimator, inside)
    for name in set_ones:
        given = getattr(estimator, _SHARED[name])
        # A search over names also has numbers for some of them. scikit-learn is silent, too.
        if name not in used and not (isinstance(given, str) and given != "auto"):
            warn_user(f"{name}={getattr(estimator, name):g} has no effect: {_why(estimator, name)}")


def _why(estimator, name):
    """Return why a number for a part has no effect, and what to do, as sentences."""
    part = _SHARED[name]
    given = getattr(estimator, part)
    if isinstance(given, BaseEstimator) and name in given.get_params(deep=False):
        kind = type(given).__name__
        value = f"{getattr(estimator, name):g}"
        return (
            f"{part}={kind} has its own {name}. Set {part}={kind}(..., {name}={value}), or "
            f"{part}__{name} in a search."
        )

    kinds = _kinds(estimator, part)
    takers = [each for each, kind in kinds.items() if name in kind.shared_parameters]
    *more, last = [f'"{taker}"' for taker in takers]
    listed = f"{', '.join(more)} or {last}" if more else last
    shown = repr(given)
    if isinstance(given, BaseEstimator) or callable(given):
        shown = getattr(given, "__name__", type(given).__name__)
    return f"{part}={shown} does not take it. Set {part}={listed}, or leave {name} out."


def _is_set(estimator, name):
    """Return whether a parameter is a number that the user has set, and not zero."""
    value = getattr(estimator, name, None)
    return isinstance(value, Real) and value not in (0, _DEFAULTS.get(name))


def _kinds(estimator, part):
    """Return the losses, penalties or schedules that have a name, by name."""
    kinds: dict[str, Any] = {
        "penalty": PENALTIES,
        "loss": losses_of(estimator),
        "learning_rate": SCHEDULES,
    }
    return kinds[part]


def _warn_of_first_rate(estimator):
    """Warn of an `eta0` beside a function, or beside a schedule that has another first rate."""
    schedule = estimator.learning_rate
    if not isinstance(estimator.eta0, Real):
        return
    if not isinstance(schedule, BaseEstimator):
        warn_user(
            f"eta0={estimator.eta0:g} has no effect: the function of learning_rate gives all rates. "
            "Leave eta0 out."
        )
        return

    own = schedule.get_params()
    same = (estimator.eta0, Constant.eta0)
    changed = [name for name in first_rates_of(schedule) if own[name] not in same]
    if changed:
        warn_user(
            f"learning_rate__{changed[0]}={own[changed[0]]:g} has no effect: eta0={estimator.eta0:g} "
            "is the first rate. Set one of them."
        )


def _warn_of_alpha_for_quantile(estimator):
    """Warn of an `alpha` beside the loss of quantiles, as it is the quantile in other libraries."""
    alpha = estimator.alpha
    if (
        isinstance(estimator.loss, str)
        and estimator.loss == "quantile"
        and estimator.quantile == "auto"
        and isinstance(alpha, Real)
        and _LEAST_QUANTILE <= float(alpha) < 1
    ):
        warn_user(
            f"alpha={alpha:g} is the strength of the penalty, and quantile=0.5, the median, is "
            f'trained. For the quantile {alpha:g}, give loss="quantile" and quantile={alpha:g}, '
            "and leave alpha out. For the median, give quantile=0.5."
        )


def _taken(estimator, inside):
    """
    Return the parameters that the loss, the penalty and the schedule take, if they are given by
    name.
    """
    losses = estimator.loss.values() if isinstance(estimator.loss, dict) else [estimator.loss]
    named: list[Any] = [
        named_loss(estimator, inside, each) for each in losses if isinstance(each, str)
    ]

    penalty = estimator.penalty
    if isinstance(penalty, str) and penalty == "auto":
        penalty = inside.penalty or "l2"
    for given, kinds in ((penalty, PENALTIES), (estimator.learning_rate, SCHEDULES)):
        if isinstance(given, str) and given in kinds:
            named.append(kinds[given])
    return {parameter for part in named for parameter in part.shared_parameters}


def warn_of_own_loss(estimator: Any, model: Any) -> None:
    """Warn if an ONNX model has a loss of its own, and is trained by another one."""
    from skort.graphs.onnx_models.inputs import training_losses

    for name in training_losses(model)[:1] if estimator.loss is not None else []:
        warn_user(
            f"estimator: The loss {name!r} of the ONNX model is left out: loss=None trains with it."
        )
