"""Draws by Zipf's law, and documents made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from jaxsolvers.data.extras import scipy_sparse

TOPIC_WORDS = 64  # words that a topic prefers; a frequent one may be among them twice
TOPIC_SHARE = 0.3  # of a document's words that come from its topics
LENGTH_SPREAD = 0.5  # standard deviation of the log of a document's length
BLOCK_WORDS = 1 << 20  # words drawn at a time
_PILOT_DRAWS = 1 << 18
_QUANTILES = np.array([NormalDist().inv_cdf((k + 0.5) / 64) for k in range(64)])

# (generator, documents of the words drawn) -> topic of each word, -1 for none
Topics = Callable[[np.random.Generator, np.ndarray], np.ndarray]


class Zipf:
    """The numbers 0 ... size - 1, j with probability proportional to (j + 1)^-exponent."""

    def __init__(self, size: int, exponent: float):
        weight = np.exp(-exponent * np.log(np.arange(1, size + 1)))
        self.probability = weight / weight.sum()
        self._ends = np.cumsum(self.probability)

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
        """Independent draws, int64."""
        found = np.searchsorted(self._ends, rng.random(shape), side="right")
        return np.minimum(found, len(self._ends) - 1)  # the last end may round to below 1


class Documents:
    """Documents over d words with topics, whose mean number of different words is ``nnz``."""

    def __init__(self, words: Zipf, n_topics: int, nnz: int, seed: int):
        rng = np.random.default_rng([seed, 2])
        self.words = words
        self._preferred = words.draw(rng, (n_topics, TOPIC_WORDS)).astype(np.int32)
        factors = np.exp(LENGTH_SPREAD * _QUANTILES)

        def pilot(n: int, draws: int) -> np.ndarray:
            document = np.repeat(np.arange(n), draws)
            topics = rng.integers(0, n_topics, n)
            return self._draw(rng, document, lambda rng, rows: topics[rows]).reshape(n, draws)

        def mean(curve: np.ndarray, length: float) -> float:
            return float(curve[_lengths(length * factors)].mean())

        self._length = draws_for(nnz, pilot, mean, "nnz")

    def rows(self, rng: np.random.Generator, n: int, topics: Topics, dtype: np.dtype) -> Any:
        """N documents as a ``csr_array`` of rows of norm 1."""
        lengths = _lengths(self._length * np.exp(LENGTH_SPREAD * rng.standard_normal(n)))
        ends = np.cumsum(lengths)
        pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        start = 0
        while start < n:
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + BLOCK_WORDS, side="right")))
            document = np.repeat(np.arange(start, stop), lengths[start:stop])
            word = self._draw(rng, document, topics)
            pieces.append(self._weighted(document - start, word, stop - start, dtype))
            start = stop
        counts, indices, values = (np.concatenate(part) for part in zip(*pieces, strict=True))
        indptr = np.concatenate([[0], np.cumsum(counts)])
        if indptr[-1] < 2**31:
            indptr = indptr.astype(np.int32)
        sparse = scipy_sparse("generating sparse rows")
        return sparse.csr_array((values, indices, indptr), shape=(n, len(self.words.probability)))

    def _draw(self, rng: np.random.Generator, document: np.ndarray, topics: Topics) -> np.ndarray:
        word = self.words.draw(rng, len(document))
        topical = np.flatnonzero(rng.random(len(document)) < TOPIC_SHARE)
        topic = topics(rng, document[topical])
        topical, topic = topical[topic >= 0], topic[topic >= 0]
        word[topical] = self._preferred[topic, rng.integers(0, TOPIC_WORDS, len(topic))]
        return word

    def _weighted(
        self, document: np.ndarray, word: np.ndarray, n: int, dtype: np.dtype
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        d = len(self.words.probability)
        cell, count = np.unique(document * d + word, return_counts=True)
        document, word = np.divmod(cell, d)
        value = (1 + np.log(count)) * np.log1p(1 / self.words.probability[word])
        norm = np.sqrt(np.bincount(document, value * value, minlength=n))
        counts = np.bincount(document, minlength=n)
        return counts, word.astype(np.int32), (value / norm[document]).astype(dtype)


def draws_for(
    target: float,
    pilot: Callable[[int, int], np.ndarray],
    mean: Callable[[np.ndarray, float], float],
    name: str,
) -> float:
    """How many draws per row give ``target`` different ones on average.

    Args:
      target: different draws wanted.
      pilot: (rows, draws) -> draws (rows, draws) to learn from.
      mean: (curve, size) -> mean number of different draws for rows of that size, where
        ``curve[k]`` is that number after exactly k draws.
      name: of the argument that asks for it.

    Raises:
      ValueError: it would take hundreds of draws for each different one.
    """
    draws = 8 * math.ceil(target) + 32
    while True:
        curve = _different(pilot(max(16, _PILOT_DRAWS // draws), draws))
        low, high = 0.0, draws / 8  # rows of several times that size are still on the curve
        if mean(curve, high) >= target:
            break
        if draws > 512 * target + 1024:
            raise ValueError(
                f"{name} must be smaller, or the exponent: {name}={target:g} different draws are "
                "out of reach"
            )
        draws *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if mean(curve, middle) >= target else (middle, high)
    return high


def poisson_mean(curve: np.ndarray, rate: float) -> float:
    """Mean of curve[k] over k with a Poisson distribution."""
    k = np.arange(len(curve))
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(k[1:]))])
    return float(np.exp(k * math.log(rate) - rate - log_factorial) @ curve)


def _lengths(lengths: np.ndarray) -> np.ndarray:
    return np.maximum(np.rint(lengths), 1).astype(np.int64)


def _different(draws: np.ndarray) -> np.ndarray:
    """Mean number of different draws among the first k, k = 0 ... draws per row."""
    order = np.argsort(draws, axis=1, kind="stable")
    ordered = np.take_along_axis(draws, order, axis=1)
    first = np.ones(draws.shape)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    fresh = np.zeros(draws.shape)
    np.put_along_axis(fresh, order, first, axis=1)
    return np.concatenate([[0.0], np.cumsum(fresh.mean(axis=0))])
