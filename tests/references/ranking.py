"""Ranking metrics of one query from their definitions, row by row, in float64.

Tied rows in uniformly random order: McSherry and Najork, *Computing information retrieval
performance measures efficiently in the presence of tied scores* (ECIR 2008). NaN where undefined.
"""

import math

import numpy as np


def average_precision(targets, scores, weights=None) -> float:
    """Weighted mean over the positives of the precision of the rows scored at least as high."""
    weights = np.ones(len(scores)) if weights is None else np.asarray(weights, float)
    positive = np.asarray(targets, bool)
    if not weights[positive].sum():
        return math.nan
    total = 0.0
    for i in np.flatnonzero(positive & (weights > 0)):
        found = scores >= scores[i]
        total += weights[i] * weights[found & positive].sum() / weights[found].sum()
    return total / weights[positive].sum()


def expected_average_precision(targets, scores) -> float:
    """Mean over the places j a positive row can have in its tie, and who is above it there."""
    positive = np.asarray(targets, bool)
    if not positive.any():
        return math.nan
    total = 0.0
    for i in np.flatnonzero(positive):
        above, tied = scores > scores[i], scores == scores[i]
        others = (positive & tied).sum() - 1
        rows = tied.sum()
        for j in range(rows):
            expected = others * j / (rows - 1) if rows > 1 else 0.0
            hits = (positive & above).sum() + 1 + expected
            total += hits / (above.sum() + j + 1) / rows
    return total / positive.sum()


def hits(targets, scores, k: int) -> float:
    """Positives expected among the k highest scores."""
    total = 0.0
    for i in np.flatnonzero(targets):
        above, tied = (scores > scores[i]).sum(), (scores == scores[i]).sum()
        total += min(max(k - above, 0), tied) / tied
    return total


def recall(targets, scores, k: int) -> float:
    """Share of the positives expected among the k highest scores."""
    positives = np.count_nonzero(targets)
    return hits(targets, scores, k) / positives if positives else math.nan


def dcg(relevance, scores, k: int) -> float:
    """Discounted gain expected of the k highest scores."""
    total = 0.0
    for i, gain in enumerate(relevance):
        above, tied = (scores > scores[i]).sum(), (scores == scores[i]).sum()
        ranks = [above + j for j in range(1, tied + 1) if above + j <= k]
        total += gain * sum(1 / math.log2(1 + rank) for rank in ranks) / tied
    return total


def ndcg(relevance, scores, k: int) -> float:
    """The discounted gain over that of the best order of all rows."""
    relevance = np.asarray(relevance, float)
    best = dcg(relevance, relevance, k)
    return dcg(relevance, scores, k) / best if best else math.nan


def roc_area(targets, scores, weights=None) -> float:
    """Weighted share of the pairs of a positive and a negative that are ranked right."""
    weights = np.ones(len(scores)) if weights is None else np.asarray(weights, float)
    positive = np.asarray(targets, bool)
    right, pairs = 0.0, 0.0
    for i in np.flatnonzero(positive):
        for j in np.flatnonzero(~positive):
            pair = weights[i] * weights[j]
            right += pair * ((scores[i] > scores[j]) + (scores[i] == scores[j]) / 2)
            pairs += pair
    return right / pairs if pairs else math.nan
