"""Solvers, one algorithm per file."""

from jaxsolvers.solvers.adagrad import AdaGradFOBOS, AdaGradRDA
from jaxsolvers.solvers.averaged import Averaged
from jaxsolvers.solvers.pegasos import Pegasos

__all__ = ["AdaGradFOBOS", "AdaGradRDA", "Averaged", "Pegasos"]
