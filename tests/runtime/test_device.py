"""Devices: their names, their memory, and the errors if one is not available."""

import types

import numpy as np
import pytest

from skort.exceptions import RuntimeNotAvailableError
from skort.runtime import device as device_module
from skort.runtime.device import CPU, Device, device_named, ortvalue_views
from skort.runtime.installed import load

CUDA = "CUDAExecutionProvider"


@pytest.mark.parametrize(
    "name, kind, index",
    [("cpu", "cpu", 0), ("cuda", "cuda", 0), ("cuda:0", "cuda", 0), ("cuda:13", "cuda", 13)],
)
def test_names(name, kind, index):
    device = device_named(name, 3)
    assert (device.kind, device.index, device.n_threads, device.is_remote) == (
        kind,
        index,
        3,
        kind != "cpu",
    )
    assert device_named(device.name, 3) == device


@pytest.mark.parametrize("name", ["gpu", "cpu:0", "CUDA", "cuda:", "cuda:-1", "cuda:1 ", ""])
def test_other_names_are_refused_with_those_that_there_are(name):
    with pytest.raises(
        ValueError, match=f'device={name!r} is unknown. Use "cpu", "cuda", or "cuda:1"'
    ):
        device_named(name)


def test_the_cpu_runs_what_another_device_cannot():
    assert CPU.providers() == ["CPUExecutionProvider"]
    assert device_named("cuda:1").providers()[1] == "CPUExecutionProvider"


@pytest.mark.parametrize(
    "version, options, records",
    [
        ("1.16.3", {"device_id": 1}, False),
        ("1.18.0", {"device_id": 1, "use_tf32": 0}, True),
        ("1.31.1", {"device_id": 1, "use_tf32": 0}, True),
    ],
)
def test_what_the_version_of_the_runtime_allows_on_cuda(version, options, records, monkeypatch):
    monkeypatch.setattr(load(), "__version__", version)
    monkeypatch.setattr(device_module, "_is_current", device_module._is_current.__wrapped__)
    device = device_named("cuda:1")
    assert device.providers()[0] == (CUDA, options)
    assert device.can_record == records
    assert not CPU.can_record
    assert device.providers(records=True)[0] == (CUDA, {**options, "enable_cuda_graph": 1})


@pytest.mark.parametrize(
    "values", [np.array(2.5), np.zeros((0,), np.float32), np.arange(6).reshape(2, 3)]
)
@pytest.mark.parametrize("device", [CPU, Device(is_remote=True)])
def test_arrays_are_copies(device, values):
    given = values.copy()
    array = device.put(given)
    given[...] = 7
    first = device.get(array)
    np.testing.assert_array_equal(first, values)
    assert (first.dtype, first.shape) == (values.dtype, values.shape)
    device.fill(array, given)
    np.testing.assert_array_equal(device.get(array), given)
    np.testing.assert_array_equal(device.values({"x": array})["x"].numpy(), given)
    np.testing.assert_array_equal(first, values)


def test_the_rows_of_an_array_that_is_not_contiguous():
    device, values = Device(is_remote=True), np.arange(6.0).reshape(2, 3)
    array = device.put(values.T)
    np.testing.assert_array_equal(device.get(array), values.T)
    device.fill(array, values.T[::-1])
    np.testing.assert_array_equal(device.get(array), values.T[::-1])


GPU = 'pip install "onnxruntime-gpu[cuda,cudnn]"'


@pytest.mark.parametrize(
    "installed, name, command",
    [
        ({"onnxruntime": "1.31.1"}, "onnxruntime 1.31.1", f"pip uninstall -y onnxruntime && {GPU}"),
        ({"onnxruntime-gpu": "1.31.1"}, "onnxruntime-gpu 1.31.1", GPU),
        (
            {"onnxruntime": "1.31.1", "onnxruntime-training-cpu": "1.19.2"},
            "onnxruntime 1.31.1, onnxruntime-training-cpu 1.19.2",
            f"pip uninstall -y onnxruntime onnxruntime-training-cpu && {GPU}",
        ),
    ],
)
def test_a_runtime_without_the_provider_says_how_to_replace_it(
    installed, name, command, monkeypatch
):
    monkeypatch.setattr(load(), "get_available_providers", lambda: ["CPUExecutionProvider"])
    monkeypatch.setattr(device_module, "installed_distributions", lambda: installed)
    with pytest.raises(RuntimeNotAvailableError) as error:
        device_named("cuda:7").check()
    assert str(error.value) == (
        f'device="cuda:7" needs the {CUDA}, which {name} does not have. Replace it: {command}. Or '
        'use device="cpu".'
    )


@pytest.mark.skipif(
    CUDA not in load().get_available_providers(), reason="this runtime has no CUDA provider"
)
def test_a_provider_that_does_not_load_says_which_library_it_wants(capfd):
    # The 99th device is nowhere, whether the libraries are there or not.
    with pytest.raises(RuntimeNotAvailableError) as error:
        device_named("cuda:99").check()
    assert f'device="cuda:99": the {CUDA} of onnxruntime' in str(error.value)
    assert "NVIDIA's driver, and the libraries of CUDA 1" in str(error.value)
    assert f'{GPU}. Or use device="cpu".' in str(error.value)
    loads = device_module._loader_message("cuda") is None
    assert loads or "cannot open shared object file" in str(error.value)
    assert capfd.readouterr() == ("", "")


def test_what_the_driver_says_is_told_without_the_code_around_it():
    error = RuntimeError(
        "cuda_call.cc:154 onnxruntime::CudaCall(ERRTYPE, const char*) [with ERRTYPE = cudaError; "
        "bool THRW = true] CUDA failure 35: CUDA driver version is insufficient for CUDA runtime "
        "version ; GPU=-1 ; hostname=vm ; "
    )
    expected = (
        "The driver says: failure 35: CUDA driver version is insufficient for CUDA runtime version."
    )
    assert device_module._driver_message(error) == expected
    assert device_module._driver_message(RuntimeError("no device")) == "no device"


def test_a_session_that_fell_back_to_the_cpu_is_an_error(monkeypatch):
    session = types.SimpleNamespace(get_providers=lambda: ["CPUExecutionProvider"])
    CPU.check_session(session)
    monkeypatch.setattr(device_module, "_load_provider", lambda device: None)
    with pytest.raises(
        RuntimeNotAvailableError,
        match=f'device="cuda": the {CUDA} .* A session was made without it',
    ):
        device_named("cuda").check_session(session)


def test_a_value_follows_its_array():
    array = np.zeros((2, 3), np.float32)
    value = ortvalue_views({"x": array})["x"]
    array[...] = [[1, 2, 3], [4, 5, 6]]
    np.testing.assert_array_equal(value.numpy(), array)


@pytest.mark.parametrize(
    "array", [np.zeros((2, 3)).T, np.zeros(6)[::2]], ids=["transposed", "strided"]
)
def test_an_array_that_would_be_copied_is_refused(array):
    with pytest.raises(ValueError, match="C-contiguous"):
        ortvalue_views({"x": array})
