"""Checks of arguments, on the host before anything is traced.

Each raises a ValueError that names the argument, what was given and what is accepted.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

MAX_COUNT = 2**31 - 1
_CHECK_ENTRIES = 1 << 22  # entries per piece of the finiteness check


def is_real(dtype: Any) -> bool:
    """Whether arrays of the dtype hold bools, integers or real floats (16-bit ones too)."""
    native = np.dtype(dtype).newbyteorder("=")
    # By kind: NumPy counts time differences among the integers.
    return native.kind in "biuf" or bool(jnp.issubdtype(native, jnp.floating))


def check_matrix(X: Any, width: int | None = None, name: str = "X") -> Any:
    """X as a 2-d NumPy or JAX array of numbers, its memory shared where it already is one.

    Raises:
      ValueError: sparse, not 2-d, without columns, or not of numbers; the message names X.
    """
    for method in ("toarray", "todense"):
        if hasattr(X, method):
            raise ValueError(
                f"{name} must be a dense array, got {type(X).__name__}; {name}.{method}() makes one"
            )
    array = X if isinstance(X, jax.Array) else host_array(X, name)
    if array.ndim != 2 or (width is not None and array.shape[1] != width):
        accepted = "2-d (n samples, d features)"
        if width is not None:
            accepted = f"of shape (n, {width}) as in training"
        raise ValueError(f"{name} must be {accepted}, got shape {array.shape}")
    if array.shape[1] == 0:
        raise ValueError(f"{name} must have at least one feature, got shape {array.shape}")
    if not is_real(array.dtype):
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    return array


def check_finite(array: Any, name: str) -> None:
    """Raise a ValueError that names ``name`` if the array holds NaN or infinity. One pass."""
    if not _is_floating(array.dtype):
        return
    if isinstance(array, jax.Array):
        # The sum of squares is one fast pass; only an overflow needs the exact look.
        if bool(jnp.isfinite(_square_sum(array))) or bool(jnp.all(jnp.isfinite(array))):
            return
        bad = np.asarray(jnp.argwhere(~jnp.isfinite(array), size=1))[0]
    else:
        rows = max(1, _CHECK_ENTRIES // max(1, array[:1].size))
        for start in range(0, len(array), rows):
            piece = np.asarray(array[start : start + rows])
            with np.errstate(over="ignore", invalid="ignore"):
                fine = piece.dtype.itemsize > 2 and np.isfinite(np.vdot(piece, piece))
            if not fine and not np.isfinite(piece).all():
                bad = np.argwhere(~np.isfinite(piece))[0]
                bad[0] += start
                break
        else:
            return
    where = tuple(int(i) for i in bad)
    raise ValueError(f"{name} must be finite, got {array[where]} at {where}")


@jax.jit
def _square_sum(array: jax.Array) -> jax.Array:
    return jnp.vdot(array, array, precision=jax.lax.Precision.DEFAULT)


def check_vector(y: Any, n: int, name: str = "y") -> np.ndarray:
    """Y as a host vector of length n.

    Raises:
      ValueError: not 1-d, or another length than X; the message names y.
    """
    array = host_array(y, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1-d, one entry per row of X, got shape {array.shape}")
    if array.shape[0] != n:
        raise ValueError(f"{name} must have one entry per row of X ({n}), got {array.shape[0]}")
    return array


def check_labels(y: Any, n: int) -> np.ndarray:
    """Y as labels of any sortable kind: integers, floats, bools, strings."""
    labels = check_vector(y, n)
    if _is_floating(labels.dtype):
        labels = labels.astype(np.float64) if labels.dtype.name == "bfloat16" else labels
        if not np.isfinite(labels).all():
            raise ValueError("y must be labels without NaN or infinity")
    if labels.dtype == object:
        if any(label is None or label != label for label in labels):
            raise ValueError("y must be labels without missing values")
        if any(isinstance(label, (tuple, list, set, frozenset, dict)) for label in labels):
            raise ValueError(
                "y must be one label per row, got collections; fit_one_vs_rest takes label sets"
            )
        try:
            sorted(set(labels.tolist()))
        except TypeError as error:
            raise ValueError(f"y must be labels of one sortable kind: {error}") from None
    return labels


def check_reals(value: Any, name: str, accepted: str, bools: bool = False) -> np.ndarray:
    """Numbers as a float64 array; strings never, bools where they are said to be welcome."""
    array = host_array(value, name)
    if not is_real(array.dtype) or (array.dtype == bool and not bools):
        raise ValueError(f"{name} must {accepted}, got dtype {array.dtype}: {value!r}")
    return array.astype(np.float64)


def check_integer(value: Any, name: str, minimum: int = 1, maximum: int = MAX_COUNT) -> int:
    """A Python int within bounds.

    Raises:
      ValueError: a bool, a non-integer or out of bounds; the message names the argument.
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not whole or not minimum <= value <= maximum:
        accepted = f"an integer >= {minimum}"
        if maximum != MAX_COUNT:
            accepted = f"an integer in {minimum} ... {maximum}"
        raise ValueError(f"{name} must be {accepted}, got {value!r}")
    return int(value)


def check_option(value: Any, name: str, options: tuple[str, ...]) -> str:
    """One of the accepted strings."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
    return str(value)


def host_array(value: Any, name: str) -> np.ndarray:
    """The value as a NumPy array; ragged rows are a ValueError that names it."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be a rectangular array, got rows of other lengths") from None


def _is_floating(dtype: Any) -> bool:
    return bool(jnp.issubdtype(np.dtype(dtype).newbyteorder("="), jnp.floating))
