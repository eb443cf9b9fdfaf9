"""
A linear regression, step by step
=================================

Train two features and a bias in batches of ten for ten epochs. The loss falls by a factor of more than 100,000, and the
coefficients are those of `LinearRegression`.
"""

from sklearn.datasets import make_regression
from sklearn.linear_model import LinearRegression

from skort import OrtSGDRegressor
from skort.exceptions import RuntimeNotAvailableError

X, y = make_regression(n_samples=100, n_features=2, bias=2, random_state=0)
reference = LinearRegression().fit(X, y)
print("LinearRegression      ", reference.coef_, reference.intercept_)

models = {}
for solver in ("graph", "agent", "session"):
    model = OrtSGDRegressor(solver=solver, penalty=None, eta0=0.2, batch_size=10, max_iter=10, tol=None, random_state=0)
    try:
        models[solver] = model.fit(X, y)
    except RuntimeNotAvailableError as error:
        print(error)
        continue
    print(f"solver={solver!r:<15}", model.coef_, model.intercept_)
    print("loss of each epoch:", " ".join(f"{loss:.2g}" for loss in model.loss_curve_))
