"""
A torch embedding in front of a scikit-learn network
====================================================

The price of a meal depends on how many people eat, and on the restaurant, of which there are 200. A
one-hot encoding would have 200 columns. An embedding of torch learns two numbers for each
restaurant, and a network of scikit-learn takes them as columns. One optimizer of torch trains both,
because `OnnxModule` passes the gradient on to its input.

This needs torch: `pip install ".[torch]"` in a copy of the repository.
"""

# sphinx_gallery_thumbnail_path = 'static/gallery/torch_embedding.png'

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.metrics import r2_score
from sklearn.neural_network import MLPRegressor
from torch import nn

from skort.gradients import initial_model
from skort.torch import OnnxModule

# %%
# 4,000 meals in 200 restaurants: each has a level of prices, and a price for each further person.

torch.manual_seed(0)
rng = np.random.default_rng(0)
n_restaurants, n_meals = 200, 4000
level, per_head = rng.normal(size=n_restaurants), rng.uniform(0.5, 1.5, n_restaurants)
restaurant, n_people = rng.integers(n_restaurants, size=n_meals), rng.uniform(-1, 1, n_meals)
price = level[restaurant] + per_head[restaurant] * n_people + rng.normal(0, 0.1, n_meals)

# %%
# The network is scikit-learn's, at its initial weights: 3 columns go in, the embedding's two and
# the number of people.


class Price(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(n_restaurants, 2)
        network = MLPRegressor(hidden_layer_sizes=(20,), activation="tanh")
        self.network = OnnxModule(initial_model(network, n_features=3, random_state=0))

    def forward(self, restaurant, n_people):
        columns = torch.column_stack([self.embedding(restaurant), n_people])
        return self.network(columns).squeeze(1)


model = Price()
print(model)

# %%
# The loop is torch's. The optimizer sees one parameter of the network, the vector of all its
# weights.

rows = torch.from_numpy(restaurant), torch.from_numpy(n_people.astype(np.float32))
target = torch.from_numpy(price.astype(np.float32))
train, test = torch.arange(3000), torch.arange(3000, n_meals)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
losses = []
for _ in range(30):
    for batch in torch.randperm(len(train)).split(100):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(*(column[batch] for column in rows)), target[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print("loss of the first and the last batch:", losses[0], losses[-1])

# %%
# `no_grad` keeps nothing for a gradient, and takes any number of rows.

with torch.no_grad():
    prediction = model(*(column[test] for column in rows)).numpy()
score = r2_score(price[test], prediction)
print(f"R^2 of the meals left out: {score:.3f}")

# %%
# The embedding has found the level of the prices, which grows in one direction of the plane.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.axline((0, 0), slope=1, color="black", linewidth=1)
left.plot(price[test], prediction, ".", markersize=3)
left.set(xlabel="price", ylabel="predicted price", title=f"1,000 other meals: R² {score:.3f}")
columns = model.embedding.weight.detach().numpy().T
right.set(xlabel="first number of a restaurant", ylabel="second number")
figure.colorbar(right.scatter(*columns, c=level, s=15), label="level of its prices")
plt.show()

# %%
# The network alone is an ONNX model, whose columns are those of the embedding.

onnx_model = model.network.to_onnx()
print([node.op_type for node in onnx_model.graph.node])
