"""Regularizers and domains, met by every first-order solver through one ``solve``."""

from jaxsolvers.regularizers.separable import (
    L1,
    Box,
    ElasticNet,
    NonNegative,
    NoRegularizer,
    SquaredL2,
)

__all__ = ["L1", "Box", "ElasticNet", "NoRegularizer", "NonNegative", "SquaredL2"]
