"""What the papers guarantee, as formulas of what a solver keeps; ``js.theory`` is their front.

They stand here so that a solver can say what its own state tells (``Solver.theory``). All are
pure functions of ONE ranker, to be mapped over more with ``jax.vmap``. No value and no derivative
is NaN where a coordinate has no history.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.features import product
from jaxsolvers.members import Array, Number
from jaxsolvers.regularizers.separable import divide
from jaxsolvers.solvers.matrix_root import matrix_root

__all__ = ["gamma", "pegasos_bound", "regret_bound_fobos", "regret_bound_rda", "trace_root"]


def gamma(accumulator: Any, initial: Number = 0.0) -> Array:
    """The sum of the lengths of all coordinates' gradients.

    ``gamma_T = sum_i ||g_{1:T,i}||_2 = sum_i sqrt(G_T,ii)``, in which the regret bounds of
    diagonal AdaGrad are written (Duchi, Hazan, Singer, JMLR 12 (2011), Theorem 5).

    Args:
      accumulator: G = initial + sum_t g_t^2, of any shape (joint weights have one entry each).
      initial: the value of G before round 1; 0 by default.

    Returns:
      (), floating. Coordinates without history add 0, their derivative is 0.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> float(js.theory.gamma(jnp.array([9.0, 0.0, 16.0])))
      7.0
    """
    accumulator, initial = alike(accumulator, initial)
    return jnp.sum(lengths(accumulator - initial))


def trace_root(accumulator: Any, initial: Number = 0.0) -> Array:
    """The trace of the root of a full accumulator.

    ``tr(G_T^{1/2})`` takes the place of gamma_T with a full metric (Duchi, Hazan, Singer, JMLR
    12 (2011), Theorem 7). Eigenvalues below 1e-12 of the largest (float32: d times its epsilon)
    count as 0.

    Args:
      accumulator: G = initial I + sum_t g_t g_t', (d, d) or blocks (..., b, b), symmetric.
      initial: multiple of the identity before round 1; 0 by default.

    Returns:
      (), floating, summed over the blocks. Null directions add 0, their derivative is 0.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> round(float(js.theory.trace_root(jnp.array([[25.0, 0.0], [0.0, 0.0]]))), 5)
      5.0
    """
    accumulator, initial = alike(accumulator, initial)
    roots = root(accumulator - initial * identity_like(accumulator))
    return jnp.sum(jnp.trace(roots, axis1=-2, axis2=-1))


def regret_bound_rda(
    comparator: Any,
    *,
    learning_rate: Number,
    delta: Number,
    gamma: Any = None,
    trace: Any = None,
    start: Any = 0.0,
    penalty_at_start: Number = 0.0,
    largest_gradient: Any = None,
) -> Array:
    """The bound on the regret of AdaGrad in its dual averaging form.

    With D = x* - x_1 and the round's proximal function 1/2 <x, H_t x>, after T rounds

        sum_t l_t(x_t) + phi(x_t) - l_t(x*) - phi(x*)
          <= phi(x_1) + (delta ||D||_2^2 + ||D||_inf^2 gamma_T) / (2 eta) + eta gamma_T,

    for a constant eta and one gradient per round (one row, or ``accumulate="batch"``), provided
    that delta >= max_t ||g_t||_inf (Duchi, Hazan, Singer, JMLR 12 (2011), Theorem 5). A full
    metric has tr(G_T^{1/2}) for gamma_T and 2-norms for the inf-norms (Theorem 7). With an
    initial accumulator it holds when gamma or the trace counts that too.

    Args:
      comparator: x*, of the weights' shape, any point of the regularizer's domain.
      learning_rate: eta, > 0.
      delta: added to the root in H, >= the largest gradient.
      gamma: gamma_T of a diagonal metric; exactly one of gamma and trace.
      trace: tr(G_T^{1/2}) of a full metric.
      start: x_1, of the weights' shape; 0 by default.
      penalty_at_start: phi(x_1); 0 by default.
      largest_gradient: max_t ||g_t||_inf, with ``trace`` max_t ||g_t||_2; not checked by default.

    Returns:
      (), or the shape of gamma. In traced code infinity where delta < largest_gradient.

    Raises:
      ValueError: both or none of gamma and trace; a concrete delta < largest_gradient.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> x = jnp.array([1.0, -2.0])
      >>> float(js.theory.regret_bound_rda(x, learning_rate=0.5, delta=1.0, gamma=3.0))
      18.5
    """
    spread, full = _spread(gamma, trace)
    comparator, start, eta, delta, spread, penalty = alike(
        comparator, start, learning_rate, delta, spread, penalty_at_start
    )
    distance = comparator - start
    square = distance * distance
    reach = jnp.sum(square) if full else jnp.max(square)
    bound = penalty + (delta * jnp.sum(square) + reach * spread) / (2 * eta) + eta * spread
    if largest_gradient is None:
        return bound
    needed, given = alike(largest_gradient, delta)
    enough = given >= needed
    if not isinstance(enough, jax.core.Tracer) and not np.asarray(enough).all():
        raise ValueError(
            f"delta must be >= the largest gradient {float(jnp.max(needed))} for the bound of "
            f"the dual averaging form, got {float(jnp.min(given))}"
        )
    return jnp.where(enough, bound, jnp.inf)


def regret_bound_fobos(
    comparator: Any,
    weights: Any,
    *,
    learning_rate: Number,
    delta: Number = 0.0,
    gamma: Any = None,
    trace: Any = None,
    penalty_at_start: Number = 0.0,
) -> Array:
    """The bound on the regret of AdaGrad in its mirror descent (FOBOS) form.

    With D = x* - x_1 and the round's proximal function 1/2 <x, H_t x>, after T rounds

        sum_t l_t(x_t) + phi(x_t) - l_t(x*) - phi(x*)
          <= phi(x_1) + (delta ||D||_2^2 + max_t ||x* - x_t||_inf^2 gamma_T) / (2 eta)
             + eta gamma_T,

    for a constant eta and one gradient per round (one row, or ``accumulate="batch"``), for any
    delta >= 0 (Duchi, Hazan, Singer, JMLR 12 (2011), Theorem 5). A full metric has
    tr(G_T^{1/2}) for gamma_T and the 2-norm for the inf-norm (Theorem 7). With an initial
    accumulator it holds when gamma or the trace counts that too.

    Args:
      comparator: x*, of the weights' shape, any point of the regularizer's domain.
      weights: x_1 ... x_T, (T, ...) with the weights' shape.
      learning_rate: eta, > 0.
      delta: added to the root in H, >= 0; 0 by default.
      gamma: gamma_T of a diagonal metric; exactly one of gamma and trace.
      trace: tr(G_T^{1/2}) of a full metric.
      penalty_at_start: phi(x_1); 0 by default.

    Returns:
      (), or the shape of gamma.

    Raises:
      ValueError: both or none of gamma and trace.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> x, path = jnp.array([1.0, -2.0]), jnp.array([[0.0, 0.0], [-2.0, 0.0]])
      >>> float(js.theory.regret_bound_fobos(x, path, learning_rate=0.5, gamma=3.0))
      28.5
    """
    spread, full = _spread(gamma, trace)
    comparator, weights, eta, delta, spread, penalty = alike(
        comparator, weights, learning_rate, delta, spread, penalty_at_start
    )
    difference = (comparator[None] - weights).reshape(weights.shape[0], -1)
    square = difference * difference
    reach = jnp.max(jnp.sum(square, axis=1) if full else square)
    return penalty + (delta * jnp.sum(square[0]) + reach * spread) / (2 * eta) + eta * spread


def pegasos_bound(rounds: Any, *, lam: Number, largest_norm: Any, ball: Any = None) -> Array:
    """The bound on Pegasos' mean objective over its rounds, for any order of the rows.

    With f(w; A) = lam/2 ||w||^2 + mean hinge loss of the rows A and any u (in the ball when
    projecting),

        (1/T) sum_t f(w_t; A_t) <= (1/T) sum_t f(u; A_t) + c (1 + ln T) / (2 lam T),

    c = 4 R^2 without and (lam rho + R)^2 with projection (Shalev-Shwartz, Singer, Srebro, Cotter,
    Math. Programming 127 (2011), Lemma 1 and Theorem 1). It holds for every loss with a slope
    of at most 1 in the score.

    Args:
      rounds: T, integers of any shape.
      lam: regularization strength, > 0.
      largest_norm: R = max_i ||x_i||_2; for a loss with slopes up to L, L times that.
      ball: rho, the radius projected onto; None (the default) without projection.

    Returns:
      The shape of rounds; infinity where T = 0.

    Example:
      >>> import jaxsolvers as js
      >>> float(js.theory.pegasos_bound(1, lam=0.5, largest_norm=2.0))
      16.0
    """
    lam, norm, rho = alike(lam, largest_norm, 0.0 if ball is None else ball)
    c = 4 * norm * norm if ball is None else (lam * rho + norm) ** 2
    count = jnp.asarray(rounds)
    some = jnp.maximum(count, 1).astype(lam.dtype)
    return jnp.where(count > 0, c * (1 + jnp.log(some)) / (2 * lam * some), jnp.inf)


# ---- roots -----------------------------------------------------------------------------------
def alike(*values: Any) -> list[Array]:
    """The values as floating arrays of one dtype, at least float32; Python numbers follow."""
    arrays = [jnp.asarray(value) for value in values]  # float64 becomes float32 without x64
    own = [
        array.dtype
        for array, value in zip(arrays, values, strict=True)
        if hasattr(value, "dtype") and jnp.issubdtype(array.dtype, jnp.floating)
    ]
    widest = max(own, key=lambda dtype: dtype.itemsize, default=jnp.result_type(float))
    dtype = widest if widest.itemsize > 2 else jnp.dtype(jnp.float32)
    return [array.astype(dtype) for array in arrays]


def lengths(squares: Array) -> Array:
    """The root of each entry; 0, and with a derivative of 0, where there is nothing above 0."""
    some = squares > 0
    return jnp.where(some, jnp.sqrt(jnp.where(some, squares, 1)), 0)


def identity_like(matrix: Array) -> Array:
    """The identity in each of the blocks (..., b, b)."""
    return jnp.broadcast_to(jnp.eye(matrix.shape[-1], dtype=matrix.dtype), matrix.shape)


@jax.custom_jvp
def root(matrix: Array) -> Array:
    """The positive semi-definite root of symmetric matrices (..., b, b).

    Its derivative in the eigenbasis is dG_ij / (s_i + s_j), 0 between null directions: that of
    ``eigh`` is NaN wherever two eigenvalues are equal.
    """
    roots, vectors = matrix_root(matrix)
    return product(vectors * roots[..., None, :], jnp.swapaxes(vectors, -1, -2))


@root.defjvp
def _root_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (matrix,), (change,) = primals, tangents
    roots, vectors = matrix_root(matrix)
    back = jnp.swapaxes(vectors, -1, -2)
    symmetric = (change + jnp.swapaxes(change, -1, -2)) / 2
    inside = product(product(back, symmetric), vectors)
    moved = divide(inside, roots[..., :, None] + roots[..., None, :])
    value = product(vectors * roots[..., None, :], back)
    return value, product(product(vectors, moved), back)


def _spread(gamma: Any, trace: Any) -> tuple[Any, bool]:
    """The one that was given, and whether it is that of a full metric."""
    if (gamma is None) == (trace is None):
        given = "none" if gamma is None else "both"
        raise ValueError(f"give gamma (diagonal metric) or trace (full metric), got {given}")
    return (gamma, False) if trace is None else (trace, True)
