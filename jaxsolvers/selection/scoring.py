"""Scores of all points of a grid on held-out rows, a tile of rows by rankers at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.checks import check_option
from jaxsolvers.csr import Csr
from jaxsolvers.engine.targets import Targets
from jaxsolvers.members import Array
from jaxsolvers.metrics import average_precision, roc_auc
from jaxsolvers.models.scores import Block, Rankers
from jaxsolvers.protocol import Loss

SUMS = ("error_rate", "loss")
RANKED = {"average_precision": average_precision, "roc_auc": roc_auc}
LARGEST_IS_BEST = tuple(RANKED)
_ROWS = 4096  # rows gathered together
_NUMBERS = 1 << 22  # scores of a block of rows
_RANKED_NUMBERS = 1 << 24  # scores of the rankers that are ranked together


class Scores(NamedTuple):
    """Scores of P points in some splits of the rows."""

    shared: np.ndarray  # (P, splits)
    per_class: np.ndarray | None  # (P, splits, K); None of classes that are one problem
    lost: np.ndarray  # (P, splits, rankers) bool: rankers that left the floats


class Trained(NamedTuple):
    """The rankers of P points, C scores each, the class fastest."""

    rankers: Rankers
    loss: Loss  # one number per point, (P,)
    points: int
    targets: Targets  # of all rows

    @property
    def width(self) -> int:
        """C."""
        return self.targets.n_classes


def check_scoring(scoring: Any, loss: Loss, targets: Targets, accepted: tuple[str, ...]) -> str:
    """The name of a score; a ValueError that names ``scoring`` where it has no meaning."""
    if scoring is None:
        return "error_rate" if loss.classification and "error_rate" in accepted else "loss"
    name = check_option(scoring, "scoring", accepted)
    labels = targets.per_ranker or targets.joint or loss.classification
    if name != "loss" and not labels:
        raise ValueError(f"scoring must be 'loss' for {type(loss).__name__}, got {name!r}")
    if name in RANKED and targets.joint:
        raise ValueError(
            f"scoring must be among {', '.join(map(repr, SUMS))} for {type(loss).__name__}, "
            f"whose classes are one problem, got {name!r}"
        )
    return name


def summed(
    trained: Trained, X: Any, rows: np.ndarray, weight: np.ndarray, scoring: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Weighted means of the errors or losses on some rows.

    Args:
      trained: the rankers.
      X: (n, d) array or Csr.
      rows: (m,) positions of the rows.
      weight: (n,) >= 0.
      scoring: "error_rate" or "loss".

    Returns:
      (shared (P,), per class (P, C)); None in place of the latter for a joint loss.
    """
    points, width = trained.points, trained.width
    per_class, shared = np.zeros((points, width)), np.zeros(points)
    for block, at in _blocks(trained.rankers, X, rows):
        size = block.values.shape[0]
        group = max(1, min(points, _NUMBERS // (size * width)))
        target, own = _padded(trained, at, size), np.zeros(size, trained.rankers.dtype)
        own[: len(at)] = weight[at]
        for start in range(0, points, group):
            first = min(start, points - group)  # all groups have one size
            scores = trained.rankers.scores(block, first * width, group * width)
            loss = trained.loss.map_numbers(
                lambda leaf, first=first, group=group: (
                    leaf.value if leaf.shared else leaf.value[first : first + group]
                )
            )
            form = _Form(scoring, width, _kind(trained.targets))
            classes, whole = (
                np.asarray(found, np.float64)[start - first :]
                for found in _sums(loss, scores.reshape(size, -1), target, own, form=form)
            )
            shared[start : start + len(whole)] += whole
            per_class[start : start + len(whole)] += classes
    total = weight[rows].sum()
    if trained.targets.joint:
        return shared / total, None
    return shared / total, per_class / total


def ranked(
    trained: Trained, X: Any, rows: np.ndarray, weight: np.ndarray, scoring: str, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rankings of some rows by every ranker; ``size`` >= m rows make one program of all folds.

    Returns:
      (shared (P,), per class (P, C)), NaN for a class without a value.
    """
    count, width = trained.points * trained.width, trained.width
    own = np.zeros(size)
    own[: len(rows)] = weight[rows]
    values = np.empty(count)
    tile = max(1, min(count, _RANKED_NUMBERS // size))
    for start in range(0, count, tile):
        first = min(start, count - tile)
        scores = np.zeros((size, tile), trained.rankers.dtype)
        truth, filled = np.zeros((size, tile), bool), 0
        for block, at in _blocks(trained.rankers, X, rows):
            part = slice(filled, filled + len(at))
            scores[part] = np.asarray(
                trained.rankers.scores(block, first, tile).reshape(-1, tile)[: len(at)]
            )
            truth[part] = _positive(trained.targets, at, np.arange(first, first + tile) % width)
            filled += len(at)
        with warnings.catch_warnings():  # grid_search tells of classes without a value
            warnings.simplefilter("ignore")
            found = RANKED[scoring](truth, scores, sample_weight=own)
        values[first : first + tile] = np.asarray(found)
    per_class = values.reshape(trained.points, width)
    known = ~np.isnan(per_class)
    total = np.where(known, per_class, 0).sum(axis=1)
    shared = np.where(known.any(axis=1), total / np.maximum(known.sum(axis=1), 1), np.nan)
    return shared, per_class


def _blocks(rankers: Rankers, X: Any, rows: np.ndarray) -> Iterator[tuple[Block, np.ndarray]]:
    """Blocks of some rows, and which rows they are."""
    for start in range(0, len(rows), _ROWS):
        at = rows[start : start + _ROWS]
        piece = X.take(at) if isinstance(X, Csr) else X[at]
        for block in rankers.blocks(piece):
            yield block, at[block.rows]


# ---- targets -------------------------------------------------------------------------------------
class _Form(NamedTuple):
    """What is static in the sums."""

    scoring: str
    width: int
    kind: str


def _kind(targets: Targets) -> str:
    if targets.joint:
        return "joint"
    if isinstance(targets.values, Csr):
        return "sets"
    return "codes" if targets.values.dtype == np.int32 else "alone"


def _padded(trained: Trained, at: np.ndarray, size: int) -> np.ndarray:
    """The targets of rows, (size,), or (size, C) bool of label sets."""
    values = trained.targets.values
    if isinstance(values, Csr):
        sets = np.zeros((size, trained.width), bool)
        sets[: len(at)] = values.take(at).dense(bool)
        return sets
    whole = np.zeros(size, np.int32 if values.dtype == np.int32 else trained.rankers.dtype)
    whole[: len(at)] = values[at]
    return whole


def _positive(targets: Targets, at: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Which rows are positive for the rankers of these codes, (rows, codes)."""
    if isinstance(targets.values, Csr):
        return targets.values.take(at).dense(bool)[:, codes]
    if targets.values.dtype == np.int32:
        return targets.values[at][:, None] == codes
    return np.broadcast_to((targets.values[at] > 0)[:, None], (len(at), len(codes)))


@partial(jax.jit, static_argnames="form")
def _sums(
    loss: Loss, scores: Array, target: Array, weight: Array, *, form: _Form
) -> tuple[Array, Array]:
    """Weighted sums over the rows, per class (G, C) and for all classes of a point (G,)."""
    by_point = jnp.moveaxis(scores.reshape(scores.shape[0], -1, form.width), 1, 0)
    truth = target
    if form.kind == "codes":
        truth = target[:, None] == jnp.arange(form.width, dtype=target.dtype)[None]
    elif form.kind == "alone":
        truth = target[:, None]

    def over_rows(values: Array) -> Array:
        live = weight > 0
        own = values.T  # (..., R)
        shape = (1,) * (own.ndim - 1) + live.shape
        used = jnp.where(live.reshape(shape), own, 0)
        return jnp.sum(used * weight.reshape(shape), axis=-1)

    def right(own: Array) -> Array:  # as LinearModel.predict: the largest score, ties to the first
        return jnp.argmax(own, axis=1).astype(target.dtype) == target

    def one(loss: Loss, own: Array) -> tuple[Array, Array]:
        if form.kind == "joint":
            if form.scoring == "loss":
                whole = over_rows(loss.value_and_slope(own, target)[0])
            else:
                whole = over_rows((~right(own)).astype(own.dtype))
            return jnp.zeros(form.width, own.dtype), whole
        if form.scoring == "loss":
            signs = truth if form.kind == "alone" else jnp.where(truth, 1, -1).astype(own.dtype)
            classes = over_rows(loss.value_and_slope(own, signs)[0])
        else:
            positive = truth > 0 if form.kind == "alone" else truth
            classes = over_rows(((own > 0) != positive).astype(own.dtype))
        whole = jnp.mean(classes)
        if form.kind == "codes" and form.scoring == "error_rate":
            whole = over_rows((~right(own)).astype(own.dtype))
        return classes, whole

    return jax.vmap(one, in_axes=(loss.ranker_axes(), 0))(loss, by_point)
