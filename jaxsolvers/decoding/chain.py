"""Labels of sequences: emission and transition weights, decoded by max-product."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsolvers.decoding.problem import Given, StructuredProblem
from jaxsolvers.decoding.sequences import Sequences, read_features, read_labels
from jaxsolvers.decoding.viterbi import Chain, best_labels, max_marginals
from jaxsolvers.features import product
from jaxsolvers.losses.joint import check_costs
from jaxsolvers.members import Array, choice, member, number, setting

__all__ = ["LinearChain"]


@member
class LinearChain(StructuredProblem):
    """Label sequences with a weight for each pair of neighbouring labels.

    The labels s of a sequence x of L positions score

        <w, phi(x, s)> = start[s_1] + sum_l <emission[s_l], x_l> + sum_l transition[s_l, s_{l+1}]
                         + end[s_L],

    and cost ``Delta(s, y) = sum_l cost[s_l, y_l]``, the number of wrong positions by default
    (Taskar, Guestrin, Koller, NIPS 2003; Tsochantaridis et al., JMLR 2005). Both maxima are found
    by max-product in O(L K^2); of equally good sequences the first in lexicographic order is
    taken, the lower label at the first position where they differ.

    Training examples are ``(X, y)`` or ``(X, y, lengths)``. X: a list of n arrays (L_i, d), or one
    (n, L, d), of which the first ``lengths[i]`` positions count. y: a list of n sequences of
    labels of any sortable kind, or (n, L). Sequences are padded to the longest.

    Args:
      cost: (K, K) >= 0, ``cost[r, s]`` the cost of answering r where s is right, 0 on the diagonal,
        labels in the model's (sorted) order; None (default) for 1 off the diagonal.
      ends: whether the first and the last label have weights of their own, ``start`` and ``end``.
      vocabulary: V >= 1, where positions are words: X then holds integer ids in 0 ... V - 1, one
        or several at each position, (L_i,) or (L_i, a), -1 for none; d is V and x_l counts them.
        None (default) for features.

    Raises (from ``validate``, called by ``fit_structured``):
      ValueError: a cost below 0, not square or not 0 on the diagonal.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> words, tags = [[0, 2, 1], [0, 1]], [["a", "b", "b"], ["a", "b"]]
      >>> chain = js.structured.LinearChain(vocabulary=3)
      >>> fit = js.structured.fit_structured(js.Pegasos(0.1), chain, (words, tags), epochs=5)
      >>> [labels.tolist() for labels in fit.model.predict([[0, 1, 2]])]
      [['a', 'b', 'b']]
    """

    cost: Any = number(default=None, optional=True, minimum=0, rank=2)
    ends: bool = choice(True, False, default=True)
    vocabulary: Any = setting(default=None, optional=True)

    def validate(self, prefix: str = "") -> None:
        super().validate(prefix)
        check_costs(self.cost, prefix)

    # ---- one sequence -------------------------------------------------------------------------
    def n_weights(self, examples: Sequences) -> int:
        K = examples.n_labels
        d = examples.x.shape[-1] if self.vocabulary is None else self.vocabulary
        return K * d + K * K + (2 * K if self.ends else 0)

    def named_weights(self, weights: Any, n_classes: int) -> dict[str, Any]:
        K = n_classes
        pairs = K * K
        first = weights.shape[-1] - pairs - (2 * K if self.ends else 0)
        cut = {
            "emission": weights[:first].reshape(K, first // K),
            "transition": weights[first : first + pairs].reshape(K, K),
        }
        if self.ends:
            cut |= {"start": weights[first + pairs : -K], "end": weights[-K:]}
        return cut

    def _chain(self, weights: Array, example: Sequences) -> Chain:
        own = self.named_weights(weights, example.n_labels)
        table = own["emission"].T
        if self.vocabulary is None:
            unary = product(example.x, table)
        else:
            unary = jnp.sum(table.at[example.x].get(mode="fill", fill_value=0), axis=1)
        nothing = jnp.zeros(example.n_labels, weights.dtype)
        start, end = own.get("start", nothing), own.get("end", nothing)
        return Chain(unary, own["transition"], start, end, example.length)

    def decode(self, weights: Array, example: Sequences) -> Array:
        return best_labels(self._chain(weights, example))

    def augmented(self, weights: Array, example: Sequences) -> Array:
        chain = self._chain(weights, example)
        costs = self._costs(example, weights.dtype)
        return best_labels(chain._replace(unary=chain.unary + costs))

    def _costs(self, example: Sequences, dtype: Any) -> Array:
        """Of each label at each position, (L, K)."""
        if self.cost is None:
            return 1 - _one_hot(example.label, example.n_labels, dtype)
        return jnp.asarray(self.cost, dtype).T[example.label]

    def delta(self, example: Sequences, structure: Array) -> Array:
        costs = self._costs(example, self._dtype(example))
        own = jnp.take_along_axis(costs, structure[:, None], axis=1)[:, 0]
        counts = jnp.arange(len(structure), dtype=jnp.int32) < example.length
        return jnp.sum(jnp.where(counts, own, 0))

    def difference(self, example: Sequences, structure: Array) -> Array:
        K, dtype = example.n_labels, self._dtype(example)
        theirs, right = (_one_hot(s, K, dtype) for s in (structure, example.label))
        counts = (jnp.arange(len(structure), dtype=jnp.int32) < example.length)[:, None]
        theirs, right = jnp.where(counts, theirs, 0), jnp.where(counts, right, 0)
        moved = theirs - right  # exactly 0 where both agree
        if self.vocabulary is None:
            emission = product(moved.T, example.x)
        else:
            table = jnp.zeros((self.vocabulary, K), dtype)
            each = jnp.broadcast_to(moved[:, None], (*example.x.shape, K))
            emission = table.at[example.x].add(each, mode="drop").T
        pairs = product(theirs[:-1].T, theirs[1:]) - product(right[:-1].T, right[1:])
        found = [emission.ravel(), pairs.ravel()]
        if self.ends:
            found += [moved[0], moved[example.length - 1]]
        return jnp.concatenate(found)

    def _dtype(self, example: Sequences) -> Any:
        return jnp.result_type(float) if self.vocabulary is not None else example.x.dtype

    def decision(self, weights: Array, example: Sequences) -> Array:
        """The score of the best sequence with each label at each position, (L, K)."""
        return max_marginals(self._chain(weights, example))

    # ---- many ----------------------------------------------------------------------------------
    def read(self, examples: Any, classes: np.ndarray | None = None) -> Given:
        if not isinstance(examples, tuple | list) or len(examples) not in (2, 3):
            raise ValueError(
                f"examples must be (X, y) or (X, y, lengths) for LinearChain, got "
                f"{type(examples).__name__}"
            )
        X, y, *lengths = examples
        x, length = read_features(X, lengths[0] if lengths else None, self.vocabulary)
        label, classes = read_labels(y, length, x.shape[1], classes)
        return Given(Sequences(x, label, length, len(classes)), len(length), classes)

    def inputs(self, X: Any, lengths: Any, n_weights: int, classes: np.ndarray | None) -> Any:
        x, length = read_features(X, lengths, self.vocabulary)
        # To a power of two, so that few programs serve all lengths.
        more = (1 << (x.shape[1] - 1).bit_length()) - x.shape[1]
        x = np.pad(x, [(0, 0), (0, more), (0, 0)], constant_values=self.vocabulary or 0)
        K = 0 if classes is None else len(classes)
        examples = Sequences(x, None, length, K)
        if self.n_weights(examples) != n_weights:
            d = (n_weights - K * K - (2 * K if self.ends else 0)) // K
            raise ValueError(f"X must have {d} features as in training, got {x.shape[-1]}")
        return examples

    def answers(self, found: Any, examples: Sequences, classes: np.ndarray | None) -> Any:
        """One array per sequence: its labels (L_i,), or its decision values (L_i, K)."""
        labels = found if classes is None or found.ndim == 3 else classes[found]
        return [row[:size] for row, size in zip(labels, examples.length, strict=True)]


def _one_hot(label: Array, n_labels: int, dtype: Any) -> Array:
    """(L,) -> (L, K)."""
    codes = lax.broadcasted_iota(label.dtype, (label.shape[0], n_labels), 1)
    return (codes == label[:, None]).astype(dtype)
