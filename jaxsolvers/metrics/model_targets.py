"""What a model's rankers should have answered, from labels as users give them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsolvers.checks import check_reals, is_real
from jaxsolvers.csr import Csr
from jaxsolvers.members import Array


def answers_of(classes: np.ndarray | None, n_rankers: int | None, y: Any) -> Any:
    """The right answers of all rows.

    Args:
      classes: labels of the rankers, two of a single one, None for regression.
      n_rankers: K, None for a single ranker.
      y: (n,) labels or real targets, or an indicator (n, K), an array or a Csr.

    Returns:
      Class codes (n,) int32 of many rankers, -1 and +1 of a single one, real targets (n,), or
      the indicator, in which 1 is yes and all else no.

    Raises:
      ValueError: a label that is not a class, an indicator of anything but yes and no.
    """
    return _codes(classes, n_rankers, y) if len(y.shape) == 1 else _indicator(y)


def _codes(classes: np.ndarray | None, n_rankers: int | None, y: np.ndarray) -> np.ndarray:
    """Class codes (n,) int32 of many rankers, -1 and +1 of a single one, or the real targets."""
    if classes is None and n_rankers is None:
        return check_reals(y, "y", "hold real numbers")
    known = range(n_rankers or 0) if classes is None else classes.tolist()
    code = {label: i for i, label in enumerate(known)}
    unknown = [label for label in np.unique(y).tolist() if label not in code]
    if unknown:
        raise ValueError(f"y holds the label {unknown[0]!r}, which is not a class of the model")
    codes = np.array([code[label] for label in y.tolist()], np.int32)
    return codes if n_rankers is not None else 2 * codes - 1


def _indicator(y: Any) -> Any:
    """An indicator, in which 1 is yes and all else no."""
    entries, no = (y.data, 0) if isinstance(y, Csr) else (y, -1 if (y == -1).any() else 0)
    wrong = (entries != 1) & (entries != no) if is_real(entries.dtype) else entries == entries
    if wrong.any():
        raise ValueError(
            f"y of shape {y.shape} must hold 0 and 1, or (no sparse one) -1 and 1, "
            f"got {entries[wrong][0]!r}"
        )
    return y


def rows_of(targets: Any, at: slice, several: bool, dtype: Any) -> Array:
    """Of some rows: class codes (B,), signs (K, B) of an indicator, or the targets (B,)."""
    if len(targets.shape) == 1:
        return jnp.asarray(targets[at], np.int32 if several else dtype)
    part = targets.take(at).dense(np.int8) if isinstance(targets, Csr) else targets[at]
    return jnp.asarray(np.where(part == 1, 1, -1).T, dtype)
