"""The formulas of docs/learning_rates.rst, and its table of solvers, against the objects."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from skort import OrtSGDRegressor
from skort.exceptions import RuntimeNotAvailableError
from skort.optim.optimizers import OPTIMIZERS
from skort.optim.schedules import SCHEDULES
from skort.optim.transforms import clipped
from skort.optim.update import Update
from skort.optimizers import LBFGS, SGD, Adam, Momentum, Nesterov
from skort.schedules import Adaptive, Constant, Cosine, Cyclic, InvScaling, Optimal, Warmup
from skort.solvers import ON_REQUEST, SOLVERS, check_solver

DOCS = Path(__file__).parent.parent / "docs"
TABLE = runpy.run_path(str(DOCS / "optimizers_table.py"))["table"]()
PAGE = (DOCS / "learning_rates.rst").read_text().replace(".. include:: optimizers_table.txt", TABLE)
TEXT = " ".join(PAGE.split())


def sgd(w, g, eta, t, v, m):
    return w - eta * g, v, m


def momentum(w, g, eta, t, v, m):
    v = 0.9 * v - eta * g
    return w + v, v, m


def nesterov(w, g, eta, t, v, m):
    v = 0.9 * v - eta * g
    return w + 0.9 * v - eta * g, v, m


def adam(w, g, eta, t, v, m):
    m, v = 0.9 * m + (1 - 0.9) * g, 0.999 * v + (1 - 0.999) * g**2
    return w - eta * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8), v, m


UPDATES = {
    "sgd": (r":math:`w \leftarrow w - \eta g`", sgd),
    "momentum": (r":math:`v \leftarrow \mu v - \eta g`, then :math:`w \leftarrow w + v`", momentum),
    "nesterov": (
        r":math:`v \leftarrow \mu v - \eta g`, then :math:`w \leftarrow w + \mu v - \eta g`",
        nesterov,
    ),
    "adam": (
        r":math:`m \leftarrow \beta_1 m + (1 - \beta_1) g`, :math:`v \leftarrow \beta_2 v + (1 - "
        r"\beta_2) g^2`, then :math:`w \leftarrow w - \eta \frac{\sqrt{1 - \beta_2^t}}{1 - "
        r"\beta_1^t} \frac{m}{\sqrt{v} + \epsilon}`",
        adam,
    ),
}


@pytest.mark.parametrize("name", UPDATES)
def test_an_update_is_the_formula_of_the_page(name, rng):
    latex, formula = UPDATES[name]
    assert latex in TEXT
    assert f'`"{name}"`, :class:`~skort.optimizers.{OPTIMIZERS[name].__name__}`' in TEXT
    optimizer, weights = OPTIMIZERS[name](), rng.normal(size=3)
    expected, v, m = weights.copy(), np.zeros(3), np.zeros(3)
    state = optimizer.start(3, 0, weights.dtype)
    for t in range(1, 6):
        gradient, eta = rng.normal(size=3), 0.1 / t
        optimizer.update(weights, gradient, eta, state, np.empty(3))
        expected, v, m = formula(expected, gradient, eta, t, v, m)
        np.testing.assert_allclose(weights, expected, rtol=1e-12)


RATES = {
    "constant": (r":math:`\eta_0`", Constant(0.2), lambda t: 0.2),
    "invscaling": (r":math:`\eta_0 / t^p`", InvScaling(0.2, 0.75), lambda t: 0.2 / t**0.75),
    "optimal": (
        r":math:`\frac{1}{\alpha (t_0 + t - 1)}`, with :math:`t_0 = \alpha^{-3/4}`",
        Optimal(0.01),
        lambda t: 1 / (0.01 * (0.01 ** (-3 / 4) + t - 1)),
    ),
    "adaptive": (r":math:`\eta_0 / 5^k`", Adaptive(0.2), lambda t: 0.2),
    "Cosine": (
        (
            r":math:`\eta_1 + \frac{\eta_0 - \eta_1}{2} \left(1 + \cos \frac{\pi \min(t - "
            r"1, n)}{n}\right)`"
        ),
        Cosine(50, 0.2, 0.1),
        lambda t: 0.1 + (0.2 - 0.1) / 2 * (1 + np.cos(np.pi * np.minimum(t - 1, 50) / 50)),
    ),
    "Cyclic": (
        r":math:`\eta_1 - (\eta_1 - \eta_0) \left|1 - \frac{2}{n} ((t - 1) \bmod n)\right|`",
        Cyclic(30, 0.1, 0.5),
        lambda t: 0.5 - (0.5 - 0.1) * np.abs(1 - 2 / 30 * ((t - 1) % 30)),
    ),
    "Warmup": (
        r":math:`\min(1, t / n)` times the rate",
        Warmup(InvScaling(0.2, 0.75), 30),
        lambda t: np.minimum(1, t / 30) * 0.2 / t**0.75,
    ),
}


@pytest.mark.parametrize("name", RATES)
def test_a_learning_rate_is_the_formula_of_the_page(name):
    latex, schedule, formula = RATES[name]
    assert latex in TEXT
    assert f":class:`~skort.schedules.{type(schedule).__name__}`" in TEXT
    t = np.arange(1.0, 101.0)
    np.testing.assert_allclose(schedule.simulate(100), np.broadcast_to(formula(t), 100), rtol=1e-12)
    assert SCHEDULES.keys() <= RATES.keys()


def test_a_fall_is_the_formula_of_the_page():
    schedule, rates = Adaptive(0.2), [0.2]
    while schedule.on_bad_epochs():
        rates.append(schedule(1))
    assert rates == pytest.approx([0.2 / 5**k for k in range(5)])


def test_a_clipped_gradient_is_the_formula_of_the_page(rng):
    assert (
        r".. math:: g \leftarrow g \min\left(1, \frac{max\_grad\_norm}{\lVert g \rVert_2}\right)"
        in TEXT
    )
    for g in (rng.normal(size=4), 0.01 * rng.normal(size=4)):
        np.testing.assert_allclose(
            clipped(g, 0.5, np.empty(4)), g * min(1, 0.5 / np.linalg.norm(g))
        )


class Halved(SGD):
    """An update in numpy alone."""

    def update(self, weights, gradient, eta, state, scratch):
        super().update(weights, gradient, eta / 2, state, scratch)


class HalvedInOnnx(Halved):
    def onnx_update(self):
        return """halved (weights, gradient, eta) => (next_weights, length) {
            two = Constant <value = float {2}> ()  length = Div (eta, two)
            step = Mul (gradient, length)  next_weights = Sub (weights, step) }"""


UPDATES_OF_SOLVERS = {
    "`SGD()`, `Adam()`": [Update(SGD()), Update(Adam())],
    "`Momentum()`, `Nesterov()`": [Update(Momentum()), Update(Nesterov())],
    "`Adam(weight_decay=0.01)`": [Update(Adam(weight_decay=0.01))],
    "`LBFGS()`": [Update(LBFGS())],
    "a custom optimizer in numpy": [Update(Halved())],
    "the same with `onnx_update`": [Update(HalvedInOnnx())],
    "`max_grad_norm`": [Update(SGD(), max_grad_norm=1.0)],
    "`average`": [Update(SGD(), average=True)],
}


OPTIONS_OF_SOLVERS = {"an l1 penalty": {"penalty": "l1"}, "every schedule": {}}


def answers():
    """Return what the table of the page says of each update: solver -> "yes" or "no"."""
    section = PAGE.partition("Which solver takes what\n")[2].partition("\n`solver=")[0]
    rows = {
        name: cells
        for name, *cells in (re.split(" {2,}", line) for line in section.splitlines())
        if cells and "===" not in name
    }
    solvers = [cell.strip('"') for cell in rows.pop("update")]
    assert solvers == [*SOLVERS, *ON_REQUEST], "The table has a column for each solver."
    return {name: dict(zip(solvers, cells, strict=True)) for name, cells in rows.items()}


def test_each_row_of_the_table_of_solvers_is_tested():
    assert answers().keys() == {*UPDATES_OF_SOLVERS, *OPTIONS_OF_SOLVERS}


@pytest.mark.parametrize("row", UPDATES_OF_SOLVERS)
def test_a_solver_takes_what_the_page_says(row):
    for solver, answer in answers()[row].items():
        for update in UPDATES_OF_SOLVERS[row]:
            assert answer == ("yes" if dtypes_of(solver, update) else "no"), (solver, update)


def dtypes_of(solver, update):
    """Return in which dtypes a solver makes an update, whether it is installed here or not."""
    return [dtype for dtype in ("float32", "float64") if takes(solver, np.dtype(dtype), update)]


def takes(solver, dtype, update):
    try:
        check_solver(solver, dtype, update)
    except RuntimeNotAvailableError:
        return True
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("row, options", OPTIONS_OF_SOLVERS.items())
def test_a_solver_trains_with_what_the_page_says(row, options):
    X = np.eye(4)
    for solver, answer in answers()[row].items():
        schedule, (dtype, *_) = (
            Warmup(Cosine(n_updates=5), n_updates=2),
            dtypes_of(solver, Update(SGD())),
        )
        model = OrtSGDRegressor(
            solver=solver, learning_rate=schedule, max_iter=3, tol=None, dtype=dtype, **options
        )
        try:
            assert model.fit(X, X[:, 0]).t_ == 3
        except RuntimeNotAvailableError:
            continue
        except ValueError as error:
            assert answer == "no", error
        else:
            assert answer == "yes"
