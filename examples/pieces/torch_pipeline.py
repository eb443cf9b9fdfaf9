"""
A scikit-learn pipeline inside a torch model
============================================

A scaler and a neural network of scikit-learn were fitted on images of digits. A new scanner has
another gain: its images are darker, by a factor that nobody knows. A torch model learns that factor
in front of the pipeline, which stays as it is. Then torch trains both together. What comes out is a
scikit-learn pipeline again.

This needs torch: `pip install ".[torch]"` in a copy of the repository.
"""

# sphinx_gallery_thumbnail_path = 'static/gallery/torch_pipeline.png'

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from skort.torch import OnnxModule

# %%
# The fitted pipeline, and the images of the new scanner.

images, labels = load_digits(return_X_y=True)
fitted = make_pipeline(
    StandardScaler(), MLPClassifier(hidden_layer_sizes=(50,), max_iter=500, random_state=0)
)
fitted.fit(images[:1200], labels[:1200])

darker = (images / 4).astype(np.float32)
new, test = slice(1200, 1260), slice(1260, None)
print(f"accuracy on the old images {fitted.score(images[test], labels[test]):.3f}")
before = fitted.score(darker[test], labels[test])
print(f"accuracy on dark images    {before:.3f}")


# %%
# The pipeline is a layer: it takes pixels, scales them, and gives the ten numbers that go into the
# softmax.


class WithGain(nn.Module):
    def __init__(self, pipeline):
        super().__init__()
        self.log_gain = nn.Parameter(torch.zeros(()))
        self.pipeline = OnnxModule(pipeline)

    def forward(self, X):
        return self.pipeline(torch.exp(self.log_gain) * X)


def train(model, n_steps, lr):
    X, y = torch.from_numpy(darker[new]), torch.from_numpy(labels[new])
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    for _ in range(n_steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(X), y, label_smoothing=0.05).backward()
        optimizer.step()


def accuracy(model):
    with torch.no_grad():
        return (model(torch.from_numpy(darker[test])).argmax(1).numpy() == labels[test]).mean()


# %%
# First the gain alone: 60 images with labels are enough. The gradient goes through the network and
# the scaler.

model = WithGain(fitted)
model.pipeline.requires_grad_(False)
train(model, 100, lr=0.05)
gain = model.log_gain.exp().item()
accuracies = {"gain": accuracy(model)}
print(f"gain {gain:.2f}, accuracy {accuracies['gain']:.3f}")

# %%
# Then all of it, with a small rate.

model.pipeline.requires_grad_(True)
train(model, 30, lr=0.001)
accuracies["all"] = accuracy(model)
print(f"accuracy {accuracies['all']:.3f}")

# %%
# Back in scikit-learn, the pipeline has the trained weights.

plain = model.pipeline.to_estimator()
print(plain)
scaled = model.log_gain.exp().item() * darker[test]
accuracies["plain"] = plain.score(scaled, labels[test])
print(f"accuracy {accuracies['plain']:.3f}")

# %%
figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
bars = {"as it was": before, "with the gain": accuracies["gain"], "all trained": accuracies["all"]}
axis.bar_label(axis.bar(bars.keys(), bars.values()), fmt="%.2f")
axis.set(ylabel="accuracy on dark images", ylim=(0, 1.05))
axis.grid(visible=False)
plt.show()
