"""Sums of norms over groups of weights: whole groups become exactly 0, or equal in size.

A group is a slice of the weights along ``axis``. With joint weights (K, d), ``axis=-2`` makes one
group of each feature, over all classes: features that no class needs drop out for all of them.
Each group is met with its own part of the metric, which may be unequal inside.
"""

from __future__ import annotations

import jax.numpy as jnp

from jaxsolvers.members import Array, Number, member, number, setting
from jaxsolvers.regularizers.coupled import Coupled
from jaxsolvers.regularizers.norms import clip_largest, shrink
from jaxsolvers.regularizers.search import norm
from jaxsolvers.regularizers.separable import absolute

__all__ = ["GroupL2", "GroupLInf"]


class _Group(Coupled):
    """Base: what both norms know about their axis."""

    axis: int

    @property
    def couples(self) -> bool:  # type: ignore[override]
        return self.axis != -1  # any other axis runs over rankers

    @property
    def separable(self) -> bool:  # type: ignore[override]
        return self.axis in (-2, 0)  # of weights (K, d): each feature is a group

    def check_axis(self, weights: Array) -> None:
        """Raise if the weights do not have the axis."""
        if not -weights.ndim <= self.axis < weights.ndim:
            raise ValueError(
                f"axis must be an axis of the weights, which have shape {weights.shape}, "
                f"got {self.axis}"
            )


@member
class GroupL2(_Group):
    """phi(w) = strength times the sum over groups of ||w_g||_2: groups that are 0 as a whole.

    solve: ``L2Norm`` in each group (Yuan and Lin, JRSS B 2006; Duchi and Singer, *FOBOS*, JMLR
    2009, section 5.5). A group of zeros stays 0, with finite derivatives.

    Args:
      strength: >= 0, per unit of tau; the loss it stands beside is a mean over rows.
      axis: the axis summed inside a group; -1 one group per row of weights (K, d), -2 (or 0) one
        per feature.

    Raises:
      ValueError: weights without that axis.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> rows = jnp.array([[0.0, 0.5], [3.0, 4.0]])
      >>> shrunk = js.regularizers.GroupL2(1.0).prox(rows, jnp.ones((2, 2)), 1.0)
      >>> [[round(float(x), 6) for x in row] for row in shrunk]
      [[0.0, 0.0], [2.4, 3.2]]
    """

    strength: Number = number(minimum=0)
    axis: int = setting(default=-1, minimum=-3)

    def measure(self, weights: Array, slack: float) -> Array:
        self.check_axis(weights)
        return self.strength * jnp.sum(norm(weights, self.axis))

    def argmin(self, linear: Array, metric: Array, tau: Array) -> Array:
        self.check_axis(linear)
        return shrink(linear, metric, tau * self.strength, self.axis)


@member
class GroupLInf(_Group):
    """phi(w) = strength times the sum over groups of max |w_g|: groups that are 0 as a whole.

    solve: ``LInfNorm`` in each group (Duchi and Singer, *FOBOS*, JMLR 2009, section 5.5).

    Args:
      strength: >= 0, per unit of tau; the loss it stands beside is a mean over rows.
      axis: the axis summed inside a group; -1 one group per row of weights (K, d), -2 (or 0) one
        per feature.

    Raises:
      ValueError: weights without that axis.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> rows = jnp.array([[0.25, -0.5], [3.0, -1.0]])
      >>> js.regularizers.GroupLInf(1.0).prox(rows, jnp.ones((2, 2)), 1.0).tolist()
      [[0.0, 0.0], [2.0, -1.0]]
    """

    strength: Number = number(minimum=0)
    axis: int = setting(default=-1, minimum=-3)

    def measure(self, weights: Array, slack: float) -> Array:
        self.check_axis(weights)
        return self.strength * jnp.sum(jnp.max(absolute(weights), axis=self.axis, initial=0))

    def argmin(self, linear: Array, metric: Array, tau: Array) -> Array:
        self.check_axis(linear)
        return clip_largest(linear, metric, tau * self.strength, self.axis)
