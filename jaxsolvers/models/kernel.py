"""Kernel models: support vectors and their coefficients."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.checks import check_finite, check_matrix
from jaxsolvers.csr import Csr, check_csr, is_sparse
from jaxsolvers.features import product
from jaxsolvers.kernels import Columns, as_kernel, dense_tiles, tile_rows
from jaxsolvers.members import Array
from jaxsolvers.models import kernel_file
from jaxsolvers.models.archive import write_archive
from jaxsolvers.models.model import Model
from jaxsolvers.models.scores import Block, Rankers, rankers_of, rows_at_most

__all__ = ["KernelModel"]


@dataclasses.dataclass(frozen=True, eq=False)
class KernelModel(Model):
    """One kernel ranker, or K of them on the same support vectors.

    score_k(x) = sum_j dual_coef_kj k(s_j, x) + intercept_k.

    Rows may be dense or any sparse matrix. The kernel's values with the support vectors are
    computed for a block of rows at a time and serve all rankers, so that the memory used on the
    way is bounded.

    Attributes:
      support_vectors: (n_sv, d) array or sparse matrix: the training rows with a coefficient of
        any ranker that is not 0, or (``BudgetedPegasos``) the vectors of all rankers, each once;
        None for a precomputed kernel.
      dual_coef: (n_sv,) for one ranker, (K, n_sv) for many, signed.
      kernel: the kernel of the training, one of ``js.kernels`` or a function.
      intercept: () or (K,); 0 without one, -inf for a ranker that diverged in training.
      classes: as in ``LinearModel``.
      output: as in ``LinearModel``.
      support: (n_sv,) positions of the support vectors among the training rows; of a precomputed
        kernel the columns of X that are read. None where they need not be training rows.
      n_train: number of training rows; 0 without ``support``.

    Raises:
      ValueError: shapes that do not fit each other, an unknown output or kernel.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[0.0], [1.0], [2.0]], "float32"), np.array(["in", "out", "in"])
      >>> model = js.fit(js.KernelPegasos(0.01, js.kernels.RBF(1.0)), X, y, epochs=30).model
      >>> model.support_vectors.shape, model.dual_coef.shape, model.predict(X).tolist()
      ((3, 1), (3,), ['in', 'out', 'in'])
    """

    support_vectors: Any
    dual_coef: Any
    kernel: Any
    intercept: Any
    classes: np.ndarray | None
    output: str = "label"
    support: Any = None
    n_train: int = 0

    def __post_init__(self) -> None:
        kernel, rows = as_kernel(self.kernel), self.support_vectors
        if self.classes is not None:
            object.__setattr__(self, "classes", np.asarray(self.classes))
        if kernel.precomputed:
            if self.support is None or np.max(self.support, initial=-1) >= self.n_train:
                raise ValueError("support must be positions below n_train for a precomputed kernel")
            count = len(self.support)
        else:
            name = "support_vectors"
            rows = check_csr(rows, name=name) if is_sparse(rows) else check_matrix(rows, name=name)
            object.__setattr__(self, name, rows)
            count = rows.shape[0]
        shape = np.shape(self.dual_coef)
        if len(shape) not in (1, 2) or shape[-1] != count or np.shape(self.intercept) != shape[:-1]:
            raise ValueError(
                f"dual_coef must be (K, {count}) or ({count},), with an intercept (K,) or (), got "
                f"shapes {shape} and {np.shape(self.intercept)}"
            )
        labels = shape[:-1] or (2,)
        if self.classes is not None and self.classes.shape != labels:
            raise ValueError(f"classes must be of shape {labels}, got {self.classes.shape}")
        self._check_output()

    @property
    def n_features(self) -> int:
        """Columns X must have: d, of a precomputed kernel the number of training rows."""
        return self.n_train if self.support_vectors is None else self.support_vectors.shape[1]

    def square_norms(self) -> Array:
        """||w_k||^2 = sum_ij alpha_i alpha_j k(s_i, s_j) in the kernel's feature space, () or (K,).

        Raises:
          ValueError: a precomputed kernel, whose values between support vectors are not kept.
        """
        rankers = self._rankers()
        if rankers.columns is None:
            raise ValueError("kernel must not be precomputed for the norm of its weights")
        dual = jnp.atleast_2d(jnp.asarray(rankers.coef))
        total = jnp.zeros(dual.shape[0], dual.dtype)
        for block in rankers.blocks(self.support_vectors):
            own = jnp.asarray(dual[:, block.rows])
            total = total + jnp.sum(own * product(dual, block.values[: block.count].T), axis=1)
        return total if self.n_rankers is not None else total[0]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to exactly this path; ``js.load`` reads it.

        The file is NumPy's .npz without pickle, as that of ``LinearModel.save``. Entries: format,
        version, kind "KernelModel", output, intercept, classes as there; ``dual_coef``;
        ``support_vectors``, sparse ones as ``support_vectors_data``, ``_indices``, ``_indptr`` and
        ``_shape``; ``support`` and ``n_train``; ``kernel``, its name, and its numbers as
        ``kernel_gamma`` and so on.

        Args:
          path: the file; no extension is added, an existing file is replaced.

        Raises:
          ValueError: a kernel that is a function (it would have to be executed on loading), or
            classes that are neither strings nor numbers of one kind.
          OSError: the file cannot be written; one that was there is then untouched.
        """
        write_archive(path, kernel_file.KIND, kernel_file.pack(self))

    def _rankers(self, chosen: np.ndarray | None = None) -> KernelRankers:
        dual, intercept = self.dual_coef, np.asarray(self.intercept)
        if chosen is not None:
            dual, intercept = dual[chosen], intercept[chosen]
        own = rankers_of(dual, intercept)
        kernel = as_kernel(self.kernel).cast(own.dtype)
        columns: Any = None
        if not kernel.precomputed:
            columns = Columns(kernel, self.support_vectors, own.dtype, own.device)
        return KernelRankers(own.coef, own.intercept, own.dtype, own.device, columns, self)


@dataclasses.dataclass(frozen=True, eq=False)
class KernelRankers(Rankers):
    """Rankers whose blocks hold kernel values with the support vectors in place of features."""

    columns: Columns | None
    model: KernelModel

    def check(self, X: Any) -> Any:
        width = self.model.n_features
        if self.columns is None and (len(np.shape(X)) != 2 or np.shape(X)[1] != width):
            raise ValueError(
                f"X must be the matrix of kernel values of the rows to predict (its rows) with "
                f"the {width} training rows (its columns), {(np.shape(X) or (0,))[0], width}; got "
                f"shape {np.shape(X)}"
            )
        if is_sparse(X):
            return check_csr(X, width)
        X = check_matrix(X, width)
        check_finite(X, "X")
        return X

    def blocks(self, X: Any, per_row: int = 1) -> Iterator[Block]:
        most = min(
            rows_at_most(max(self.count or 1, per_row)),
            rows_at_most(self.coef.shape[-1]),
            tile_rows(X.shape),
        )
        for start, count, tile in dense_tiles(X, self.dtype, most):
            rows = jax.device_put(tile, self.device)
            if self.columns is None:
                values = jnp.take(rows, jnp.asarray(self.model.support), axis=1)
            elif self.columns.kernel.traceable:
                values = self.columns.values(rows)
            else:  # a function sees no row that is not the user's
                values = self.columns.values(rows, max(count, 1))
            yield Block(start, count, values, None)


def kernel_model(
    kernel: Any, X: Any, coef: Any, intercept: Any, classes: np.ndarray | None, output: str
) -> KernelModel:
    """The model of coefficients over all training rows.

    Args:
      kernel: the kernel as the solver has it.
      X: (n, d) array or Csr, the training rows.
      coef: (n,) or (K, n).
      intercept, classes, output: as in :class:`KernelModel`.
    """
    support = np.flatnonzero(np.any(np.atleast_2d(np.asarray(coef)) != 0, axis=0))
    # No array without entries: a coefficient of 0 stands for none.
    support = (support if support.size else np.zeros(1, int)).astype(np.int32)
    rows: Any = None
    if not as_kernel(kernel).precomputed:
        rows = X.take(support) if isinstance(X, Csr) else X[support]
    n = int(coef.shape[-1])
    return KernelModel(rows, coef[..., support], kernel, intercept, classes, output, support, n)


def expansion_model(
    kernel: Any, weights: Any, intercept: Any, classes: np.ndarray | None, output: str
) -> KernelModel:
    """The model of rankers with support vectors of their own.

    Args:
      kernel: the kernel as the solver has it.
      weights: (m, 1 + d) or (K, m, 1 + d), each vector behind its coefficient.
      intercept, classes, output: as in :class:`KernelModel`.
    """
    weights = np.asarray(weights)
    many = weights.reshape(-1, *weights.shape[-2:])
    ranker, place = np.nonzero(many[..., 0])
    if not ranker.size:  # no array without entries: a coefficient of 0 stands for none
        ranker = place = np.zeros(1, int)
    own = many[ranker, place]
    vectors, position = np.unique(own[:, 1:], axis=0, return_inverse=True)
    dual = np.zeros((len(many), len(vectors)), weights.dtype)
    np.add.at(dual, (ranker, position), own[:, 0])
    coef = dual.reshape(*weights.shape[:-2], len(vectors))
    return KernelModel(vectors, coef, kernel, intercept, classes, output)
