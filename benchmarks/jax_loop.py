"""
The same training in JAX, in a process that needs numpy and JAX alone:
`benchmarks.jax_process` starts it.

It reads a problem from a file, and then a command from each line of its input: "train" trains with
what is compiled, "compile" compiles first, "weights" writes the weights of the last training. It
answers each with a line.
"""

import os
import sys

import numpy as np

__all__ = []


def _use_one_core():
    """
    Stay on one core; to be called before JAX is imported,
    which makes a thread for each core that it may use.
    """
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def losses():
    """Return the losses by their names: raw score, target -> mean loss."""
    import jax
    import jax.numpy as jnp

    return {
        "squared_error": lambda score, target: 0.5 * jnp.mean((score - target) ** 2),
        "binary": lambda score, target: jnp.mean(jax.nn.softplus(score) - target * score),
        "multiclass": lambda score, target: (
            -jnp.mean(jnp.sum(target * jax.nn.log_softmax(score), axis=1))
        ),
    }


def epoch_function(loss, batch_size, eta, momentum):
    """Return the function that makes the updates of an epoch."""
    import jax
    import jax.numpy as jnp

    def batch_loss(layers, X, target):
        for coef, intercept in layers[:-1]:
            X = jnp.maximum(X @ coef + intercept, 0)
        coef, intercept = layers[-1]
        return losses()[loss](X @ coef + intercept, target)

    def epoch(state, X, target, order):
        def step(state, rows):
            layers, velocities = state
            batch = (a.at[rows].get(mode="promise_in_bounds") for a in (X, target))
            gradients = jax.grad(batch_loss)(layers, *batch)
            if not momentum:
                return (jax.tree.map(lambda w, g: w - eta * g, layers, gradients), velocities), None
            velocities = jax.tree.map(lambda v, g: momentum * v - eta * g, velocities, gradients)
            layers = jax.tree.map(
                lambda w, v, g: w + momentum * v - eta * g, layers, velocities, gradients
            )
            return (layers, velocities), None

        n_full = len(order) // batch_size * batch_size
        state, _ = jax.lax.scan(step, state, order[:n_full].reshape(-1, batch_size))
        return step(state, order[n_full:])[0] if n_full < len(order) else state

    return epoch


class Training:
    """
    A training of a problem.

    Parameters
    ----------
    problem : dict of str to ndarray
        What `benchmarks.jax_process` writes.
    """

    def __init__(self, problem):
        n_layers = sum(name.startswith("coef") for name in problem)
        self._layers = [(problem[f"coef{i}"], problem[f"intercept{i}"]) for i in range(n_layers)]
        self._X, self._target, self._orders = (problem[name] for name in ("X", "target", "orders"))
        self._options = {
            name: problem[name].item() for name in ("loss", "batch_size", "eta", "momentum")
        }
        self._epoch = None
        self.weights = None

    def compile(self):
        """Compile the function of an epoch, whatever was compiled before."""
        import jax

        jax.clear_caches()
        state, *data = self._start()
        self._epoch = (
            jax.jit(epoch_function(**self._options)).lower(state, *data, self._orders[0]).compile()
        )

    def train(self):
        """Train from the initial weights."""
        import jax

        state, *data = self._start()
        for order in self._orders:
            state = self._epoch(state, *data, order)
        self.weights = jax.tree.map(np.asarray, state[0])

    def _start(self):
        import jax
        import jax.numpy as jnp

        layers = jax.tree.map(jnp.asarray, self._layers)
        velocities = jax.tree.map(jnp.zeros_like, layers) if self._options["momentum"] else None
        return (layers, velocities), jnp.asarray(self._X), jnp.asarray(self._target)

    def save(self, path):
        """Write the weights of the last training."""
        np.savez(path, *(array for layer in self.weights for array in layer))


def main(problem_path, weights_path, one_core):
    if one_core == "1":
        _use_one_core()
    with np.load(problem_path) as file:
        training = Training(dict(file))
    training.compile()
    for line in sys.stdin:
        command = line.strip()
        if command == "weights":
            training.save(weights_path)
        else:
            if command == "compile":
                training.compile()
            training.train()
        print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
