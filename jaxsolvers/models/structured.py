"""Models of structured problems."""

from __future__ import annotations

import dataclasses
import os
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.decoding.problem import StructuredProblem, on_device
from jaxsolvers.members import Array
from jaxsolvers.models import structured_file
from jaxsolvers.models.archive import write_archive

__all__ = ["StructuredModel"]

_BLOCK = 256  # examples decoded together


@dataclasses.dataclass(frozen=True, eq=False)
class StructuredModel:
    """The weights of a structured problem, ready to predict.

    Attributes:
      problem: how structures score and are decoded, e.g. ``js.structured.LinearChain()``.
      weights: (D,), all weights in one vector; ``parts`` names them.
      classes: (K,) the labels that structures are made of, in the order of the weights; None for
        a problem without labels.

    Raises:
      ValueError: weights that are no vector, or a problem that is none.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> weights = np.array([1.0, -1.0, 0, 0.5, 0, 0])  # emissions (2, 1), transitions (2, 2)
      >>> chain = js.structured.LinearChain(ends=False)
      >>> model = js.structured.StructuredModel(chain, weights, np.array(["a", "b"]))
      >>> [labels.tolist() for labels in model.predict([np.array([[1.0], [0.1], [-1.0]])])]
      [['a', 'a', 'b']]
    """

    problem: Any
    weights: Any
    classes: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.problem, StructuredProblem):
            raise ValueError(f"problem must be a StructuredProblem, got {self.problem!r}")
        if np.ndim(self.weights) != 1:
            raise ValueError(f"weights must be a vector, got shape {np.shape(self.weights)}")
        if self.classes is not None:
            object.__setattr__(self, "classes", np.asarray(self.classes))

    @property
    def parts(self) -> dict[str, Any]:
        """The weights by name: of a chain "emission" (K, d), "transition" (K, K), "start" (K,) and
        "end" (K,).
        """
        found: dict[str, Any] = self.problem.named_weights(self.weights, self._n_classes)
        return found

    @property
    def _n_classes(self) -> int:
        return 0 if self.classes is None else len(self.classes)

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """The best structure of each example.

        Args:
          X: as in training, without the labels; of a chain a list of n arrays (L_i, d), or one
            (n, L, d).
          lengths: (n,) the positions that count, with an array (n, L, d) alone.

        Returns:
          Of a chain a list of n arrays of labels (L_i,), in the dtype of the training labels; of
          other problems their structures as arrays with the examples on the leading axis.

        Raises:
          ValueError: X of another width, not finite, or of another kind.
        """
        return self._found(X, lengths, False)

    def decision_function(self, X: Any, lengths: Any = None) -> Any:
        """How clear each answer is.

        Args:
          X, lengths: as in :meth:`predict`.

        Returns:
          Of a chain a list of n arrays (L_i, K): the score of the best sequence of labels that has
          label k at that position. The largest in each row is the score of the prediction.

        Raises:
          ValueError: X of another width, not finite, or of another kind; a problem without
            decision values.
        """
        return self._found(X, lengths, True)

    def _found(self, X: Any, lengths: Any, decide: bool) -> Any:
        weights = jnp.asarray(self.weights)
        if weights.dtype.itemsize < 4 or not jnp.issubdtype(weights.dtype, jnp.floating):
            weights = weights.astype(jnp.float32)
        problem = self.problem.cast(weights.dtype)
        examples = problem.inputs(X, lengths, len(weights), self.classes)
        n = len(jax.tree.leaves(examples)[0])
        size = min(_BLOCK, 1 << (n - 1).bit_length())
        blocks = []
        for start in range(0, n, size):
            rows = np.arange(start, start + size)
            rows = np.where(rows < n, rows, start)  # the last block is filled up
            own = jax.tree.map(lambda leaf, rows=rows: leaf[rows], examples)
            block = on_device(own, weights.dtype)
            found = _decoded(problem, weights, block, decide=decide)
            blocks.append(jax.tree.map(np.asarray, found))
        joined = jax.tree.map(lambda *parts: np.concatenate(parts)[:n], *blocks)
        return problem.answers(joined, examples, self.classes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to exactly this path; ``js.load`` reads it.

        The file is NumPy's .npz without pickle, as that of ``LinearModel.save``. Entries: format,
        version, kind "StructuredModel"; ``weights`` (D,); ``classes`` (K,); ``problem``, its name,
        and what it was made with as ``problem_cost`` and so on.

        Args:
          path: the file; no extension is added, an existing file is replaced.

        Raises:
          ValueError: a problem that is not one of jaxsolvers (it would have to be executed on
            loading), or classes that are neither strings nor numbers of one kind.
          OSError: the file cannot be written; one that was there is then untouched.
        """
        arrays = structured_file.pack(self.problem, self.weights, self.classes)
        write_archive(path, structured_file.KIND, arrays)


@partial(jax.jit, static_argnames="decide")
def _decoded(problem: Any, weights: Array, examples: Any, *, decide: bool) -> Any:
    def one(example: Any) -> Any:
        if decide:
            return problem.decision(weights, example)
        return problem.decode(weights, example)

    return jax.vmap(one)(examples)
