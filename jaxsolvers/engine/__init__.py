"""The engine: one compiled program, a tile of rankers by a slab of blocks, and its host loops."""

from jaxsolvers.engine.run import Fit, fit

__all__ = ["Fit", "fit"]
