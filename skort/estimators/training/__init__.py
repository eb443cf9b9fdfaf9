"""The one way through a training: read, plan, start, run, result."""
