"""
A DataFrame in, served column by column
=======================================

The data are numbers, categories and text, and some values are missing. A `ColumnTransformer` inside the estimator takes
the DataFrame; the ONNX file has one input for each of its columns.
"""

import numpy as np
import onnxruntime
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skort import OrtSGDClassifier

# %%
# Complaints, some of which are urgent.

rng = np.random.default_rng(0)
n = 1000
X = pd.DataFrame(
    {
        "days": rng.integers(0, 30, n).astype(float),
        "channel": rng.choice(["mail", "phone", "shop"], n),
        "text": rng.choice(["it never came", "wrong colour", "thank you", "it burns"], n),
    }
)
points = X["days"] / 10 + (X["channel"] == "phone")
points += 2 * X["text"].isin(["it never came", "it burns"])
y = np.where(points + rng.normal(size=n) / 2 > 2.5, "urgent", "later")
X.loc[rng.random(n) < 0.1, "days"] = np.nan
X.loc[rng.random(n) < 0.1, "channel"] = None

# %%
# Scikit-learn fits the steps before the model once.

columns = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), ["days"]),
    (OneHotEncoder(handle_unknown="ignore"), ["channel"]),
    (TfidfVectorizer(), "text"),
)
model = OrtSGDClassifier(make_pipeline(columns, LogisticRegression()), random_state=0)
model.fit(X[:700], y[:700])
accuracy = model.score(X[700:], y[700:])
print(f"accuracy on new rows: {accuracy:.3f}")

# %%
# Serve it without skort, scikit-learn or pandas. Every input has the shape (any, 1); NaN is a missing number, and
# an empty string is missing text.

file = model.to_onnx().SerializeToString()
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
for onnx_input in session.get_inputs():
    print(onnx_input.name, onnx_input.type)

answers, probabilities = session.run(
    None,
    {
        "days": np.array([[2], [np.nan], [25]], dtype=np.float32),
        "channel": np.array([["shop"], [""], ["phone"]], dtype=object),
        "text": np.array([["thank you"], ["it burns"], ["it never came"]], dtype=object),
    },
)
print(answers)
print(probabilities.round(3))
