"""Batches of rows in plain Python: what can be read again is a source like those of js.data."""

from __future__ import annotations

import collections.abc
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from jaxsolvers.csr import is_sparse


def is_one_shot(X: Any) -> bool:
    """Whether X gives batches and can be read once only."""
    return isinstance(X, collections.abc.Iterator) and not hasattr(X, "shape")


def is_batch(value: Any) -> bool:
    """Whether a value is rows with their targets and perhaps weights."""
    if not isinstance(value, tuple | list) or len(value) not in (2, 3):
        return False
    rows = value[0]
    if is_sparse(rows) or len(getattr(rows, "shape", ())) == 2:
        return True
    first = rows[0] if isinstance(rows, tuple | list) and rows else None
    return isinstance(first, tuple | list) and np.ndim(first) == 1


def as_source(X: Any) -> Any:
    """Batches that can be read again as a source; a single batch is one of them. Else None."""
    if isinstance(X, tuple) and is_batch(X):
        return Batches([X])
    if isinstance(X, tuple | list):
        return Batches(X) if X and is_batch(X[0]) else None
    plain = isinstance(X, collections.abc.Iterable) and not isinstance(X, str | bytes | dict)
    return Batches(X) if plain and not is_sparse(X) and not hasattr(X, "shape") else None


class Batches:
    """Batches as a source of ``js.data``; their width and dtype are those of the first one."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = batches
        first: Any = next(iter(batches), None)
        if not is_batch(first):
            raise ValueError(
                f"X must hold batches (X, y) or (X, y, sample_weight), got {shown(first)} as the "
                "first"
            )
        from jaxsolvers.data.sources import ArraySource  # importing jaxsolvers loads no data

        like = ArraySource(*first)
        self.n_features, self.dtype = like.n_features, like.dtype

    def __iter__(self) -> Iterator[Any]:
        from jaxsolvers.data.chunks import ChunkCheck

        return map(ChunkCheck(self.n_features, self.dtype), self._batches)


def shown(value: Any) -> str:
    """What was found in the place of a batch, for error messages."""
    if isinstance(value, tuple | list):
        return f"{type(value).__name__} of {len(value)} parts"
    return "nothing" if value is None else type(value).__name__
