"""What is trained: what the user put inside an estimator, and the fitted model that comes of it."""
