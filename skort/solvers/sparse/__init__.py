"""Steps on sparse rows: scipy computes their product with the first layer outside the graph."""
