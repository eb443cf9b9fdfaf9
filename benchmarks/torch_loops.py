"""The same training in torch: a loop by hand, and skorch."""

import numpy as np
import torch
from torch import nn

__all__ = ["train", "train_skorch"]


class HalfSquaredError(nn.Module):
    def forward(self, score, target):
        return 0.5 * torch.mean((score - target) ** 2)


def _criterion(problem):
    if not problem.is_classifier:
        return HalfSquaredError
    return nn.BCEWithLogitsLoss if problem.n_outputs == 1 else nn.CrossEntropyLoss


def _target(problem):
    return problem.y if problem.n_outputs > 1 else problem.target


def _network(layers):
    modules = []
    for coef, intercept in layers:
        linear = nn.Linear(*coef.shape)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(coef.T))
            linear.bias.copy_(torch.from_numpy(intercept))
        modules += [linear, nn.ReLU()]
    return nn.Sequential(*modules[:-1])


def _updates(problem):
    return {"lr": problem.eta, "momentum": problem.momentum, "nesterov": problem.momentum > 0}


def train(problem):
    """Train in a loop by hand; return the function X -> raw score."""
    X, target = torch.from_numpy(problem.X), torch.from_numpy(_target(problem))
    layers, orders = problem.start()
    network, criterion = _network(layers), _criterion(problem)()
    optimizer = torch.optim.SGD(network.parameters(), **_updates(problem))
    for order in orders:
        for rows in torch.from_numpy(order).split(problem.batch_size):
            optimizer.zero_grad()
            criterion(network(X[rows]), target[rows]).backward()
            optimizer.step()

    def score(X):
        with torch.no_grad():
            return network(torch.from_numpy(X)).numpy()

    return score


class _Orders(torch.utils.data.Sampler):
    """The rows in the order of the next epoch."""

    def __init__(self, orders):
        self._orders = orders

    def __iter__(self):
        return iter(next(self._orders).tolist())


def train_skorch(problem):
    """Train with skorch; return the function X -> raw score."""
    import skorch

    layers, orders = problem.start()
    updates = {
        f"optimizer__{name}": value for name, value in _updates(problem).items() if name != "lr"
    }
    net = skorch.NeuralNet(
        _network(layers),
        _criterion(problem),
        optimizer=torch.optim.SGD,
        lr=problem.eta,
        **updates,
        batch_size=problem.batch_size,
        max_epochs=problem.n_epochs,
        iterator_train__sampler=_Orders(orders),
        train_split=None,
        verbose=0,
    )
    net.fit(problem.X, _target(problem))
    return lambda X: np.concatenate([part.numpy() for part in net.forward_iter(X)])
