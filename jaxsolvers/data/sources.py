"""Sources: rows that come in chunks, epoch after epoch, and need not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from numpy.typing import DTypeLike

from jaxsolvers.checks import check_integer, host_array
from jaxsolvers.csr import is_sparse
from jaxsolvers.data.arguments import check_float_dtype
from jaxsolvers.data.chunks import (
    ChunkCheck,
    checked_weight,
    checked_X,
    checked_y,
    regrouped,
)

__all__ = ["ArraySource", "IteratorSource", "Source", "rechunk"]

CHUNK_ROWS = 4096


@runtime_checkable
class Source(Protocol):
    """Rows in chunks: whatever has a width, a dtype and can be iterated again and again.

    Every iteration is one epoch and yields all the rows in the same order, as tuples
    ``(X, y)`` or ``(X, y, sample_weight)``: X (n, d) a NumPy matrix or a scipy ``csr_array``, y
    (n,) labels or (n, K) indicators, sample_weight (n,). The chunks may differ in n.

    Args:
      n_features: d, the same for all chunks.
      dtype: of every X, float32 or float64.

    Example:
      >>> import numpy as np
      >>> isinstance(ArraySource(np.ones((2, 3)), [0, 1]), Source)
      True
    """

    @property
    def n_features(self) -> int:
        """Columns of every X."""

    @property
    def dtype(self) -> np.dtype:
        """Dtype of every X."""

    def __iter__(self) -> Iterator[Any]: ...


class ArraySource:
    """Arrays in memory, seen as a source.

    Args:
      X: (n, d) array of real numbers, or any scipy sparse matrix. Not copied if it is a matrix or
        canonical CSR of the dtype.
      y: (n,) labels or (n, K) indicators, dense or sparse.
      sample_weight: (n,), finite and not negative, or None.
      rows: rows per chunk; 4096 by default, the last chunk may be shorter.
      dtype: float32 or float64; None keeps X's, JAX's default float for integers and bools,
        float32 for 16-bit floats.

    Raises:
      ValueError: shapes do not fit, no rows, NaN or infinity, another dtype; the message names
        the argument.

    Example:
      >>> import numpy as np
      >>> source = ArraySource(np.arange(6.0).reshape(3, 2), [0, 1, 0], rows=2)
      >>> [(X.shape, y.tolist()) for X, y in source]
      [((2, 2), [0, 1]), ((1, 2), [0])]
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        rows: int = CHUNK_ROWS,
        dtype: DTypeLike | None = None,
    ):
        self.rows = check_integer(rows, "rows")
        if dtype is None:
            held = X.dtype if hasattr(X, "dtype") else host_array(X, "X").dtype
            self._dtype = _working_dtype(held)
        else:
            self._dtype = check_float_dtype(dtype)
        self._X = checked_X(X, None, self._dtype, "X")
        self.n_rows = int(self._X.shape[0])
        if self.n_rows == 0:
            raise ValueError(f"X must have at least one row, got shape {self._X.shape}")
        self._parts = [self._X, checked_y(y, self.n_rows, "y")]
        if sample_weight is not None:
            self._parts.append(checked_weight(sample_weight, self.n_rows, "sample_weight"))

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return int(self._X.shape[1])

    @property
    def dtype(self) -> np.dtype:
        """Dtype of X."""
        return self._dtype

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return regrouped([tuple(self._parts)], self.rows)


class IteratorSource:
    """Chunks made anew for every epoch.

    Args:
      make_iterator: called without arguments at the start of an epoch, returns an iterable over
        chunks ``(X, y)`` or ``(X, y, sample_weight)``; or an iterable that can be iterated again,
        such as a list of chunks. A generator cannot: pass the function that makes it.
      n_features: columns of every X.
      dtype: float32 or float64, every X is converted to it; float32 by default.

    Raises:
      ValueError: an argument is not accepted. Later, from an epoch: a chunk is not of the form
        above, of another form than the first, or holds NaN or infinity; the epoch is empty, or
        its iterator is the one of the epoch before.

    Example:
      >>> import numpy as np
      >>> def batches():
      ...     for label in (0, 1):
      ...         yield np.full((2, 3), label), [label, label]
      >>> source = IteratorSource(batches, n_features=3)
      >>> for epoch in range(2):
      ...     print([y.tolist() for X, y in source])
      [[0, 0], [1, 1]]
      [[0, 0], [1, 1]]
    """

    def __init__(
        self,
        make_iterator: Callable[[], Iterable[Any]] | Iterable[Any],
        n_features: int,
        dtype: DTypeLike = "float32",
    ):
        if not callable(make_iterator):
            if not hasattr(make_iterator, "__iter__"):
                raise ValueError(
                    "make_iterator must be a function that returns an iterator, got "
                    f"{make_iterator!r}"
                )
            if isinstance(make_iterator, Iterator):
                raise ValueError(
                    "make_iterator must be a function that returns a new iterator, got an "
                    f"iterator that serves one epoch only: {make_iterator!r}"
                )
        self._make = make_iterator
        self._n_features = check_integer(n_features, "n_features")
        self._dtype = check_float_dtype(dtype)
        self._last: Any = None
        self._epochs = 0

    @property
    def n_features(self) -> int:
        """Columns of every X."""
        return self._n_features

    @property
    def dtype(self) -> np.dtype:
        """Dtype of every X."""
        return self._dtype

    def __iter__(self) -> Iterator[Any]:
        made = self._make() if callable(self._make) else self._make
        if not hasattr(made, "__iter__"):
            raise ValueError(f"make_iterator must return an iterator over chunks, got {made!r}")
        iterator = iter(made)
        epoch, self._epochs = self._epochs, self._epochs + 1
        if iterator is self._last:
            raise ValueError(
                f"make_iterator must return a new iterator for every epoch, got the one of the "
                f"epoch before in epoch {epoch}"
            )
        self._last = iterator
        return self._checked(iterator, epoch)

    def _checked(self, iterator: Iterator[Any], epoch: int) -> Iterator[Any]:
        check = ChunkCheck(self._n_features, self._dtype)
        empty = True
        for chunk in iterator:
            checked = check(chunk)
            if checked[0].shape[0]:
                empty = False
                yield checked
        if empty:
            raise ValueError(
                f"make_iterator must give at least one row in every epoch, got none in epoch "
                f"{epoch}; a generator that was used up gives none"
            )


class _Rechunked:
    """A source in chunks of another size."""

    def __init__(self, source: Source, rows: int):
        self._source, self.rows = source, rows

    @property
    def n_features(self) -> int:
        return int(self._source.n_features)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self._source.dtype)

    def __iter__(self) -> Iterator[Any]:
        check = ChunkCheck(self.n_features, self.dtype)
        return regrouped(map(check, self._source), self.rows)


def rechunk(source: Source, rows: int) -> Source:
    """The rows of a source in chunks of ``rows`` rows each, the last one shorter.

    Args:
      source: any :class:`Source`; it is read as the chunks are asked for, one epoch at a time.
      rows: rows per chunk, >= 1.

    Returns:
      A source with the same rows in the same order, width and dtype.

    Raises:
      ValueError: ``source`` is none, ``rows`` is not a positive integer, or a chunk of the source
        is not of the form :class:`Source` says.

    Example:
      >>> import numpy as np
      >>> source = IteratorSource([(np.ones((3, 2)), [1, 2, 3]), (np.ones((2, 2)), [4, 5])], 2)
      >>> [y.tolist() for X, y in rechunk(source, 2)]
      [[1, 2], [3, 4], [5]]
    """
    if not isinstance(source, Source) or is_sparse(source):
        raise ValueError(
            f"source must have n_features, dtype and be iterable, got {type(source).__name__}"
        )
    return _Rechunked(source, check_integer(rows, "rows"))


def _working_dtype(dtype: Any) -> np.dtype:
    native = np.dtype(dtype).newbyteorder("=")
    if not jnp.issubdtype(native, jnp.floating):
        return np.dtype(jnp.result_type(float))
    return np.dtype(np.float64 if native.itemsize > 4 else np.float32)
