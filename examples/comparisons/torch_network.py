"""
A network beside torch
======================

The same network in torch and in skort: the same first weights, the same batches, plain gradient
descent with Nesterov's momentum. The losses agree; the figure compares the times.

This needs torch: `pip install ".[torch]"` in a copy of the repository.
"""

# sphinx_gallery_thumbnail_path = 'static/gallery/torch_network.png'

import time

import matplotlib.pyplot as plt
import numpy as np
import torch
from onnx import numpy_helper
from sklearn.datasets import make_friedman1
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import scale
from torch import nn

from skort import OrtSGDRegressor
from skort.gradients import initial_model
from skort.optimizers import Nesterov

torch.set_num_threads(1)
X, y = make_friedman1(2000, noise=1, random_state=0)
X, y = scale(X).astype(np.float32), scale(y).astype(np.float32)
n_epochs, batch_size, eta, momentum = 20, 50, 0.01, 0.9

# %%
# The loop of torch. skort's squared error is half of torch's.


def train_in_torch(weights):
    """Return the loss of each epoch."""
    first, second = (
        nn.Linear(*weights["coefficient"].shape),
        nn.Linear(*weights["coefficient1"].shape),
    )
    network = nn.Sequential(first, nn.ReLU(), second)
    with torch.no_grad():
        for layer, end in ((first, ""), (second, "1")):
            layer.weight.copy_(torch.tensor(weights[f"coefficient{end}"].T))
            layer.bias.copy_(torch.tensor(weights[f"intercepts{end}"][0]))
    optimizer = torch.optim.SGD(network.parameters(), lr=eta, momentum=momentum, nesterov=True)
    rows, target = torch.from_numpy(X), torch.from_numpy(y[:, None])
    losses = []
    for _ in range(n_epochs):
        total = 0.0
        for begin in range(0, len(X), batch_size):
            batch = slice(begin, begin + batch_size)
            optimizer.zero_grad()
            loss = 0.5 * nn.functional.mse_loss(network(rows[batch]), target[batch])
            loss.backward()
            optimizer.step()
            total += loss.item() * batch_size / len(X)
        losses.append(total)
    return losses


# %%
# The same in skort. The ratios of the times are those of one run on one core: they vary with the
# machine.


def train_both(n_hidden):
    """Return the losses of both, and the ratio of their CPU times."""
    start = initial_model(
        MLPRegressor(hidden_layer_sizes=(n_hidden,)), n_features=10, random_state=0
    )
    weights = {w.name: numpy_helper.to_array(w).copy() for w in start.graph.initializer}
    model = OrtSGDRegressor(
        start,
        penalty=None,
        optimizer=Nesterov(momentum=momentum),
        eta0=eta,
        learning_rate="constant",
        batch_size=batch_size,
        max_iter=n_epochs,
        tol=None,
        shuffle=False,
        standardize=False,
    )
    seconds = {"torch": [], "skort": []}
    for _ in range(3):
        begin = time.process_time()
        losses = train_in_torch(weights)
        seconds["torch"].append(time.process_time() - begin)
        begin = time.process_time()
        model.fit(X, y)
        seconds["skort"].append(time.process_time() - begin)
    return losses, model.loss_curve_, min(seconds["torch"]) / min(seconds["skort"])


ratios = {}
for n_hidden in (10, 50, 100, 200):
    *losses, ratios[n_hidden] = train_both(n_hidden)
    difference = np.abs(np.divide(*losses) - 1).max()
    print(
        f"{n_hidden:3} hidden units: torch takes {ratios[n_hidden]:.1f} times as long, "
        f"largest relative difference of a loss {difference:.1e}"
    )

# %%
plt.plot(list(ratios), list(ratios.values()), "o-")
plt.axhline(1, color="grey", linestyle="--")
plt.ylim(0)
plt.xlabel("hidden units")
plt.ylabel("CPU time of torch / of skort")
plt.show()
