"""
A DataFrame in, served column by column
=======================================

The data are numbers, categories and text, and some values are missing. A `ColumnTransformer` inside
the estimator takes the DataFrame. The ONNX file has one input for each of its columns.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
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
from skort.plotting import WeightsDisplay

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
# The weights of the linear model, by the names of the features that the steps make.

WeightsDisplay.from_estimator(model)
plt.show()

# %%
# Serve it without skort, scikit-learn or pandas. Every input has the shape (any, 1); NaN is a
# missing number, and an empty string is missing text.

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

# %%
# The session answers for 31 days, three channels and two texts. The model has learned how the data
# were made: a phone call, a long wait and a fire are urgent.

days = np.arange(31)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for axis, text in zip(axes, ("thank you", "it burns"), strict=True):
    for channel in ("phone", "shop", ""):
        feeds = {
            "days": days[:, None].astype(np.float32),
            "channel": np.full((31, 1), channel, dtype=object),
            "text": np.full((31, 1), text, dtype=object),
        }
        curve = session.run(["probabilities"], feeds)[0][:, 1]
        axis.plot(days, curve, label=channel or "missing")
    axis.set(title=f'"{text}"', xlabel="days since the purchase", ylim=(0, 1))
axes[0].set(ylabel='probability of "urgent"')
axes[0].legend(title="channel")
plt.show()
