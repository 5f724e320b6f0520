"""What the user hands in, checked on the host before anything is traced."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

MAX_COUNT = 2**31 - 1
_CHECK_ROWS = 1 << 22  # entries per piece of the finiteness check


@dataclasses.dataclass(frozen=True)
class Examples:
    """The rows of X where they lie (host or device), never copied whole."""

    values: Any  # (n, d) np.ndarray or jax.Array, the user's own
    dtype: np.dtype  # working dtype

    @property
    def n(self) -> int:
        return self.values.shape[0]

    @property
    def d(self) -> int:
        return self.values.shape[1]


def check_matrix(X: Any, name: str = "X") -> Any:
    """X as a 2-d NumPy or JAX array of numbers, its memory shared where it already is one.

    Raises:
      ValueError: sparse, not 2-d, without columns, or not of numbers; the message names X.
    """
    if hasattr(X, "tocsr") or hasattr(X, "todense"):
        raise ValueError(
            f"{name} must be a dense array, got {type(X).__name__}; {name}.toarray() makes one"
        )
    array = X if isinstance(X, jax.Array) else _host_array(X, name)
    if array.ndim != 2:
        raise ValueError(f"{name} must be 2-d (n samples, d features), got shape {array.shape}")
    if array.shape[1] == 0:
        raise ValueError(f"{name} must have at least one feature, got shape {array.shape}")
    if not (jnp.issubdtype(array.dtype, jnp.number) or array.dtype == bool) or jnp.issubdtype(
        array.dtype, jnp.complexfloating
    ):
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    return array


def check_examples(X: Any) -> Examples:
    """X ready for training.

    Raises:
      ValueError: as :func:`check_matrix`, and X without rows or with NaN or infinity.
    """
    array = check_matrix(X)
    if array.shape[0] == 0:
        raise ValueError(f"X must have at least one row, got 0 samples (shape {array.shape})")
    if max(array.shape) > MAX_COUNT:
        raise ValueError(f"X must have at most 2^31 - 1 rows and columns, got shape {array.shape}")
    check_finite(array, "X")
    return Examples(array, working_dtype(array.dtype))


def working_dtype(dtype: Any) -> np.dtype:
    """float32 for 16-bit floats, JAX's default float for integers and bools, else the dtype."""
    if not jnp.issubdtype(dtype, jnp.floating):
        return np.dtype(jnp.result_type(float))
    if jnp.finfo(dtype).bits == 16:
        return np.dtype(np.float32)
    if dtype == np.float64 and jnp.result_type(float) == np.float32:
        warnings.warn(
            "X is float64 but 64-bit mode is off: training in float32 "
            '(jax.config.update("jax_enable_x64", True) turns it on)',
            UserWarning,
            stacklevel=4,
        )
        return np.dtype(np.float32)
    return np.dtype(dtype)


def check_finite(array: Any, name: str) -> None:
    """Raise a ValueError that names ``name`` if the array holds NaN or infinity. One pass."""
    if not jnp.issubdtype(array.dtype, jnp.floating):
        return
    if isinstance(array, jax.Array):
        # The sum of squares is one fast pass; only an overflow needs the exact look.
        if bool(jnp.isfinite(_square_sum(array))) or bool(jnp.all(jnp.isfinite(array))):
            return
        bad = np.asarray(jnp.argwhere(~jnp.isfinite(array), size=1))[0]
    else:
        rows = max(1, _CHECK_ROWS // max(1, array[:1].size))
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
    array = _host_array(y, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1-d, one entry per row of X, got shape {array.shape}")
    if array.shape[0] != n:
        raise ValueError(f"{name} must have one entry per row of X ({n}), got {array.shape[0]}")
    return array


def check_labels(y: Any, n: int) -> np.ndarray:
    """Y as labels of any sortable kind: integers, floats, bools, strings."""
    labels = check_vector(y, n)
    if jnp.issubdtype(labels.dtype, jnp.floating):
        labels = labels.astype(np.float64) if labels.dtype.name == "bfloat16" else labels
        if not np.isfinite(labels).all():
            raise ValueError("y must be labels without NaN or infinity")
    if labels.dtype == object and any(label is None or label != label for label in labels):
        raise ValueError("y must be labels without missing values")
    return labels


def check_sample_weight(sample_weight: Any, n: int) -> np.ndarray:
    """Weights (n,) float64, divided by their mean over the rows with weight > 0.

    Raises:
      ValueError: wrong length, negative, NaN, infinite or all zero; the message names it.
    """
    if sample_weight is None:
        return np.ones(n)
    weight = check_vector(sample_weight, n, "sample_weight")
    try:
        weight = weight.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must hold numbers, got dtype {weight.dtype}") from None
    if not np.isfinite(weight).all() or (weight < 0).any():
        bad = weight[~(np.isfinite(weight) & (weight >= 0))][0]
        raise ValueError(f"sample_weight must be non-negative and finite, got {bad}")
    live = weight > 0
    if not live.any():
        raise ValueError("sample_weight must have a positive entry, got only zeros")
    return weight / weight[live].mean()


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
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
    return str(value)


def _host_array(value: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be a rectangular array, got rows of other lengths") from None
