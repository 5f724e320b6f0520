"""Slabs of one ranker after another, each of its own sparse rows."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

from jaxsolvers.engine.slabs import Data, Slabs, SlabShape


@dataclasses.dataclass(frozen=True, eq=False)
class RankerSlabs(Slabs):
    """The slabs of the rankers, a tile of one lane each."""

    make: Callable[..., Slabs]  # (data, like=slabs whose sizes are to be kept)

    def of(self, start: int, stop: int) -> Slabs:
        return self.make(self.data.part(start), like=self._first) if start else self._first

    @functools.cached_property
    def _first(self) -> Slabs:
        """Those of the longest ranker: the others use its programs where they fit."""
        return self.make(self.data.part(0))


def ranker_slabs(data: Data, block: int, make: Callable[..., Slabs]) -> RankerSlabs:
    """The slabs of each ranker's rows, in blocks of ``block`` rows.

    Raises:
      ValueError: several devices, of which all but one would idle; the message names mesh.
    """
    if data.mesh.size > 1:
        raise ValueError(
            "mesh must have one device for sparse rows of their own, whose rankers are trained "
            f"one by one, got {data.mesh.size}"
        )
    return RankerSlabs(data, SlabShape(1, block), make)
