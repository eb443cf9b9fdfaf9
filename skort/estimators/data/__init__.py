"""The rows of a training: validated, encoded, counted, and where they are."""
