"""Scalar losses l(z, y) and their slopes dl/dz, written from the table in Crammer et al. (JMLR 7,
2006), Shalev-Shwartz et al., *Pegasos* (2011) and Shalev-Shwartz and Zhang, *SDCA* (2013).

`z` is the score <w, x>, `y` the target (-1 or +1 for classification). `parameter` is gamma for
"smoothed_hinge", delta for "huber" and epsilon for "epsilon_insensitive"; other losses have none.
A row exactly on the margin has slope 0; the perceptron alone already acts at y z = 0.
"""

import math

import numpy as np

NAMES = (
    "hinge",
    "squared_hinge",
    "smoothed_hinge",
    "logistic",
    "perceptron",
    "squared",
    "absolute",
    "huber",
    "epsilon_insensitive",
)


def value(name: str, z: float, y: float, parameter: float | None = None) -> float:
    """The loss l(z, y) of one row."""
    margin = y * z
    residual = y - z
    match name:
        case "hinge":
            return max(0.0, 1.0 - margin)
        case "squared_hinge":
            return max(0.0, 1.0 - margin) ** 2 / 2.0
        case "smoothed_hinge":
            gamma = required(name, parameter)
            if margin >= 1.0:
                return 0.0
            if margin <= 1.0 - gamma:
                return 1.0 - margin - gamma / 2.0
            return (1.0 - margin) ** 2 / (2.0 * gamma)
        case "logistic":
            return max(0.0, -margin) + math.log1p(math.exp(-abs(margin)))
        case "perceptron":
            return max(0.0, -margin)
        case "squared":
            return residual**2 / 2.0
        case "absolute":
            return abs(residual)
        case "huber":
            delta = required(name, parameter)
            if abs(residual) <= delta:
                return residual**2 / 2.0
            return delta * (abs(residual) - delta / 2.0)
        case "epsilon_insensitive":
            return max(0.0, abs(residual) - required(name, parameter))
    raise ValueError(f"unknown loss {name!r}; known: {NAMES}")


def slope(name: str, z: float, y: float, parameter: float | None = None) -> float:
    """The (sub)derivative dl/dz of one row, with its true sign: a descent step adds -slope * x."""
    margin = y * z
    residual = y - z
    match name:
        case "hinge":
            return -y if margin < 1.0 else 0.0
        case "squared_hinge":
            return -y * max(0.0, 1.0 - margin)
        case "smoothed_hinge":
            return -y * clip((1.0 - margin) / required(name, parameter), 0.0, 1.0)
        case "logistic":
            return -y * sigmoid(-margin)
        case "perceptron":
            return -y if margin <= 0.0 else 0.0
        case "squared":
            return -residual
        case "absolute":
            return -sign(residual)
        case "huber":
            delta = required(name, parameter)
            return -clip(residual, -delta, delta)
        case "epsilon_insensitive":
            return -sign(residual) if abs(residual) > required(name, parameter) else 0.0
    raise ValueError(f"unknown loss {name!r}; known: {NAMES}")


def value_at_zero(
    name: str,
    y: np.ndarray,
    parameter: float | None = None,
    weights: np.ndarray | None = None,
) -> float:
    """l(0): the mean loss of the zero vector over targets `y` (m,), weighted by `weights` (m,)."""
    s = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    total = 0.0
    for i in range(len(y)):
        if s[i] > 0.0:
            total += s[i] * value(name, 0.0, float(y[i]), parameter)
    return float(total / sum(s))


def sigmoid(u: float) -> float:
    """1 / (1 + exp(-u)) without overflow."""
    if u >= 0.0:
        return 1.0 / (1.0 + math.exp(-u))
    return math.exp(u) / (1.0 + math.exp(u))


def sign(u: float) -> float:
    """-1, 0 or +1."""
    if u > 0.0:
        return 1.0
    if u < 0.0:
        return -1.0
    return 0.0


def clip(u: float, lower: float, upper: float) -> float:
    """`u` moved to the nearest point of [lower, upper]."""
    return max(lower, min(upper, u))


def required(name: str, parameter: float | None) -> float:
    """The loss parameter, which must have been given."""
    if parameter is None:
        raise ValueError(f"loss {name!r} needs its parameter")
    return parameter
