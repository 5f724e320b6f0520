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

    name: str  # "objective", "gap" (the least objective so far minus the dual one) or "eval_set"
    tol: float
    patience: int

    @property
    def watched(self) -> tuple[str, ...]:
        """What it needs of the history."""
        if self.name == "gap":
            return ("gap", "objective")
        return ("eval_loss" if self.name == "eval_set" else self.name,)


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
    objective: Any  # (K,) float64, the least objective so far, where the rule is the gap
    waited: Any  # (K,) int32, epochs since the last one that improved by tol
    stopped: Any  # (K,) bool
    rule: Rule = dataclasses.field(metadata={"static": True})

    @classmethod
    def of(cls, rule: Rule, n_rankers: int, before: Any) -> Self:
        """Nothing seen yet; or what an earlier run with the same rule has, copied."""
        if before is not None and before.rule == rule:
            fields = (before.best, before.objective, before.waited, before.stopped)
            best, objective, waited, stopped = (np.atleast_1d(np.array(f)) for f in fields)
            return cls(best, objective, waited, stopped, rule)
        return cls(
            np.full(n_rankers, np.inf),
            np.full(n_rankers, np.inf),
            np.zeros(n_rankers, np.int32),
            np.zeros(n_rankers, bool),
            rule,
        )

    def see(self, at: np.ndarray, found: dict[str, np.ndarray]) -> None:
        """Take in what the history holds of the rankers ``at`` after an epoch."""
        values = found[self.rule.watched[0]]
        if self.rule.name == "gap":
            # The objective of single epochs jumps, and so would the gap; this one never grows.
            dual = found["objective"] - values
            self.objective[at] = np.fmin(self.objective[at], found["objective"])
            values = self.objective[at] - dual
        with np.errstate(invalid="ignore"):  # inf - inf of a ranker that is being lost
            improved = self.best[at] - values >= self.rule.tol
        self.best[at] = np.fmin(self.best[at], values)
        self.waited[at] = np.where(improved, 0, self.waited[at] + 1)
        self.stopped[at] = self.waited[at] >= self.rule.patience
