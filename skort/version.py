"""The version of skort."""

__version__ = "0.1.0"
