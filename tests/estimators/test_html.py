"""What a notebook shows of an estimator."""

import copy
import html
import importlib.metadata
import re
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.common.component import DOCUMENTATION, DocumentationLink, project_address
from skort.estimators import html as html_repr
from skort.model_selection import OrtGridSearchCV

X = np.random.default_rng(0).normal(size=(60, 3))
Y = X @ [1.0, -2.0, 0.5]
PAGE = "https://skort.readthedocs.io/en/stable/api/skort.{}.html"


@pytest.fixture(scope="module")
def regressor():
    return OrtSGDRegressor(optimizer="sgd", random_state=0, max_iter=4, tol=None).fit(X, Y)


def facts(text):
    """Return the rows of the table, as a reader sees them."""
    rows = re.findall(r"<tr><th[^>]*>(.*?)</th><td[^>]*>(.*?)</td></tr>", text)
    return {name: html.unescape(value).replace("\N{NO-BREAK SPACE}", " ") for name, value in rows}


def test_a_fitted_estimator_shows_its_training(regressor):
    text = regressor._repr_html_()
    assert facts(text[text.index('<div class="skort-training"') :]) == {
        "optimizer": "SGD()",
        "learning rate": f"Adaptive(eta0={regressor.eta0_:.3g})",
        "solver": "graph",
        "epochs": f"4 ({regressor.t_} updates)",
        "stopped": "The training reached max_iter=4 epochs.",
        "objective": f"{regressor.loss_:.4g} in the last epoch",
        "weights": "4 numbers in 2 arrays: coef (3, 1), intercept (1,)",
    }


def test_the_html_is_that_of_scikit_learn_with_an_end(regressor):
    begin = sklearn.utils.estimator_html_repr(regressor)
    # Each one has a number of its own.
    number = re.compile(r"sk-(container|estimator)-id-\d+")
    text = regressor._repr_html_()
    assert number.sub("", text) == number.sub("", begin) + html_repr.training_html(regressor)
    bundle = regressor._repr_mimebundle_(include=None)
    assert number.sub("", bundle["text/html"]) == number.sub("", text)
    assert bundle["text/plain"] == repr(regressor)


def test_an_estimator_that_is_not_fitted_has_scikit_learns_html():
    text = OrtSGDRegressor()._repr_html_()
    assert "skort-training" not in text
    assert "Not fitted" in text


def test_text_where_scikit_learn_is_to_show_text(regressor):
    with sklearn.config_context(display="text"):
        assert not hasattr(regressor, "_repr_html_")
        assert regressor._repr_mimebundle_() == {"text/plain": repr(regressor)}


def test_best_score_and_frozen_weights():
    model = OrtSGDClassifier(
        MLPClassifier((5,)), trainable="*1", max_iter=3, tol=None, random_state=0
    )
    model.fit(X, Y > 0, X_val=X, y_val=Y > 0)
    shown = facts(html_repr.training_html(model))
    best = max(model.validation_scores_)
    assert (
        shown["validation"]
        == f"best score {best:.4g}, in epoch {model.validation_scores_.index(best) + 1}"
    )
    assert shown["weights"] == (
        "26 numbers in 4 arrays, of which 6 were trained: coefficient (3, 5), coefficient1 (5, 1), "
        "intercepts (1, 5), intercepts1 (1, 1)"
    )


def test_many_weights_are_counted():
    weights = {f"w{number}": np.zeros((100, number)) for number in range(1, 9)}
    shown = html_repr._weights(weights, ["w1"]).replace("\N{NO-BREAK SPACE}", " ")
    assert shown == (
        "3,600 numbers in 8 arrays, of which 100 were trained: w1 (100, 1), w2 (100, 2), w3 (100, "
        "3), w4 (100, 4), w5 (100, 5), w6 (100, 6) and 2 more"
    )
    assert (
        html_repr._weights({"w": np.zeros(2)}, ["w"])
        == "2 numbers in 1 array: w\N{NO-BREAK SPACE}(2,)"
    )


@pytest.mark.parametrize("scores", [None, [np.nan, np.nan]])
def test_no_best_score(scores, regressor, monkeypatch):
    monkeypatch.setattr(OrtSGDRegressor, "validation_scores_", scores)
    assert "validation" not in facts(html_repr.training_html(regressor))


def test_names_of_weights_are_escaped(regressor):
    odd = copy.copy(regressor)
    odd.solver_ = "<b>&"
    assert "<td" in html_repr.training_html(odd)
    assert facts(html_repr.training_html(odd))["solver"] == "<b>&"
    assert "<b>" not in html_repr.training_html(odd)


def test_a_stream_has_no_end_to_name():
    stream = OrtSGDRegressor(random_state=0).partial_fit(X, Y)
    assert list(facts(html_repr.training_html(stream))) == [
        "optimizer",
        "learning rate",
        "solver",
        "epochs",
        "objective",
        "weights",
    ]


@pytest.mark.parametrize(
    "estimator, name",
    [
        (OrtSGDRegressor(), "OrtSGDRegressor"),
        (OrtSGDClassifier(), "OrtSGDClassifier"),
        (OrtGridSearchCV(OrtSGDRegressor(), {}), "model_selection.OrtGridSearchCV"),
    ],
)
def test_the_diagram_links_to_the_page_of_the_class(estimator, name):
    assert estimator._get_doc_link() == PAGE.format(name)
    assert f'href="{PAGE.format(name)}"' in make_pipeline(StandardScaler(), estimator)._repr_html_()


def test_a_class_of_the_user_has_no_page():
    class Mine(OrtSGDRegressor):
        pass

    assert Mine()._get_doc_link() == ""


def test_without_an_address_there_is_no_link(monkeypatch):
    assert OrtSGDRegressor()._get_doc_link() == PAGE.format("OrtSGDRegressor")

    def nothing(name):
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "metadata", nothing)
    assert project_address("Documentation") == ""
    monkeypatch.setattr(DocumentationLink, "_doc_link_module", "")
    assert OrtSGDRegressor()._get_doc_link() == ""


def test_the_address_is_that_of_the_project():
    assert (
        f'\nDocumentation = "{DOCUMENTATION}"\n'
        in Path(__file__).parents[2].joinpath("pyproject.toml").read_text()
    )
