"""The models for predictions and for export: one each, made at the first use."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier
from skort.graphs import export
from skort.runtime.cache import forget

X = np.random.default_rng(0).normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)


@pytest.fixture
def made(monkeypatch):
    """The transformers of every deployable model of a classifier that is made."""
    calls = []
    forget()
    make = export.classifier_model
    monkeypatch.setattr(
        export,
        "classifier_model",
        lambda graph, classes, steps, link, **kind: (
            calls.append(steps) or make(graph, classes, steps, link, **kind)
        ),
    )
    return calls


@pytest.mark.parametrize("inner", [None, make_pipeline(StandardScaler(), LogisticRegression())])
def test_a_model_is_made_once_where_somebody_asks(made, inner):
    model = OrtSGDClassifier(inner, max_iter=2, tol=None).fit(X, Y)
    assert len(made) == 0
    for _ in range(2):
        model.predict(X)
        model.predict_proba(X)
    assert len(made) == 1
    assert model.onnx_ is model.onnx_
    # The one that predicts has probabilities in float64, and no steps.
    assert len(made) == 2


def test_a_stream_makes_none(made):
    model = OrtSGDClassifier()
    for _ in range(3):
        model.partial_fit(X, Y, classes=[0, 1])
    assert made == []
    before = model.predict_proba(X)
    assert (model.partial_fit(X, Y).predict_proba(X) != before).any()
    assert len(made) == 1


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
@pytest.mark.parametrize("used", [False, True])
def test_copies_have_the_same_models(copied, used):
    model = OrtSGDClassifier(max_iter=2, tol=None, random_state=0).fit(X, Y)
    if used:
        model.predict(X)
    again = copied(model)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.onnx_ == model.onnx_
