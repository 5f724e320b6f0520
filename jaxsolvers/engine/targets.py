"""Targets: what each ranker is to learn, on the host and in the compiled program."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsolvers.csr import Csr
from jaxsolvers.engine.own_rows import OwnRows
from jaxsolvers.engine.sizes import bucket, extended
from jaxsolvers.members import Array, arrays


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
    own: OwnRows | None = None  # the rows of each ranker; all of them by default

    @property
    def per_ranker(self) -> bool:
        """Whether rankers differ in their targets: +1 for their own code, -1 for others."""
        return not self.joint and (isinstance(self.values, Csr) or self.values.dtype == np.int32)

    @property
    def n_classes(self) -> int:
        """Classes that have weights of their own."""
        return self.n_rankers if self.together is None else self.together

    def positives(self, weight: np.ndarray) -> np.ndarray:
        """Sum of the weights (n,) of the positive rows of each ranker or class, (K,)."""
        if self.own is not None:
            return self.own.sums(weight)[1]
        if isinstance(self.values, Csr):
            entries = np.repeat(weight, self.values.lengths)
            return np.bincount(self.values.indices, weights=entries, minlength=self.n_classes)
        if self.per_ranker or self.joint:
            return np.bincount(self.values, weights=weight, minlength=self.n_classes)
        return np.full(self.n_rankers, weight[self.values > 0].sum())

    def totals(self, weight: np.ndarray) -> np.ndarray:
        """Sum of the weights (n,) of all rows of each ranker or class, (K,)."""
        if self.own is not None:
            return self.own.sums(weight)[0]
        return np.full(self.n_classes, weight.sum())

    def name(self, ranker: int) -> Any:
        """What a user calls a ranker: its label, both labels of a pair, or its number."""
        if self.classes is None:
            return ranker
        if self.own is not None:
            return tuple(self.classes[self.own.pairs[ranker]].tolist())
        return self.classes[ranker : ranker + 1].tolist()[0]


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

    def block(self, i: Array, codes: Array, dtype: Any, scattered: bool) -> Array:
        """Targets of block i for the rankers of these ``codes`` (T,), (T, B).

        Codes that are not ``scattered`` follow one another; of those that are, the first of a
        code that occurs twice is its ranker, the others are dummies.
        """
        start, stop = self.starts[i], self.starts[i + 1]
        code = lax.dynamic_slice_in_dim(self.codes, start, self.most)
        row = lax.dynamic_slice_in_dim(self.rows, start, self.most)
        own = jnp.arange(self.most, dtype=start.dtype) < stop - start
        if scattered:
            same = codes[:, None] == code[None, :]
            lane = jnp.argmax(same, axis=0).astype(code.dtype)
            own &= jnp.any(same, axis=0)
        else:
            lane = code - codes[0]
            own &= lane >= 0
        lane = jnp.where(own, lane, len(codes))  # dropped: JAX would wrap a negative place
        negative = jnp.full((len(codes), self.n_rows), -1, dtype)
        return negative.at[lane, row].set(jnp.ones((), dtype), mode="drop")
