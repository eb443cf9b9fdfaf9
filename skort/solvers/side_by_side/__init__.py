"""Several trainings of one structure as one step."""
