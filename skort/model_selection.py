"""Searches that train candidates together."""

import inspect
from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

from joblib import effective_n_jobs
from sklearn.base import clone

from skort.common.component import (
    OF_FILES,
    SIMILAR,
    DocumentationLink,
    explained_init,
    nearest,
    reads_no_file,
)
from skort.common.elsewhere import asked_of
from skort.common.user_warning import Counted, warn_user
from skort.estimators.base import BaseOrtSGD
from skort.estimators.literals import Rows, Targets
from skort.estimators.other_names import ATTRIBUTES
from skort.optim.display import bar
from skort.optim.scorers import check_name
from skort.search.together import Together

if TYPE_CHECKING:
    from skort.common.sklearn_types import GridSearchCV, RandomizedSearchCV
else:
    from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

Own = TypeVar("Own", bound="_SearchTogether")

__all__ = ["OrtGridSearchCV", "OrtRandomizedSearchCV"]

# To a type checker, a module with this function would have every name.
if not TYPE_CHECKING:
    __getattr__ = asked_of(__name__)


# The attributes of a fitted search.
_OF_FIT = ("best_estimator_", "best_index_", "best_params_", "best_score_", "cv_results_")
_OF_FILE = "pickle or joblib keep and read a search"


@reads_no_file(_OF_FILE)
class _SearchTogether(DocumentationLink):
    """A base class before a search of scikit-learn: it makes the fits of a fold together."""

    estimator: Any
    cv: Any
    n_jobs: int | None
    scoring: Any
    verbose: int
    n_fits_together_: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__init__ = explained_init(cls.__init__, _refusal, _without_names)  # type: ignore[method-assign]

    def fit(self: Own, X: Rows, y: Targets | None = None, **params: Any) -> Own:
        """Run the search: scikit-learn's `fit`, with the same parameters."""
        if isinstance(self.scoring, str):
            check_name(self.scoring)

        self._together = together = Together(on_fits=lambda n_fits: self._show(n_fits))
        self._bar = None
        # A clone of a marked estimator asks `Together` for its fit.
        marked = [together.mark(part) for part in _parts(self)]
        if not marked:
            name = type(self).__name__
            warn_user(
                f"{name} trains no fits together: its estimator has no OrtSGDRegressor and no "
                "OrtSGDClassifier in it. Put the model into one, such as "
                f"OrtSGDClassifier(LogisticRegression()), or use {name.removeprefix('Ort')}."
            )

        try:
            super().fit(X, y, **params)  # type: ignore[misc]
            return self
        finally:
            del self._together, self._bar
            for part in marked:
                together.unmark(part)

    def _run_search(
        self, evaluate_candidates: Callable[..., Any], *, callback_ctx: Any = None
    ) -> None:
        together = self._together

        def evaluate(candidates, *args, **options):
            candidates = list(candidates)
            together.open(_candidates(self.estimator, candidates))
            n_jobs = effective_n_jobs(self.n_jobs)
            is_here = n_jobs == 1
            if together.has_groups and not is_here:
                warn_user(
                    f"{type(self).__name__} trains no fits together in {n_jobs} jobs, where each "
                    "makes its own. Leave n_jobs out to train them together, or use "
                    f"{type(self).__name__.removeprefix('Ort')}."
                )
            n_splits = _n_splits(self.cv)
            n_fits = None if n_splits is None else len(candidates) * n_splits
            self._bar = bar(n_fits, "fit") if self.verbose > 0 and is_here else None

            try:
                return evaluate_candidates(candidates, *args, **options)
            finally:
                # The refit is not one of these fits.
                if self._bar is not None:
                    self._bar.close()
                self._bar = None

        # scikit-learn 1.9 passes this argument to searches that take it. Older versions
        # do not have it.
        context = {} if callback_ctx is None else {"callback_ctx": callback_ctx}
        try:
            with Counted("fits"):
                super()._run_search(evaluate, **context)  # type: ignore[misc]
        finally:
            together.close()

        self.n_fits_together_ = together.n_made
        if together.has_callbacks:
            warn_user(
                f"{type(self).__name__} trains no fits together: a callback of scikit-learn sees "
                "each fit's epochs. Use one that sees the search alone, such as "
                "ProgressBar(max_propagation_depth=0)."
            )
        if self.verbose > 0:
            print(f"{together.n_made} of these fits were trained together with others")

    # To a type checker, a class with this method has every attribute.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Python asks for what an object lacks, and for properties that raised an AttributeError.
            if hasattr(type(self), name):
                return object.__getattribute__(self, name)

            known = vars(self)
            of_estimator = known.get("best_estimator_", type(known.get("estimator")))
            advice = ""
            if name in OF_FILES:
                advice = f": {_OF_FILE}."
            elif name in _OF_FIT:
                advice = "" if "cv_results_" in known else ": the search is not fitted yet."
            elif not name.startswith("_") and hasattr(of_estimator, name):
                advice = ": search.best_estimator_ has it, after fit."
            elif name in ATTRIBUTES:
                advice = f": ask search.best_estimator_. There, {ATTRIBUTES[name]}."
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}{advice}",
                name=name,
                obj=self,
            )

    def _show(self, n_fits):
        """Move the bar, if there is one."""
        if self._bar is not None:
            self._bar.update(n_fits)


def _without_names(error, search, values):
    """Return the error for values without a name that a search does not take."""
    if "() takes " not in str(error):
        return None
    name = type(search).__name__
    known = [*inspect.signature(type(search)).parameters.values()]
    order = [each.name for each in known if each.kind is each.POSITIONAL_OR_KEYWORD]
    n_more = len(values) - len(order)
    return (
        f"{name} takes only {', '.join(order)} without a name, and got {n_more} more. Name the "
        f"others, such as {known[len(order)].name}=..."
    )


def _refusal(_error, unknown, search, _args, _given):
    """Return the error for an unknown argument of a search, with the search that has it, if one has."""
    name = type(search).__name__
    refused = f"{name}() got an unexpected keyword argument {unknown!r}."
    owners = [
        each.__name__
        for each in (OrtGridSearchCV, OrtRandomizedSearchCV)
        if unknown in each._get_param_names()
    ]
    if owners:
        return f"{refused} {owners[0]} has it."

    similar = nearest(unknown, type(search)._get_param_names(), {}, SIMILAR)
    return f"{refused} Did you mean {similar[0]}?" if similar else None


def _n_splits(cv):
    """Return the number of folds, or None if only the data give it."""
    if cv is None or isinstance(cv, Integral):
        return 5 if cv is None else int(cv)
    try:
        return cv.get_n_splits() if hasattr(cv, "get_n_splits") else len(cv)
    except (TypeError, ValueError):
        return None


class OrtGridSearchCV(_SearchTogether, GridSearchCV):
    """
    A `sklearn.model_selection.GridSearchCV` that trains the candidates of a fold together.

    The parameters, attributes and results are those of `GridSearchCV`, except for the fit times. Of
    the fits that are trained together, the first one is recorded with the time of all, and the
    others with nearly no time.

    Candidates are trained together if they differ only in these parameters: `alpha`, `l1_ratio`,
    `eta0`, `power_t`, `learning_rate`, `max_iter`, `tol`, `n_iter_no_change`, `epsilon`,
    `quantile`, the momentum or weight decay of an optimizer, and the strength of the penalty of the
    model inside (`estimator__alpha`, `estimator__C`). One run of ONNX Runtime makes a step for all
    candidates. Each candidate stops by itself, also with `early_stopping`.

    Linear models are trained by L-BFGS by default. Candidates that differ only in the strength of
    the penalty are then fitted one after the other, from the strongest to the weakest. They share
    what depends on X alone, and each begins where the optima before it lead. They end at the
    optimum of single fits, within `tol`: the objective within 1e-6 of it, or within 1e-4 where it
    is nearly zero, and the coefficients within 2e-4 of the largest one where the penalty or the
    rows determine them well. `n_iter_` counts from there.

    These fits are made one by one, as in `GridSearchCV`:

    - fits of candidates that differ in anything else, such as another parameter of the model inside;
    - fits by L-BFGS of a network, with `early_stopping`, or that reach `max_iter`;
    - fits with `average`, `callbacks`, `max_grad_norm`, `trainable`, `verbose` or `warm_start`;
    - fits with callbacks of scikit-learn (`set_callbacks`) that see each fit, not the search alone:
      a warning says so;
    - fits of a linear model with "adam", or with another optimizer that divides by the size of past
      gradients, on one batch of all rows: it makes whole steps of rounding errors;
    - fits with a `RandomState` instance as `random_state`, a `device` other than "cpu", or the
      solver "agent", "session" or "module";
    - fits with a custom optimizer, learning rate or penalty; for regressors also fits with a custom
      loss, unless `standardize=False`;
    - fits with a loss that has weights, such as the loss of a `HuberRegressor`;
    - fits with arguments other than X, y and `sample_weight`;
    - fits of a large model or of a model that is not a chain of layers, and fits on a sparse X with
      many columns;
    - fits that diverge, or that end no better than they began.

    Parameters
    ----------
    estimator : estimator
        An `OrtSGDRegressor` or `OrtSGDClassifier`, or a pipeline or another estimator around one. A
        warning says if it has none: its fits are made one by one.
    param_grid : dict or list of dict
    scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score
        As in `GridSearchCV`. With several jobs, all fits are made one by one, in their own
        processes, and a warning says so. With `verbose`, a bar shows the fits, if there is a
        terminal or notebook, and a line says how many of them were trained together. Warnings of
        several fits that differ only in numbers are one warning, which says of how many fits.

    Attributes
    ----------
    n_fits_together_ : int
        Number of fits that were trained together with others. Each candidate has one fit per fold.

    Notes
    -----
    With an integer as `random_state`, the scores are those of `GridSearchCV` but for rounding, which
    a training in float32 amplifies: the log-losses of a network may differ by some thousandths, its
    accuracies by a few rows a fold, most with a large `eta0`, as those of another seed differ by
    more. Near-equal candidates may change places. With
    `dtype="float64"`, they are equal to ten digits. With None, the candidates of a fold share a
    seed, so they have the same initial weights and the same order of rows.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skort import OrtSGDRegressor
    >>> from skort.model_selection import OrtGridSearchCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = OrtSGDRegressor(penalty="l2", random_state=0)
    >>> search = OrtGridSearchCV(
    ...     model, {"alpha": [0.0001, 0.001, 0.01], "eta0": [0.01, 0.05]}, cv=4
    ... ).fit(X, y)
    >>> search.n_fits_together_, search.best_params_["alpha"]
    (24, 0.0001)
    """


class OrtRandomizedSearchCV(_SearchTogether, RandomizedSearchCV):
    """
    A `sklearn.model_selection.RandomizedSearchCV` that trains the candidates of a fold together.

    `OrtGridSearchCV` describes which candidates are trained together.

    Parameters
    ----------
    estimator : estimator
        An `OrtSGDRegressor` or `OrtSGDClassifier`, or a pipeline or another estimator around one.
    param_distributions : dict or list of dict
        A list of values, or a distribution of values, for each parameter.
    n_iter, scoring, n_jobs, refit, cv, verbose, pre_dispatch, random_state, error_score, return_train_score
        As in `RandomizedSearchCV`.

    Attributes
    ----------
    n_fits_together_ : int
        Number of fits that were trained together with others. Each candidate has one fit per fold.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_diabetes
    >>> from skort import OrtSGDRegressor
    >>> from skort.model_selection import OrtRandomizedSearchCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = OrtSGDRegressor(penalty="l2", optimizer="sgd", random_state=0)
    >>> search = OrtRandomizedSearchCV(
    ...     model, {"alpha": loguniform(1e-4, 1)}, n_iter=8, cv=4, random_state=0
    ... ).fit(X, y)
    >>> search.n_fits_together_
    32
    """


def _parts(value):
    """Yield the estimators of skort in a value: an estimator, its parameters, a list or a dict."""
    if isinstance(value, BaseOrtSGD):
        yield value
    if isinstance(value, dict):
        yield from _parts(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _parts(part)
    elif hasattr(value, "get_params") and not isinstance(value, type):
        yield from _parts(list(value.get_params(deep=False).values()))


def _candidates(estimator, candidates):
    """Return the estimator of skort in each candidate that has exactly one."""
    found = []
    for parameters in candidates:
        try:
            candidate = clone(estimator).set_params(**clone(parameters, safe=False))
        except (ValueError, TypeError):
            # The search itself raises the error.
            continue

        own = [
            part
            for part in (candidate, *candidate.get_params().values())
            if isinstance(part, BaseOrtSGD)
        ]
        if len(own) == 1:
            found += own

    return found
