"""Kernels: k(x, z) between rows, one small dataclass each, evaluated a tile at a time.

``values`` is the pure function of two dense blocks of rows; ``matrix`` takes rows of any kind and
number. Any function ``k(X, Z) -> (n, m)`` may stand where a kernel is asked for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.checks import check_finite, check_matrix
from jaxsolvers.csr import Csr, check_csr, is_sparse
from jaxsolvers.features import product
from jaxsolvers.members import Array, Member, Number, member, number, register, setting

__all__ = ["RBF", "Laplacian", "Linear", "Polynomial", "Precomputed"]

TILE_ROWS = 1024  # rows of a dense tile at most
TILE_NUMBERS = 1 << 22  # numbers in it at most: 16 MB of float32
KEPT_BYTES = 1 << 30  # of one side as dense tiles, that are kept between uses


class Kernel(Member):
    """A positive semi-definite function k(x, z) of two rows.

    A subclass writes :meth:`values` and, where it is cheaper, :meth:`diagonal`.
    """

    precomputed: ClassVar[bool] = False  # rows are kernel values themselves
    traceable: ClassVar[bool] = True  # values can be compiled

    def values(self, X: Array, Z: Array) -> Array:
        """k(x_i, z_j) of dense rows (n, d) and (m, d) of one floating dtype, (n, m); pure."""
        raise NotImplementedError

    def diagonal(self, X: Array) -> Array:
        """k(x_i, x_i) of dense rows (n, d), (n,); pure."""
        return jax.lax.map(lambda row: self.values(row[None], row[None])[0, 0], X)

    def matrix(self, X: Any, Z: Any = None) -> Array:
        """k(x_i, z_j) for all rows, a tile at a time.

        Args:
          X: (n, d) array of real numbers or any sparse matrix, made dense tile by tile.
          Z: (m, d), the same; X by default.

        Returns:
          (n, m) in X's floating dtype (float32 for 16 bits, JAX's default for integers).

        Raises:
          ValueError: rows that are not 2-d, not finite, of different widths; a kernel function
            that returns something else than (n, m) numbers. The message names the argument.
        """
        X = checked_rows(X, None, "X")
        Z = X if Z is None else checked_rows(Z, X.shape[1], "Z")
        dtype = float_dtype(X.dtype)
        columns = Columns(self.cast(dtype), Z, dtype)
        tiles = dense_tiles(X, dtype, tile_rows(X.shape))
        pieces = [columns.values(tile, count) for _, count, tile in tiles]
        return pieces[0] if len(pieces) == 1 else jnp.concatenate(pieces)


@member
class Linear(Kernel):
    """The inner product, k(x, z) = <x, z>: a kernel machine that equals the linear one.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> js.kernels.Linear().matrix(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])).tolist()
      [[11.0]]
    """

    def values(self, X: Array, Z: Array) -> Array:
        return product(X, Z.T)

    def diagonal(self, X: Array) -> Array:
        return jnp.sum(X * X, axis=1)


@member
class RBF(Kernel):
    """The Gaussian kernel, k(x, z) = exp(-gamma ||x - z||^2).

    The distances are expanded into products after the mean of the z has been taken off, and
    clipped at 0: expanded around the origin, features near 1000 would be off by 1 in float32.

    Args:
      gamma: inverse squared width, > 0. scikit-learn's gamma; 1/(2 sigma^2).

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> K = js.kernels.RBF(0.5).matrix(np.array([[0.0], [2.0]]))
      >>> [round(float(value), 4) for value in K[0]]
      [1.0, 0.1353]
    """

    gamma: Number = number(above=0)

    def values(self, X: Array, Z: Array) -> Array:
        centre = jnp.mean(Z, axis=0, keepdims=True)
        X, Z = X - centre, Z - centre
        squares = jnp.sum(X * X, axis=1)[:, None] + jnp.sum(Z * Z, axis=1)[None, :]
        distance = jnp.maximum(squares - 2 * product(X, Z.T), 0)
        return jnp.exp(-jnp.asarray(self.gamma, X.dtype) * distance)

    def diagonal(self, X: Array) -> Array:
        return jnp.ones(X.shape[:1], X.dtype)


@member
class Laplacian(Kernel):
    """The Laplace kernel, k(x, z) = exp(-gamma ||x - z||_1).

    Args:
      gamma: inverse width, > 0.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> K = js.kernels.Laplacian(0.5).matrix(np.array([[0.0], [2.0]]))
      >>> [round(float(value), 4) for value in K[0]]
      [1.0, 0.3679]
    """

    gamma: Number = number(above=0)

    def values(self, X: Array, Z: Array) -> Array:
        # Row by row: (n, m, d) differences would not fit.
        distance = jax.lax.map(lambda row: jnp.sum(jnp.abs(Z - row[None]), axis=1), X)
        return jnp.exp(-jnp.asarray(self.gamma, X.dtype) * distance)

    def diagonal(self, X: Array) -> Array:
        return jnp.ones(X.shape[:1], X.dtype)


@member
class Polynomial(Kernel):
    """The polynomial kernel, k(x, z) = (gamma <x, z> + coef0)^degree.

    Args:
      degree: an integer >= 1.
      gamma: factor of the product, > 0; 1 by default.
      coef0: weight of the lower degrees, >= 0; 1 by default, 0 leaves them out.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> K = js.kernels.Polynomial(2).matrix(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
      >>> K.tolist()
      [[144.0]]
    """

    degree: int = setting(default=dataclasses.MISSING)
    gamma: Number = number(default=1.0, above=0)
    coef0: Number = number(default=1.0, minimum=0)

    def values(self, X: Array, Z: Array) -> Array:
        return self._power(product(X, Z.T))

    def diagonal(self, X: Array) -> Array:
        return self._power(jnp.sum(X * X, axis=1))

    def _power(self, inner: Array) -> Array:
        gamma, coef0 = (jnp.asarray(value, inner.dtype) for value in (self.gamma, self.coef0))
        return jax.lax.integer_pow(gamma * inner + coef0, self.degree)


@member
class Precomputed(Kernel):
    """Rows that are kernel values already, whatever the kernel was.

    Training takes the square matrix (n, n) of the training rows; prediction (m, n): a row per test
    row, a column per training row.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> K = js.kernels.RBF(1.0).matrix(np.array([[0.0], [0.1], [1.0]]))
      >>> js.kernels.Precomputed().diagonal(K).tolist()
      [1.0, 1.0, 1.0]
    """

    precomputed: ClassVar[bool] = True

    def values(self, X: Array, Z: Array) -> Array:
        raise ValueError("kernel must not be Precomputed where values between rows are asked for")

    def diagonal(self, X: Array) -> Array:
        return jnp.diagonal(X)


@dataclasses.dataclass(frozen=True, eq=False)
class Function(Kernel):
    """A user's function, met like a kernel; it sees a tile of each side at a time."""

    function: Callable[[Any, Any], Any]

    traceable: ClassVar[bool] = False  # it may well be written with NumPy

    def specs(self) -> Iterator[Any]:
        return iter(())

    def values(self, X: Array, Z: Array) -> Array:
        found = np.asarray(self.function(X, Z))
        if found.shape != (X.shape[0], Z.shape[0]):
            raise ValueError(
                f"kernel must be a function k(X, Z) -> (n, m), here {(X.shape[0], Z.shape[0])}, "
                f"it returned shape {found.shape}"
            )
        check_finite(found, "the kernel's values")
        return jnp.asarray(found.astype(X.dtype))

    def diagonal(self, X: Array) -> Array:
        rows = 16  # together: each call has its price, and so has what is off the diagonal
        pieces = [
            jnp.diagonal(self.values(X[at : at + rows], X[at : at + rows]))
            for at in range(0, X.shape[0], rows)
        ]
        return jnp.concatenate(pieces)


register(Function, static=("function",))


def as_kernel(kernel: Any) -> Kernel:
    """A kernel as it is, a function as a kernel.

    Raises:
      ValueError: neither of them; the message names ``kernel``.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Function(kernel)
    raise ValueError(
        "kernel must be one of js.kernels, such as js.kernels.RBF(0.1), or a function "
        f"k(X, Z) -> (n, m), got {kernel!r}"
    )


# ---- rows in tiles -------------------------------------------------------------------------------
def checked_rows(X: Any, width: int | None, name: str) -> Any:
    """Rows as a finite dense array or a Csr."""
    if is_sparse(X):
        return check_csr(X, width, name)
    X = check_matrix(X, width, name)
    check_finite(X, name)
    return X


def float_dtype(dtype: Any) -> np.dtype:
    """float32 for 16-bit floats, JAX's default float for integers and bools, else the dtype."""
    default = np.dtype(jnp.result_type(float))
    if not jnp.issubdtype(dtype, jnp.floating):
        return default
    size = np.dtype(dtype).itemsize
    return default if size > 4 else np.dtype(np.float32)


def tile_rows(shape: tuple[int, ...]) -> int:
    """Rows of a tile: a power of two, few enough for the numbers in it."""
    n, d = shape
    most = min(TILE_ROWS, max(1, TILE_NUMBERS // max(d, 1)))
    return min(1 << (most.bit_length() - 1), 1 << max(n - 1, 0).bit_length())


def dense_tiles(X: Any, dtype: Any, rows: int) -> Iterator[tuple[int, int, Array]]:
    """Yield (first row, rows of X, dense tile (rows, d)); the last row fills the last tile."""
    for start in range(0, max(X.shape[0], 1), rows):
        piece = (
            X.take(slice(start, start + rows)) if isinstance(X, Csr) else X[start : start + rows]
        )
        count = piece.shape[0]
        if isinstance(piece, jax.Array):
            fill = ((0, rows - count), (0, 0))
            mode = "edge" if count else "constant"
            yield start, count, jnp.pad(piece.astype(dtype), fill, mode=mode)
            continue
        tile = np.zeros((rows, X.shape[1]), dtype)
        if count:
            tile[:count] = piece.dense(dtype) if isinstance(piece, Csr) else piece
            # Not zeros: what is taken off as the mean of a tile must lie among its rows.
            tile[count:] = tile[count - 1]
        yield start, count, jnp.asarray(tile)


class Columns:
    """One side of a kernel's values: m rows, kept as dense tiles where these are few.

    Args:
      kernel: its numbers are of the dtype.
      Z: (m, d) array or Csr.
      dtype: of the values.
      device: where they are computed; None: where JAX likes.
      budget: bytes of dense tiles that may be kept.
    """

    def __init__(
        self, kernel: Kernel, Z: Any, dtype: Any, device: Any = None, budget: int = KEPT_BYTES
    ) -> None:
        self.kernel, self.count = kernel, int(Z.shape[0])
        self._Z, self._dtype, self._device = Z, dtype, device
        self._rows = tile_rows(Z.shape)
        fits = self.count * Z.shape[1] * np.dtype(dtype).itemsize <= budget
        self._kept = list(self._made()) if fits else None

    def values(self, X: Array, count: int | None = None) -> Array:
        """k(x_i, z_j) of the first ``count`` of the dense rows (n, d), by default all."""
        X = jax.device_put(X, self._device)
        count = X.shape[0] if count is None else count
        pieces = [
            _values(self.kernel, X, tile)[:count, :own]
            if self.kernel.traceable
            else self.kernel.values(X[:count], tile[:own])
            for tile, own in self._tiles()
        ]
        return pieces[0] if len(pieces) == 1 else jnp.concatenate(pieces, axis=1)

    def diagonal(self) -> Array:
        """k(z_j, z_j), (m,)."""
        pieces = [
            _diagonal(self.kernel, tile)[:count]
            if self.kernel.traceable
            else self.kernel.diagonal(tile[:count])
            for tile, count in self._tiles()
        ]
        return jnp.concatenate(pieces)

    def _tiles(self) -> Iterator[tuple[Array, int]]:
        for i, tile in enumerate(self._made() if self._kept is None else self._kept):
            yield tile, min(self._rows, self.count - i * self._rows)

    def _made(self) -> Iterator[Array]:
        for _, _, tile in dense_tiles(self._Z, self._dtype, self._rows):
            yield jax.device_put(tile, self._device)


# Plain functions: JAX caches traces by function, and a bound method lives at its object's address.
@jax.jit
def _values(kernel: Kernel, X: Array, Z: Array) -> Array:
    return kernel.values(X, Z)


@jax.jit
def _diagonal(kernel: Kernel, X: Array) -> Array:
    return kernel.diagonal(X)
