"""Sizes out of few, so that few programs serve all data."""

from __future__ import annotations

from typing import Any

import numpy as np


def next_power_of_two(n: int) -> int:
    """The smallest power of two >= n."""
    return 1 << (n - 1).bit_length()


def bucket(n: int) -> int:
    """A size >= n out of few: a power of two or three quarters of one, at least 8."""
    whole = max(8, next_power_of_two(max(n, 1)))
    return 3 * whole // 4 if whole > 8 and n <= 3 * whole // 4 else whole


def largest_block(lengths: np.ndarray, rows: int, repeats: bool) -> int:
    """The most that any ``rows`` rows can hold together, the same one again if it ``repeats``."""
    if repeats:
        return rows * int(lengths.max(initial=0))
    if rows >= len(lengths):
        return int(lengths.sum())
    return int(np.partition(lengths, len(lengths) - rows)[-rows:].sum())


def extended(values: np.ndarray, size: int, dtype: Any) -> np.ndarray:
    """The values followed by zeros."""
    whole = np.zeros(size, dtype)
    whole[: len(values)] = values
    return whole
