"""Solvers, one algorithm per file."""

from jaxsolvers.solvers.adagrad import AdaGradFOBOS, AdaGradRDA
from jaxsolvers.solvers.adagrad_full import FullAdaGradFOBOS, FullAdaGradRDA
from jaxsolvers.solvers.averaged import Averaged
from jaxsolvers.solvers.fobos import FOBOS
from jaxsolvers.solvers.kernel_pegasos import KernelPegasos
from jaxsolvers.solvers.kernelized import Kernelized
from jaxsolvers.solvers.norma import NORMA
from jaxsolvers.solvers.pegasos import Pegasos
from jaxsolvers.solvers.rda import RDA
from jaxsolvers.solvers.sdca import SDCA
from jaxsolvers.solvers.sgd import SGD
from jaxsolvers.solvers.svrg import SVRG

__all__ = [
    "FOBOS",
    "NORMA",
    "RDA",
    "SDCA",
    "SGD",
    "SVRG",
    "AdaGradFOBOS",
    "AdaGradRDA",
    "Averaged",
    "FullAdaGradFOBOS",
    "FullAdaGradRDA",
    "KernelPegasos",
    "Kernelized",
    "Pegasos",
]
