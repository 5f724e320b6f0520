"""The examples and their weights, checked on the host before anything is traced."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsolvers.checks import (
    MAX_COUNT,
    check_finite,
    check_matrix,
    check_reals,
    check_vector,
)
from jaxsolvers.csr import Csr, check_csr, is_sparse


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
    """The rows of X where they lie (host or device), never copied whole."""

    values: Any  # (n, d) np.ndarray, jax.Array or Csr, the user's own; or a Stream
    dtype: np.dtype  # working dtype

    @property
    def sparse(self) -> bool:
        """Whether the rows are sparse."""
        return getattr(self.values, "sparse", isinstance(self.values, Csr))

    def take(self, rows: np.ndarray) -> Examples:
        """Some of the rows, copied."""
        values = self.values
        return Examples(values.take(rows) if isinstance(values, Csr) else values[rows], self.dtype)

    @property
    def n(self) -> int:
        return self.values.shape[0]

    @property
    def d(self) -> int:
        return self.values.shape[1]


def check_rows(X: Any, width: int | None = None) -> Any:
    """X as an array or a Csr, of ``width`` columns if that is given.

    Raises:
      ValueError: as :func:`check_matrix` or :func:`check_csr`, and X without rows, with NaN or
        infinity.
    """
    array = check_csr(X, width) if is_sparse(X) else check_matrix(X, width)
    if array.shape[0] == 0:
        raise ValueError(f"X must have at least one row, got 0 samples (shape {array.shape})")
    if max(array.shape) > MAX_COUNT:
        raise ValueError(f"X must have at most 2^31 - 1 rows and columns, got shape {array.shape}")
    if not isinstance(array, Csr):
        check_finite(array, "X")
    return array


def working_dtype(dtype: Any) -> np.dtype:
    """float32 for 16-bit floats, JAX's default float for integers and bools, else the dtype."""
    native = np.dtype(dtype).newbyteorder("=")
    if not jnp.issubdtype(native, jnp.floating):
        return np.dtype(jnp.result_type(float))
    if native.itemsize == 2:
        return np.dtype(np.float32)
    if native.itemsize > 4 and jnp.result_type(float) == np.float32:
        warnings.warn(
            f"X is {native} but 64-bit mode is off: training in float32 "
            '(jax.config.update("jax_enable_x64", True) turns it on)',
            UserWarning,
            stacklevel=5,
        )
        return np.dtype(np.float32)
    return np.dtype(np.float64 if native.itemsize > 4 else np.float32)


def check_sample_weight(sample_weight: Any, n: int, as_given: bool = False) -> np.ndarray:
    """Weights (n,) float64, divided by their mean over the rows with weight > 0.

    Those of a batch of a stream stay ``as_given``, be they all zero: the mean is not known.

    Raises:
      ValueError: wrong length, negative, NaN, infinite or all zero; the message names it.
    """
    if sample_weight is None:
        return np.ones(n)
    check_vector(sample_weight, n, "sample_weight")
    weight = check_reals(sample_weight, "sample_weight", "hold numbers >= 0", bools=True)
    if not np.isfinite(weight).all() or (weight < 0).any():
        bad = weight[~(np.isfinite(weight) & (weight >= 0))][0]
        raise ValueError(f"sample_weight must be non-negative and finite, got {bad}")
    if as_given:
        return weight
    live = weight > 0
    if not live.any():
        raise ValueError("sample_weight must have a positive entry, got only zeros")
    weight = weight / weight.max()  # first, so that no sum overflows
    return weight / weight[live].mean()
