"""jaxsolvers: Pegasos, AdaGrad and the solvers around them as pure JAX functions."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jaxsolvers import feature_maps, kernels, losses, metrics, regularizers
from jaxsolvers.conversion import convert
from jaxsolvers.engine.run import Fit, fit
from jaxsolvers.engine.state import TrainState
from jaxsolvers.models import KernelModel, LinearModel, OneVsOneModel, load
from jaxsolvers.multiclass import fit_one_vs_rest
from jaxsolvers.one_vs_one import fit_one_vs_one
from jaxsolvers.selection import GridResult, LambdaPath, grid_search, lambda_path, online_selection
from jaxsolvers.solvers.adagrad import AdaGradFOBOS, AdaGradRDA
from jaxsolvers.solvers.adagrad_full import FullAdaGradFOBOS, FullAdaGradRDA
from jaxsolvers.solvers.arow import AROW
from jaxsolvers.solvers.averaged import Averaged
from jaxsolvers.solvers.budgeted_pegasos import BudgetedPegasos
from jaxsolvers.solvers.fobos import FOBOS
from jaxsolvers.solvers.kernel_pegasos import KernelPegasos
from jaxsolvers.solvers.kernelized import Kernelized
from jaxsolvers.solvers.norma import NORMA
from jaxsolvers.solvers.passive_aggressive import PassiveAggressive
from jaxsolvers.solvers.pegasos import Pegasos
from jaxsolvers.solvers.rda import RDA
from jaxsolvers.solvers.sdca import SDCA
from jaxsolvers.solvers.sgd import SGD
from jaxsolvers.solvers.svrg import SVRG

if TYPE_CHECKING:
    from jaxsolvers import data, structured, theory, transforms

__version__ = "0.1.0"

_LAZY = ("data", "structured", "theory", "transforms")  # loaded when first used

__all__ = [
    "AROW",
    "FOBOS",
    "NORMA",
    "RDA",
    "SDCA",
    "SGD",
    "SVRG",
    "AdaGradFOBOS",
    "AdaGradRDA",
    "Averaged",
    "BudgetedPegasos",
    "Fit",
    "FullAdaGradFOBOS",
    "FullAdaGradRDA",
    "GridResult",
    "KernelModel",
    "KernelPegasos",
    "Kernelized",
    "LambdaPath",
    "LinearModel",
    "OneVsOneModel",
    "PassiveAggressive",
    "Pegasos",
    "TrainState",
    "convert",
    "data",
    "feature_maps",
    "fit",
    "fit_one_vs_one",
    "fit_one_vs_rest",
    "grid_search",
    "kernels",
    "lambda_path",
    "load",
    "losses",
    "metrics",
    "online_selection",
    "regularizers",
    "structured",
    "theory",
    "transforms",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"jaxsolvers.{name}")
    raise AttributeError(f"module 'jaxsolvers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
