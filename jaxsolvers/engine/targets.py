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
    own: OwnRows | None = None  # the rows of each ranker; all of them by default
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
        if self.own is not None:
            return self.own.sums(weight)[1]
        if isinstance(self.values, Csr):
            entries = np.repeat(weight, self.values.lengths)
            return np.bincount(self.values.indices, weights=entries, minlength=self.n_classes)
        if self.per_ranker or self.joint:
            return np.bincount(self.values, weights=weight, minlength=self.n_classes)
        return np.full(self.n_alone, weight[self.values > 0].sum())

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

    def block(
        self, i: Array, codes: Array, dtype: Any, scattered: bool, cycle: int | None = None
    ) -> Array:
        """Targets of block i for the rankers of these ``codes`` (T,), (T, B).

        Codes that are not ``scattered`` follow one another, and of rankers in copies they begin
        again at 0 after every ``cycle``; of those that are, the first of a code that occurs twice
        is its ranker, the others are dummies.
        """
        if cycle is not None and cycle < len(codes):  # of each code several times
            every = jnp.arange(cycle, dtype=codes.dtype)
            return self.block(i, every, dtype, False)[codes]
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
            if cycle is not None:
                lane = jnp.where(lane < 0, lane + cycle, lane)
            own &= lane >= 0
        lane = jnp.where(own, lane, len(codes))  # dropped: JAX would wrap a negative place
        negative = jnp.full((len(codes), self.n_rows), -1, dtype)
        return negative.at[lane, row].set(jnp.ones((), dtype), mode="drop")
