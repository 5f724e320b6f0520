"""Rows from a source: read once to know them, then once per epoch, never all in memory.

What a run must know beforehand (labels, weights, how many rows) is small and kept; the features
pass by in *windows* of whole blocks. A window is trained on like the rows of an array: the
engine behind it is the same, and so is the result in file order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from jaxsolvers.csr import Csr, check_csr, is_sparse
from jaxsolvers.engine.batches import as_source
from jaxsolvers.engine.inputs import Examples, check_rows, working_dtype
from jaxsolvers.engine.slabs import Data, Slab, Slabs, SlabShape

WINDOW_BYTES = 1 << 25


@dataclasses.dataclass(frozen=True, eq=False)
class Stream:
    """A source whose rows were counted."""

    source: Any  # a jaxsolvers.data.Source
    shape: tuple[int, int]
    sparse: bool
    window: int  # rows that are held together, about

    def first_window(self) -> Any:
        """The features of the first rows, to measure by."""
        for chunk in _rechunked(self.source, self.window):
            return check_rows(chunk[0], self.shape[1])

    def windows(self, rows: int) -> Iterator[Any]:
        """The features of consecutive ``rows`` rows, checked."""
        seen = 0
        for chunk in _rechunked(self.source, rows):
            X = chunk[0]
            seen += X.shape[0]
            if seen > self.shape[0]:
                break
            yield check_rows(X, self.shape[1])
        if seen != self.shape[0]:
            raise ValueError(
                f"X must give the same rows in every epoch: it gave {self.shape[0]} when it was "
                f"first read, now {'more' if seen > self.shape[0] else seen}"
            )


def _rechunked(source: Any, rows: int) -> Any:
    # Here and not above: importing jaxsolvers loads no data.
    from jaxsolvers.data.sources import rechunk

    return rechunk(source, rows)


def is_source(X: Any) -> bool:
    """Whether X is a source of rows rather than rows."""
    return hasattr(X, "n_features") and hasattr(X, "__iter__") and not hasattr(X, "shape")


class Given(NamedTuple):
    """What a user handed in as X, y and sample_weight."""

    examples: Examples
    y: Any
    sample_weight: Any


def read_given(X: Any, y: Any, sample_weight: Any) -> Given:
    """X, y and the weights; for a source the latter two are gathered from it.

    Raises:
      ValueError: y or sample_weight beside a source, y missing beside an array, chunks that do
        not fit together; the message names the argument.
    """
    if y is None and not is_source(X):
        X = as_source(X) or X
    if not is_source(X):
        if y is None:
            raise ValueError(
                "y must be given, got None; only batches and a source of js.data have their own"
            )
        rows = check_rows(X)
        return Given(Examples(rows, working_dtype(rows.dtype)), y, sample_weight)
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise ValueError(f"{name} must be None for a source, which has its own")
    n = entries = 0
    labels: list[Any] = []
    weights: list[Any] = []
    kinds: set[bool] = set()
    for chunk in X:
        if hasattr(chunk, "qid"):
            raise ValueError("X must be a source without query ids: read it with query_id=False")
        rows = chunk[0]
        n += rows.shape[0]
        kinds.add(is_sparse(rows))
        entries += rows.nnz if is_sparse(rows) else rows.size
        labels.append(chunk[1])
        weights.append(chunk[2] if len(chunk) > 2 else None)
    if n == 0:
        raise ValueError("X must have at least one row, got 0 samples from the source")
    if len(kinds) > 1 or len({weight is None for weight in weights}) > 1:
        raise ValueError(
            "X must be a source whose chunks are all alike, sparse and weighted or not"
        )
    dtype = np.dtype(X.dtype)
    per_row = max(1, entries // n) * (dtype.itemsize + 4 * kinds.pop())
    sparse = is_sparse(chunk[0])
    stream = Stream(X, (n, int(X.n_features)), sparse, max(1, WINDOW_BYTES // per_row))
    weight: Any = None if weights[0] is None else np.concatenate(weights)
    return Given(Examples(stream, working_dtype(dtype)), _joined(labels), weight)


def _joined(labels: list[Any]) -> Any:
    if not is_sparse(labels[0]):
        return np.concatenate([np.asarray(part) for part in labels])
    parts = [check_csr(part, name="y") for part in labels]
    widths = {part.shape[1] for part in parts}
    if len(widths) > 1:
        raise ValueError(f"y must have the same columns in every chunk, got widths {widths}")
    return Csr(
        np.concatenate([part.data for part in parts]),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([[0], np.cumsum(np.concatenate([part.lengths for part in parts]))]),
        (sum(part.shape[0] for part in parts), widths.pop()),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class StreamSlabs(Slabs):
    """The slabs of a source: those of one window after the other."""

    rows: int  # of a window
    make: Callable[..., Slabs]  # (data, like=the slabs of the window before)

    def epoch(self, number: int, survey: bool = False) -> Iterator[tuple[Slab, float]]:
        start = 0
        like: Slabs | None = None
        for i, window in enumerate(self.data.examples.values.windows(self.rows)):
            stop = start + window.shape[0]
            data = dataclasses.replace(
                self.data,
                examples=Examples(window, self.data.examples.dtype),
                target=self._part(start, stop),
                weight=self.data.weight[start:stop],
                first=start,
                window=i,
            )
            like = self.make(data, like=like)
            yield from like.epoch(number, survey)
            start = stop

    def _part(self, start: int, stop: int) -> Any:
        target = self.data.target
        at = slice(start, stop)
        return target.take(at) if isinstance(target, Csr) else target[at]


def stream_slabs(data: Data, block: int, make: Callable[..., Slabs]) -> StreamSlabs:
    """The slabs of a source, in windows of whole blocks of ``block`` rows."""
    rows = -(-data.examples.values.window // block) * block
    return StreamSlabs(data, SlabShape(1, block), rows, make)
