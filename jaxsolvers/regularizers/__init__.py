"""Regularizers and domains, met by every first-order solver through one ``solve``."""

from jaxsolvers.regularizers.balls import L1Ball, L2Ball, LInfBall, Simplex
from jaxsolvers.regularizers.groups import GroupL2, GroupLInf
from jaxsolvers.regularizers.norms import L2Norm, LInfNorm
from jaxsolvers.regularizers.separable import (
    L1,
    Box,
    ElasticNet,
    NonNegative,
    NoRegularizer,
    SquaredL2,
)

__all__ = [
    "L1",
    "Box",
    "ElasticNet",
    "GroupL2",
    "GroupLInf",
    "L1Ball",
    "L2Ball",
    "L2Norm",
    "LInfBall",
    "LInfNorm",
    "NoRegularizer",
    "NonNegative",
    "Simplex",
    "SquaredL2",
]
