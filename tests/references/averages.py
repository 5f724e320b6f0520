"""Averages of the iterates that scored: Pegasos' averaged output (Shalev-Shwartz et al., 2011) and
polynomial-decay averaging (Shamir and Zhang, ICML 2013).

Every function takes a run apart the same way: `first` (d,) is the vector before the first round,
`after` the vectors after each round, `counters` the round counter after each round and `t0` the
counter before the first. A batch whose counter moved by k (AdaGrad's "example" mode) counts k
times, one whose counter stood still not at all. Only rounds with t > start are counted.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np


def uniform_average(
    first: np.ndarray,
    after: Sequence[np.ndarray],
    counters: Sequence[int],
    *,
    t0: int = 0,
    start: int = 0,
) -> list[np.ndarray]:
    """After each round, the mean of w_s over the counted rounds; the last weights if none is."""
    averages = []
    counted: list[np.ndarray] = []
    for before, times, current in _rounds(first, after, counters, t0, start):
        for _ in range(times):
            counted.append(before)
        averages.append(np.sum(counted, axis=0) / len(counted) if counted else current.copy())
    return averages


def polynomial_average(
    first: np.ndarray,
    after: Sequence[np.ndarray],
    counters: Sequence[int],
    *,
    power: float,
    t0: int = 0,
    start: int = 0,
) -> list[np.ndarray]:
    """After each round, avg_n = (1 - g) avg_{n-1} + g w with g = (power + 1) / (n + power), where
    n = 1, 2, ... numbers the counted rounds; the last weights if none is counted.
    """
    averages = []
    average = np.zeros_like(first)
    n = 0
    for before, times, current in _rounds(first, after, counters, t0, start):
        for _ in range(times):
            n += 1
            g = (power + 1.0) / (n + power)
            average = (1.0 - g) * average + g * before
        averages.append(average.copy() if n > 0 else current.copy())
    return averages


def random_iterate(
    first: np.ndarray,
    after: Sequence[np.ndarray],
    counters: Sequence[int],
    *,
    chance: Callable[[int], float],
    t0: int = 0,
    start: int = 0,
) -> list[np.ndarray]:
    """After each round, the counted w_s that is held: of n counted rounds the newest ``times`` take
    its place if ``chance(counter before the round) < times / n``; the last weights if none is.
    """
    held: list[np.ndarray] = []
    kept, n, t = first, 0, t0
    for (before, times, current), t_after in zip(
        _rounds(first, after, counters, t0, start), counters, strict=True
    ):
        n += times
        if times > 0 and (n == times or chance(t) * n < times):
            kept = before
        held.append(kept.copy() if n > 0 else current.copy())
        t = t_after
    return held


def _rounds(
    first: np.ndarray,
    after: Sequence[np.ndarray],
    counters: Sequence[int],
    t0: int,
    start: int,
) -> Iterator[tuple[np.ndarray, int, np.ndarray]]:
    """For each round: the weights that scored, how often they count, the weights it produced."""
    before, t_before = first, t0
    for current, t_after in zip(after, counters, strict=True):
        times = 0
        for t in range(t_before + 1, t_after + 1):
            if t > start:
                times += 1
        yield before, times, current
        before, t_before = current, t_after
