"""Settings and fixtures of all tests."""

import os
import subprocess
import sys

# Read when scipy is imported: without it scikit-learn skips its array API checks.
os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
import onnx
import onnx.checker
import onnx.shape_inference
import pytest
from hypothesis import settings
from onnx import helper

from skort.common.onnx_text import IR_VERSION, OPSET, Fragment, inlined, onnx_dtype
from skort.runtime.installed import load
from skort.solvers import SOLVERS, available_solvers

# `pytest --hypothesis-profile=nightly` asks for its profile before it imports any test.
settings.register_profile("skort", max_examples=30, deadline=None, derandomize=True, database=None)
settings.register_profile("nightly", max_examples=300, deadline=None, print_blob=True)
settings.load_profile("skort")


@pytest.fixture(params=SOLVERS)
def solver(request):
    """Every value of the parameter `solver` that works here."""
    if request.param not in available_solvers():
        pytest.skip(f"this runtime has no solver {request.param!r}")
    return request.param


@pytest.fixture(scope="session")
def only_aligned_blas():
    """Return variables of a process whose OpenBLAS ends it at an unaligned value, if it has one."""
    prescott = {**os.environ, "OPENBLAS_CORETYPE": "Prescott"}
    product = "import numpy; rows = numpy.ones((403, 7), 'f'); rows.T @ rows"
    # In the OpenBLAS of numpy 2.5 this processor's float32 product ends it at aligned values too.
    works = subprocess.run([sys.executable, "-c", product], env=prescott).returncode == 0
    return prescott if works else dict(os.environ)


@pytest.fixture
def run_onnx():
    """Check an ONNX model and run it: inputs by name -> outputs by name."""

    def run(model, **inputs):
        onnx.checker.check_model(model, full_check=True)
        session = load().InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        return dict(
            zip([o.name for o in session.get_outputs()], session.run(None, inputs), strict=True)
        )

    return run


@pytest.fixture
def run_function(run_onnx):
    """
    Run one of skort's ONNX functions on arrays, in their order and in `dtype`;
    return its result.
    """

    def run(text, dtype, *arrays):
        fragment = Fragment(dtype)
        names = [f"input{i}" for i in range(len(arrays))]
        fragment.call(text, names, ["result"])
        element_type = onnx_dtype(dtype)
        inputs = [
            helper.make_tensor_value_info(n, element_type, a.shape)
            for n, a in zip(names, arrays, strict=True)
        ]
        graph = helper.make_graph(
            fragment.nodes, "function", inputs, [onnx.ValueInfoProto(name="result")]
        )
        model = helper.make_model(
            graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)]
        )
        feeds = {name: array.astype(dtype) for name, array in zip(names, arrays, strict=True)}
        return run_onnx(onnx.shape_inference.infer_shapes(inlined(model, fragment)), **feeds)[
            "result"
        ]

    return run


@pytest.fixture
def rng():
    return np.random.default_rng(0)
