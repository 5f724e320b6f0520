"""What every online run records besides its weights: sums over the live rows of each round, taken
at the scores with which the round began (the progressive loss of online learning).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from . import losses


@dataclass
class Progress:
    """One entry per round in every list; each entry is the sum of that round alone."""

    loss: list[float] = field(default_factory=list)  # sum of s_i l_i
    mistakes: list[int] = field(default_factory=list)  # live rows with y z <= 0
    violations: list[int] = field(default_factory=list)  # live rows with a non-zero slope
    weight: list[float] = field(default_factory=list)  # sum of s_i

    def record(
        self,
        loss: str,
        parameter: float | None,
        scores: Sequence[float],
        targets: Sequence[float],
        weights: Sequence[float],
    ) -> None:
        """Append the sums of one round; the arguments hold its k_t live rows, possibly none."""
        total, mistakes, violations = 0.0, 0, 0
        for z, y, s in zip(scores, targets, weights, strict=True):
            total += s * losses.value(loss, z, y, parameter)
            mistakes += int(y * z <= 0.0)
            violations += int(losses.slope(loss, z, y, parameter) != 0.0)
        self.loss.append(float(total))
        self.mistakes.append(mistakes)
        self.violations.append(violations)
        self.weight.append(float(sum(weights)))


def live_rows(batch: Iterable[int], weights: np.ndarray) -> list[int]:
    """The rows of a batch with a positive weight, repeats kept; k_t is their number."""
    return [int(i) for i in batch if weights[i] > 0.0]


def as_weights(weights: np.ndarray | None, m: int) -> np.ndarray:
    """Sample weights (m,) exactly as given; ones when there are none."""
    return np.ones(m) if weights is None else np.asarray(weights, dtype=float)
