"""From a model to its score graph, and from there to the deployable model; no training in here."""
