"""
From a model to its score graph, and from there to the deployable model; no training in here.

`score_graph` is what all else is about. `initialization` makes one of a model, with `sklearn` or `onnx_models`;
`gradient` differentiates it; `export` writes the model that is deployed.
"""
