"""Which updates touch few weights."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from skort.descent.optimizers import SGD, Adam, Nesterov
from skort.descent.update import Update
from skort.graphs.initial import initial_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.objective import L1, L2, SquaredError
from skort.objective.nodes import Objective
from skort.solvers.base import Problem
from skort.solvers.sparse.updates import FullUpdate, LazyUpdate, make_update

SHAPE = (6, 1)


def update_of(update, penalty=None):
    graph = initial_score_graph(LinearRegression(), ScoreSpec(6, 1, "float64"), np.random.RandomState(0))
    objective = Objective(SquaredError(), penalty, graph.coefficients, 1, np.dtype("float64"))
    return make_update(Problem(graph, objective, update, 4, row_factor=1.0), SHAPE, 1.0)


@pytest.mark.parametrize(
    "update, penalty",
    [
        (Update(SGD()), None),
        (Update(SGD(), largest_rate=0.1), L2(0.5)),
        (Update(Nesterov(), average=True, largest_rate=0.1), L2(0.1)),
        (Update(SGD(), largest_rate=0.1), L2(np.full((6, 1), 0.5))),
    ],
)
def test_sgd_and_momentum_are_lazy_where_all_weights_have_the_same_l2_term(update, penalty):
    assert isinstance(update_of(update, penalty), LazyUpdate)


@pytest.mark.parametrize(
    "update, penalty",
    [
        (Update(Adam()), None),
        (Update(SGD(), max_grad_norm=1.0), None),
        (Update(SGD(), largest_rate=0.1), L1(0.5)),
        (Update(SGD(), largest_rate=0.1), L2(np.arange(6.0)[:, None])),
        # Its steps may be implicit.
        (Update(SGD(), largest_rate=10.0), L2(0.5)),
        (Update(SGD()), L2(0.5)),
    ],
)
def test_other_updates_are_those_of_all_weights(update, penalty):
    assert isinstance(update_of(update, penalty), FullUpdate)
