"""Steps of sparse rows: their product with the first layer is computed outside the graph."""
