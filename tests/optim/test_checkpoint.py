"""Checkpoints: a training that goes on from a file ends with the same bytes."""

import json
import math
import pickle

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.callbacks import Checkpoint, EarlyStopping, EpochScoring
from skort.optim.checkpoint import _checksum, load_state, save_state
from skort.optim.standardization import Standardization
from skort.optim.state import History, TrainState

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 5))
Y = (X[:, 0] + 0.3 * RNG.normal(size=80) > 0).astype(int)


def short(estimator_class, **options):
    return estimator_class(
        **{"tol": None, "random_state": 0, "batch_size": 16, "max_iter": 8, **options}
    )


@pytest.mark.parametrize("generator", ["MT19937", "PCG64", "Philox", "SFC64"])
@pytest.mark.parametrize("best", [None, {"weights": np.array([3.0, 4.0])}])
@pytest.mark.parametrize(
    "standardization",
    [
        None,
        Standardization(None, None, np.array([0.1]), 3.0),
        Standardization(np.array([0.1, 2.0]), np.array([1.5, 7.0]), None, 1.0, is_offset=True),
        Standardization(np.zeros(2), np.ones(2), None, 1.0, relevance=np.array([0.5, 1.3])),
    ],
)
def test_a_state_comes_back_from_its_file(tmp_path, generator, best, standardization):
    random_state = np.random.RandomState(getattr(np.random, generator)(3))
    random_state.normal()
    solver = {"weights": np.array([1.5, 2.5], np.float32), "n_updates": np.array([7])}
    history = History(objective=[3.0, math.nan, np.float32(0.1)], score=[1, 2, 3])
    table = {"history": history, "n_epochs": 3, "columns": ("objective", "score")}
    others = {"standardization": standardization, "rate_scale": 0.1, "is_rate_found": True}
    others["stopping_reason"] = "It was enough."
    state = TrainState(
        solver, 7, 2, True, random_state.get_state(legacy=False), best=best, **table, **others
    )
    save_state(state, tmp_path / "state")
    back = load_state(tmp_path / "state")
    for arrays, expected in ((back.solver, solver), (back.best or {}, best or {})):
        assert arrays.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(arrays[name], array)
            assert arrays[name].dtype == array.dtype
    assert (back.n_updates, back.n_falls, back.stopped, back.stopping_reason) == (
        7,
        2,
        True,
        "It was enough.",
    )
    assert (back.standardization, back.rate_scale, back.is_rate_found) == (
        standardization,
        0.1,
        True,
    )
    np.testing.assert_array_equal(back.history["objective"], history["objective"])
    other = np.random.RandomState(getattr(np.random, generator)(4))
    other.set_state(back.random_state)
    np.testing.assert_array_equal(other.normal(size=9), random_state.normal(size=9))
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


class Crash:
    """Ends the fit as a crash would: nothing of the estimator is left."""

    def on_batch_end(self, training):
        if training.n_updates == 23:
            raise RuntimeError("crash")


@pytest.mark.parametrize("estimator_class", [OrtSGDRegressor, OrtSGDClassifier])
@pytest.mark.parametrize(
    "options, every",
    [
        ({}, 1),
        ({"learning_rate": "invscaling", "average": 9}, 3),
        (
            {
                "optimizer": "adam",
                "learning_rate": "adaptive",
                "tol": 0.5,
                "n_iter_no_change": 2,
                "max_iter": 30,
            },
            1,
        ),
        (
            {
                "early_stopping": True,
                "tol": 1e-4,
                "n_iter_no_change": 3,
                "max_iter": 200,
                "eta0": 0.5,
            },
            1,
        ),
    ],
)
def test_a_fit_resumed_after_a_crash_ends_with_the_same_bytes(
    solver, estimator_class, options, every, tmp_path
):
    path = tmp_path / "training.npz"
    scoring = EpochScoring(X, Y, name="score")
    crashing = short(
        estimator_class,
        solver=solver,
        callbacks=[scoring, Checkpoint(path, every), Crash()],
        **options,
    )
    with pytest.raises(RuntimeError, match="crash"):
        crashing.fit(X, Y)
    resumed = short(
        estimator_class,
        solver=solver,
        callbacks=[scoring, Checkpoint(path, every, resume_from=path)],
        **options,
    ).fit(X, Y)
    whole = short(estimator_class, solver=solver, callbacks=[scoring], **options).fit(X, Y)
    assert resumed.onnx_.SerializeToString() == whole.onnx_.SerializeToString()
    assert resumed.t_ == whole.t_
    for name in set(whole.history_) - {"seconds"}:
        assert resumed.history_[name] == whole.history_[name], name
    assert load_state(path).history.n_epochs == whole.n_iter_ // every * every


def test_a_resumed_fit_that_ends_no_better_than_it_began_begins_again_as_the_whole_one(tmp_path):
    random_state, path = np.random.RandomState(2), tmp_path / "training.npz"
    rows = random_state.normal(size=(60, 3))
    y = rows @ [1, 2, 3] + 1000 * (random_state.rand(60) < 0.1)
    whole = short(OrtSGDRegressor, batch_size=10).fit(rows, y)
    assert whole.history_["restarts"] == [1] * 8
    with pytest.raises(RuntimeError, match="crash"):
        short(OrtSGDRegressor, batch_size=10, callbacks=[Checkpoint(path), Crash()]).fit(rows, y)
    assert not load_state(path).history.get("restarts")
    resumed = short(OrtSGDRegressor, batch_size=10, callbacks=[Checkpoint(resume_from=path)]).fit(
        rows, y
    )
    assert resumed.history_["restarts"] == whole.history_["restarts"]
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)


@pytest.mark.parametrize(
    "options, n_iter",
    [
        ({}, 8),
        ({"learning_rate": "constant", "tol": 1.0, "n_iter_no_change": 2}, 3),
        # Another random_state holds out other rows: the rest has other means.
        (
            {
                "learning_rate": "constant",
                "tol": 1.0,
                "n_iter_no_change": 2,
                "early_stopping": True,
                "standardize": False,
            },
            3,
        ),
    ],
)
def test_a_checkpoint_of_a_finished_training_trains_no_more(options, n_iter, tmp_path):
    path = tmp_path / "training.npz"
    whole = short(OrtSGDRegressor, callbacks=[Checkpoint(path)], **options).fit(X, Y)
    again = short(
        OrtSGDRegressor, callbacks=[Checkpoint(resume_from=path)], random_state=5, **options
    ).fit(X, Y)
    assert again.onnx_.SerializeToString() == whole.onnx_.SerializeToString()
    assert again.history_ == whole.history_
    assert again.n_iter_ == n_iter
    assert again.eta0_ == whole.eta0_


def test_partial_fit_goes_on_from_a_checkpoint_once(tmp_path):
    path = tmp_path / "training.npz"
    # With a learning_rate, a stream makes the steps of a fit.
    options = {"learning_rate": "constant"}
    short(OrtSGDRegressor, callbacks=[Checkpoint(path)], max_iter=6, **options).fit(X, Y)
    model = short(OrtSGDRegressor, callbacks=[Checkpoint(resume_from=path)], **options)
    model.partial_fit(X, Y).partial_fit(X, Y)
    whole = short(OrtSGDRegressor, **options).fit(X, Y)
    assert model.onnx_.SerializeToString() == whole.onnx_.SerializeToString()


def test_later_calls_keep_the_rate_of_the_fit_that_a_stream_went_on_from(tmp_path):
    path = tmp_path / "training.npz"
    fitted = short(OrtSGDRegressor, callbacks=[Checkpoint(path)], max_iter=2).fit(X, Y)
    model = short(OrtSGDRegressor, callbacks=[Checkpoint(resume_from=path)])
    for _ in range(2):
        model.partial_fit(X, Y)
    model.set_params(alpha=0.1).partial_fit(X, Y)
    assert model.history_["eta"] == [fitted.eta0_] * 5
    # A schedule of the user has a rate of its own.
    model.set_params(learning_rate="constant").partial_fit(X, Y)
    assert model.history_["eta"][-1] < fitted.eta0_


@pytest.mark.parametrize("before, after", [("auto", 0.01), (0.01, "auto")])
def test_a_resumed_training_has_the_learning_rate_that_is_given(before, after, tmp_path):
    options = {"learning_rate": "constant", "tol": None, "random_state": 0}
    path = tmp_path / "state.npz"
    OrtSGDRegressor(eta0=before, max_iter=2, callbacks=[Checkpoint(path)], **options).fit(X, Y)
    expected = OrtSGDRegressor(eta0=after, max_iter=1, **options).fit(X, Y)
    resumed = OrtSGDRegressor(
        eta0=after, max_iter=3, callbacks=[Checkpoint(resume_from=path)], **options
    ).fit(X, Y)
    assert resumed.history_["eta"][2:] == expected.history_["eta"]


def test_a_checkpoint_that_does_not_exist_is_named(tmp_path):
    path = tmp_path / "run.npz"
    with pytest.raises(FileNotFoundError, match=r"does not exist: leave resume_from out") as raised:
        load_state(path)
    assert f"resume_from={str(path)!r}" in str(raised.value)


def test_files_that_are_no_checkpoint_are_named(tmp_path):
    (tmp_path / "text").write_text("text")
    (tmp_path / "empty").write_text("")
    np.save(tmp_path / "array.npy", X)
    np.savez(tmp_path / "arrays.npz", X=X)
    for name in ("text", "empty", "array.npy", "arrays.npz"):
        with pytest.raises(ValueError, match=f"resume_from='.*{name}' is no checkpoint"):
            short(OrtSGDRegressor, callbacks=[Checkpoint(resume_from=tmp_path / name)]).fit(X, Y)
    with pytest.raises(FileNotFoundError, match="missing"):
        short(OrtSGDRegressor, callbacks=[Checkpoint(resume_from=tmp_path / "missing")]).fit(X, Y)


@pytest.mark.parametrize(
    "standardize, other_X, message",
    [
        (False, X[:, :3], "checkpoint of another model"),
        ("auto", X[:, :3], "checkpoint of another model"),
        ("auto", 2 * X, "training on other rows"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused(tmp_path, standardize, other_X, message):
    path = tmp_path / "training.npz"
    short(OrtSGDRegressor, callbacks=[Checkpoint(path)], standardize=standardize).fit(X, Y)
    model = short(
        OrtSGDRegressor, callbacks=[Checkpoint(resume_from=path)], standardize=standardize
    )
    with pytest.raises(ValueError, match=message):
        model.fit(other_X, Y)
    assert not hasattr(model, "n_iter_")


def _rewritten(path, change):
    """
    Write a checkpoint again, with a checksum that is right,
    after a change of its arrays and of its other values.
    """
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if name != "checksum"}
    others = json.loads(str(arrays["json"]))
    change(others, arrays)
    arrays["json"] = np.array(json.dumps(others))
    with path.open("wb") as file:
        np.savez(file, checksum=_checksum(arrays), **arrays)


@pytest.mark.parametrize(
    "change, message",
    [
        (
            lambda others, arrays: others.update(n_updates=math.nan),
            "n_updates=nan, expected an integer",
        ),
        (lambda others, arrays: others.update(n_updates=1.5), "n_updates=1.5, expected an integer"),
        (
            lambda others, arrays: others.update(n_falls=-5),
            "n_falls=-5, expected an integer that is not negative",
        ),
        (
            lambda others, arrays: others.update(stopped="no"),
            "stopped='no', expected true or false",
        ),
        (
            lambda others, arrays: others.update(stopping_reason=3),
            "stopping_reason=3, expected a string or null",
        ),
        (
            lambda others, arrays: others.update(first_objective="1"),
            "first_objective='1', expected a number or null",
        ),
        (
            lambda others, arrays: others.update(rate_scale=math.inf),
            "rate_scale=inf, expected a finite number",
        ),
        (
            lambda others, arrays: others.update(rate_scale=0.0),
            "rate_scale=0.0, expected a finite number",
        ),
        (
            lambda others, arrays: others["random_state"].update(bit_generator="seed"),
            "random_state is that of 'seed'",
        ),
        (
            lambda others, arrays: others["random_state"]["state"].update(pos=10**6),
            "no state of a random generator",
        ),
        (
            lambda others, arrays: others["random_state"]["state"].update(pos=-1),
            "no state of a random generator",
        ),
        (
            lambda others, arrays: others["random_state"]["state"].update(pos="a"),
            "is no checkpoint of a training",
        ),
        (
            lambda others, arrays: others["random_state"]["state"].update(key=[1, 2]),
            "is no checkpoint of a training",
        ),
        (
            lambda others, arrays: others["history"].update(loss={"0": 1.0}),
            "the columns of its history are no lists",
        ),
        (lambda others, arrays: others.clear(), "is no checkpoint of a training"),
        (lambda others, arrays: others["history"]["loss"].pop(), "have not all the same length"),
        (
            lambda others, arrays: others["history"]["loss"].__setitem__(0, "1"),
            "'loss' of its history has values that",
        ),
        (
            lambda others, arrays: arrays["solver/weights"].fill(np.nan),
            "solver/weights has values that are not finite",
        ),
        (
            lambda others, arrays: others.update(shapes={"coef": [5, 2]}),
            "is the checkpoint of another model",
        ),
    ],
)
def test_a_checkpoint_with_a_value_that_cannot_be_is_refused(tmp_path, change, message):
    path = tmp_path / "training.npz"
    short(OrtSGDRegressor, callbacks=[Checkpoint(path)]).fit(X, Y)
    _rewritten(path, change)
    with pytest.raises(ValueError, match=message):
        short(OrtSGDRegressor, callbacks=[Checkpoint(resume_from=path)]).fit(X, Y)


def test_a_checkpoint_without_a_reason_to_stop_or_a_first_objective_is_read(tmp_path):
    path = tmp_path / "training.npz"
    short(OrtSGDRegressor, callbacks=[Checkpoint(path)]).fit(X, Y)
    assert load_state(path).first_objective > 0
    _rewritten(
        path,
        lambda others, arrays: [
            others.pop(name) for name in ("stopping_reason", "first_objective")
        ],
    )
    assert load_state(path).stopping_reason is load_state(path).first_objective is None


def test_a_checkpoint_of_many_falls_is_read_at_once(tmp_path):
    path = tmp_path / "training.npz"
    short(OrtSGDRegressor, callbacks=[Checkpoint(path)], learning_rate="adaptive", eta0=0.5).fit(
        X, Y
    )
    _rewritten(path, lambda others, arrays: others.update(n_falls=2**70))
    resumed = short(
        OrtSGDRegressor,
        callbacks=[Checkpoint(resume_from=path)],
        learning_rate="adaptive",
        eta0=0.5,
    )
    # The rate falls four times at most.
    assert resumed.set_params(max_iter=9).fit(X, Y).history_["eta"][-1] == pytest.approx(0.5 / 5**4)


def test_a_checkpoint_whose_values_were_changed_is_refused(tmp_path):
    path = tmp_path / "training.npz"
    short(OrtSGDRegressor, callbacks=[Checkpoint(path)]).fit(X, Y)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["solver/weights"] = arrays["solver/weights"] + 1
    np.savez(path, **arrays)
    with pytest.raises(
        ValueError, match="damaged checkpoint: its checksum is that of other values"
    ):
        short(OrtSGDRegressor, callbacks=[Checkpoint(resume_from=path)]).fit(X, Y)


def test_a_compressed_file_is_no_checkpoint(tmp_path):
    # A few bytes of it may be billions of zeros.
    path = tmp_path / "training.npz"
    short(OrtSGDRegressor, callbacks=[Checkpoint(path)]).fit(X, Y)
    with np.load(path) as file:
        np.savez_compressed(path, **{name: file[name] for name in file.files})
    with pytest.raises(ValueError, match="is no checkpoint of a training"):
        load_state(path)


def test_a_checkpoint_with_another_byte_is_refused_or_the_same(tmp_path):
    path, changed = tmp_path / "training.npz", tmp_path / "changed.npz"
    short(OrtSGDRegressor, callbacks=[Checkpoint(path)]).fit(X, Y)
    content, weights = path.read_bytes(), load_state(path).solver["weights"]
    n_refused = 0
    for place in range(0, len(content), 97):
        changed.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        # Dates in the archive are nobody's business.
        try:
            np.testing.assert_array_equal(load_state(changed).solver["weights"], weights)
        except ValueError as error:
            n_refused += 1
            assert "is no checkpoint" in str(error) or "is a damaged checkpoint" in str(error)
    assert n_refused > 0.9 * len(content) / 97


@pytest.mark.slow
def test_every_byte_of_a_small_checkpoint(tmp_path):
    whole, changed = tmp_path / "whole", tmp_path / "changed"
    random_state = np.random.RandomState(np.random.PCG64(0)).get_state(legacy=False)
    solver = {"weights": np.array([1.5, 2.5], np.float32)}
    save_state(
        TrainState(solver, 7, 2, True, random_state, History(objective=[3.0]), 1, ("objective",)),
        whole,
    )
    content, expected = whole.read_bytes(), str(load_state(whole))
    flipped = (
        content[:i] + bytes([content[i] ^ 0xFF]) + content[i + 1 :] for i in range(len(content))
    )
    for damaged in (*flipped, *(content[:i] for i in range(len(content)))):
        changed.write_bytes(damaged)
        try:
            assert str(load_state(changed)) == expected
        except ValueError as error:
            assert "is no checkpoint" in str(error) or "is a damaged checkpoint" in str(error)


@pytest.mark.parametrize("n_kept", [10, 400, -30])
def test_a_checkpoint_that_is_cut_off_is_refused(tmp_path, n_kept):
    path = tmp_path / "training.npz"
    short(OrtSGDRegressor, callbacks=[Checkpoint(path)]).fit(X, Y)
    path.write_bytes(path.read_bytes()[:n_kept])
    with pytest.raises(ValueError, match="is no checkpoint of a training"):
        short(OrtSGDRegressor, callbacks=[Checkpoint(resume_from=path)]).fit(X, Y)


def test_a_network_of_as_many_weights_is_another_model(tmp_path):
    path = tmp_path / "training.npz"
    # 5 a + a + a b + b + b + 1 weights: 49 in both.
    first, second = (MLPRegressor(hidden_layer_sizes=sizes) for sizes in ((4, 4), (2, 9)))
    short(OrtSGDRegressor, estimator=first, callbacks=[Checkpoint(path)]).fit(X, Y)
    n_weights = [
        sum(
            array.size
            for array in short(OrtSGDRegressor, estimator=model).fit(X, Y).weights_.values()
        )
        for model in (first, second)
    ]
    assert n_weights[0] == n_weights[1]
    with pytest.raises(ValueError, match="is the checkpoint of another model: its weights are"):
        short(OrtSGDRegressor, estimator=second, callbacks=[Checkpoint(resume_from=path)]).fit(X, Y)


@pytest.mark.parametrize("checkpoint_is_first", [False, True])
def test_a_checkpoint_may_be_anywhere_in_the_list(tmp_path, checkpoint_is_first):
    path = tmp_path / "training.npz"

    def fit(max_iter, checkpoint):
        callbacks = [EarlyStopping("objective", patience=2, tol=0.01), checkpoint]
        options = {"learning_rate": "constant", "eta0": 0.1, "max_iter": max_iter}
        callbacks = callbacks[::-1] if checkpoint_is_first else callbacks
        return short(OrtSGDRegressor, callbacks=callbacks, **options).fit(X, Y)

    whole = fit(30, Checkpoint(path))
    assert whole.n_iter_ < 30
    resumed = fit(30, Checkpoint(resume_from=path))
    assert resumed.n_iter_ == whole.n_iter_
    assert resumed.onnx_.SerializeToString() == whole.onnx_.SerializeToString()


@pytest.mark.parametrize(
    "lost",
    ["solver/", "solver/weights", "solver/l1_owed_if_positive", "standardization/is_offset"],
)
def test_a_checkpoint_that_lacks_arrays_is_refused(tmp_path, lost):
    path = tmp_path / "state"
    options = {"penalty": "l1", "alpha": 0.01, "standardize": True}
    short(OrtSGDRegressor, callbacks=[Checkpoint(path)], **options).fit(X, Y)

    def change(_, arrays):
        for name in [name for name in arrays if name.startswith(lost)]:
            del arrays[name]

    _rewritten(path, change)
    message = "damaged checkpoint: it has (no weights|the arrays)"
    with pytest.raises(ValueError, match=message):
        short(OrtSGDRegressor, callbacks=[Checkpoint(resume_from=path)], **options).fit(X, Y)


def test_best_weights_of_another_shape_are_refused(tmp_path):
    path = tmp_path / "state"
    options = {"early_stopping": True}
    short(OrtSGDRegressor, callbacks=[Checkpoint(path)], **options).fit(X, Y)
    _rewritten(path, lambda _, arrays: arrays.update({"best/weights": np.zeros(2, np.float32)}))
    with pytest.raises(ValueError, match=r"expected .*'best/weights'"):
        load_state(path)


class StopAfter:
    def on_epoch_end(self, training):
        if training.n_epochs == 3:
            training.stop("It is enough.")


def test_a_stopped_training_stays_stopped_when_it_is_resumed(tmp_path):
    path = tmp_path / "state"
    stopped = short(OrtSGDRegressor, callbacks=[StopAfter(), Checkpoint(path)]).fit(X, Y)
    resumed = short(OrtSGDRegressor, callbacks=[Checkpoint(resume_from=path)]).fit(X, Y)
    assert (resumed.n_iter_, resumed.stopping_reason_) == (3, "It is enough.")
    np.testing.assert_array_equal(resumed.coef_, stopped.coef_)

    resumed.partial_fit(X, Y)
    assert (resumed.n_iter_, resumed.stopping_reason_) == (4, None)
    again = stopped.set_params(callbacks=None, warm_start=True).fit(X, Y)
    assert again.n_iter_ == 8


def test_a_stream_is_kept_by_a_pickle_and_not_by_a_checkpoint(tmp_path):
    path = tmp_path / "state"
    stream = OrtSGDRegressor(callbacks=[Checkpoint(path)], random_state=0).partial_fit(
        X[:40], Y[:40]
    )
    kept = pickle.dumps(stream)
    resuming = OrtSGDRegressor(callbacks=[Checkpoint(resume_from=path)], random_state=0)
    with pytest.raises(ValueError, match="To go on with a stream, keep the estimator itself"):
        resuming.partial_fit(X[40:], Y[40:])
    stream.partial_fit(X[40:], Y[40:])
    onward = pickle.loads(kept).partial_fit(X[40:], Y[40:])
    np.testing.assert_array_equal(onward.coef_, stream.coef_)


def test_a_rate_that_falls_by_rows_goes_on_falling_from_a_checkpoint_only(tmp_path):
    path = tmp_path / "stream.npz"
    whole = OrtSGDRegressor(random_state=0, callbacks=[Checkpoint(path)]).partial_fit(X, Y)
    resumed, constant = (
        OrtSGDRegressor(random_state=0, callbacks=[Checkpoint(resume_from=path)], **options)
        for options in ({}, {"learning_rate": "constant"})
    )
    for model in (resumed, constant):
        model.partial_fit(X, Y).partial_fit(X, Y)
    n_last = 80 % whole.plan_.batch_size or whole.plan_.batch_size
    falling = whole.eta0_ / np.cbrt(1 + (80 * np.arange(1, 4) - n_last) / 5)
    np.testing.assert_allclose(resumed.history_["eta"], falling, rtol=1e-6)
    begun = OrtSGDRegressor(random_state=0, learning_rate="constant").partial_fit(X, Y)
    np.testing.assert_allclose(constant.history_["eta"][1:], [begun.eta0_] * 2, rtol=1e-6)


def test_steps_of_decorrelated_columns_and_others_resume_each_other_at_their_own_rates(
    tmp_path, rng
):
    rows = X @ rng.normal(size=(X.shape[1], X.shape[1]))
    fit, stream = tmp_path / "fit.npz", tmp_path / "stream.npz"
    options = {"optimizer": "sgd", "tol": None, "random_state": 0}
    OrtSGDRegressor(max_iter=3, callbacks=[Checkpoint(fit)], **options).fit(rows, Y)
    begun = OrtSGDRegressor(callbacks=[Checkpoint(stream)], **options).partial_fit(rows, Y)
    assert "decorrelated" in str(begun.plan_)
    onward = OrtSGDRegressor(callbacks=[Checkpoint(resume_from=fit)], **options)
    onward.partial_fit(rows, Y)
    assert (onward.n_iter_, onward.eta0_) == (4, begun.eta0_)
    l1 = OrtSGDRegressor(callbacks=[Checkpoint(resume_from=stream)], penalty="l1", **options)
    plain = OrtSGDRegressor(penalty="l1", **options).partial_fit(rows, Y)
    assert (l1.partial_fit(rows, Y).n_iter_, l1.eta0_) == (2, plain.eta0_)
