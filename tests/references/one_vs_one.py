"""One-vs-one answers, row by row and pair by pair."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def winner(scores: np.ndarray, n_classes: int, method: str) -> int:
    """Position of the class that the scores (P,) of all pairs elect.

    Pairs are (0, 1), (0, 2), ..., (K - 2, K - 1); a score above 0 is a vote for the first class.
    Scores that are not finite count for nobody. Most votes win, among equals the larger sum of
    margins, among equals the lower position; by "margin" the sums alone decide.
    """
    votes, margins = [0] * n_classes, [0.0] * n_classes
    for score, (a, b) in zip(scores.tolist(), combinations(range(n_classes), 2), strict=True):
        if not np.isfinite(score):
            continue
        votes[a if score > 0 else b] += 1
        margins[a] += score
        margins[b] -= score
    keys = [(votes[k] if method == "vote" else 0, margins[k], -k) for k in range(n_classes)]
    return max(range(n_classes), key=lambda k: keys[k])
