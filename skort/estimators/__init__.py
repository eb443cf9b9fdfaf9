"""What a scikit-learn user touches: the estimators."""
