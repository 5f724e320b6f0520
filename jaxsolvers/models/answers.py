"""What a model answers, from the scores of its rankers, never holding (n, K) scores."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.checks import check_reals
from jaxsolvers.members import Array
from jaxsolvers.models.scores import Rankers

OUTPUTS = ("label", "indicator", "csr", "sets")


def all_scores(rankers: Rankers, X: Any) -> Array:
    """Scores (n, K), or (n,) of a single ranker."""
    pieces: list[Array] = []
    for block in rankers.blocks(X, per_row=rankers.count or 1):
        if rankers.count is None:
            scores = rankers.scores(block)
        else:
            ((_, scores),) = rankers.panels(block, rankers.count)
        if pieces:
            pieces[-1].block_until_ready()  # or blocks that wait for their turn would pile up
        pieces.append(scores[: block.count])
    return _joined(pieces)


def _joined(pieces: list[Array]) -> Array:
    """The pieces one after another."""
    # By the dozen: one concatenation of thousands takes longer to compile than they to compute.
    while len(pieces) > 1:
        groups = [pieces[i : i + _TOGETHER] for i in range(0, len(pieces), _TOGETHER)]
        pieces = [jnp.concatenate(group) if len(group) > 1 else group[0] for group in groups]
    return pieces[0]


_TOGETHER = 64


def best(rankers: Rankers, X: Any) -> np.ndarray:
    """Position of the largest score of each row, (n,) int32, ties to the lowest."""
    found = []
    for block in rankers.blocks(X):
        leader: Any = None
        for start, scores in rankers.tiles(block):
            offset = np.int32(start)
            leader = _first(scores) if leader is None else _better(*leader, scores, offset)
        found.append(np.asarray(leader[1])[: block.count])
    return np.concatenate(found)


def top(rankers: Rankers, X: Any, k: int) -> tuple[Array, Array]:
    """(positions (n, k) int32, scores (n, k)), best first, ties to the lowest position."""
    positions: list[Array] = []
    values: list[Array] = []
    for block in rankers.blocks(X, per_row=k):
        leaders: Any = None
        # Panels of k rankers at least: after the first one there are k leaders.
        for start, scores in rankers.panels(block, k):
            offset = np.int32(start)
            leaders = (
                _leaders(scores, k=k)
                if leaders is None
                else _new_leaders(*leaders, scores, offset, k=k)
            )
        if values:
            values[-1].block_until_ready()
        values.append(leaders[0][: block.count])
        positions.append(leaders[1][: block.count])
    return _joined(positions), _joined(values)


def indicator(rankers: Rankers, X: Any, threshold: np.ndarray) -> np.ndarray:
    """(n, K) bool: score > threshold."""
    assert rankers.count is not None
    answer = np.zeros((X.shape[0], rankers.count), bool)
    for rows, start, above in _above(rankers, X, threshold):
        answer[rows, start : start + above.shape[1]] = above
    return answer


def positives(rankers: Rankers, X: Any, threshold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(positions (entries,) int32 row by row, ascending within a row; row starts (n + 1,))."""
    found: list[np.ndarray] = []
    lengths = np.zeros(X.shape[0], np.int64)
    rows: slice | None = None
    pending: list[tuple[np.ndarray, np.ndarray]] = []
    for own, start, above in _above(rankers, X, threshold):
        if own != rows:
            found.append(_row_by_row(pending))
            rows, pending = own, []
        row, ranker = np.nonzero(above)
        pending.append((row, (ranker + start).astype(np.int32)))
        lengths[own] += above.sum(axis=1)
    found.append(_row_by_row(pending))
    return np.concatenate(found), np.concatenate([[0], np.cumsum(lengths)])


def check_threshold(threshold: Any, n_rankers: int | None) -> np.ndarray:
    """The threshold as float64, () or (K,); infinities are allowed.

    Raises:
      ValueError: NaN, no numbers, or another shape; the message names ``threshold``.
    """
    accepted = (
        "be one number" if n_rankers is None else f"be one number or one per class ({n_rankers})"
    )
    array = check_reals(threshold, "threshold", accepted)
    if array.shape != () and array.shape != (n_rankers,):
        raise ValueError(f"threshold must {accepted}, got shape {array.shape}")
    if np.isnan(array).any():
        raise ValueError(f"threshold must {accepted} without NaN, got {threshold!r}")
    return array


def rounded_down(threshold: np.ndarray, dtype: Any) -> np.ndarray:
    """The largest numbers of ``dtype`` not above: scores of that dtype exceed both or neither."""
    with np.errstate(over="ignore"):
        near = threshold.astype(dtype)
        below = np.nextafter(near, np.array(-np.inf, dtype))
    return np.where(near.astype(np.float64) > threshold, below, near)


def _above(
    rankers: Rankers, X: Any, threshold: np.ndarray
) -> Iterator[tuple[slice, int, np.ndarray]]:
    """Yield (rows, first ranker, scores > threshold) tile by tile, the tiles of a row in a run."""
    assert rankers.count is not None
    levels = np.broadcast_to(rounded_down(threshold, rankers.dtype), (rankers.count,))
    for block in rankers.blocks(X):
        for start, scores in rankers.tiles(block):
            above = _exceeds(scores, levels[start : start + scores.shape[1]])
            yield block.rows, start, np.asarray(above)[: block.count]


def _row_by_row(pieces: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Positions of some rows found tile after tile, in the order of the rows."""
    if not pieces:
        return np.zeros(0, np.int32)
    rows, positions = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return positions[np.argsort(rows, kind="stable")]


# ---- programs: functions of the scores (R, T) of a tile ------------------------------------------
@jax.jit
def _first(scores: Array) -> tuple[Array, Array]:
    return jnp.max(scores, axis=1), jnp.argmax(scores, axis=1).astype(jnp.int32)


@jax.jit
def _better(value: Array, position: Array, scores: Array, start: Any) -> tuple[Array, Array]:
    new, place = _first(scores)
    wins = new > value  # strictly: ties stay with the lower position
    return jnp.where(wins, new, value), jnp.where(wins, place + start, position)


@partial(jax.jit, static_argnames="k")
def _leaders(scores: Array, *, k: int) -> tuple[Array, Array]:
    # -0 ranks below 0 there, but the two are a tie.
    values, places = jax.lax.top_k(jnp.where(scores == 0, 0, scores), k)
    return values, places.astype(jnp.int32)


@partial(jax.jit, static_argnames="k")
def _new_leaders(
    values: Array, positions: Array, scores: Array, start: Any, *, k: int
) -> tuple[Array, Array]:
    # The old leaders come first: among equal scores the lower position does.
    new = start + jnp.arange(scores.shape[1], dtype=jnp.int32)
    everyone = jnp.concatenate([positions, jnp.broadcast_to(new, scores.shape)], axis=1)
    best, places = _leaders(jnp.concatenate([values, scores], axis=1), k=k)
    return best, jnp.take_along_axis(everyone, places, axis=1)


@jax.jit
def _exceeds(scores: Array, levels: Any) -> Array:
    return scores > levels[None]
