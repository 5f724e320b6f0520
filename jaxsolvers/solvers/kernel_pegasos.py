"""Kernel Pegasos."""

from __future__ import annotations

from typing import Any

from jaxsolvers.kernels import Kernel
from jaxsolvers.losses import Hinge
from jaxsolvers.members import Number, member, number, part
from jaxsolvers.protocol import Loss, Solver
from jaxsolvers.solvers.kernelized import KernelSolver
from jaxsolvers.solvers.pegasos import Pegasos

__all__ = ["KernelPegasos"]


@member
class KernelPegasos(KernelSolver):
    """Pegasos for a kernel machine, on signed coefficients of the training rows.

    Minimises ``lam/2 ||w||^2 + (1/n) sum_i l(<w, phi(x_i)>, y_i)`` over
    ``w = sum_j beta_j phi(x_j) / (lam t)`` by rounds

        score_i = sum_j beta_j k(x_j, x_i) / (lam n_t),   n_t = max(t - 1, 1),
        beta_i <- beta_i + v_i/k,                         v = -dl/dz,

    over the k rows of a batch (Shalev-Shwartz, Singer, Srebro, Cotter, Math. Programming 2011,
    Fig. 3, whose counts are |beta_j| for hinge and k = 1). The same as
    ``Kernelized(Pegasos(lam, loss), kernel)``. The kernel's values with all n training rows are
    kept where they take 1 GiB or less, else computed anew in every epoch, once for all rankers.

    Args:
      lam: regularization strength, > 0; 1/(C n) for libsvm's C.
      kernel: one of ``js.kernels``, or a function k(X, Z) -> (n, m) of dense rows. Its numbers are
        single numbers, the same for all rankers.
      loss: any loss of one score.

    Raises (from ``validate``, called by ``fit``):
      ValueError: a number out of its range; a kernel that is none.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[0.0], [1.0], [2.0]], "float32"), np.array([1, -1, 1])
      >>> fit = js.fit(js.KernelPegasos(0.01, js.kernels.RBF(1.0)), X, y, epochs=30)
      >>> fit.model.predict(X).tolist()
      [1, -1, 1]
    """

    lam: Number = number(above=0)
    kernel: Any = part(Kernel, function=True)
    loss: Any = part(Loss, default=Hinge())

    def without_kernel(self) -> Solver:
        return Pegasos(self.lam, self.loss)
