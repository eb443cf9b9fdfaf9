"""Steps that ONNX cannot hold: training and predictions work, and every export names the step."""

import pickle

import numpy as np
import pandas as pd
import pytest
import skl2onnx
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.exceptions import NotExportableError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.1 * RNG.normal(size=120)
FRAME = pd.DataFrame(
    {"size": X[:, 0], "colour": np.where(X[:, 1] > 0, "red", "blue"), "age": X[:, 2]}
)
HAS_NO_ONNX = "ignore:The fitted model will have no ONNX"


class MeanEncoder(TransformerMixin, BaseEstimator):
    """
    Replaces the text in a frame by means of y, as encoders of other libraries do;
    a frame in and out.
    """

    def fit(self, X, y):
        self.means_ = {
            name: pd.Series(y, X.index).groupby(X[name]).mean()
            for name in X.select_dtypes(exclude="number")
        }
        return self

    def transform(self, X):
        return X.assign(**{name: X[name].map(means) for name, means in self.means_.items()})


def squared(X):
    return np.square(X)


PIPELINES = {
    "custom": (make_pipeline(MeanEncoder(), StandardScaler()), FRAME, "meanencoder"),
    "function": (
        make_pipeline(StandardScaler(), FunctionTransformer(squared)),
        X,
        "functiontransformer",
    ),
    "no converter": (make_pipeline(RBFSampler(random_state=0), StandardScaler()), X, "rbfsampler"),
}


def regressor(steps, **options):
    return OrtSGDRegressor(
        make_pipeline(*clone(steps), LinearRegression()),
        **{"max_iter": 20, "random_state": 0, **options},
    )


def fitted(steps, rows, step, **options):
    with pytest.warns(UserWarning, match=f"no ONNX: estimator: the step {step!r}") as record:
        model = regressor(steps, **options).fit(rows, Y)
    (warning,) = [w for w in record if "no ONNX" in str(w.message)]
    assert warning.filename == __file__
    return model, str(warning.message).partition("no ONNX: ")[2]


@pytest.mark.parametrize("case", PIPELINES)
def test_it_trains_and_predicts_as_behind_the_same_steps(case):
    steps, rows, step = PIPELINES[case]
    model, _ = fitted(steps, rows, step)
    transformed = clone(steps).fit_transform(rows, Y)
    outside = OrtSGDRegressor(LinearRegression(), max_iter=20, random_state=0).fit(
        np.asarray(transformed), Y
    )
    np.testing.assert_allclose(model.coef_, outside.coef_, rtol=1e-6)
    np.testing.assert_allclose(
        model.predict(rows), outside.predict(np.asarray(transformed)), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict(rows), model.predict(rows)
    )
    np.testing.assert_array_equal(model.to_sklearn()[-1].coef_, model.coef_)


@pytest.mark.parametrize("case", PIPELINES)
def test_every_export_raises_the_message_of_the_warning(case, tmp_path):
    model, message = fitted(*PIPELINES[case])
    path = tmp_path / "model.onnx"
    exports = [
        lambda: model.onnx_,
        lambda: model.to_onnx(),
        lambda: model.to_onnx(target_opset=15),
        lambda: model.save_onnx(path),
        lambda: pickle.loads(pickle.dumps(model)).onnx_,
    ]
    for export in exports:
        with pytest.raises(NotExportableError) as error:
            export()
        assert str(error.value) == message
    assert isinstance(error.value, ValueError)
    assert not hasattr(model, "onnx_")
    assert not path.exists()


def test_skl2onnx_raises_the_message_too():
    steps, rows, step = PIPELINES["function"]
    with pytest.warns(UserWarning, match="no ONNX"):
        outer = make_pipeline(StandardScaler(), regressor(steps)).fit(rows, Y)
    with pytest.raises(ValueError, match=f"the step {step!r} cannot be part of an ONNX model"):
        skl2onnx.to_onnx(outer, rows.astype(np.float32))


@pytest.mark.filterwarnings(HAS_NO_ONNX)
class TestEverythingElseWorks:
    """What a search, a stream and a stopped training do with such a model."""

    def test_a_search(self):
        steps, rows, _ = PIPELINES["custom"]
        search = GridSearchCV(
            regressor(steps), {"alpha": [0.0, 1e3]}, cv=3, error_score="raise"
        ).fit(rows, Y)
        assert search.best_params_ == {"alpha": 0.0}
        assert search.best_score_ > 0.2

    def test_partial_fit(self):
        steps = make_pipeline(FunctionTransformer(squared))
        options = {"shuffle": False, "tol": None, "eta0": 0.1, "batch_size": 50}
        options |= {"learning_rate": "constant"}
        stream = regressor(steps, **options)
        for _ in range(3):
            stream.partial_fit(X, Y)
        whole = regressor(steps, max_iter=3, **options).fit(X, Y)
        np.testing.assert_array_equal(stream.coef_, whole.coef_)
        with pytest.raises(NotExportableError, match="'functiontransformer'"):
            _ = stream.onnx_

    def test_early_stopping_and_callbacks(self):
        seen = []

        class Predictions:
            def on_epoch_end(self, training):
                seen.append(training.model.predict(training.prepare(X[:4])))

        options = {"early_stopping": True, "scoring": "r2", "callbacks": [Predictions()]}
        model = regressor(PIPELINES["function"][0], **options).fit(X, Y)
        assert len(model.validation_scores_) == model.n_iter_ == len(seen)
        best = model.validation_scores_.index(model.best_validation_score_)
        np.testing.assert_allclose(seen[best], model.predict(X[:4]), rtol=1e-5)

    def test_weights_of_such_a_step_cannot_be_trained(self):
        with pytest.raises(
            ValueError, match=r"matches no weight.*Those of the step 'functiontransformer'"
        ):
            regressor(PIPELINES["function"][0], trainable="functiontransformer/*").fit(X, Y)

    def test_text_whose_locale_is_missing(self):
        texts = ["häuser am see", "boot im wald", "der see", "das boot"] * 10
        model = OrtSGDClassifier(
            make_pipeline(TfidfVectorizer(), LogisticRegression()), random_state=0
        )
        y = ["house", "boat", "house", "boat"] * 10
        assert model.fit(texts, y).score(texts, y) == 1
        try:
            model.to_onnx()
        except NotExportableError as error:
            assert "locale" in str(error) and ".cc" not in str(error)
