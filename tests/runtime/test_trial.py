import numpy as np
import onnx.parser

from skort.runtime import trial


def serialised(nodes):
    return onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> m (float[N, 2] X) => (float[N, 2] y) '
        f"<int64[1, 1] i = {{0}}, int64[1] u = {{1}}> {{ {nodes} }}"
    ).SerializeToString()


def test_a_model_that_ends_its_process_is_told_from_others():
    rows = np.ones((3, 2), np.float32)
    died = serialised("g = GatherND <batch_dims = 1> (X, i) q = Unsqueeze (g, u) y = Add (X, q)")
    reason = trial.reason_of_death(died, [rows])
    # Later runtimes raise an error.
    assert reason is None or reason.startswith("ended with status")
    assert trial.reason_of_death(serialised("y = Abs (X)"), [rows, rows[:1]]) is None


def test_an_error_is_no_death_and_a_trial_is_made_once(monkeypatch):
    rows = np.ones((5, 2), np.float32)
    wrong = serialised("g = Unsqueeze (X, u) y = Squeeze (g, i)")
    assert trial.reason_of_death(wrong, [rows]) is None
    monkeypatch.setattr(trial.subprocess, "run", None)
    assert trial.reason_of_death(wrong, [rows]) is None


def test_a_system_that_starts_no_processes_has_no_trial(monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError("no processes here")

    monkeypatch.setattr(trial.subprocess, "run", refuse)
    assert trial.reason_of_death(serialised("y = Neg (X)"), [np.ones((2, 2), np.float32)]) is None
