"""Fits of a search that are trained together."""
