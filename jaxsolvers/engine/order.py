"""The order in which rows are visited, drawn on the host.

Orders are shared by all rankers and depend on (key, epoch, n) alone: not on JAX's version, the
default generator, the devices or how rankers are batched. They come from the raw output of
Philox, a counter-based generator, whose stream is fixed by its definition.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

ORDERS = ("permutation", "uniform", "cyclic")
ORDER_STREAM = 0  # word of the counter that keeps an epoch's order apart from other draws
DRAW_STREAM = 1  # the same of what rankers draw for themselves
SEED_STREAM = 2  # the same of the seeds of rankers' own generators
FOLD_STREAM = 3  # the same of the folds of a cross-validation


def key_words(key: Any) -> np.ndarray:
    """The raw words (uint32) of a key: an int, a typed JAX key or raw key data.

    Raises:
      ValueError: a negative int, a bool or anything else; the message names ``key``.
    """
    if isinstance(key, (int, np.integer)) and not isinstance(key, (bool, np.bool_)):
        if key >= 0:
            low, high = int(key) & 0xFFFFFFFF, int(key) >> 32
            if high <= 0xFFFFFFFF:
                return np.array([high, low], np.uint32)
    elif isinstance(key, (jax.Array, np.ndarray)):
        if isinstance(key, jax.Array) and jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key):
            key = jax.random.key_data(key)
        words = np.asarray(key)
        if words.dtype == np.uint32 and words.ndim == 1 and words.size in (2, 4):
            return words.copy()
    raise ValueError(f"key must be an integer in 0 ... 2^64 - 1 or one JAX key, got {key!r}")


def raw_bits(
    words: np.ndarray, epoch: int, count: int, stream: int = ORDER_STREAM, window: int = 0
) -> np.ndarray:
    """``count`` uint64 draws that depend on (words, epoch, stream, window) only."""
    padded = np.zeros(4, np.uint64)
    padded[: words.size] = words
    key = np.array([padded[0] << np.uint64(32) | padded[1], padded[2] << np.uint64(32) | padded[3]])
    counter = np.array([0, window, epoch, stream], np.uint64)
    return np.random.Philox(counter=counter, key=key).random_raw(count)


def ranker_seeds(words: np.ndarray, n_rankers: int) -> np.ndarray:
    """(K, 2) uint32 seeds of the rankers' own draws; each depends on (words, ranker) only."""
    return raw_bits(words, 0, n_rankers, SEED_STREAM).view(np.uint32).reshape(n_rankers, 2)


def epoch_order(
    order: str, n: int, words: np.ndarray, epoch: int, window: int = 0
) -> np.ndarray | None:
    """Positions of the rows visited in an epoch, (n,) int64; None for 0, 1, ..., n - 1.

    The rows of a source come in windows, each in an order of its own.

    permutation: each row once. uniform: n independent draws (the theory's sampling).
    cyclic: file order.
    """
    if order == "cyclic":
        return None
    bits = raw_bits(words, epoch, n, window=window)
    if order == "permutation":
        return np.argsort(bits, kind="stable")
    # The upper 53 bits as a fraction: exact in float64, bias below n 2^-53.
    return ((bits >> np.uint64(11)).astype(np.float64) * 2.0**-53 * n).astype(np.int64)
