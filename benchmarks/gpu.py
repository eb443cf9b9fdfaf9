"""
Steps on a GPU: skort beside torch, eagerly, compiled and as CUDA graphs.

Run it with `python -m benchmarks.gpu` where there is a GPU, `onnxruntime-gpu` and torch. All make
the same steps on data that are on the device; the figures are microseconds a step, the best of
several epochs. In front of them: the largest difference between the weights of the GPU and those of
the CPU after 100 steps of 200 rows, relative to the largest weight, and whether two runs give the
same bytes. Products are in float32; with `NVIDIA_TF32_OVERRIDE=1` they are in TF32, for skort and
for torch. `--device cpu` tries the command where there is no GPU.
"""

import argparse
import contextlib
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.problems import Problem, blobs, regression
from skort import OrtSGDClassifier, OrtSGDRegressor

_BATCHES = (200, 2048, 16_384, 65_536)
_KINDS = ("eager", "compiled", "graphs")


def cases(*, quick: bool) -> dict[str, Problem]:
    """Return the problem of each case, with the smallest of the batches."""
    n = 2_000 if quick else 200_000
    options = {"batch_size": _BATCHES[0], "n_epochs": 3, "eta": 0.01}
    made = {"784-100-10": blobs(n, 784, 10, (100,), **options)}
    if quick:
        return made

    return made | {
        "784-2048-2048-10": blobs(n, 784, 10, (2048, 2048), **options),
        "linear 100": regression(5 * n, 100, **options),
    }


def estimator(problem, device, **options):
    """Return the estimator that makes the steps of a problem."""
    cls = OrtSGDClassifier if problem.is_classifier else OrtSGDRegressor
    given = {
        "solver": "graph",
        "batch_size": problem.batch_size,
        "max_iter": problem.n_epochs,
        "optimizer": "sgd",
        "eta0": problem.eta,
        "learning_rate": "constant",
        "standardize": False,
        "penalty": None,
        "tol": None,
        "random_state": problem.seed,
    }
    return cls(problem.model, device=device, **{**given, **options})


def skort_step(problem, device):
    """Return the seconds of a step of skort."""
    model = estimator(problem, device).fit(problem.X, problem.y)
    return min(model.history_["seconds"][1:]) * problem.n_epochs / problem.n_steps


def torch_step(problem, device, kind):
    """
    Return the seconds of a step of torch: "eager", "compiled" or "graphs";
    None where it cannot do it.
    """
    import torch

    from benchmarks.torch_loops import _criterion, _network, _target

    if kind == "graphs" and device == "cpu":
        return None
    layers, orders = problem.start()
    X, target = (torch.from_numpy(a).to(device) for a in (problem.X, _target(problem)))
    network, criterion = _network(layers).to(device), _criterion(problem)()
    optimizer = torch.optim.SGD(network.parameters(), lr=problem.eta)
    size = min(problem.batch_size, len(X))
    batch, labels = X[:size].clone(), target[:size].clone()

    def step():
        optimizer.zero_grad(set_to_none=kind != "graphs")
        criterion(network(batch), labels).backward()
        optimizer.step()

    if kind == "compiled":
        step = torch.compile(step)
    if kind == "graphs":
        step = _captured(torch, step)
    waits = torch.cuda.synchronize if device != "cpu" else lambda: None
    times = []
    for order in orders:
        indices = torch.from_numpy(order[: len(order) // size * size]).to(device).split(size)
        waits()
        begin = time.perf_counter()
        for rows in indices:
            torch.index_select(X, 0, rows, out=batch)
            labels.copy_(target[rows])
            step()
        waits()
        times.append((time.perf_counter() - begin) / len(indices))
    return min(times[1:])


def _captured(torch, step):
    """Return the replay of a step as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def agreement(problem, device):
    """
    Return how far the weights of 100 steps are from those of the CPU,
    and whether they are the same once more.
    """
    n_rows = min(len(problem.X), 20 * problem.batch_size)
    few = replace(problem, X=problem.X[:n_rows], y=problem.y[:n_rows], n_epochs=5)
    near, far, again = (
        estimator(few, where).fit(few.X, few.y) for where in ("cpu", device, device)
    )
    distances = [
        np.abs(far.weights_[n] - w).max() / np.abs(w).max() for n, w in near.weights_.items()
    ]
    same = all(np.array_equal(again.weights_[name], w) for name, w in far.weights_.items())
    return float(max(distances)), same


def from_a_file(device, n_rows, batch_size):
    """
    Return the seconds of a step of a linear model on rows in a file
    that is mapped into memory.
    """
    problem = regression(1000, 100, batch_size=batch_size, n_epochs=2, eta=0.01)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_rows, 100))
        for start in range(0, n_rows, 1000):
            X[start : start + 1000] = problem.X[: len(X[start : start + 1000])]
        y = np.resize(problem.y, n_rows)
        model = estimator(problem, device).fit(np.load(path, mmap_mode="r"), y)
    return min(model.history_["seconds"]) / -(-n_rows // batch_size)


def _cell(seconds):
    return f"{'':>10}" if seconds is None else f"{1e6 * seconds:10.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="one small case, to see that it runs")
    parser.add_argument("--kinds", nargs="*", default=_KINDS, choices=_KINDS, help="of torch")
    arguments = parser.parse_args()
    kinds = arguments.kinds
    device, torch_device = arguments.device, arguments.device.partition(":")[0]
    with contextlib.suppress(ImportError):
        import torch

        if torch_device != "cpu":
            print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(
        f"{'case':>18} {'batch':>6} {'difference':>10} {'same':>5} {'skort':>10}",
        *(f"{k:>10}" for k in kinds),
    )
    for name, of_case in cases(quick=arguments.quick).items():
        distance, same = agreement(of_case, device)
        for size in _BATCHES[:1] if arguments.quick else _BATCHES:
            problem = replace(of_case, batch_size=size)
            theirs = [torch_step(problem, torch_device, kind) for kind in kinds]
            cells = [_cell(seconds) for seconds in (skort_step(problem, device), *theirs)]
            print(f"{name:>18} {size:6} {distance:10.1e} {same!s:>5}", *cells, flush=True)
    n_rows = 10_000 if arguments.quick else 10_000_000
    print(
        f"linear, {n_rows:,} x 100 from a file, batches of 2048: "
        f"{_cell(from_a_file(device, n_rows, 2048))} us a step"
    )


if __name__ == "__main__":
    main()
