"""Sessions of ONNX Runtime, their common settings, and short texts of their errors."""

import contextlib
import copy
import functools
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.parser

from skort.exceptions import NotTrainableError
from skort.runtime.cache import COMPILED
from skort.runtime.device import CPU, Device, DeviceArray, without_log
from skort.runtime.installed import c_api, load

_FATAL = 4
# The runtime makes a run three times to record it: a record does not pay for a few runs.
_PLAIN_RUNS = 8
_NOT_RECORDED = -1
# In 1.16 these make nodes that have float32 kernels only, whatever the type of the model.
_FLOAT32_FUSIONS = ["GemmActivationFusion", "MatmulTransposeFusion"]
# The place in ONNX Runtime's C++ sources that an error names.
_PLACE = re.compile(
    r"\[ONNXRuntimeError\] : \d+ : \w+ : "
    # With the signature of the function, or with its name alone.
    r"|\S+\.(?:cc|h):\d+ (?:[^()]*\w\(.*?\)(?:::\S+| const)* |[\w:]+ )"
    # An error of onnx
    r"|\[\w+Error\] "
    r"|\S+\.(?:cc|h):\d+: \w+: Assertion `[^`]*` failed: "
)

_MISSING = re.compile(r"Could not find an implementation for (\w+)\(")


def inference_session(
    graph: bytes,
    *,
    float64: bool = False,
    device: Device = CPU,
    options: Any = None,
    records: bool = False,
) -> Any:
    """
    Return a session of a serialised model. By default, its options are `session_options`.

    With `records` its runs may be recorded; a model that the device cannot run alone is an error.
    """
    disabled = {"disabled_optimizers": _FLOAT32_FUSIONS} if float64 else {}
    options = options or session_options(device)
    providers = device.providers(records=records)
    make = device.alone(load().InferenceSession)
    with without_log() if device.is_remote else contextlib.nullcontext():
        try:
            session = make(graph, options, providers=providers, **disabled)
        except Exception as error:  # the runtime raises errors of many kinds
            missing = _MISSING.search(str(error))
            if missing is None:
                raise
            raise NotTrainableError(
                f"ONNX Runtime has no implementation of the operator {missing[1]} for its inputs. If "
                'they are of float64, give dtype="float32", or write the loss, the penalty or the '
                "model with other operators."
            ) from error
    device.check_session(session)
    return session


def session_options(device: Device = CPU) -> Any:
    """Return the options of a session that logs nothing: its errors are exceptions."""
    options = load().SessionOptions()
    options.intra_op_num_threads = device.n_threads
    options.inter_op_num_threads = 1

    # Waking a thread costs as much as a small product, so threads spin during a run. Between runs
    # they do not, because the caller needs the cores.
    options.add_session_config_entry("session.intra_op.allow_spinning", "1")
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.log_severity_level = _FATAL

    return options


def compiled(graph: bytes, device: Device = CPU, *, records: bool = False) -> Any:
    """
    Return the session of a training step: a serialised model with fixed shapes.

    With `records` its runs may be recorded. A model that the runtime does not read gives a
    ValueError, without places in C++ sources.
    """
    options = session_options(device)
    # The basic level folds constants, merges common subexpressions, and writes MatMul + Add as
    # Gemm. Higher levels take longer to start, and their steps are no faster.
    options.graph_optimization_level = load().GraphOptimizationLevel.ORT_ENABLE_BASIC
    try:
        return inference_session(graph, device=device, options=options, records=records)
    except Exception as error:  # the runtime raises errors of many kinds
        if type(error).__module__.startswith("onnxruntime"):
            raise ValueError(
                f"ONNX Runtime does not read the graph of a step: {short_message(error)}"
            ) from error
        raise


def io_binding(session: Any, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """Return a binding of the inputs and outputs of a session to values, as from `Device.value`."""
    binding = c_api().SessionIOBinding(session._sess)
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, value)
    for name, value in outputs.items():
        binding.bind_ortvalue_output(name, value)
    return binding


class ArraySession:
    """A session that takes and returns numpy arrays. It keeps none, so threads may share it."""

    def __init__(self, graph: bytes, device: Device = CPU):
        self._session = compiled(graph, device)
        # The wrapper's own run looks for missing inputs, and a run without options makes its own.
        self._run, self._options = self._session._sess.run, load().RunOptions()

    def run(self, outputs: Sequence[str], inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        """
        Return some outputs as new arrays; `inputs` are all inputs,
        C-contiguous, and are read in place.
        """
        return self._run(outputs, inputs, self._options)


def next_name(name: str) -> str:
    """Return the name of the output that the next step takes as its input `name`."""
    return f"{name}_next"


class StepSession:
    """
    A session in which each run continues from the state that the run before wrote.

    Each part of the state has two arrays: a run reads one and writes the other. Outputs that are
    the next state have the names of `next_name`. `inputs` may have more arrays than the session
    reads.
    """

    def __init__(
        self,
        session: Any,
        inputs: dict[str, DeviceArray],
        outputs: dict[str, DeviceArray],
        state: dict[str, np.ndarray],
        parts: Callable[[dict[str, DeviceArray]], dict[str, DeviceArray]] = lambda arrays: {},
        device: Device = CPU,
    ):
        self._session = session
        self._device = device
        self._parts = parts
        self._buffers = [
            {name: device.put(array) for name, array in state.items()} for _ in range(2)
        ]
        read = {i.name for i in session.get_inputs()}
        self._inputs = {name: array for name, array in inputs.items() if name in read}
        self._outputs = outputs

        # The wrapper's own run_with_iobinding takes a quarter of a small step, and a run without
        # options makes its own.
        self._run = device.alone(session._sess.run_with_iobinding)
        self._options = [load().RunOptions()] * 2
        self._turn = 0
        # Bindings are made by the first runs: until then, arrays may be replaced, and some trainings
        # make one run only.
        self._bindings: list[Any] = []

        #: The arrays that the next run reads, by the names of the inputs. Writing into them
        #: changes that run.
        self.state: dict[str, Any] = self._buffers[0]

    def _binding(self, turn):
        """Return the binding of a run that reads the buffers `turn` and writes the others."""
        before = self._buffers[turn]
        after = {next_name(name): array for name, array in self._buffers[1 - turn].items()}
        read = self._device.values({**self._inputs, **before, **self._parts(before)})
        written = self._device.values({**self._outputs, **after})

        return io_binding(self._session, read, written)

    def replace(self, name: str, array: DeviceArray) -> None:
        """
        Let the next runs read another array of the device as the input `name`,
        one of `inputs`.
        """
        if array is self._inputs[name]:
            return

        self._inputs[name] = array
        if self._bindings:
            value = self._device.values({name: array})[name]
            for binding in self._bindings:
                binding.bind_ortvalue_input(name, value)

    def run(self) -> None:
        """Run once."""
        turn = self._turn
        if turn == len(self._bindings):
            self._bindings.append(self._binding(turn))

        self._run(self._bindings[turn], self._options[turn])
        self._turn = 1 - turn
        self.state = self._buffers[1 - turn]


class RecordedSession(StepSession):
    """
    A `StepSession` that records a run which it makes often, and then replays it as one launch.

    A record has the addresses of the arrays, so each of the two buffers has one, and another array
    ends both. Records are CUDA graphs: without them, the launches of a small step take longer than
    its operators.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._n_runs = 0
        self._n_records = 0
        self._records: list[int] = []
        self._stop()

    def _stop(self):
        """Run node by node."""
        self._n_runs = 0
        self._options = [_run_options(_NOT_RECORDED)] * 2
        # Early versions keep the records until the end of the session.
        release = getattr(self._session, "release_captured_graph", None)
        if release is not None:
            for number in self._records:
                self._device.alone(release)(number)
        self._records = []

    def replace(self, name: str, array: DeviceArray) -> None:
        """Let the next runs read another array, as `StepSession.replace` does."""
        if array is not self._inputs[name]:
            self._stop()
        super().replace(name, array)

    def run(self) -> None:
        """Run once."""
        if self._n_runs == _PLAIN_RUNS:
            self._records = [self._n_records + 1, self._n_records + 2]
            self._n_records += 2
            self._options = [_run_options(number) for number in self._records]

        self._n_runs += 1
        super().run()


def _run_options(record):
    options = load().RunOptions()
    options.add_run_config_entry("gpu_graph_id", str(record))
    return options


def step_session_on(
    device: Device,
    graph: bytes,
    inputs: dict[str, DeviceArray],
    outputs: dict[str, DeviceArray],
    state: dict[str, np.ndarray],
) -> StepSession:
    """Return the session of a step on a device with its own memory, from a serialised graph."""
    if device.can_record:
        # A graph with an operator that the device lacks has no records.
        with contextlib.suppress(ValueError):
            session = compiled(graph, device, records=True)
            return RecordedSession(session, inputs, outputs, state, device=device)

    return StepSession(compiled(graph, device), inputs, outputs, state, device=device)


# The sum of squares is in float64, where no square of a float32 overflows.
_NORM = """
<ir_version: 8, opset_import: ["" : 17]>
norm ({type}[n] vector) => (double norm) {{
    in_double = Cast <to = 11> (vector)
    square = Mul (in_double, in_double)
    sum = ReduceSum <keepdims = 0> (square)
    norm = Sqrt (sum)
}}"""


def norm_on(device: Device, vector: DeviceArray) -> float:
    """Return the Euclidean norm of a vector on a device, computed there."""
    return _norm_session(device, vector.data_type())(["norm"], {"vector": vector})[0].numpy().item()


@functools.cache
def _norm_session(device, tensor_type):
    number = tensor_type.removeprefix("tensor(").removesuffix(")")
    graph = onnx.parser.parse_model(_NORM.format(type=number)).SerializeToString()
    return device.alone(inference_session(graph, device=device).run_with_ort_values)


class InferenceModel:
    """
    An ONNX model and its session on each device.

    The first run makes a session. Copies and pickles make their own.
    """

    def __init__(
        self,
        model: onnx.ModelProto | Callable[[], onnx.ModelProto],
        inner_results: Sequence[str] = (),
        weights: dict[str, np.ndarray] | None = None,
        structure: Hashable = None,
    ):
        self.model = model
        self.inner_results = inner_results
        self.weights: dict[str, np.ndarray] = weights or {}
        self._structure = structure
        self._sessions: dict[Device, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_sessions": {}}

    def run(self, output: str, inputs: dict[str, np.ndarray], device: Device = CPU) -> Any:
        """Return the output, or inner result, named `output` for some inputs (name -> array)."""
        session = self._sessions.get(device)
        if session is None:
            session = self._sessions[device] = self._session(device)
        # The wrapper's own run looks for missing inputs.
        run = device.alone(session._sess.run)
        return run([output], {**inputs, **self.weights}, None)[0]

    def _session(self, device):
        # A session with threads is not shared: a forked process would lack its threads.
        if self._structure is None or device != CPU:
            return self._make_session(device)

        return COMPILED.get(
            ("inference", self._structure, tuple(self.inner_results)),
            lambda: self._make_session(device),
        )

    def _make_session(self, device):
        model = copy.deepcopy(self.model() if callable(self.model) else self.model)
        for weight in [i for i in model.graph.initializer if i.name in self.weights]:
            model.graph.initializer.remove(weight)
            info = onnx.helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims)
            model.graph.input.append(info)

        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in self.inner_results)
        types = [i.data_type for i in model.graph.initializer]
        types += [i.type.tensor_type.elem_type for i in model.graph.input]
        float64 = onnx.TensorProto.DOUBLE in types

        return inference_session(model.SerializeToString(), float64=float64, device=device)


def short_message(error: Exception) -> str:
    """Return the first line of an error of ONNX or ONNX Runtime, without places in C++ sources."""
    return _PLACE.sub("", (str(error).strip().splitlines() or ["no reason given"])[0]).strip()
