"""
The results of 300 random configurations are those that are stored.

`tests/data/same_results.npz` holds numbers of onnxruntime-training 1.16 on Python 3.11. A change
that alters a result on purpose, such as another default, renews it with ``python
tests/same_results.py digest``, and its message says why. For a change that alters nothing, ``python
tests/same_results.py against CHECKOUT`` compares to the bit.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.utils.fixes import parse_version

SPEC = importlib.util.spec_from_file_location(
    "same_results", Path(__file__).with_name("same_results.py")
)
# Pickles of its callbacks need its name.
same = sys.modules["same_results"] = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(same)
STORED = same.read_digests()


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, same.COUNT, 20))
def test_results_are_those_that_are_stored(start):
    differ, has_old_sklearn = {}, parse_version(sklearn.__version__) < parse_version("1.8")
    for i in range(start, start + 20):
        # Before scikit-learn 1.8 l1_ratio means nothing without penalty.
        if same.configuration(i)["inside"] == "logistic-l1" and has_old_sklearn:
            continue
        found = same.run(i)
        error, numbers = STORED[same.description(i)]
        found_error = str(found.get("error", "")).split(":")[0]
        # Some runtimes have fewer solvers.
        if found_error != "RuntimeNotAvailableError":
            distance = same.distance(same.digested(found), numbers)
            if found_error != error or not distance < 1e-5:
                differ[same.description(i)] = distance, str(found.get("error", ""))[:200]
    assert not differ


def test_each_configuration_is_stored_and_every_name_occurs_in_one():
    assert list(STORED) == [same.description(i) for i in range(same.COUNT)]
    assert sum(error != "" for error, _ in STORED.values()) < 0.1 * same.COUNT
    chosen = [same.configuration(i) for i in range(same.COUNT)]
    assert {c["way"] for c in chosen} == set(same.WAYS)
    assert {c["inside"] for c in chosen} == {*same.REGRESSORS, *same.CLASSIFIERS}
    for name, values in same.VALUES.items():
        assert set(values) <= {c["parameters"].get(name) for c in chosen}, name


def test_a_difference_of_one_bit_is_found():
    named = enumerate(STORED.items())
    number = next(
        i
        for i, (name, (error, _)) in named
        if " fit mlp" in name and " graph " in name and not error
    )
    found = same.run(number)
    weight = next(name for name in found if name.startswith("weight"))
    changed = {**found, weight: np.nextafter(found[weight], np.inf), "warnings": np.array("other")}
    lines = same.differences(found, changed)
    assert same.differences(found, same.run(number)) == []
    assert [line.split(":")[0] for line in lines] == sorted(["warnings", weight])


@pytest.mark.parametrize(("n_errors", "fails"), [(2, False), (3, True)])
def test_a_comparison_of_errors_fails(tmp_path, n_errors, fails):
    path = tmp_path / "found.npz"
    names = [f"{i}\t{'error' if i < n_errors else 'loss'}" for i in range(4)]
    np.savez(path, names=names, **{str(i): np.array("ValueError: no solver") for i in range(4)})
    if fails:
        with pytest.raises(
            SystemExit, match=r"3 of them end with an error in both: .* ValueError: no solver"
        ):
            same.compare(path, path)
    else:
        assert same.compare(path, path) == 0
