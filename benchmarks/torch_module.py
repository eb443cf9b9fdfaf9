"""
`skort.torch.OnnxModule` next to the same layers of torch: `python -m benchmarks.torch_module`.

Forward, and forward with backward, of one hidden layer of ReLU, with one thread each.
Contenders take turns of 50 runs, as in a loop of their own, so that whatever else the machine
does slows both alike.
"""

import statistics
import sys
import time
from functools import partial

import torch
from sklearn.neural_network import MLPRegressor
from torch import nn

from benchmarks.timing import threads
from skort.gradients import initial_model
from skort.torch import OnnxModule

__all__ = ["CASES", "ratios", "times"]

TURN = 50
# Name: numbers of features, hidden units, outputs and rows; number of runs.
CASES = {
    "10-20-1, batch 10": ((10, 20, 1, 10), 3000),
    "100-100-1, batch 100": ((100, 100, 1, 100), 2000),
    "784-100-10, batch 200": ((784, 100, 10, 200), 500),
}


def layers(n_features, n_hidden, n_outputs):
    """Return the contenders by their names."""
    model = MLPRegressor(hidden_layer_sizes=(n_hidden,))
    return {
        "torch": nn.Sequential(
            nn.Linear(n_features, n_hidden), nn.ReLU(), nn.Linear(n_hidden, n_outputs)
        ),
        "OnnxModule": OnnxModule(initial_model(model, n_features, n_outputs, random_state=0)),
    }


def forward(layer, X, score_gradient):
    layer(X)


def forward_backward(layer, X, score_gradient):
    layer.zero_grad()
    layer(X).backward(score_gradient)


def times(sizes, n_runs):
    """Return the times of every run in seconds: what -> contender -> list of float."""
    *sizes, batch_size = sizes
    X, score_gradient = torch.randn(batch_size, sizes[0]), torch.randn(batch_size, sizes[-1])
    contenders, results = layers(*sizes), {}
    for run in (forward, forward_backward):
        calls = {name: partial(run, layer, X, score_gradient) for name, layer in contenders.items()}
        results[run.__name__] = {name: [] for name in calls}
        for _ in range(n_runs // TURN):
            for name, call in calls.items():
                results[run.__name__][name] += turn(call)
    return results


def turn(call):
    """Return the times of some runs in a row, after a few without measurement."""
    taken = []
    for _ in range(TURN + 5):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return taken[5:]


def ratios(times_of_run):
    """
    Return how many times as long as torch a run of OnnxModule takes:
    by the medians, and by the minima.
    """
    return [
        kind(times_of_run["OnnxModule"]) / kind(times_of_run["torch"])
        for kind in (statistics.median, min)
    ]


def main(quick):
    print(
        "microseconds, median (minimum)                torch          OnnxModule     "
        "ratio (of minima)"
    )
    with threads():
        for name, (sizes, n_runs) in CASES.items():
            for run, taken in times(sizes, TURN if quick else n_runs).items():
                cells = [
                    f"{1e6 * statistics.median(t):7.1f} ({1e6 * min(t):.1f})"
                    for t in taken.values()
                ]
                middle, least = ratios(taken)
                print(f"{name:<24}{run:<18}{cells[0]:>16}{cells[1]:>18}{middle:8.2f} ({least:.2f})")


if __name__ == "__main__":
    main("--quick" in sys.argv)
