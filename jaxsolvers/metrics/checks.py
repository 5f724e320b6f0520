"""Checks of what the metrics are given.

What a check returns as "valid" is traced where the values are: inside ``jax.jit`` nothing can be
raised about values, and the metric becomes NaN instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Data = Any  # np.ndarray or jax.Array: checks run where the data lives


def is_known(array: Data) -> bool:
    """Whether the values are there, not traced."""
    return not isinstance(array, jax.core.Tracer)


def required(valid: Data, accepted: str, array: Data) -> Data:
    """``valid``, or a ValueError that says what is accepted and what the array holds."""
    if is_known(valid) and not valid.all():
        found = np.unique(np.asarray(array)).tolist()
        more = f" and {len(found) - 5} others" if len(found) > 5 else ""
        raise ValueError(f"{accepted}; got the values {found[:5]}{more}")
    return valid


def as_array(name: str, value: Any) -> Data:
    """A JAX array as it is, anything else as a NumPy array, of objects only if it must be."""
    if isinstance(value, jax.Array):
        return value
    for method in ("toarray", "todense"):  # of sparse matrices, which NumPy takes for one object
        if hasattr(value, method):
            kind = type(value).__name__
            text = f"{name} must be a dense array, got {kind}; {name}.{method}() makes one"
            raise ValueError(text)
    try:
        array = np.asarray(value)
        array = np.array(array.tolist()) if array.dtype == object else array
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    except ValueError as error:
        raise ValueError(f"{name} must be an array, got {type(value).__name__}: {error}") from None


def as_targets(value: Any) -> Data:
    """A scipy sparse matrix by columns (CSC), anything else as an array."""
    if hasattr(value, "tocsc") and value.ndim == 2:
        return value.tocsc()
    return as_array("targets", value)


def columns(array: Data) -> Data:
    """The array as (n, K)."""
    return array.reshape((array.shape[0], -1))


def is_real(array: Data) -> bool:
    """Whether the dtype is bool, integer or floating."""
    return any(jnp.issubdtype(array.dtype, one) for one in (jnp.bool_, jnp.integer, jnp.floating))


def check_shapes(targets: Data, name: str, other: Data) -> None:
    """Raise a ValueError unless both are (n,) or (n, K) alike, and not empty."""
    if targets.shape != other.shape or targets.ndim not in (1, 2) or 0 in targets.shape:
        found = f"targets {targets.shape} and {name} {other.shape}"
        raise ValueError(f"targets and {name} must both be (n,) or (n, K), not empty; got {found}")


def checked_weights(
    given: Any, n: int, equal_for: str = "", codes: Data | None = None
) -> tuple[Data | None, Data]:
    """Float weights of maximum 1, or counts 0/1 for a metric defined for equal weights only.

    With ``codes`` (n,) of queries the maximum is 1 in each of them.
    """
    if given is None:
        return None, np.True_
    weights = as_array("sample_weight", given)
    if weights.shape != (n,) or not is_real(weights):
        found = f"{weights.dtype} of shape {weights.shape}"
        raise ValueError(f"sample_weight must be real numbers of shape ({n},); got {found}")
    default = jnp.result_type(float)
    weights = weights.astype(np.float64 if isinstance(weights, np.ndarray) else default)
    largest = weights.max()
    valid = ((weights >= 0) & (weights < np.inf)).all() & (largest > 0)
    accepted = "sample_weight must be finite, non-negative (not NaN) and not all zero"
    valid = required(valid, accepted, weights)
    if not equal_for:
        # Scaled: no sum overflows, and no query vanishes beside another.
        return (weights / _largest(weights, codes)).astype(default), valid
    equal = ((weights == 0) | (weights == largest)).all()
    accepted = f"sample_weight must be equal where it is not 0, {equal_for} has no weighted form"
    return (weights > 0).astype(np.int32), valid & required(equal, accepted, weights)


def _largest(weights: Data, codes: Data | None) -> Data:
    """The largest weight, of each row's query if there are any; 1 where all are 0."""
    if codes is None:
        return weights.max()
    largest: Data = np.zeros(weights.shape)
    if isinstance(weights, np.ndarray) and isinstance(codes, np.ndarray):
        np.maximum.at(largest, codes, weights)
    else:
        largest = jnp.asarray(largest, float).at[codes].max(jnp.asarray(weights, float))
    return (largest + (largest == 0).astype(largest.dtype))[codes]


def checked_positives(targets: Data, positive: object) -> tuple[Data, Data]:
    """The positive rows as bools, and which columns are binary."""
    if positive is not None:
        label = as_array("positive", positive)
        if label.ndim != 0:
            raise ValueError(f"positive must be one label; got {positive!r}")
        valid = comparable("targets", targets, "positive", label)
        with jax.numpy_dtype_promotion("standard"):  # a label is a value, its dtype is nothing
            return targets == label.item(), valid
    if targets.dtype == bool:
        return targets, np.True_
    accepted = "targets must be bool, 0/1 or -1/+1, or positive= must name the positive label"
    if not is_real(targets):
        raise ValueError(f"{accepted}; got dtype {targets.dtype}")
    ones = targets == 1
    valid = (ones | (targets == 0)).all(axis=0)
    if not jnp.issubdtype(targets.dtype, jnp.unsignedinteger):
        valid = valid | (ones | (targets == -1)).all(axis=0)
    return ones, required(valid, accepted, targets)


def checked_relevance(targets: Data, positive: object) -> tuple[Data, Data]:
    """Relevance as floats of at most 1, scaled by column, and which columns are fine."""
    default = jnp.result_type(float)
    if positive is not None:
        ones, valid = checked_positives(targets, positive)
        return ones.astype(default), valid
    accepted = "targets must be non-negative relevance, finite (not NaN)"
    if not is_real(targets):
        named = "or positive= must name the relevant label"
        raise ValueError(f"{accepted}, {named}; got dtype {targets.dtype}")
    relevance = targets.astype(np.float64 if isinstance(targets, np.ndarray) else default)
    valid = ((relevance >= 0) & (relevance < np.inf)).all(axis=0)
    valid = required(valid, accepted, targets)
    here = np if isinstance(relevance, np.ndarray) else jnp
    _, power = here.frexp(relevance.max(axis=0, keepdims=True))
    # Scaled by a power of two: no sum overflows, and sums of integers stay exact.
    return here.ldexp(relevance, -power).astype(default), valid


def checked_scores(scores: Data) -> tuple[Data, Data]:
    """Scores that JAX ranks as they are, and which columns have no NaN."""
    if not is_real(scores):
        raise ValueError(f"scores must be real numbers; got dtype {scores.dtype}")
    valid: Data = np.True_
    if jnp.issubdtype(scores.dtype, jnp.floating):
        valid = required((scores <= np.inf).all(axis=0), "scores must not be NaN", scores)
    if isinstance(scores, np.ndarray) and scores.dtype.itemsize > jnp.result_type(float).itemsize:
        # JAX would round these and tie scores that differ: give it their ranks instead.
        order = np.argsort(scores, axis=0)
        ordered = np.take_along_axis(scores, order, axis=0)
        ranks = np.zeros(scores.shape, np.int32)
        np.cumsum(ordered[1:] != ordered[:-1], axis=0, out=ranks[1:])
        scores = np.empty_like(ranks)
        np.put_along_axis(scores, order, ranks, axis=0)
    return scores, valid


def checked_groups(groups: Any, n: int) -> Data | None:
    """The queries of the rows, (n,) int32 codes in the order of the ids; None for one query."""
    if groups is None:
        return None
    ids = as_array("groups", groups)
    if ids.shape != (n,):
        raise ValueError(f"groups must be query ids of shape ({n},); got shape {ids.shape}")
    if not is_known(ids):
        if jnp.issubdtype(ids.dtype, jnp.floating):
            raise ValueError(f"groups must be integers inside jax.jit; got dtype {ids.dtype}")
        return jnp.searchsorted(jnp.sort(ids), ids).astype(jnp.int32)
    ids = np.asarray(ids)
    if is_real(ids) and np.isnan(ids).any():
        raise ValueError("groups must not be NaN; got a NaN query id")
    try:
        return np.unique(ids, return_inverse=True)[1].astype(np.int32)
    except TypeError as error:
        raise ValueError(f"groups must be ids that can be sorted; got {error}") from None


def checked_cutoffs(k: Any) -> tuple[list[int], bool]:
    """The cut-offs, and whether they were given as a sequence."""
    if isinstance(k, (np.ndarray, jax.Array)) and is_known(k):
        k = np.asarray(k).tolist()
    is_sequence = isinstance(k, Sequence) and not isinstance(k, str)
    cutoffs = list(k) if is_sequence else [k]
    integers = (isinstance(one, (int, np.integer)) and one is not True for one in cutoffs)
    if not cutoffs or not all(integers) or min(cutoffs) < 1:
        raise ValueError(f"k must be an integer >= 1, or a sequence of them; got {k!r}")
    return [int(one) for one in cutoffs], is_sequence


def comparable(name: str, labels: Data, other_name: str, others: Data) -> Data:
    """Refuse kinds of labels that would differ everywhere without a word."""
    kinds = ["" if is_real(one) else one.dtype.kind.replace("T", "U") for one in (labels, others)]
    if kinds[0] != kinds[1] and "O" not in kinds:
        found = f"{name} of dtype {labels.dtype} and {other_name} of dtype {others.dtype}"
        raise ValueError(f"{name} and {other_name} must be labels of one kind; got {found}")
    bools = [one.dtype == bool for one in (labels, others)]
    if "O" in kinds or bools[0] == bools[1]:
        return np.True_
    numbers = others if bools[0] else labels
    accepted = f"{name} and {other_name}: bools compare with 0/1 only"
    return required(((numbers == 0) | (numbers == 1)).all(), accepted, numbers)
