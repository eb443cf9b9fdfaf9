"""ONNX written as text: functions that read like their formula, calls to them, and their inlining."""

import copy
import re

import numpy as np
import onnx
import onnx.helper
import onnx.inliner
import onnx.parser

# The newest that every supported runtime reads is opset 19 / IR 9 (onnxruntime-training 1.16); these two are older
# and read by all, and no operator that skort writes needs more.
OPSET = 17
IR_VERSION = 8
DOMAIN = "skort"

_SIGNATURE = f'<domain: "{DOMAIN}", opset_import: ["" : {OPSET}]>'


def onnx_dtype(dtype):
    """ONNX's element type of a numpy dtype: 1 for float32, 11 for float64."""
    return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def function(text, dtype):
    """
    Parse an ONNX function of the domain ``skort``.

    Parameters
    ----------
    text : str
        `name (input, ...) => (output, ...) { nodes }`, its constants written as `float {...}`.
    dtype : dtype-like
        float32 or float64: with float64 every `float` constant becomes a `double`.

    Returns
    -------
    function : onnx.FunctionProto

    Examples
    --------
    >>> from skort.onnx_text import function
    >>> half = function("half (x) => (y) { c = Constant <value = float {0.5}> ()  y = Mul (c, x) }", "float32")
    >>> half.name, list(half.input), list(half.output)
    ('half', ['x'], ['y'])
    """
    if np.dtype(dtype) == np.float64:
        text = re.sub(r"\bfloat\b", "double", text)
    return onnx.parser.parse_function(_SIGNATURE + text)


class Fragment:
    """
    Nodes to be added to a graph, among them calls to functions that are written as text.

    Parameters
    ----------
    dtype : dtype-like
        float32 or float64, of the constants in the functions.
    """

    def __init__(self, dtype):
        self.dtype = dtype
        self.nodes = []
        self.functions = {}

    def call(self, text, inputs, outputs):
        """Add a call to the function `text` (see `function`) on the results named `inputs`."""
        if text not in self.functions:
            called = function(text, self.dtype)
            # Two texts are two functions, also where they have the same name.
            called.name = f"{called.name}_{len(self.functions)}"
            self.functions[text] = called
        called = self.functions[text]
        self.nodes.append(onnx.helper.make_node(called.name, inputs, outputs, domain=DOMAIN))

    def node(self, op_type, inputs, outputs):
        """Add a node of a standard operator without attributes."""
        self.nodes.append(onnx.helper.make_node(op_type, inputs, outputs))


def inlined(model, fragment):
    """Return a copy of `model` in which every call that came from `fragment` is replaced by its nodes."""
    calls = copy.deepcopy(model)
    calls.opset_import.add(domain=DOMAIN, version=1)
    calls.functions.extend(fragment.functions.values())
    plain = onnx.inliner.inline_local_functions(calls)
    import_each_domain_once(plain)
    return plain


def import_each_domain_once(model):
    """Drop repeated opset imports, and that of skort's own functions, in place."""
    versions = {o.domain: o.version for o in model.opset_import if o.domain != DOMAIN}
    del model.opset_import[:]
    model.opset_import.extend(onnx.helper.make_opsetid(domain, version) for domain, version in versions.items())
