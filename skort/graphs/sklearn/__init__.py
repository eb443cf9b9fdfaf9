"""Models of scikit-learn as ONNX: conversion, and the steps before a model."""
