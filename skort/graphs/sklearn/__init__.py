"""Models of scikit-learn as ONNX: conversion, trainable families, and the steps before a model."""
