"""Metrics for classification and ranking, one ranker per column.

Shapes: ``n`` rows (the ranked items), ``K`` rankers. A metric is a pure function of ONE ranker,
mapped over the columns and compiled once per shape. Values are checked before tracing; inside
``jax.jit`` or ``jax.vmap``, where they are unknown, a ranker whose input would be refused or whose
metric is undefined gets NaN without a warning.
"""

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike

__all__ = ["average_precision", "error_rate", "precision_at_k"]

_Array = Any  # np.ndarray or jax.Array: checks run where the data lives


def error_rate(
    targets: ArrayLike, predictions: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> jax.Array:
    """Weighted share of rows whose prediction differs from the target.

    ``sum_i s_i 1[y_i != p_i] / sum_i s_i``: the mean 0-1 loss.

    Args:
      targets: labels of any kind (numbers, bools, strings), (n,) or (n, K). NaN equals nothing.
      predictions: labels of the same kind and shape.
      sample_weight: (n,) non-negative, or None for equal weights. Weight 0 drops a row.

    Returns:
      () for (n,) input, else (K,), in JAX's default float dtype.

    Raises:
      ValueError: shapes differ or are empty; the labels can never be equal (strings against
        numbers, bools against -1/+1); weights are negative, not finite or all zero.

    Example:
      >>> print(error_rate(["cat", "dog", "dog", "cat"], ["cat", "dog", "cat", "cat"]))
      0.25
    """
    truth, guess = _array("targets", targets), _array("predictions", predictions)
    _check_shapes(truth, "predictions", guess)
    weights, valid = _checked_weights(sample_weight, len(truth))
    valid = valid & _comparable("targets", truth, "predictions", guess)
    if _is_known(truth) and _is_known(guess):
        truth, guess = np.asarray(truth), np.asarray(guess)  # JAX would wrap or round 64 bits
    with jax.numpy_dtype_promotion("standard"):  # labels are values, their dtypes are nothing
        wrong = truth != guess
    valid = jnp.broadcast_to(valid, _columns(wrong).shape[1:])
    values = _each_ranker(_weighted_mean, valid, weights, (_columns(wrong),))
    return values if truth.ndim == 2 else values[0]


def average_precision(
    targets: ArrayLike,
    scores: ArrayLike,
    *,
    ties: Literal["step", "expected"] = "step",
    positive: object = None,
    sample_weight: ArrayLike | None = None,
) -> jax.Array:
    """Average precision: the mean, over the positives, of the precision at their ranks.

    ``AP = (1/P) sum_{i positive} (positives at or above i) / (rows at or above i)``, P positives,
    scores descending. Weights turn the counts into sums of weights and the mean into a weighted
    one. ``ties="step"`` counts a tied group whole, like scikit-learn's
    ``average_precision_score``. ``ties="expected"`` is the mean over uniformly random orders of
    equal scores: a group of N rows, p of them positive, below a rows with P0 positives adds
    ``(p/N) sum_{j=1..N} (P0 + 1 + (j-1) rho) / (a + j)`` to the sum, ``rho = (p-1)/(N-1)``
    (McSherry and Najork, ECIR 2008).

    Args:
      targets: (n,) or (n, K): bool, 0/1 or -1/+1; labels of any kind if ``positive`` is given.
      scores: same shape, real, higher first. Infinities are ranked.
      ties: ``"step"`` or ``"expected"``.
      positive: the label that counts as positive, all others being negative.
      sample_weight: (n,) non-negative, or None for equal weights. Weight 0 drops a row; the others
        must be equal for ``ties="expected"``.

    Returns:
      () for (n,) input, else (K,), in JAX's default float dtype. A ranker without positives has
      none: it gets NaN, and one warning per call counts such rankers.

    Raises:
      ValueError: shapes differ or are empty; a score is NaN; targets are not binary; an unknown
        ``ties``; weights are negative, not finite, all zero, or unequal where they must be equal.

    Example:
      >>> print(average_precision([1, 0], [0.5, 0.5]))
      0.5
      >>> print(average_precision([1, 0], [0.5, 0.5], ties="expected"))
      0.75
    """
    if ties not in ("step", "expected"):
        raise ValueError(f'ties must be "step" or "expected"; got {ties!r}')
    inputs = (targets, scores, positive, sample_weight)
    if ties == "step":
        return _rank_metric("average_precision", _step_ap, inputs)
    return _rank_metric("average_precision", _expected_ap, inputs, equal_for='ties="expected"')


def precision_at_k(
    targets: ArrayLike,
    scores: ArrayLike,
    k: int | Sequence[int] | np.ndarray,
    *,
    positive: object = None,
    sample_weight: ArrayLike | None = None,
) -> jax.Array:
    """Precision at k: the share of positives among the k highest scores, ties averaged.

    ``P@k = (1/k) [positives above + (min(k, n) - rows above) p/N]``: the group of equal scores
    that holds rank min(k, n) has N rows, p of them positive; "above" means a higher score. This is
    the mean over uniformly random orders of equal scores (McSherry and Najork, ECIR 2008). The
    divisor stays k when n < k.

    Args:
      targets: (n,) or (n, K), as in ``average_precision``.
      scores: same shape, real, higher first. Infinities are ranked.
      k: an int >= 1, or a sequence of them in any order; other values do not compile again.
      positive: the label that counts as positive, all others being negative.
      sample_weight: (n,) or None for equal weights. Weight 0 drops a row, the others must be equal.

    Returns:
      () for (n,) input, else (K,), in JAX's default float dtype; a sequence of cut-offs adds a
      leading axis (len(k),) in the order asked. A ranker without positives gets NaN, and one
      warning per call counts such rankers.

    Raises:
      ValueError: as in ``average_precision``; ``k`` not a positive integer; unequal weights.

    Example:
      >>> print(precision_at_k([0, 1, 0], [0.9, 0.8, 0.7], [1, 2]))
      [0.  0.5]
    """
    cutoffs, is_sequence = _checked_cutoffs(k)
    # k is data, not a static argument: new cut-offs reuse the program.
    ranks = np.asarray([min(one, np.iinfo(np.int32).max) for one in cutoffs], np.int32)
    shared = (ranks, np.asarray(cutoffs, jnp.result_type(float)))
    inputs, name = (targets, scores, positive, sample_weight), "precision_at_k"
    values = _rank_metric(name, _precision_at, inputs, shared, name)
    return jnp.moveaxis(values, -1, 0) if is_sequence else values[..., 0]


def _rank_metric(
    name: str,
    metric: Callable[..., jax.Array],
    inputs: tuple[Any, Any, object, Any],
    shared: tuple[np.ndarray, ...] = (),
    equal_for: str = "",
) -> jax.Array:
    """Check, compute each ranker, and warn about those without positives."""
    targets, scores, positive, sample_weight = inputs
    targets, scores = _array("targets", targets), _array("scores", scores)
    _check_shapes(targets, "scores", scores)
    weights, valid = _checked_weights(sample_weight, len(targets), equal_for)
    positives, binary = _checked_positives(_columns(targets), positive)
    ranked, orderly = _checked_scores(_columns(scores))
    valid = jnp.broadcast_to(valid & binary & orderly, ranked.shape[1:])
    values = _each_ranker(metric, valid, weights, (positives, ranked), shared)
    if _is_known(values):
        skipped = np.isnan(np.asarray(values)).reshape(len(values), -1).any(axis=1).sum()
        if skipped:
            text = f"{name}: skipped {skipped} of {len(values)} rankers, which have no positive row"
            warnings.warn(f"{text}: their value is NaN, leave it out of means", stacklevel=3)
    return values if targets.ndim == 2 else values[0]


# One ranker: pure functions of (n,) columns -------------------------------------------------------


@functools.partial(jax.jit, static_argnums=0)
def _each_ranker(
    metric: Callable[..., jax.Array],
    valid: _Array,
    weights: _Array | None,
    columns: tuple[_Array, ...],
    shared: tuple[_Array, ...] = (),
) -> jax.Array:
    """(K, ...) values of ``metric``, NaN where ``valid`` (K,) is False."""

    def one(is_valid: jax.Array, columns: tuple[jax.Array, ...]) -> jax.Array:
        # Counts are int32: a float32 counter stops at 2^24.
        counts = jnp.ones(columns[0].shape, jnp.int32) if weights is None else weights
        return jnp.where(is_valid, metric(counts, *columns, *shared), jnp.nan)

    return jax.vmap(one, in_axes=(0, 1))(valid, columns)


def _weighted_mean(weights: jax.Array, wrong: jax.Array) -> jax.Array:
    return _ratio(_total(jnp.where(wrong, weights, 0)), _total(weights))


class _Ranking(NamedTuple):
    """Rows by descending score, (n,) each, counted by weight; a group is a run of equal scores."""

    weights: jax.Array
    gains: jax.Array  # the weight of a positive row, 0 for a negative one
    rows: jax.Array  # rows up to this one: its rank
    above: jax.Array  # rows above the group
    size: jax.Array  # rows in the group
    positives_above: jax.Array
    positives: jax.Array  # positives in the group
    all_positives: jax.Array  # (), of the ranker


def _rank(weights: jax.Array, positive: jax.Array, scores: jax.Array) -> _Ranking:
    # Every operand is a sort key, so that tied rows come in one order whatever the input order:
    # permuting the rows changes no bit of a result.
    key, positive, weights = lax.sort((_descending(scores), positive, weights), num_keys=3)
    gains = jnp.where(positive, weights, 0)
    rows, hits = lax.cumsum(weights), lax.cumsum(gains)
    place, edge, differs = lax.iota(jnp.int32, key.size), jnp.ones(1, bool), key[1:] != key[:-1]
    first = lax.cummax(jnp.where(jnp.concatenate([edge, differs]), place, 0))
    last = lax.cummin(jnp.where(jnp.concatenate([differs, edge]), place, key.size), reverse=True)
    above, hits_above = rows[first] - weights[first], hits[first] - gains[first]
    groups = (above, rows[last] - above, hits_above, hits[last] - hits_above)
    return _Ranking(weights, gains, rows, *groups, hits[-1])


def _descending(scores: jax.Array) -> jax.Array:
    """Integers that sort by descending score and are equal where the scores are.

    They are the bits of the floats: comparing floats ties denormals where XLA flushes them to 0.
    """
    if jnp.issubdtype(scores.dtype, jnp.floating):
        kind = jnp.dtype(f"int{8 * scores.dtype.itemsize}")
        bits = lax.bitcast_convert_type(scores, kind)
        # The bits of negative floats grow with the magnitude: mirror them, -0.0 onto 0.0.
        scores = jnp.where(bits < 0, jnp.iinfo(kind).min - bits, bits)
    return ~scores  # unlike a minus sign, right for unsigned and for the smallest integer


def _step_ap(weights: jax.Array, positive: jax.Array, scores: jax.Array) -> jax.Array:
    r = _rank(weights, positive, scores)
    precision = _ratio(r.positives_above + r.positives, r.above + r.size, 0.0)
    return _ratio(_total(r.gains.astype(precision.dtype) * precision), r.all_positives)


def _expected_ap(counts: jax.Array, positive: jax.Array, scores: jax.Array) -> jax.Array:
    r = _rank(counts, positive, scores)
    # The positives above the j-th row of a group, given that this row is one. Summed row by row
    # every term is >= 0; the closed form with harmonic numbers cancels for groups at late ranks.
    rho = _ratio(r.positives - 1, r.size - 1, 0.0)
    within = (r.rows - r.above - 1).astype(rho.dtype) * rho
    precision = _ratio(r.positives_above.astype(rho.dtype) + 1 + within, r.rows, 0.0)
    chance = r.weights.astype(rho.dtype) * _ratio(r.positives, r.size, 0.0)
    return _ratio(_total(chance * precision), r.all_positives)


def _precision_at(counts: jax.Array, *columns_and_cutoffs: jax.Array) -> jax.Array:
    positive, scores, ranks, divisors = columns_and_cutoffs
    r = _rank(counts, positive, scores)
    ranks = jnp.minimum(ranks, r.rows[-1])  # dropped rows hold no rank
    row = jnp.searchsorted(r.rows, ranks)
    share = _ratio(r.positives[row], r.size[row])
    hits = r.positives_above[row].astype(share.dtype)
    hits = hits + (ranks - r.above[row]).astype(share.dtype) * share
    return jnp.where(r.all_positives > 0, hits / divisors, jnp.nan)


def _total(terms: jax.Array) -> jax.Array:
    # A tree of sums: in float32 jnp.sum was off by 3e-6 at a million rows with 3 distinct scores.
    return lax.cumsum(terms)[-1]


def _ratio(top: jax.Array, bottom: jax.Array, otherwise: float = np.nan) -> jax.Array:
    """``top / bottom`` in the default float dtype, ``otherwise`` where ``bottom`` is 0."""
    dtype = jnp.result_type(float)
    quotient = top.astype(dtype) / jnp.where(bottom == 0, 1, bottom).astype(dtype)
    return jnp.where(bottom == 0, otherwise, quotient)


# Checks; what they return as "valid" is traced where the values are ------------------------------


def _is_known(array: _Array) -> bool:
    return not isinstance(array, jax.core.Tracer)


def _required(valid: _Array, accepted: str, array: _Array) -> _Array:
    if _is_known(valid) and not valid.all():
        found = np.unique(np.asarray(array)).tolist()
        more = f" and {len(found) - 5} others" if len(found) > 5 else ""
        raise ValueError(f"{accepted}; got the values {found[:5]}{more}")
    return valid


def _array(name: str, value: Any) -> _Array:
    """A JAX array as it is, anything else as a NumPy array, of objects only if it must be."""
    if isinstance(value, jax.Array):
        return value
    try:
        array = np.asarray(value)
        array = np.array(array.tolist()) if array.dtype == object else array
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    except ValueError as error:
        raise ValueError(f"{name} must be an array, got {type(value).__name__}: {error}") from None


def _columns(array: _Array) -> _Array:
    return array.reshape((array.shape[0], -1))


def _is_real(array: _Array) -> bool:
    return any(jnp.issubdtype(array.dtype, one) for one in (jnp.bool_, jnp.integer, jnp.floating))


def _check_shapes(targets: _Array, name: str, other: _Array) -> None:
    if targets.shape != other.shape or targets.ndim not in (1, 2) or targets.size == 0:
        found = f"targets {targets.shape} and {name} {other.shape}"
        raise ValueError(f"targets and {name} must both be (n,) or (n, K), not empty; got {found}")


def _checked_weights(given: Any, n: int, equal_for: str = "") -> tuple[_Array | None, _Array]:
    """Float weights of maximum 1, or counts 0/1 for a metric defined for equal weights only."""
    if given is None:
        return None, np.True_
    weights = _array("sample_weight", given)
    if weights.shape != (n,) or not _is_real(weights):
        found = f"{weights.dtype} of shape {weights.shape}"
        raise ValueError(f"sample_weight must be real numbers of shape ({n},); got {found}")
    default = jnp.result_type(float)
    weights = weights.astype(np.float64 if isinstance(weights, np.ndarray) else default)
    largest = weights.max()
    valid = ((weights >= 0) & (weights < np.inf)).all() & (largest > 0)
    accepted = "sample_weight must be finite, non-negative (not NaN) and not all zero"
    valid = _required(valid, accepted, weights)
    if not equal_for:
        return (weights / largest).astype(default), valid  # scaled: no sum overflows
    equal = ((weights == 0) | (weights == largest)).all()
    accepted = f"sample_weight must be equal where it is not 0, {equal_for} has no weighted form"
    return (weights > 0).astype(np.int32), valid & _required(equal, accepted, weights)


def _checked_positives(targets: _Array, positive: object) -> tuple[_Array, _Array]:
    if positive is not None:
        label = _array("positive", positive)
        if label.ndim != 0:
            raise ValueError(f"positive must be one label; got {positive!r}")
        valid = _comparable("targets", targets, "positive", label)
        with jax.numpy_dtype_promotion("standard"):  # a label is a value, its dtype is nothing
            return targets == label.item(), valid
    if targets.dtype == bool:
        return targets, np.True_
    accepted = "targets must be bool, 0/1 or -1/+1, or positive= must name the positive label"
    if not _is_real(targets):
        raise ValueError(f"{accepted}; got dtype {targets.dtype}")
    ones = targets == 1
    valid = (ones | (targets == 0)).all(axis=0)
    if not jnp.issubdtype(targets.dtype, jnp.unsignedinteger):
        valid = valid | (ones | (targets == -1)).all(axis=0)
    return ones, _required(valid, accepted, targets)


def _checked_scores(scores: _Array) -> tuple[_Array, _Array]:
    if not _is_real(scores):
        raise ValueError(f"scores must be real numbers; got dtype {scores.dtype}")
    valid: _Array = np.True_
    if jnp.issubdtype(scores.dtype, jnp.floating):
        valid = _required((scores <= np.inf).all(axis=0), "scores must not be NaN", scores)
    if isinstance(scores, np.ndarray) and scores.dtype.itemsize > jnp.result_type(float).itemsize:
        # JAX would round these and tie scores that differ: give it their ranks instead.
        ranks = [np.unique(column, return_inverse=True)[1] for column in scores.T]
        scores = np.stack(ranks, axis=1).astype(np.int32)
    return scores, valid


def _checked_cutoffs(k: Any) -> tuple[list[int], bool]:
    """The cut-offs, and whether they were given as a sequence."""
    if isinstance(k, (np.ndarray, jax.Array)) and _is_known(k):
        k = np.asarray(k).tolist()
    is_sequence = isinstance(k, Sequence) and not isinstance(k, str)
    cutoffs = list(k) if is_sequence else [k]
    integers = (isinstance(one, (int, np.integer)) and one is not True for one in cutoffs)
    if not cutoffs or not all(integers) or min(cutoffs) < 1:
        raise ValueError(f"k must be an integer >= 1, or a sequence of them; got {k!r}")
    return [int(one) for one in cutoffs], is_sequence


def _comparable(name: str, labels: _Array, other_name: str, others: _Array) -> _Array:
    """Refuse kinds of labels that would differ everywhere without a word."""
    kinds = ["" if _is_real(one) else one.dtype.kind.replace("T", "U") for one in (labels, others)]
    if kinds[0] != kinds[1] and "O" not in kinds:
        found = f"{name} of dtype {labels.dtype} and {other_name} of dtype {others.dtype}"
        raise ValueError(f"{name} and {other_name} must be labels of one kind; got {found}")
    bools = [one.dtype == bool for one in (labels, others)]
    if "O" in kinds or bools[0] == bools[1]:
        return np.True_
    numbers = others if bools[0] else labels
    accepted = f"{name} and {other_name}: bools compare with 0/1 only"
    return _required(((numbers == 0) | (numbers == 1)).all(), accepted, numbers)
