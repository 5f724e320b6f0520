"""jaxsolvers: Pegasos, AdaGrad and the solvers around them as pure JAX functions."""

from jaxsolvers import losses, metrics, regularizers
from jaxsolvers.engine.run import Fit, fit
from jaxsolvers.engine.state import TrainState
from jaxsolvers.models import LinearModel
from jaxsolvers.multiclass import fit_one_vs_rest
from jaxsolvers.solvers.adagrad import AdaGradFOBOS, AdaGradRDA
from jaxsolvers.solvers.averaged import Averaged
from jaxsolvers.solvers.pegasos import Pegasos

__version__ = "0.1.0"

__all__ = [
    "AdaGradFOBOS",
    "AdaGradRDA",
    "Averaged",
    "Fit",
    "LinearModel",
    "Pegasos",
    "TrainState",
    "fit",
    "fit_one_vs_rest",
    "losses",
    "metrics",
    "regularizers",
]
