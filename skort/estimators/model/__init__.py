"""The model inside an estimator, as the user gives it, and the fitted model."""
