"""The rows of a training: their validation, encoding, weights and source."""
