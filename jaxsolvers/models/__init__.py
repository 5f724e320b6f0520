"""Models: what training leaves behind to predict with, and their files."""

from jaxsolvers.models.kernel import KernelModel
from jaxsolvers.models.linear import LinearModel, Pruned
from jaxsolvers.models.loading import load
from jaxsolvers.models.structured import StructuredModel

__all__ = ["KernelModel", "LinearModel", "Pruned", "StructuredModel", "load"]
