"""Feature maps: rows made longer so that their inner products approximate a kernel.

A linear solver on the features is then, up to the approximation, the kernel machine, at the price
of the features instead of n kernel values a row. A map is drawn once and never changes.
"""

from __future__ import annotations

from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.checks import check_integer, check_option
from jaxsolvers.csr import Csr
from jaxsolvers.features import product
from jaxsolvers.kernels import (
    RBF,
    Laplacian,
    as_kernel,
    checked_rows,
    dense_tiles,
    float_dtype,
    tile_rows,
)
from jaxsolvers.members import Array, arrays

__all__ = ["Nystroem", "RandomFourier"]

FORMS = ("cosine", "paired")


@arrays
class RandomFourier:
    """Random Fourier features of a shift-invariant kernel.

    cosine: ``phi(x) = sqrt(2/D) cos(Omega x + b)``, b uniform on [0, 2 pi); paired:
    ``phi(x) = sqrt(2/D) [cos(Omega x), sin(Omega x)]`` from D/2 frequencies. In both
    ``E <phi(x), phi(z)> = k(x, z)`` (Rahimi and Recht, NIPS 2007); the paired form has
    ``||phi(x)|| = 1`` and the smaller variance. The frequencies of RBF(gamma) are
    N(0, 2 gamma), those of Laplacian(gamma) are Cauchy of scale gamma. :meth:`draw` makes one.

    Attributes:
      frequencies: Omega, (D, d), of the paired form (D/2, d).
      offsets: b, (D,); None in the paired form.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X = np.array([[0.0, 0.1], [0.5, 0.2]], "float32")
      >>> kernel = js.kernels.RBF(0.5)
      >>> features = js.feature_maps.RandomFourier.draw(0, 2, 4096, kernel).features(X)
      >>> bool(abs(features @ features.T - kernel.matrix(X)).max() < 0.05)
      True
    """

    frequencies: Any
    offsets: Any

    @classmethod
    def draw(
        cls,
        key: Any,
        n_features: int,
        n_components: int,
        kernel: Any,
        form: str = "cosine",
        dtype: Any = np.float32,
    ) -> Self:
        """Draw the frequencies.

        Args:
          key: an int or a JAX key.
          n_features: d, columns of the rows.
          n_components: D, features of a row, >= 1; even for the paired form.
          kernel: ``js.kernels.RBF`` or ``js.kernels.Laplacian``.
          form: "cosine" (default) or "paired".
          dtype: of the frequencies and of features of that width, float32 by default.

        Raises:
          ValueError: another kernel, or a number out of range; the message names the argument.
        """
        d = check_integer(n_features, "n_features")
        size = check_integer(n_components, "n_components")
        check_option(form, "form", FORMS)
        if not isinstance(kernel, RBF | Laplacian):
            raise ValueError(
                "kernel must be js.kernels.RBF or js.kernels.Laplacian, whose spectra are known, "
                f"got {kernel!r}; js.feature_maps.Nystroem takes any kernel"
            )
        kernel.validate("kernel.")
        if form == "paired":
            if size % 2:
                raise ValueError(f"n_components must be even for the paired form, got {size}")
            size //= 2
        own, other = jax.random.split(_key(key))
        gamma = jnp.asarray(kernel.gamma, dtype)
        if isinstance(kernel, RBF):
            frequencies = jnp.sqrt(2 * gamma) * jax.random.normal(own, (size, d), dtype)
        else:
            frequencies = gamma * jax.random.cauchy(own, (size, d), dtype)
        if form == "paired":
            return cls(frequencies, None)
        return cls(frequencies, jax.random.uniform(other, (size,), dtype, 0, 2 * np.pi))

    @property
    def n_components(self) -> int:
        """D, the number of features of a row."""
        return int(self.frequencies.shape[0]) * (2 if self.offsets is None else 1)

    def features(self, X: Any) -> Array:
        """phi(x) of all rows.

        Args:
          X: (n, d) array, traced or not, or any sparse matrix, made dense tile by tile.

        Returns:
          (n, D) in the dtype of the frequencies.

        Raises:
          ValueError: X of another width, not 2-d or not finite; the message names X.
        """
        return _in_tiles(_fourier, self, X, self.frequencies.shape[1], self.frequencies.dtype)


@arrays
class Nystroem:
    """Features through the kernel values with a few rows.

    ``phi(x) = K_LL^{-1/2} k(L, x)`` with landmarks L: ``<phi(x), phi(z)>`` is the projection of
    k onto the span of the landmarks, exact among these (Williams and Seeger, NIPS 2000).
    Directions whose eigenvalue of K_LL is lost in rounding are left out. :meth:`draw` makes one.

    Attributes:
      kernel: one of ``js.kernels``.
      landmarks: L, (D, d).
      whitening: K_LL^{-1/2}, (D, D).

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X = np.array([[0.0], [1.0], [3.0]], "float32")
      >>> kernel = js.kernels.RBF(0.5)
      >>> features = js.feature_maps.Nystroem.draw(0, X, 3, kernel).features(X)
      >>> bool(abs(features @ features.T - kernel.matrix(X)).max() < 1e-5)
      True
    """

    kernel: Any
    landmarks: Any
    whitening: Any

    @classmethod
    def draw(cls, key: Any, X: Any, n_components: int, kernel: Any) -> Self:
        """Draw the landmarks among the rows, without replacement.

        Args:
          key: an int or a JAX key.
          X: (n, d) array or any sparse matrix.
          n_components: D, landmarks and features, 1 ... n.
          kernel: any of ``js.kernels`` but Precomputed, or a function k(X, Z) -> (n, m).

        Raises:
          ValueError: bad rows, numbers or kernel; the message names the argument.
        """
        X = checked_rows(X, None, "X")
        size = check_integer(n_components, "n_components", 1, max(1, X.shape[0]))
        found = as_kernel(kernel)
        if found.precomputed:
            raise ValueError("kernel must be met through rows for Nystroem, got Precomputed")
        found.validate("kernel.")
        dtype = float_dtype(X.dtype)
        chosen = np.sort(jax.random.choice(_key(key), X.shape[0], (size,), replace=False))
        rows = X.take(chosen).dense(dtype) if isinstance(X, Csr) else X[chosen]
        landmarks = jnp.asarray(rows, dtype)
        values, vectors = jnp.linalg.eigh(found.matrix(landmarks))
        least = size * jnp.finfo(dtype).eps * jnp.max(values)
        root = jnp.where(values > least, jax.lax.rsqrt(jnp.maximum(values, least)), 0)
        return cls(found.cast(dtype), landmarks, product(vectors * root[None], vectors.T))

    @property
    def n_components(self) -> int:
        """D, the number of features of a row."""
        return int(self.landmarks.shape[0])

    def features(self, X: Any) -> Array:
        """phi(x) of all rows.

        Args:
          X: (n, d) array, traced or not, or any sparse matrix, made dense tile by tile.

        Returns:
          (n, D) in the dtype of the landmarks.

        Raises:
          ValueError: X of another width, not 2-d or not finite; the message names X.
        """
        compute = _nystroem if self.kernel.traceable else _nystroem_of_function
        return _in_tiles(compute, self, X, self.landmarks.shape[1], self.landmarks.dtype)


def _in_tiles(compute: Any, own: Any, X: Any, width: int, dtype: Any) -> Array:
    if isinstance(X, jax.core.Tracer):
        return compute(own, X.astype(dtype))
    X = checked_rows(X, width, "X")
    tiles = dense_tiles(X, dtype, tile_rows(X.shape))
    pieces = [compute(own, tile)[:count] for _, count, tile in tiles]
    return pieces[0] if len(pieces) == 1 else jnp.concatenate(pieces)


@jax.jit
def _fourier(own: RandomFourier, X: Array) -> Array:
    angles = product(X, own.frequencies.T)
    factor = jnp.sqrt(jnp.asarray(2 / own.n_components, X.dtype))
    if own.offsets is None:
        return factor * jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1)
    return factor * jnp.cos(angles + own.offsets[None])


def _nystroem_of_function(own: Nystroem, X: Array) -> Array:
    return product(own.kernel.values(X, own.landmarks), own.whitening)


_nystroem = jax.jit(_nystroem_of_function)


def _key(key: Any) -> Array:
    return jax.random.key(key) if isinstance(key, int | np.integer) else key
