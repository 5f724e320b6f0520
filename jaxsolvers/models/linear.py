"""Linear models: what training leaves behind to predict with."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsolvers.checks import check_reals, check_vector, is_real
from jaxsolvers.csr import Csr, check_csr, is_sparse
from jaxsolvers.models import linear_file, sparsity
from jaxsolvers.models.archive import write_archive
from jaxsolvers.models.model import Model
from jaxsolvers.models.scores import Rankers, rankers_of

__all__ = ["LinearModel", "Pruned"]


@dataclasses.dataclass(frozen=True, eq=False)
class LinearModel(Model):
    """One linear ranker, or K of them.

    score_k(x) = <coef_k, x> + intercept_k.

    Rows may be dense, or any sparse matrix (SciPy's, JAX's BCOO); sparse ones score what they
    would as dense ones. Rows are taken in blocks and many rankers in tiles, so that the memory
    used on the way is bounded whatever n, d and K are.

    Attributes:
      coef: (d,) for one ranker, (K, d) for many; or sparse, then (1, d) or (K, d), see
        ``sparsify`` (any sparse matrix is taken).
      intercept: () or (K,); 0 without one, -inf for a ranker that diverged in training (its
        coef is 0, so that it is never predicted).
      classes: (K,) labels in the order of the rankers, the two labels (negative, positive) of a
        binary ranker, or None for regression.
      output: what ``predict`` answers for many rankers: "label" (default), "indicator", "csr" or
        "sets".

    Raises:
      ValueError: shapes that do not fit each other, an unknown output, or one that needs many
        rankers for a single one.

    Example:
      >>> import jax.numpy as jnp, numpy as np, jaxsolvers as js
      >>> model = js.LinearModel(jnp.eye(2), jnp.zeros(2), np.array(["a", "b"]))
      >>> model.predict(np.array([[0.0, 1.0]])).tolist()
      ['b']
      >>> tags = js.LinearModel(jnp.eye(2), jnp.zeros(2), np.array(["a", "b"]), "sets")
      >>> tags.predict(np.array([[1.0, 2.0], [0.0, 3.0], [0.0, 0.0]]))
      [('a', 'b'), ('b',), ()]
    """

    coef: Any
    intercept: Any
    classes: np.ndarray | None
    output: str = "label"

    def __post_init__(self) -> None:
        coef = self.coef
        if is_sparse(coef):
            coef = check_csr(coef, name="coef")
        elif not hasattr(coef, "shape"):  # lists: numbers without a dtype of their own
            coef = check_reals(coef, "coef", "hold real numbers").astype(jnp.result_type(float))
        object.__setattr__(self, "coef", coef)
        if self.classes is not None:
            object.__setattr__(self, "classes", np.asarray(self.classes))
        _check_shapes(coef, np.shape(self.intercept), self.classes)
        self._check_output()

    @property
    def n_features(self) -> int:
        """d, the number of columns X must have."""
        return int(self.coef.shape[-1])

    @property
    def density(self) -> float:
        """Share of the entries of coef that are not 0."""
        return sparsity.density(self.coef)

    def _rankers(self, chosen: np.ndarray | None = None) -> Rankers:
        if chosen is None:
            return rankers_of(self.coef, self.intercept)
        coef = self.coef.take(chosen) if isinstance(self.coef, Csr) else self.coef[chosen]
        return rankers_of(coef, self.intercept[chosen])

    def sparsify(self) -> LinearModel:
        """The same model with coef as a sparse matrix: exact zeros are not stored.

        It predicts like this one, from a fraction of the memory if ``density`` is small (an entry
        takes 8 bytes in float32 instead of 4): l1 and elastic-net models gain, others do not.

        Returns:
          A model whose coef has ``data``, ``indices``, ``indptr`` and ``shape``, the arrays of a
          CSR matrix on the host; ``densify`` undoes it.

        Raises:
          ValueError: coefficients that are NaN or infinite.
        """
        return dataclasses.replace(self, coef=sparsity.to_sparse(self.coef))

    def densify(self) -> LinearModel:
        """The same model with coef as a NumPy array."""
        if not isinstance(self.coef, Csr):
            return self
        dense = self.coef.dense(self.coef.dtype)
        return dataclasses.replace(self, coef=dense[0] if self.n_rankers is None else dense)

    def prune(
        self, X: Any = None, y: Any = None, *, threshold: Any = None, density: Any = None
    ) -> Pruned:
        """A sparse model without the smallest coefficients, and what that costs.

        Args:
          X: (n, d) rows to measure the accuracy on, dense or sparse; none by default.
          y: (n,) their labels.
          threshold: entries of a magnitude <= threshold become 0; >= 0.
          density: instead of it: the share of all entries to keep at most, in 0 ... 1, the largest
            in magnitude; of equal ones at the cut none is kept.

        Returns:
          ``Pruned(model, density, accuracy_before, accuracy_after)``, accuracies None without X.

        Raises:
          ValueError: both or neither of threshold and density, one out of range, X without y, or
            X for a model that does not predict labels.
        """
        cut = sparsity.check_cut(self.coef, threshold, density)
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together, or neither of them")
        model = dataclasses.replace(self, coef=sparsity.to_sparse(self.coef, cut))
        if X is None:
            return Pruned(model, model.density, None, None)
        return Pruned(model, model.density, self._accuracy(X, y), model._accuracy(X, y))

    def to_numpy(self) -> dict[str, np.ndarray | None]:
        """Coef (dense), intercept and classes as NumPy arrays, to score without this package.

        ``scores = X @ m["coef"].T + m["intercept"]``; the labels are
        ``m["classes"][scores.argmax(axis=1)]`` of many rankers and
        ``m["classes"][(scores > 0).astype(int)]`` of one.

        Returns:
          {"coef": (K, d) or (d,), "intercept": (K,) or (), "classes": (K,), (2,) or None}, copies;
          bfloat16, which NumPy alone does not know, becomes float32.

        Example:
          >>> import jax.numpy as jnp, numpy as np, jaxsolvers as js
          >>> m = js.LinearModel(jnp.eye(2), jnp.zeros(2), np.array(["a", "b"])).to_numpy()
          >>> scores = np.array([[0.0, 1.0]]) @ m["coef"].T + m["intercept"]
          >>> m["classes"][scores.argmax(axis=1)].tolist()
          ['b']
        """
        classes = None if self.classes is None else self.classes.copy()
        coef, intercept = _plain(self.densify().coef), _plain(self.intercept)
        return {"coef": coef, "intercept": intercept, "classes": classes}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to exactly this path; ``js.load`` reads it.

        The file is NumPy's .npz without pickle (``numpy.load`` opens it), written beside the path
        and then renamed: whoever reads finds the old file or the new one, whole. Entries:

        - ``format`` "jaxsolvers", ``version`` 1, ``kind`` "LinearModel", ``output`` (strings and
          an int64, all of shape ());
        - ``coef`` (K, d) or (d,) in its dtype; or, if it is sparse, the CSR arrays ``coef_data``
          (entries,) in its dtype, ``coef_indices`` (entries,) int32, ``coef_indptr`` (K + 1,) and
          ``coef_shape`` (2,) int64;
        - ``intercept`` (K,) or () in its dtype;
        - ``classes`` (K,) or (2,) in their dtype (objects become strings or numbers); left out for
          regression;
        - bfloat16 as its bits, uint16, then also ``coef_dtype`` "bfloat16", and so on.

        Args:
          path: the file; no extension is added, an existing file is replaced.

        Raises:
          ValueError: classes that are neither strings nor numbers of one kind.
          OSError: the file cannot be written; one that was there is then untouched.
        """
        arrays = linear_file.pack(self.coef, self.intercept, self.classes, self.output)
        write_archive(path, linear_file.KIND, arrays)

    def _accuracy(self, X: Any, y: Any) -> float:
        if self.output != "label" or self.classes is None:
            raise ValueError("X: accuracy is measured of models that predict labels, leave it out")
        found = self.predict(X).tolist()
        labels = check_vector(y, len(found)).tolist()
        if not set(labels) & set(self.classes.tolist()):
            raise ValueError(f"y must hold classes of this model, got {labels[:3]}")
        return sum(a == b for a, b in zip(found, labels, strict=True)) / len(labels)


class Pruned(NamedTuple):
    """What ``LinearModel.prune`` returns.

    Attributes:
      model: the sparse model.
      density: share of the entries that are left.
      accuracy_before: share of the rows of X predicted right before, None without X.
      accuracy_after: the same with the pruned model.
    """

    model: LinearModel
    density: float
    accuracy_before: float | None
    accuracy_after: float | None


def _check_shapes(coef: Any, intercept: tuple[int, ...], classes: np.ndarray | None) -> None:
    shape = tuple(coef.shape)
    if not is_real(coef.dtype) or len(shape) not in (1, 2) or 0 in shape:
        raise ValueError(
            f"coef must hold real numbers, (K, d) or (d,), got {coef.dtype} of shape {shape}"
        )
    accepted: list[tuple[int, ...]] = [shape[:-1]]
    if isinstance(coef, Csr) and shape[0] == 1:
        accepted.append(())  # a single ranker, sparse
    if intercept not in accepted:
        words = " or ".join(map(str, accepted))
        raise ValueError(
            f"intercept must be of shape {words} with coef {shape}, got shape {intercept}"
        )
    labels = intercept or (2,)
    if classes is not None and classes.shape != labels:
        raise ValueError(f"classes must be of shape {labels}, got shape {classes.shape}")


def _plain(value: Any) -> np.ndarray:
    array = np.array(value)
    return array.astype(np.float32) if array.dtype.kind == "V" else array
