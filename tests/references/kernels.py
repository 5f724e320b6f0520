"""Kernels between rows by the letter, one pair at a time, in float64."""

import math

import numpy as np


def kernel(name: str, x: np.ndarray, z: np.ndarray, **numbers: float) -> float:
    """k(x, z) of one pair of rows."""
    if name == "linear":
        return float(x @ z)
    if name == "rbf":
        return math.exp(-numbers["gamma"] * float((x - z) @ (x - z)))
    if name == "laplacian":
        return math.exp(-numbers["gamma"] * float(np.abs(x - z).sum()))
    if name == "polynomial":
        return float((numbers["gamma"] * (x @ z) + numbers["coef0"]) ** numbers["degree"])
    raise ValueError(name)


def matrix(name: str, X: np.ndarray, Z: np.ndarray, **numbers: float) -> np.ndarray:
    """k(x_i, z_j) for all pairs, (n, m)."""
    X, Z = np.asarray(X, float), np.asarray(Z, float)
    return np.array([[kernel(name, x, z, **numbers) for z in Z] for x in X])
