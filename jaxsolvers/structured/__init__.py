"""Structured problems: answers made of parts, learnt by any solver of one weight vector.

A problem is a feature map and a loss-augmented decoder (``StructuredProblem``); ``LinearChain``
labels sequences. ``fit_structured`` trains it and gives a ``StructuredModel``.
"""

from jaxsolvers.decoding import LinearChain, StructuredProblem
from jaxsolvers.models.structured import StructuredModel
from jaxsolvers.structured.fitting import fit_structured, objective

__all__ = ["LinearChain", "StructuredModel", "StructuredProblem", "fit_structured", "objective"]
