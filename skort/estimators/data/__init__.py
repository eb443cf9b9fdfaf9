"""The rows that the user gives: their validation, encoding and weights."""
