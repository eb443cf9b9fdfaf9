"""Models of scikit-learn as ONNX: conversion, what skort trains of them, and their steps before the predictor."""
