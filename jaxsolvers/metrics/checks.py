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
    try:
        array = np.asarray(value)
        array = np.array(array.tolist()) if array.dtype == object else array
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    except ValueError as error:
        raise ValueError(f"{name} must be an array, got {type(value).__name__}: {error}") from None


def columns(array: Data) -> Data:
    """The array as (n, K)."""
    return array.reshape((array.shape[0], -1))


def is_real(array: Data) -> bool:
    """Whether the dtype is bool, integer or floating."""
    return any(jnp.issubdtype(array.dtype, one) for one in (jnp.bool_, jnp.integer, jnp.floating))


def check_shapes(targets: Data, name: str, other: Data) -> None:
    """Raise a ValueError unless both are (n,) or (n, K) alike, and not empty."""
    if targets.shape != other.shape or targets.ndim not in (1, 2) or targets.size == 0:
        found = f"targets {targets.shape} and {name} {other.shape}"
        raise ValueError(f"targets and {name} must both be (n,) or (n, K), not empty; got {found}")


def checked_weights(given: Any, n: int, equal_for: str = "") -> tuple[Data | None, Data]:
    """Float weights of maximum 1, or counts 0/1 for a metric defined for equal weights only."""
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
        return (weights / largest).astype(default), valid  # scaled: no sum overflows
    equal = ((weights == 0) | (weights == largest)).all()
    accepted = f"sample_weight must be equal where it is not 0, {equal_for} has no weighted form"
    return (weights > 0).astype(np.int32), valid & required(equal, accepted, weights)


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


def checked_scores(scores: Data) -> tuple[Data, Data]:
    """Scores that JAX ranks as they are, and which columns have no NaN."""
    if not is_real(scores):
        raise ValueError(f"scores must be real numbers; got dtype {scores.dtype}")
    valid: Data = np.True_
    if jnp.issubdtype(scores.dtype, jnp.floating):
        valid = required((scores <= np.inf).all(axis=0), "scores must not be NaN", scores)
    if isinstance(scores, np.ndarray) and scores.dtype.itemsize > jnp.result_type(float).itemsize:
        # JAX would round these and tie scores that differ: give it their ranks instead.
        ranks = [np.unique(column, return_inverse=True)[1] for column in scores.T]
        scores = np.stack(ranks, axis=1).astype(np.int32)
    return scores, valid


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
