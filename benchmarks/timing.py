"""Times of contenders that run in turn."""

import contextlib
import importlib.util
import os
import statistics
import time

from threadpoolctl import threadpool_limits

__all__ = ["in_turn", "show", "threads"]


def in_turn(contenders, repeats=5, clock=time.perf_counter):
    """
    Run contenders in turn, once without measurement and then `repeats` times.

    Parameters
    ----------
    contenders : dict of str to callable
    repeats : int, default=5
    clock : callable, default=time.perf_counter
        `time.process_time` counts the time of the CPU.

    Returns
    -------
    times : dict of str to list of float
        In seconds.
    results : dict of str to object
        The results of the last runs.
    """
    times, results = (
        {name: [] for name in contenders},
        {name: run() for name, run in contenders.items()},
    )
    for _ in range(repeats):
        for name, run in contenders.items():
            start = clock()
            results[name] = run()
            times[name].append(clock() - start)
    return times, results


def show(times):
    """Print medians and ranges in milliseconds."""
    for name, values in times.items():
        low, middle, high = (1e3 * v for v in (min(values), statistics.median(values), max(values)))
        print(f"  {name:<22} {middle:8.2f} ms ({low:.2f} to {high:.2f})")


@contextlib.contextmanager
def threads(n_jobs=None):
    """Let BLAS, OpenMP and torch use one thread (None) or all cores (-1)."""
    n_threads = 1 if n_jobs is None else os.cpu_count()
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(n_threads)
    with threadpool_limits(n_threads):
        yield
