"""Targets: what each ranker is to learn, on the host and in the compiled program."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsolvers.csr import Csr
from jaxsolvers.engine.sizes import bucket, extended
from jaxsolvers.members import Array, arrays


@dataclasses.dataclass(frozen=True, eq=False)
class Copies:
    """Every ranker several times: at each point of a grid of numbers, without each fold of rows.

    The rankers of a run are then in the order (point, fold, class), the class fastest.
    """

    points: int
    fold: np.ndarray | None = None  # (n,) int32, the fold of each row; None: no row is held out
    n_folds: int = 1

    @property
    def count(self) -> int:
        """Copies of each ranker."""
        return self.points * self.n_folds

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Values (folds, rankers, ...) for all copies, (points * folds * rankers, ...)."""
        whole = np.broadcast_to(values, (self.points, *values.shape))
        return whole.reshape(-1, *values.shape[2:])


@dataclasses.dataclass(frozen=True, eq=False)
class Targets:
    """The targets of a run. A ranker's own are made a block at a time, never for all at once."""

    values: np.ndarray | Csr  # (n,) int32 codes, (n, K) sets of codes, or (n,) floats for all
    n_rankers: int
    classes: np.ndarray | None  # as LinearModel.classes
    positive_weight: np.ndarray  # () or (K,)
    negatives: float | None = None  # negative rows drawn per positive one; all by default
    output: str = "label"  # as LinearModel.output
    together: int | None = None  # classes trained as one problem, of weights (K, d); n_rankers is 1
    joint: bool = False  # by a loss of all their scores at once
    copies: Copies = Copies(1)

    @property
    def per_ranker(self) -> bool:
        """Whether rankers differ in their targets: +1 for their own code, -1 for others."""
        return not self.joint and (isinstance(self.values, Csr) or self.values.dtype == np.int32)

    @property
    def n_classes(self) -> int:
        """Classes that have weights of their own."""
        return self.n_alone if self.together is None else self.together

    @property
    def n_alone(self) -> int:
        """Rankers of one copy."""
        return self.n_rankers // self.copies.count

    def training(self, weight: np.ndarray) -> list[np.ndarray]:
        """The weights (n,) of the rows that the rankers of each fold train on."""
        fold = self.copies.fold
        if fold is None:
            return [weight]
        return [np.where(fold == held_out, 0, weight) for held_out in range(self.copies.n_folds)]

    def positives(self, weight: np.ndarray) -> np.ndarray:
        """Sum of the weights (n,) of the positive rows of each ranker or class, (K,)."""
        if isinstance(self.values, Csr):
            entries = np.repeat(weight, self.values.lengths)
            return np.bincount(self.values.indices, weights=entries, minlength=self.n_classes)
        if self.per_ranker or self.joint:
            return np.bincount(self.values, weights=weight, minlength=self.n_classes)
        return np.full(self.n_alone, weight[self.values > 0].sum())


@arrays
class LabelSets:
    """The label sets of a slab's rows, block by block, without padding between them."""

    codes: Any  # (L,) int32
    rows: Any  # (L,) int32, the row of the block
    starts: Any  # (S + 1,) int32
    n_rows: int = dataclasses.field(metadata={"static": True})  # B
    most: int = dataclasses.field(metadata={"static": True})  # labels of a block, at most

    @classmethod
    def of(cls, sets: Csr, blocks: int, rows: int, most: int) -> Self:
        """The sets of consecutive rows as ``blocks`` blocks, on the host."""
        ends = sets.indptr[np.minimum(rows * np.arange(blocks + 1), sets.shape[0])]
        capacity = bucket(blocks * most) + most  # a slice more: none is ever clamped
        place = np.repeat(np.arange(sets.shape[0]) % rows, sets.lengths)
        return cls(
            codes=extended(sets.indices, capacity, np.int32),
            rows=extended(place, capacity, np.int32),
            starts=ends.astype(np.int32),
            n_rows=rows,
            most=most,
        )

    def block(self, i: Array, codes: Array, cycle: int | None, dtype: Any) -> Array:
        """Targets of block i for the rankers of these codes, (T, B).

        Codes are consecutive; of rankers in copies they begin again at 0 after every ``cycle``.
        """
        n_rankers, first = len(codes), codes[0]
        if cycle is not None and cycle < n_rankers:  # of each code several times
            every = jnp.arange(cycle, dtype=codes.dtype)
            return self.block(i, every, None, dtype)[codes]
        start, stop = self.starts[i], self.starts[i + 1]
        code = lax.dynamic_slice_in_dim(self.codes, start, self.most) - first
        if cycle is not None:
            code = jnp.where(code < 0, code + cycle, code)
        row = lax.dynamic_slice_in_dim(self.rows, start, self.most)
        own = (jnp.arange(self.most, dtype=start.dtype) < stop - start) & (code >= 0)
        code = jnp.where(own, code, n_rankers)  # dropped: JAX would wrap a negative place
        negative = jnp.full((n_rankers, self.n_rows), -1, dtype)
        return negative.at[code, row].set(jnp.ones((), dtype), mode="drop")
