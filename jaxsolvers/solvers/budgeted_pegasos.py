"""Kernel Pegasos within a budget of support vectors."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxsolvers.features import product
from jaxsolvers.kernels import RBF, Kernel, Precomputed
from jaxsolvers.losses import Hinge
from jaxsolvers.members import Array, Number, choice, member, number, part, setting
from jaxsolvers.protocol import (
    Batch,
    Entry,
    Info,
    Loss,
    Problem,
    Solver,
    all_finite,
    keep_where,
    report,
)
from jaxsolvers.solvers.kernelized import check_one_kernel

__all__ = ["BudgetedPegasos"]


def ridge_of(dtype: Any) -> Array:
    """The share of k(v, v) that is added to it before K is inverted: half the digits."""
    return jnp.sqrt(jnp.finfo(dtype).eps)


class BudgetState(NamedTuple):
    t: Entry  # () int32, rounds done
    vectors: Entry  # (budget, d); those of coefficient 0 are free places
    beta: Entry  # (budget,)
    root: Entry  # (budget, budget) R'R = K^-1 of the vectors held, elsewhere 0; only of "project"

    @property
    def axes(self) -> BudgetState:
        square = None if self.root is None else ("", "")
        return BudgetState((), ("", "feature"), ("",), square)


class Newcomer(NamedTuple):
    """A row that is about to become a support vector."""

    x: Array  # (1, d)
    step: Array  # () its coefficient, not 0
    values: Array  # (budget,) k(v_j, x); of free places any number
    own: Array  # () k(x, x)


@member
class BudgetedPegasos(Solver):
    """Kernel Pegasos with at most ``budget`` support vectors for each ranker, its own ones.

    Rounds of one row x as those of ``KernelPegasos``,

        score = sum_j beta_j k(v_j, x) / (lam n_t),   n_t = max(t - 1, 1),
        beta_x <- beta_x + v,                         v = -dl/dz,

    and where more than ``budget`` coefficients are then not 0, one vector j goes (Wang, Crammer,
    Vucetic, *Breaking the curse of kernelization*, JMLR 2012, sections 4 and 5):

    remove: that of smallest ``|beta_j| sqrt(k(v_j, v_j))``.
    project: that which the others S replace best; ``beta_S += beta_j K_SS^-1 K_Sj`` loses the
    least ``beta_j^2 / (K^-1)_jj``.
    merge (RBF): that of smallest ``|beta_j|`` and one m of its sign become
    ``z = h v_j + (1 - h) v_m`` with ``beta_z = beta_j kappa^((1-h)^2) + beta_m kappa^(h^2)``,
    ``kappa = k(v_j, v_m)``. Of each pair h is the best in [0, 1], and m loses the least,
    ``beta_j^2 + beta_m^2 + 2 beta_j beta_m kappa - beta_z^2``. Where none has its sign, j is
    removed.

    Neither memory nor the time of a round grows with the number of rows, so it learns from sources
    as well; sparse rows are made dense a block at a time. A row that is a support vector already
    moves its coefficient. While no vector has had to go this is ``KernelPegasos``.

    "project" keeps a root R of the inverse, R'R = K^-1, ``budget^2`` numbers, and changes it by
    products alone: a vector leaves by a reflection that clears its column and enters by a row that
    borders. R'R cannot cease to be positive, and rounding grows with the root of K's condition.
    K's diagonal is larger by the share sqrt(eps) of the dtype: vectors that depend on each other
    could not be told apart otherwise. Beside its own, each round takes one more vector out and in
    again, in turn: no rounding stays for more than ``budget`` rounds that move the ranker.

    Args:
      lam: regularization strength, > 0; 1/(C n) for libsvm's C.
      kernel: one of ``js.kernels`` but Precomputed, for "merge" RBF. Its numbers are single
        numbers, the same for all rankers.
      budget: support vectors of a ranker at most, an integer >= 1.
      maintenance: "merge" (default), "project" or "remove".
      loss: any loss of one score.

    Raises (from ``validate``, called by ``fit``):
      ValueError: a number out of its range; a kernel that cannot be computed from rows, or not be
        merged. ``fit`` refuses batches of several rows and an intercept column.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[0.0], [0.1], [1.0], [2.0]], "float32"), np.array([1, 1, -1, 1])
      >>> fit = js.fit(js.BudgetedPegasos(0.01, js.kernels.RBF(1.0), 3), X, y, epochs=30)
      >>> fit.model.dual_coef.shape, fit.model.predict(X).tolist()
      ((3,), [1, 1, -1, 1])
    """

    single_row = True
    own_vectors = True

    lam: Number = number(above=0)
    kernel: Any = part(Kernel)
    budget: int = setting(default=dataclasses.MISSING)
    maintenance: str = choice("merge", "project", "remove", default="merge")
    loss: Any = part(Loss, default=Hinge())

    def validate(self, prefix: str = "") -> None:
        super().validate(prefix)
        if isinstance(self.kernel, Precomputed):
            raise ValueError(
                f"{prefix}kernel must be computed from rows, which become support vectors, got "
                f"{self.kernel!r}"
            )
        if self.maintenance == "merge" and not isinstance(self.kernel, RBF):
            raise ValueError(
                f"{prefix}maintenance must be 'project' or 'remove' for the kernel "
                f"{type(self.kernel).__name__} (what is between two rows is known for RBF), got "
                "'merge'"
            )

    def check_shapes(
        self,
        n_rankers: int | None,
        n_features: int,
        n_classes: int | None = None,
        each: str = "class",
    ) -> None:
        super().check_shapes(n_rankers, n_features, n_classes, each)
        check_one_kernel(self)

    def check_rounds(self, batch_size: int, intercept: str, negatives: float | None) -> None:
        super().check_rounds(batch_size, intercept, negatives)
        if intercept == "column":
            raise ValueError(
                f'intercept must be "none" for {type(self).__name__}, whose support vectors are '
                'rows without a constant, got "column"'
            )

    def init(self, problem: Problem, dtype: Any) -> BudgetState:
        projects = self.maintenance == "project"
        return BudgetState(
            t=jnp.zeros((), jnp.int32),
            vectors=jnp.zeros((self.budget, *problem.shape), dtype),
            beta=jnp.zeros((self.budget,), dtype),
            root=jnp.zeros((self.budget, self.budget), dtype) if projects else None,
        )

    def update(self, state: BudgetState, batch: Batch) -> tuple[BudgetState, Info]:
        x, live = batch.x.values, batch.weight > 0
        used = state.beta != 0
        values = self._values(x, state.vectors, used)
        coefficients = self._scale(state) * state.beta
        score = jnp.sum(jnp.where(used, coefficients * values, 0))[None]
        _, slope = self.loss.value_and_slope(score, batch.target)
        step = jnp.where(live, -slope * batch.weight, 0)
        own = self.kernel.diagonal(x)
        finite = all_finite(live, score, step, own, jnp.where(used, values, 0)[None])
        newcomer = Newcomer(x, step[0], values, own[0])

        def moved(_: Array, carry: tuple[BudgetState, Array]) -> tuple[BudgetState, Array]:
            before, sound = carry
            after = self._with(before, newcomer)
            root = () if after.root is None else (after.root,)
            for array in (after.vectors, after.beta, *root):
                sound = sound & jnp.all(jnp.isfinite(array))
            return keep_where(sound, after, before), sound

        # A loop of no or one trip: rows that move no ranker of a tile cost their scores alone. A
        # row with k(x, x) = 0 is the origin of the kernel's space, no vector.
        trips = (finite & (step[0] != 0) & (own[0] > 0)).astype(jnp.int32)
        state, finite = lax.fori_loop(0, trips, moved, (state, finite))
        info = report(self.loss, score, batch.target, batch.weight, finite)
        t = state.t + (finite & live[0]).astype(jnp.int32)
        return state._replace(t=t), info

    def weights(self, state: BudgetState) -> Array:
        """The support vectors behind their coefficients, (budget, 1 + d)."""
        held = jnp.where((state.beta != 0)[:, None], state.vectors, 0)
        return jnp.concatenate([(self._scale(state) * state.beta)[:, None], held], axis=1)

    def penalty(self, weights: Array) -> Array:
        """The penalty, of the norm alone: ``weights`` is any vector of the norm of w."""
        return self.lam / 2 * jnp.sum(weights * weights)

    def _scale(self, state: BudgetState) -> Array:
        return 1 / (self.lam * jnp.maximum(state.t, 1).astype(state.beta.dtype))

    def _values(self, x: Array, vectors: Array, held: Array) -> Array:
        # Free places hold x in its turn: kernels take the mean of what they are given off first.
        return self.kernel.values(x, jnp.where(held[:, None], vectors, x))[0]

    def _with(self, state: BudgetState, new: Newcomer) -> BudgetState:
        """The state with a row's coefficient, within the budget."""
        used = state.beta != 0
        twin = used & jnp.all(state.vectors == new.x, axis=1)
        known, full = jnp.any(twin), jnp.all(used)
        place = jnp.where(known, jnp.argmax(twin), jnp.argmin(used))
        here = _at(place, used)
        simple = state._replace(
            vectors=jnp.where(here[:, None], new.x, state.vectors),
            beta=state.beta + jnp.where(here, new.step, 0),
        )
        rule = {"merge": self._merge, "project": _project, "remove": self._remove}
        less, entered, place_of_x = rule[self.maintenance](state, new)
        after = keep_where(full & ~known, less, simple)
        if state.root is None:
            return after
        place = jnp.where(full & ~known, place_of_x, place)
        entered = ~known & (entered | ~full)
        return after._replace(root=self._root(after, state.root, new, entered, place))

    def _remove(self, state: BudgetState, new: Newcomer) -> tuple[BudgetState, Array, Array]:
        """Without the smallest."""
        norms = jnp.abs(state.beta) * jnp.sqrt(self.kernel.diagonal(state.vectors))
        j = jnp.argmin(_beside(norms, jnp.abs(new.step) * jnp.sqrt(new.own)))
        return _in_place(state, new, j), j < len(state.beta), j

    def _merge(self, state: BudgetState, new: Newcomer) -> tuple[BudgetState, Array, Array]:
        """The smallest and the best of its sign made one."""
        count = len(state.beta)
        beta, places = _beside(state.beta, new.step), jnp.arange(count + 1)
        j = jnp.argmin(jnp.abs(beta))
        vector = jnp.where(j == count, new.x[0], state.vectors[jnp.minimum(j, count - 1)])
        to_new = jnp.where(j == count, new.own, new.values[jnp.minimum(j, count - 1)])
        kappa = _beside(self.kernel.values(vector[None], state.vectors)[0], to_new)
        least, size = jnp.abs(beta)[j], jnp.abs(beta)
        share, merged = merged_coefficient(least, size, kappa)
        lost = least * least + size * size + 2 * least * size * kappa - merged * merged
        others = (beta * beta[j] > 0) & (places != j)
        m = jnp.argmin(jnp.where(others, lost, jnp.inf))
        other = jnp.where(m == count, new.x[0], state.vectors[jnp.minimum(m, count - 1)])
        between = share[m] * vector + (1 - share[m]) * other
        # It takes the place of the old one of the two; what is new the place of the other one.
        two_old = (j < count) & (m < count)
        here = _at(jnp.where(m == count, j, m), state.beta)
        joined = state._replace(
            vectors=jnp.where(here[:, None], between[None], state.vectors),
            beta=jnp.where(here, jnp.sign(beta[j]) * merged[m], state.beta),
        )
        joined = keep_where(two_old, _in_place(joined, new, j), joined)
        paired = jnp.any(others)
        after = keep_where(paired, joined, _in_place(state, new, j))
        return after, jnp.where(paired, two_old, j < count), j

    def _root(
        self, after: BudgetState, root: Array, new: Newcomer, entered: Array, place: Array
    ) -> Array:
        """The root with the newcomer in its place, and one more vector taken out and in again."""
        moved = jnp.where(entered, _bordered(root, place, new.values, new.own), root)
        again = after.t % len(after.beta)
        held = jnp.any(moved != 0, axis=0)
        vector = after.vectors[again][None]
        values = self._values(vector, after.vectors, held)
        own = self.kernel.diagonal(vector)[0]
        return jnp.where(held[again], _bordered(moved, again, values, own), moved)


def _beside(array: Array, last: Array) -> Array:
    """(budget,) and the newcomer's number behind them."""
    return jnp.append(array, last)


def _at(place: Array, like: Array) -> Array:
    """Where ``place`` is, (budget,) bool; nowhere for the newcomer's place behind the others."""
    return jnp.arange(len(like), dtype=place.dtype) == place


def _in_place(state: BudgetState, new: Newcomer, j: Array) -> BudgetState:
    """The newcomer in the place of vector j; itself left out where that is j."""
    here = _at(j, state.beta)
    return state._replace(
        vectors=jnp.where(here[:, None], new.x, state.vectors),
        beta=jnp.where(here, new.step, state.beta),
    )


def _project(state: BudgetState, new: Newcomer) -> tuple[BudgetState, Array, Array]:
    """The one that the others replace best, replaced by them.

    With u = K^-1 k and the Schur complement s of the newcomer, the bordered inverse is
    ``[[K^-1 + u u'/s, -u/s], [-u'/s, 1/s]]``; its column j over its entry j is all that is asked.
    """
    root, beta = state.root, state.beta
    u, s = _explained(root, new.values, new.own)
    # Times s: a newcomer that depends on the others has s near 0.
    own = s * jnp.sum(root * root, axis=0) + u * u
    j = jnp.argmin(_beside(beta * beta * s / own, new.step * new.step * s))
    old = j < len(beta)
    at = jnp.minimum(j, len(beta) - 1)
    column = product(root.T, root[:, at])
    shares = jnp.where(old, -(s * column + u[at] * u) / own[at], u)
    going = jnp.where(old, beta[at], new.step)
    less = state._replace(beta=beta + going * shares)
    left = new._replace(step=new.step + going * u[at] / own[at])
    return _in_place(less, left, j), old, j


def _explained(root: Array, values: Array, own: Array) -> tuple[Array, Array]:
    """K^-1 k, and k(x, x) with its ridge less what the others explain, at least the ridge."""
    half = product(root, values)
    ridge = jnp.maximum(ridge_of(own.dtype) * own, jnp.finfo(own.dtype).tiny)
    s = jnp.maximum(own + ridge - jnp.sum(half * half), ridge)
    return product(root.T, half), s


def _bordered(root: Array, place: Array, values: Array, own: Array) -> Array:
    """The root with the vector at ``place`` replaced by one with these kernel values.

    K^-1 without a vector is ``R'(I - c c'/||c||^2) R``, c its column of R: a reflection of c onto
    its own row leaves the others' root in the other rows.
    """
    here = _at(place, values)
    c = root[:, place]
    size = jnp.sqrt(jnp.sum(c * c))
    mirror = c + jnp.where(here, jnp.where(c[place] < 0, -size, size), 0)
    square = jnp.sum(mirror * mirror)
    along = product(mirror, root) * (2 / jnp.where(square > 0, square, 1))
    root = jnp.where(here[:, None] | here[None, :], 0, root - mirror[:, None] * along[None, :])
    u, s = _explained(root, jnp.where(jnp.any(root != 0, axis=0), values, 0), own)
    row = (here.astype(u.dtype) - u) / jnp.sqrt(s)
    return jnp.where(here[:, None], row[None, :], root)


def merged_coefficient(first: Array, second: Array, kappa: Array) -> tuple[Array, Array]:
    """The h of [0, 1] of largest ``first kappa^((1-h)^2) + second kappa^(h^2)``, and this maximum.

    There may be two maxima, one near each end (kappa < e^-2). The larger one is that nearer to the
    heavier vector: mirrored at 1/2 a point on its side gains. On its side, seen from it
    g in [1/2, 1], ``heavy (1 - g) - light g kappa^(2g - 1)`` has the sign of the derivative and
    changes it once: bisection finds g to the last digit, which a search by values would not.

    Args:
      first: () > 0.
      second, kappa: (m,) >= 0.

    Returns:
      h and the coefficient, (m,).
    """
    rate = -jnp.log(jnp.maximum(kappa, jnp.finfo(kappa.dtype).tiny))
    heavy, light = jnp.maximum(first, second), jnp.minimum(first, second)

    def halved(_: Array, interval: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = interval
        g = (low + high) / 2
        rises = heavy * (1 - g) > light * g * jnp.exp(-rate * (2 * g - 1))
        return jnp.where(rises, g, low), jnp.where(rises, high, g)

    half = jnp.full_like(kappa, 0.5)
    low, high = lax.fori_loop(0, jnp.finfo(kappa.dtype).nmant, halved, (half, 2 * half))
    g = (low + high) / 2
    value = heavy * jnp.exp(-rate * (1 - g) ** 2) + light * jnp.exp(-rate * g * g)
    return jnp.where(first >= second, g, 1 - g), value
