"""Models: what training leaves behind to predict with, and their files."""

from jaxsolvers.models.kernel import KernelModel
from jaxsolvers.models.linear import LinearModel, Pruned
from jaxsolvers.models.loading import load
from jaxsolvers.models.one_vs_one import OneVsOneModel
from jaxsolvers.models.structured import StructuredModel

__all__ = ["KernelModel", "LinearModel", "OneVsOneModel", "Pruned", "StructuredModel", "load"]
