"""When a ranker has trained enough: what is watched, and what was seen of it."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np

from jaxsolvers import checks
from jaxsolvers.members import arrays


@dataclasses.dataclass(frozen=True)
class Rule:
    """A ranker stops when what is watched improved by less than ``tol`` in ``patience`` epochs.

    They follow one another; an epoch improves by the least value before it minus its own. What is
    before the first epoch is not measured: a run stops after 1 + patience epochs at the earliest.
    """

    name: str  # "objective", "gap" or "eval_set"
    tol: float
    patience: int

    @property
    def watched(self) -> str:
        """Its name in the history."""
        return "eval_loss" if self.name == "eval_set" else self.name


def check_rule(tol: Any, patience: Any, name: str) -> Rule | None:
    """The rule of these arguments; None without ``tol``.

    Raises:
      ValueError: tol that is no finite number >= 0, patience that is no integer >= 1.
    """
    patience = checks.check_integer(patience, "patience")
    if tol is None:
        return None
    value = checks.check_reals(tol, "tol", "be None or a finite number >= 0")
    if value.ndim or not np.isfinite(value) or value < 0:
        raise ValueError(f"tol must be None or one finite number >= 0, got {tol!r}")
    return Rule(name, float(value), patience)


@arrays
class Seen:
    """What a rule has seen of each ranker, K of them."""

    best: Any  # (K,) float64, the least value so far
    waited: Any  # (K,) int32, epochs since the last one that improved by tol
    stopped: Any  # (K,) bool
    rule: Rule = dataclasses.field(metadata={"static": True})

    @classmethod
    def of(cls, rule: Rule, n_rankers: int, before: Any) -> Self:
        """Nothing seen yet; or what an earlier run with the same rule has, copied."""
        if before is not None and before.rule == rule:
            best, waited, stopped = (
                np.atleast_1d(np.array(field))
                for field in (before.best, before.waited, before.stopped)
            )
            return cls(best, waited, stopped, rule)
        return cls(
            np.full(n_rankers, np.inf),
            np.zeros(n_rankers, np.int32),
            np.zeros(n_rankers, bool),
            rule,
        )

    def see(self, at: np.ndarray, values: np.ndarray) -> None:
        """Take in the values that the rankers ``at`` have after an epoch."""
        with np.errstate(invalid="ignore"):  # inf - inf of a ranker that is being lost
            improved = self.best[at] - values >= self.rule.tol
        self.best[at] = np.fmin(self.best[at], values)
        self.waited[at] = np.where(improved, 0, self.waited[at] + 1)
        self.stopped[at] = self.waited[at] >= self.rule.patience
