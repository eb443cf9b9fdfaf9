"""
What skort declares of a user's loss or penalty that is no subclass of its own,
and how parameters are validated.
"""

import copy
import pickle

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.utils._param_validation import InvalidParameterError

from skort import OrtSGDRegressor
from skort.common.component import check_parameters, own_copy, with_defaults
from skort.objective import L2, ElasticLoss, ElasticPenalty, Huber, Loss, SquaredError
from skort.objective.loss import as_loss
from skort.objective.penalties import Strength, WeightPenalty, as_penalty


class Half:
    """A penalty with nothing but strengths."""

    def __init__(self, strength):
        self.strength = strength

    def strengths(self, names):
        return {name: Strength(0.0, self.strength) for name in names}


class OwnSquare:
    """A loss with the least that an estimator takes."""

    estimator_types = ("regressor",)

    def value_function(self, n_outputs):
        return "own (score, target) => (loss) { r = Sub (score, target)  loss = Mul (r, r) }"

    def gradient_function(self, n_outputs):
        return None


def test_what_is_one_of_skorts_is_itself():
    loss, penalty = Huber(), L2()
    assert as_loss(loss) is loss and as_penalty(penalty) is penalty


@pytest.mark.parametrize("value", [None, "l2", 3, Huber, Half, object()])
def test_what_is_none_is_none(value):
    assert as_loss(value) is None and as_penalty(value) is None


def test_the_rest_is_declared_and_the_object_of_the_user_is_left_alone():
    given = Half(0.5)
    completed = as_penalty(given)
    assert (
        isinstance(completed, Half) and isinstance(completed, WeightPenalty) and type(given) is Half
    )
    assert type(completed).__name__ == "Half" and completed.strength == 0.5
    assert (
        completed.intercept_strengths(("b",)) == {}
        and not completed.is_custom
        and completed.alpha == 0.0
    )
    assert with_defaults(completed, WeightPenalty, "strengths") is completed


@pytest.mark.parametrize("made", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_it_is_copied_and_pickled(made):
    completed = made(as_penalty(Half(0.5)))
    assert isinstance(completed, WeightPenalty)
    assert completed.strengths(("coef",)) == {"coef": Strength(0.0, 0.5)}


def test_a_fit_with_both(rng):
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, 2.0, -1.0]
    options = {"tol": 1e-8, "random_state": 0, "dtype": "float64", "standardize": False}
    own = OrtSGDRegressor(loss=OwnSquare(), penalty=Half(0.2), **options).fit(X, y)
    named = OrtSGDRegressor(loss="squared_error", penalty=L2(0.1), **options).fit(X, y)
    np.testing.assert_allclose(own.coef_, named.coef_, rtol=1e-4)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(own)).predict(X), own.predict(X))


def test_a_model_of_scikit_learn_is_validated_as_it_does():
    model = Ridge()
    for alpha in (1.0, 2.0):
        check_parameters(model.set_params(alpha=alpha))
    # Equal numbers of other types are other values, and so are those of other parameters.
    for parameters in (
        {"alpha": -1.0},
        {"fit_intercept": 1},
        {"solver": "none"},
        {"max_iter": 2.0},
    ):
        with pytest.raises(
            InvalidParameterError, match=f"The '{next(iter(parameters))}' parameter of Ridge"
        ):
            check_parameters(Ridge(**parameters))
        check_parameters(model)


def test_the_names_of_parameters_are_those_of_scikit_learn_in_a_list_of_the_callers_own():
    names = OrtSGDRegressor._get_param_names()
    assert names == sorted(OrtSGDRegressor().get_params(deep=False))
    names.clear()
    assert "alpha" in OrtSGDRegressor._get_param_names()


def test_a_subclass_that_hands_on_parameters_is_fitted(rng):
    class Own(OrtSGDRegressor):
        def __init__(self, alpha=0.0, **others):
            super().__init__(alpha=alpha, **others)

    X = rng.normal(size=(30, 2))
    y = X @ [1.0, 2.0]
    expected = OrtSGDRegressor(alpha=0.0, max_iter=3, tol=None, random_state=0).fit(X, y).coef_
    np.testing.assert_array_equal(
        Own(max_iter=3, tol=None, random_state=0).fit(X, y).coef_, expected
    )


def test_a_copy_is_deep_where_something_could_be_changed_in_place():
    flat, nested = Ridge(alpha=0.5), Ridge(alpha=np.array([0.5]))
    copied = own_copy(flat, copy.deepcopy)
    assert copied is not flat
    assert type(copied) is Ridge
    assert vars(copied) == vars(flat)
    deep = own_copy(nested, copy.deepcopy)
    deep.alpha[0] = 2.0
    assert nested.alpha[0] == 0.5


@pytest.mark.parametrize(
    ("make", "refused"),
    [
        (
            lambda: SquaredError(2),
            "SquaredError(2) takes no value without a name. It has no parameters.",
        ),
        (
            lambda: Huber(1, 2),
            "Huber(1, 2) takes only epsilon without a name. Its parameters are epsilon.",
        ),
        (
            lambda: ElasticLoss(1, 2, 3),
            "ElasticLoss(1, 2, 3) takes only l1_weight, l2_weight without a name. Its parameters are "
            "l1_weight, l2_weight.",
        ),
        (
            lambda: ElasticPenalty(1, 2, 3, 4),
            "ElasticPenalty(1, 2, 3, 4) takes only alpha, l1_ratio, intercepts without a name. Its "
            "parameters are alpha, intercepts, l1_ratio.",
        ),
    ],
)
def test_too_many_values_without_a_name_are_refused_with_the_parameters(make, refused):
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value) == refused


def test_a_missing_value_is_told_as_python_does():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'value'"):
        Loss()
