"""
Write ``torch_layer.npz``: a transformer layer as torch exports it,
and torch's gradient of it, by the names of ONNX.

Run it with torch, ``python tests/data/torch_layer.py``; the file is of torch 2.13. Weights that are
equal would be one weight of the file, so none are.
"""

import io
import pathlib

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn


class Model(nn.Module):
    """Two numbers at each of three places, an encoder layer with two heads, and a mean."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Linear(2, 4)
        self.layer = nn.TransformerEncoderLayer(4, 2, 5, dropout=0.0, batch_first=True)
        self.output = nn.Linear(4, 1)

    def forward(self, x):
        return self.output(self.layer(self.embedding(x.reshape(-1, 3, 2))).mean(1))


def arrays():
    """
    Return the file's arrays: the model, rows and targets,
    and the gradient of half the mean square.
    """
    torch.manual_seed(0)
    model = Model()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    X, y = torch.randn(20, 6), torch.randn(20, 1)
    file = io.BytesIO()
    rows = {"X": {0: "N"}, "y": {0: "N"}}
    options = {
        "input_names": ["X"],
        "output_names": ["y"],
        "dynamic_axes": rows,
        "opset_version": 17,
        "dynamo": False,
    }
    torch.onnx.export(model.eval(), (X,), file, **options)
    (((model.train()(X) - y) ** 2).mean() / 2).backward()
    gradients = {}
    for i in onnx.load_from_string(file.getvalue()).graph.initializer:
        array = numpy_helper.to_array(i)
        for weight in model.parameters():
            for one, gradient in (
                ((weight, weight.grad), (weight.T, weight.grad.T))
                if weight.ndim > 1
                else ((weight, weight.grad),)
            ):
                if one.shape == array.shape and np.array_equal(one.detach().numpy(), array):
                    gradients[f"gradient/{i.name}"] = gradient.numpy()
    assert len(gradients) == len(list(model.parameters()))
    return {
        "model": np.frombuffer(file.getvalue(), np.uint8),
        "X": X.numpy(),
        "y": y.numpy(),
        **gradients,
    }


if __name__ == "__main__":
    np.savez_compressed(pathlib.Path(__file__).with_name("torch_layer.npz"), **arrays())
