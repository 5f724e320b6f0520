"""An average of the iterates, carried through the rounds of any solver."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsolvers.members import Array


class Running(NamedTuple):
    """An average of the iterates carried through a sweep: ``value <- keep value + add w``.

    ``rule.weigh(counts, weight, rounds) -> (counts, keep, add)`` says by how much, given the
    round's row weights; ``counts`` is whatever the rule must remember.
    """

    value: Array  # (d,)
    offset: Any  # (), of the solver's own bias; None without one
    counts: Any
    rule: Any

    def take(self, weights: Array, offset: Any, weight: Array, rounds: Array) -> Running:
        """The average after a batch of ``rounds`` rounds made at ``weights`` and a bias."""
        counts, keep, add = self.rule.weigh(self.counts, weight, rounds)

        # With nothing to add the average stays as it is, to the bit.
        def mean(old: Array, new: Array) -> Array:
            return jnp.where(add > 0, keep * old + add * new, old)

        moved = None if self.offset is None else mean(self.offset, offset)
        return Running(mean(self.value, weights), moved, counts, self.rule)
