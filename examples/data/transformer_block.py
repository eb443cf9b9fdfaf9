"""
Attention: a transformer block
==============================

Each row has four keys with a number each, and asks for the number of one key. A transformer block
learns to look at the pair that is asked for. It is an ONNX model, written by hand or exported by
torch, and any ONNX Runtime trains it.
"""

import matplotlib.pyplot as plt
import numpy as np
import onnx.parser
import onnxruntime
from onnx import numpy_helper

from skort import OrtSGDRegressor

# %%
# X has five ids, the four keys and the one that is asked for, and the four numbers.

rng = np.random.default_rng(0)
n_rows, n_keys, n_pairs, size = 4000, 8, 4, 16
keys = np.array([rng.permutation(n_keys)[:n_pairs] for _ in range(n_rows)])
numbers = rng.normal(size=(n_rows, n_pairs))
rows, place = np.arange(n_rows), rng.integers(n_pairs, size=n_rows)
X, y = np.c_[keys, keys[rows, place], numbers].astype(np.float32), numbers[rows, place]

# %%
# The block. A token is the row of a table for its key, plus its number along a direction.

model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    block (int64[N, 5] keys, float[N, 4] numbers) => (float[N, 1] answer)
    <int64[4] pads = {0, 0, 0, 1}, int64[1] axis = {-1}, int64 last = {4}, float scale = {0.25}> {
        names = Gather (table, keys)
        padded = Pad (numbers, pads)
        amounts = Unsqueeze (padded, axis)
        along = MatMul (amounts, direction)
        tokens = Add (names, along)

        query = MatMul (tokens, Q)
        key = MatMul (tokens, K)
        value = MatMul (tokens, V)
        turned = Transpose <perm = [0, 2, 1]> (key)
        products = MatMul (query, turned)
        scaled = Mul (products, scale)
        attention = Softmax <axis = -1> (scaled)
        mixed = MatMul (attention, value)
        first = Add (tokens, mixed)
        seen = LayerNormalization <axis = -1> (first, gain0, shift0)

        wide = MatMul (seen, F)
        hidden = Relu (wide)
        narrow = MatMul (hidden, G)
        second = Add (seen, narrow)
        thought = LayerNormalization <axis = -1> (second, gain1, shift1)
        asked = Gather <axis = 1> (thought, last)
        answer = MatMul (asked, w)
    }""")
shapes = {"table": (n_keys, size), "direction": (1, size), "F": (size, 32), "G": (32, size)}
shapes |= {"Q": (size, size), "K": (size, size), "V": (size, size), "w": (size, 1)}
start = {
    name: rng.normal(scale=1 if name == "table" else shape[0] ** -0.5, size=shape)
    for name, shape in shapes.items()
}
for i in range(2):
    start |= {f"gain{i}": np.ones(size), f"shift{i}": np.zeros(size)}
for name, array in start.items():
    model.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))

# %%
# It finds the right number for rows that it has not seen.

block = OrtSGDRegressor(
    model,
    optimizer="adam",
    eta0=0.003,
    learning_rate="constant",
    max_iter=30,
    tol=None,
    random_state=0,
)
block.fit(X[:3000], y[:3000])
score = block.score(X[3000:], y[3000:])
print(f"R2 {score:.3f}")

# %%
# Where it looks: the attention of the last token, a result inside the trained model.

trained = block.to_onnx(original=True)
trained.graph.output.append(onnx.ValueInfoProto(name="attention"))
session = onnxruntime.InferenceSession(
    trained.SerializeToString(), providers=["CPUExecutionProvider"]
)
new = {"keys": X[3000:, :5].astype(np.int64), "numbers": X[3000:, 5:]}
(attention,) = session.run(["attention"], new)
looked_at = attention[:, -1, :n_pairs].argmax(axis=1)
right = np.mean(looked_at == place[3000:])
print(f"it looks at the right pair in {right:.1%} of {len(looked_at)} rows")

figure, ax = plt.subplots(layout="constrained")
image = ax.imshow(attention[:12, -1], vmin=0, vmax=1)
ax.plot(place[3000:3012], range(12), "o", markerfacecolor="none", label="asked for")
ax.set_xticks(range(n_pairs + 1), [*range(1, n_pairs + 1), "itself"])
ax.grid(visible=False)
ax.set(xlabel="pair", ylabel="row", title="attention of the question")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
figure.colorbar(image)
plt.show()
