"""
A scikit-learn model inside JAX
===============================

`gradient_graphs` gives a model and its gradient as two ONNX models. ONNX Runtime runs them, and JAX
calls it. With `jax.custom_vjp`, the model is a function that `jax.grad` and `jax.jit` take. Here a
compiled step of JAX learns what to add to brighter images, and then trains a fitted network of
scikit-learn further.

This needs JAX: `pip install jax`.
"""

# sphinx_gallery_thumbnail_path = 'static/gallery/jax_layer.png'

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from skort.gradients import gradient_graphs

# %%
# A network that reads digits.

BATCH_SIZE = 50
images, labels = load_digits(return_X_y=True)
X, y = (images / 16).astype(np.float32), labels
fitted = MLPClassifier(hidden_layer_sizes=(30,), max_iter=500, random_state=0).fit(
    X[:1000], y[:1000]
)


# %%
# Two sessions, and what JAX has to know of them: the shapes of their outputs.


class Half:
    """One of the two models, as a function of arrays by their names."""

    def __init__(self, model):
        self._session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        self.inputs = [i.name for i in model.graph.input]
        self.outputs = {
            o.name: jax.ShapeDtypeStruct(
                [d.dim_value for d in o.type.tensor_type.shape.dim], np.float32
            )
            for o in model.graph.output
        }

    def run(self, arrays):
        results = self._session.run(None, {name: np.asarray(arrays[name]) for name in self.inputs})
        return dict(zip(self.outputs, results, strict=True))

    def __call__(self, arrays):
        return jax.pure_callback(
            self.run, self.outputs, {name: arrays[name] for name in self.inputs}
        )


graphs = gradient_graphs(fitted, batch_size=BATCH_SIZE, input_gradient=True)
forward, backward = Half(graphs.forward), Half(graphs.backward)
score_name = next(iter(forward.outputs))


# %%
# The forward keeps its results for the backward.


@jax.custom_vjp
def model(weights, X):
    return forward({**weights, "X": X})[score_name]


def model_forward(weights, X):
    arrays = {**weights, "X": X}
    results = forward(arrays)
    return results[score_name], {**arrays, **results}


def model_backward(arrays, score_gradient):
    gradients = backward({**arrays, "skort_score_gradient": score_gradient})
    X_gradient = gradients.pop("X_gradient")
    return {
        name.removesuffix("_gradient"): gradient for name, gradient in gradients.items()
    }, X_gradient


model.defvjp(model_forward, model_backward)


# %%
# From here on, it is JAX.


def loss(parameters, X, y):
    score = model(parameters["weights"], X + parameters["shift"])
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(score), y[:, None], axis=1))


@jax.jit
def step(parameters, X, y, eta):
    value, gradient = jax.value_and_grad(loss)(parameters, X, y)
    return value, {
        "weights": jax.tree.map(
            lambda w, g: w - eta * g, parameters["weights"], gradient["weights"]
        ),
        "shift": parameters["shift"] - 0.02 * gradient["shift"],
    }


weights = {"coefficient": fitted.coefs_[0], "coefficient1": fitted.coefs_[1]}
weights |= {"intercepts": fitted.intercepts_[0][None], "intercepts1": fitted.intercepts_[1][None]}
parameters = jax.tree.map(
    lambda a: jnp.asarray(a, np.float32), {"weights": weights, "shift": np.zeros(())}
)

# %%
# The next images are brighter: each pixel by 0.5. For ten passes the training learns only a number
# that it adds to all pixels: the rate of the weights is 0. Then it trains the weights, too. Each
# pass draws its batches anew.

brighter = X[1000:] + 0.5
first = loss(parameters, brighter[:BATCH_SIZE], y[1000 : 1000 + BATCH_SIZE])
rng = np.random.default_rng(0)
losses, shifts = [], []
for epoch in range(20):
    of_pass = []
    for rows in rng.permutation(600).reshape(-1, BATCH_SIZE):
        eta = 0.0 if epoch < 10 else 0.05
        value, parameters = step(parameters, brighter[rows], y[1000:][rows], eta)
        of_pass.append(float(value))
    losses.append(np.mean(of_pass))
    shifts.append(float(parameters["shift"]))
print(f"loss of the first batch, before the training: {first:.3f}")
print(f"mean loss of the last pass: {losses[-1]:.3f}")
print(f"shift after ten passes: {shifts[9]:.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
passes = range(1, 21)
left.plot(passes, losses, marker=".")
left.set(xlabel="pass over the images", ylabel="mean log-loss of the pass", ylim=(0, None))
right.plot(passes, shifts, marker=".")
right.axhline(-0.5, color="black", linewidth=1, linestyle="--", label="what undoes the change")
right.set(xlabel="pass over the images", ylabel="shift of all pixels", ylim=(-0.6, 0))
right.legend()
for axis in (left, right):
    axis.axvline(10.5, color="grey", linewidth=1, linestyle=":")
    axis.set_title("after the dotted line: the weights are trained, too", fontsize="medium")
    axis.set_xticks(range(2, 21, 2))
plt.show()


# %%
# The weights go back into scikit-learn's model, which takes any number of rows.

fitted.coefs_ = [
    np.asarray(parameters["weights"][name]) for name in ("coefficient", "coefficient1")
]
fitted.intercepts_ = [
    np.asarray(parameters["weights"][name])[0] for name in ("intercepts", "intercepts1")
]
accuracy = fitted.score(brighter[600:] + shifts[-1], y[1600:])
print(f"accuracy on images left out: {accuracy:.3f}")
