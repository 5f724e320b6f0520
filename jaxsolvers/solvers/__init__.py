"""Solvers, one algorithm per file."""

from jaxsolvers.solvers.adagrad import AdaGradFOBOS, AdaGradRDA
from jaxsolvers.solvers.adagrad_full import FullAdaGradFOBOS, FullAdaGradRDA
from jaxsolvers.solvers.averaged import Averaged
from jaxsolvers.solvers.fobos import FOBOS
from jaxsolvers.solvers.pegasos import Pegasos
from jaxsolvers.solvers.rda import RDA

__all__ = [
    "FOBOS",
    "RDA",
    "AdaGradFOBOS",
    "AdaGradRDA",
    "Averaged",
    "FullAdaGradFOBOS",
    "FullAdaGradRDA",
    "Pegasos",
]
