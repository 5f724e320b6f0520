"""Losses: l(score, target) with their slopes, one small dataclass per loss.

``MulticlassHinge`` and ``MulticlassLogistic`` see the scores of all classes at once; the others
see one score.

Slopes carry the true sign, dl/dz; the papers' ``v`` is minus that. "Violates" is strict: a row
exactly on the margin contributes nothing. Only the perceptron violates at equality, since its
weights would otherwise never leave 0.
"""

from jaxsolvers.losses.classification import (
    Hinge,
    Logistic,
    Perceptron,
    SmoothedHinge,
    SquaredHinge,
)
from jaxsolvers.losses.joint import MulticlassHinge, MulticlassLogistic
from jaxsolvers.losses.regression import Absolute, EpsilonInsensitive, Huber, Squared

__all__ = [
    "Absolute",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "MulticlassHinge",
    "MulticlassLogistic",
    "Perceptron",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
]
