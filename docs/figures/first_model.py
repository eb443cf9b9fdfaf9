"""The curve of first_model.rst, of the model that the page has trained."""

from doctest import DocTestParser
from pathlib import Path

from skort.plotting import LossCurveDisplay


def trained():
    """Return the model of the section "Stop early": the code of the page up to there is run."""
    page = Path(__file__).parents[1] / "first_model.rst"
    before, title, _ = page.read_text().partition("\nLook at the training\n")
    assert title
    names = {}
    for example in DocTestParser().get_examples(before):
        exec(compile(example.source, page.name, "exec"), names)
    return names["model"]


def draw():
    LossCurveDisplay.from_estimator(trained())
