"""Train a classifier of complaints, and write complaints.onnx."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skort import OrtSGDClassifier

rng = np.random.default_rng(0)
n = 1000
texts = ["it never came", "wrong colour", "thank you", "it burns"]
X = pd.DataFrame(
    {
        "days": rng.integers(0, 30, n).astype(float),
        "channel": rng.choice(["mail", "phone", "shop"], n),
        "text": rng.choice(texts, n),
    }
)
points = X["days"] / 10 + (X["channel"] == "phone")
points += 2 * X["text"].isin(["it never came", "it burns"])
y = np.where(points + rng.normal(size=n) / 2 > 2.5, "urgent", "later")
X.loc[rng.random(n) < 0.1, "days"] = np.nan
X.loc[rng.random(n) < 0.1, "channel"] = None

columns = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), ["days"]),
    (OneHotEncoder(handle_unknown="ignore"), ["channel"]),
    (TfidfVectorizer(), "text"),
)
pipeline = make_pipeline(columns, LogisticRegression())
model = OrtSGDClassifier(pipeline, random_state=0)
model.fit(X, y)
model.save_onnx("complaints.onnx")
