"""Scores of any number of rows by any number of rankers, a tile of each at a time.

Blocks of rows by tiles of rankers: no array made on the way holds much more than ``_NUMBERS``
numbers, and their shapes are few, so that few programs are compiled. Sparse rows become a dense
block over the columns that occur in it; sparse or large coefficients become dense a tile at a
time.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.checks import check_finite, check_matrix
from jaxsolvers.csr import Csr, check_csr, is_sparse
from jaxsolvers.features import product
from jaxsolvers.members import Array

_NUMBERS = 1 << 22  # numbers in an array made on the way: 16 MB of float32
_ROWS = 4096  # rows of a block at most
_FEW_ROWS = 64  # rows of a dense block at least: fewer would read the coefficients too often
_SPARSE_NUMBERS = 1 << 19  # in a block of sparse rows: more of them are mostly zeros
_NARROW = 8  # columns of a sparse block at least
_MANY = 1 << 14  # rankers scored together at most


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """Some rows, ready to be scored."""

    start: int  # the first of them among all rows
    count: int  # rows of the user; the others are padding
    values: Array  # (R, m)
    columns: np.ndarray | None  # (m,) int32 ascending, d for padding; None: all d of them

    @property
    def rows(self) -> slice:
        """Their place among all rows."""
        return slice(self.start, self.start + self.count)


@dataclasses.dataclass(frozen=True, eq=False)
class Rankers:
    """K rankers, or a single one, where their coefficients lie."""

    coef: Any  # jax.Array or np.ndarray (K, d), (d,) for a single one; Csr (K, d)
    intercept: np.ndarray  # (K,) or ()
    dtype: np.dtype  # of the scores
    device: Any  # where the scores are computed; None: where JAX likes, or over several devices

    @property
    def count(self) -> int | None:
        """K, or None for a single one."""
        return self.coef.shape[0] if self.intercept.ndim else None

    def check(self, X: Any) -> Any:
        """X as a Csr, or as a dense array, once it fits and is finite."""
        if is_sparse(X):
            return check_csr(X, self.coef.shape[-1])
        X = check_matrix(X, self.coef.shape[-1])
        check_finite(X, "X")
        return X

    def blocks(self, X: Any, per_row: int = 1) -> Iterator[Block]:
        """Consecutive rows of X, which is checked; ``per_row`` numbers are kept of each row."""
        most = rows_at_most(max(min(self.count or 1, _MANY), per_row))
        if isinstance(X, Csr):
            yield from self._sparse_blocks(X, most)
            return
        n, d = X.shape
        most = min(most, max(_FEW_ROWS, _power_below(max(1, _NUMBERS // d))))
        for start in range(0, max(n, 1), most):
            piece = X[start : start + most]
            size = min(most, _power_above(piece.shape[0]))
            yield Block(start, piece.shape[0], self._placed(piece, size), None)

    def tiles(self, block: Block) -> Iterator[tuple[int, Array]]:
        """Yield (first ranker, scores (R, T)) of consecutive rankers, all of them."""
        assert self.count is not None
        size = min(self.count, self._tile(block))
        before: Any = None
        for start in range(0, self.count, size):
            # The last tile begins early and drops what is not new: all have one shape, so that
            # equal rankers have equal scores.
            first = min(start, self.count - size)
            scores = self.scores(block, first, size)
            if before is not None:
                before.block_until_ready()  # or tiles that wait for their turn would pile up
            before = scores
            yield start, scores[:, start - first :] if start > first else scores

    def panels(self, block: Block, least: int) -> Iterator[tuple[int, Array]]:
        """Tiles put together until at least ``least`` rankers are in each but the last."""
        start = 0
        waiting: list[Array] = []
        for first, scores in self.tiles(block):
            start = start if waiting else first
            waiting.append(scores)
            if first + scores.shape[1] - start >= least:
                yield start, _side_by_side(waiting)
                waiting = []
        if waiting:
            yield start, _side_by_side(waiting)

    def scores(self, block: Block, start: int = 0, size: int | None = None) -> Array:
        """Scores of consecutive rankers, (R, size); of a single one (R,)."""
        size = (self.count or 1) if size is None else size
        if isinstance(self.coef, jax.Array):
            whole = size == self.count or self.count is None
            place = None if whole else np.int32(start)
            columns = block.columns
            return _scores(self.coef, self.intercept, block.values, place, columns, size=size)
        if isinstance(self.coef, Csr):
            tile, at = _sparse_tile(self.coef.take(slice(start, start + size)), block, self.dtype)
        else:
            tile, at = _dense_tile(self.coef[start : start + size], block, self.dtype), None
        own = self.intercept[start : start + size]
        values = block.values if at is None else _columns(block.values, at)
        return _scores(jax.device_put(tile, self.device), own, values, None, None, size=size)

    def _tile(self, block: Block) -> int:
        rows, width = block.values.shape
        ready = isinstance(self.coef, jax.Array) and self.coef.dtype == self.dtype
        if ready and block.columns is None and (self.count or 1) * rows <= _NUMBERS:
            return self.count or 1  # nothing is copied: their size does not matter
        return _power_below(min(_MANY, max(1, _NUMBERS // max(rows, width))))

    def _sparse_blocks(self, X: Csr, most: int) -> Iterator[Block]:
        n, d = X.shape
        start = 0
        while start < max(n, 1):
            size = min(most, _power_above(n - start))
            while size > 1 and not _fits(_entries(X, start, size), size, d):
                size //= 2
            piece = X.take(slice(start, start + size))
            columns, local = piece.active()
            width = _power_above(max(len(columns), _NARROW))
            padded: np.ndarray | None = None
            if width >= d:
                width, local = d, piece.indices
            else:
                padded = np.full(width, d, np.int32)
                padded[: len(columns)] = columns
            values = np.zeros((size, width), self.dtype)
            row = np.repeat(np.arange(piece.shape[0]), piece.lengths)
            with np.errstate(over="ignore"):
                values[row, local] = piece.data
            self._check_range(values, piece.dtype)
            yield Block(start, piece.shape[0], jax.device_put(values, self.device), padded)
            start += size

    def _placed(self, piece: Any, size: int) -> Array:
        """Rows as ``dtype`` on the device, zeros below them."""
        count = piece.shape[0]
        if isinstance(piece, jax.Array) and self.device is not None:
            moved = jax.device_put(piece, self.device).astype(self.dtype)
            self._check_range(moved, piece.dtype)
            return jnp.pad(moved, ((0, size - count), (0, 0)))
        values = np.zeros((size, piece.shape[1]), self.dtype)
        with np.errstate(over="ignore"):
            values[:count] = piece
        self._check_range(values, piece.dtype)
        return jax.device_put(values, self.device)

    def _check_range(self, values: Any, given: Any) -> None:
        """X is finite: what is not finite any more left the range of the narrower dtype."""
        wider = given.itemsize > self.dtype.itemsize and jnp.issubdtype(given, jnp.floating)
        if wider and not bool(_all_finite(values)):
            raise ValueError(
                f"X must be within the range of {self.dtype}, in which this model scores, "
                f"got larger numbers of dtype {given}"
            )


def _dense_tile(coef: np.ndarray, block: Block, dtype: Any) -> np.ndarray:
    """Rankers on the columns of a block, (T, m)."""
    if block.columns is None:
        return coef.astype(dtype, copy=False)
    tile = np.zeros((coef.shape[0], len(block.columns)), dtype)
    present = np.searchsorted(block.columns, coef.shape[1])
    tile[:, :present] = coef[:, block.columns[:present]]
    return tile


def _sparse_tile(coef: Csr, block: Block, dtype: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """(rankers on some columns of a block (T, l), the places of these in it (l,); None: all)."""
    (size, d), width = coef.shape, block.values.shape[1]
    row, at = np.repeat(np.arange(size), coef.lengths), coef.indices
    kept: Any = slice(None)
    if block.columns is not None:
        place = np.full(d + 1, -1, np.int32)  # of each column in the block
        place[block.columns] = np.arange(width, dtype=np.int32)
        place[d] = -1
        at = place[at]
        kept = at >= 0
        row, at = row[kept], at[kept]
    common, local = np.unique(at, return_inverse=True)
    narrow = _power_above(max(len(common), _NARROW))
    few: np.ndarray | None = None
    if narrow <= width // 2:  # columns without an entry on one side need no product
        few = np.full(narrow, width, np.int32)
        few[: len(common)] = common
        width, at = narrow, local
    tile = np.zeros((size, width), dtype)
    tile[row, at] = coef.data[kept]
    return tile, few


def rankers_of(coef: Any, intercept: Any) -> Rankers:
    """The rankers of a model; small ones on the host move to the device at once."""
    dtype = working_dtype(coef.dtype)
    intercept = np.asarray(intercept).astype(dtype)
    device = None
    if isinstance(coef, jax.Array):
        devices = coef.devices()
        device = next(iter(devices)) if len(devices) == 1 else None
    elif intercept.ndim == 0 or coef.shape[0] * coef.shape[1] <= _NUMBERS:
        dense = coef.dense(dtype) if isinstance(coef, Csr) else coef.astype(dtype, copy=False)
        dense = dense[0] if intercept.ndim == 0 and dense.ndim == 2 else dense
        coef = jax.device_put(dense)
        device = next(iter(coef.devices()))
    return Rankers(coef, intercept, dtype, device)


def working_dtype(dtype: Any) -> np.dtype:
    """The dtype of scores: float32 for 16-bit coefficients, else that of the coefficients."""
    native = np.dtype(dtype).newbyteorder("=")
    if not jnp.issubdtype(native, jnp.floating):
        return np.dtype(jnp.result_type(float))
    if native.itemsize > 4:
        if jnp.result_type(float) == np.float32:
            warnings.warn(
                f"coef is {native} but 64-bit mode is off: scores are computed in float32 "
                '(jax.config.update("jax_enable_x64", True) turns it on)',
                UserWarning,
                stacklevel=5,
            )
            return np.dtype(np.float32)
        return np.dtype(np.float64)
    return np.dtype(np.float32)


def rows_at_most(per_row: int) -> int:
    """Rows of a block of which ``per_row`` numbers each are held."""
    return _power_below(min(_ROWS, max(1, _NUMBERS // per_row)))


def _power_below(number: int) -> int:
    """The largest power of two that is not larger."""
    return 1 << (number.bit_length() - 1)


def _power_above(number: int) -> int:
    """The smallest power of two that is not smaller."""
    return 1 << max(number - 1, 0).bit_length()


def _fits(entries: int, rows: int, d: int) -> bool:
    """Whether rows with so many entries make a block; with few columns in common, a small one."""
    return rows * d <= _NUMBERS if entries >= d else rows * entries <= _SPARSE_NUMBERS


def _entries(X: Csr, start: int, size: int) -> int:
    return int(X.indptr[min(start + size, X.shape[0])] - X.indptr[start])


def _all_finite(values: Any) -> Any:
    return (
        np.isfinite(values).all() if isinstance(values, np.ndarray) else jnp.isfinite(values).all()
    )


def _side_by_side(pieces: list[Array]) -> Array:
    return jnp.concatenate(pieces, axis=1) if len(pieces) > 1 else pieces[0]


@jax.jit
def _columns(values: Array, at: Any) -> Array:
    return jnp.take(values, at, axis=1, mode="fill", fill_value=0)


@partial(jax.jit, static_argnames="size")
def _scores(
    coef: Array, intercept: Array, X: Array, start: Any, columns: Any, *, size: int
) -> Array:
    if start is not None:
        coef = jax.lax.dynamic_slice_in_dim(coef, start, size)
        intercept = jax.lax.dynamic_slice_in_dim(intercept, start, size)
    if columns is not None:
        coef = jnp.take(coef, columns, axis=-1, mode="fill", fill_value=0)
    scores = product(X, coef.astype(X.dtype).T)
    return scores + (intercept if coef.ndim == 1 else intercept[None])
