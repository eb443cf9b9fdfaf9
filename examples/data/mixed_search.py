"""
A search over a pipeline with mixed columns
===========================================

Flats have a size, a year with gaps, a district and a description, and some prices are mistyped.
`GridSearchCV` searches the transformers, the model and the loss at once, by the names of their
parameters.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skort import OrtSGDRegressor

rng = np.random.default_rng(0)
n = 600
flats = pd.DataFrame(
    {
        "size": rng.uniform(20, 150, n),
        "year": rng.integers(1900, 2025, n).astype(float),
        "district": rng.choice(["harbour", "hill", "park"], n),
        "description": rng.choice(
            ["quiet flat", "flat with balcony", "needs repair", "balcony and view"], n
        ),
    }
)
price = (
    3 * flats["size"]
    + 0.5 * (flats["year"] - 1960)
    + flats["district"].map({"harbour": 0, "hill": 40, "park": 80})
)
price += 30 * flats["description"].str.contains("balcony") - 50 * flats["description"].str.contains(
    "repair"
)
price += rng.normal(scale=20, size=n)
flats.loc[rng.random(n) < 0.1, "year"] = np.nan
train, test, y_train, y_test = train_test_split(flats, price.to_numpy(), random_state=0)
# One price in 25 has a digit too many.
mistyped = rng.random(len(y_train)) < 0.04
y_train[mistyped] *= 10

# %%
# The grid: with the description or without it, squared error or Huber's loss, and the strength of
# the penalty of `Ridge`. The score of a validation fold is the median error, which mistyped prices
# hardly change.

numbers = make_pipeline(SimpleImputer(), StandardScaler())
columns = make_column_transformer(
    (numbers, ["size", "year"]),
    (OneHotEncoder(handle_unknown="ignore"), ["district"]),
    (TfidfVectorizer(), "description"),
)
model = OrtSGDRegressor(
    make_pipeline(columns, Ridge()), epsilon=30.0, optimizer="nesterov", random_state=0
)
grid = {
    "estimator__columntransformer__tfidfvectorizer": ["drop", TfidfVectorizer()],
    "loss": ["squared_error", "huber"],
    "estimator__ridge__alpha": [1.0, 10.0, 100.0],
}
search = GridSearchCV(model, grid, scoring="neg_median_absolute_error", cv=3)
search.fit(train, y_train)
best = search.best_params_
print(f"{len(search.cv_results_['params'])} candidates")
for name, value in best.items():
    print(f"    {name} = {value}")

# %%
# `best_estimator_` is a fitted estimator of skort. Its ONNX file takes the columns of the
# DataFrame.

errors = np.abs(search.predict(test) - y_test)
print(f"median error on correct prices of other flats: {np.median(errors):.1f}")
inputs = [
    (i.name, i.type.tensor_type.elem_type) for i in search.best_estimator_.to_onnx().graph.input
]
print("inputs of the file (1: float, 8: text):", inputs)

# %%
results = pd.DataFrame(search.cv_results_)
results["text"] = results["param_estimator__columntransformer__tfidfvectorizer"].map(
    lambda step: "no description" if isinstance(step, str) else "description"
)
plt.figure(figsize=(6.4, 4), layout="constrained")
for (loss, text), rows in results.groupby(["param_loss", "text"]):
    alphas = rows["param_estimator__ridge__alpha"].astype(float)
    plt.errorbar(alphas, -rows["mean_test_score"], rows["std_test_score"], label=f"{loss}, {text}")
plt.xscale("log")
plt.xlabel("alpha of Ridge")
plt.ylabel("median error of a fold, thousands")
plt.legend()
plt.show()
