"""Generated sequences with a label at each position."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from jaxsolvers.checks import check_integer, check_reals
from jaxsolvers.data.arguments import check_float_dtype

__all__ = ["TaggedSequences", "hidden_tags"]


class TaggedSequences(NamedTuple):
    """Sequences with their labels, and the language they come from.

    Attributes:
      sequences: list of n arrays (L_i, d).
      labels: list of n arrays (L_i,) int64.
      start: (K,) probabilities of the first label.
      transition: (K, K) of each label (column) after another (row).
      means: (K, d) of the rows of each label; the noise around them is standard normal.

    Example:
      >>> import jaxsolvers as js
      >>> js.data.hidden_tags(2, 3).means.shape
      (4, 3)
    """

    sequences: list[np.ndarray]
    labels: list[np.ndarray]
    start: np.ndarray
    transition: np.ndarray
    means: np.ndarray


def hidden_tags(
    n: int,
    d: int,
    n_labels: int = 4,
    length: int = 12,
    separation: float = 1.0,
    persistence: float = 0.8,
    seed: int = 0,
    dtype: DTypeLike = "float32",
) -> TaggedSequences:
    """Sequences of a hidden Markov chain whose labels show through noise.

    Label k is followed by one preferred other label (the labels in a circle) with probability
    ``persistence`` and by any label, all alike, otherwise. A row is ``separation * direction`` of
    its label, a unit vector, plus standard normal noise. A single row tells little of its label at
    separation 1, its neighbours tell the rest.

    Args:
      n: sequences.
      d: features of a position.
      n_labels: K, at least 2.
      length: the mean length; lengths are uniform in 1 ... 2 length - 1.
      separation: length of the means, >= 0.
      persistence: share of the steps to the preferred label, in 0 ... 1.
      seed: of the NumPy generator, an integer >= 0; sequences of other seeds come from the same
        language, as its means follow from d and n_labels.
      dtype: of the sequences, float32 or float64.

    Returns:
      TaggedSequences: sequences, labels, and the start, transition and means of the language.

    Raises:
      ValueError: an argument is outside of what is said above.

    Example:
      >>> import jaxsolvers as js
      >>> tagged = js.data.hidden_tags(100, 3, n_labels=4)
      >>> tagged.sequences[0].shape[1], set(tagged.labels[0].tolist()) <= {0, 1, 2, 3}
      (3, True)
    """
    check_integer(n, "n")
    check_integer(d, "d")
    check_integer(n_labels, "n_labels", 2)
    check_integer(length, "length")
    check_integer(seed, "seed", 0)
    kind = check_float_dtype(dtype)
    scale = _number(separation, "separation", np.inf)
    share = _number(persistence, "persistence", 1.0)
    directions = np.random.default_rng([d, n_labels]).standard_normal((n_labels, d))
    means = scale * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    start = np.full(n_labels, 1 / n_labels)
    preferred = np.roll(np.eye(n_labels), 1, axis=1)
    transition = share * preferred + (1 - share) / n_labels
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 2 * length, n)
    sequences, labels = [], []
    for size in lengths.tolist():
        own = rng.integers(0, n_labels, size)  # the first, and the labels after steps of chance
        steady = rng.random(size) < share
        for at in range(1, size):
            if steady[at]:
                own[at] = (own[at - 1] + 1) % n_labels
        labels.append(own)
        sequences.append((means[own] + rng.standard_normal((size, d))).astype(kind))
    return TaggedSequences(sequences, labels, start, transition, means)


def _number(value: float, name: str, most: float) -> float:
    wanted = "be a number >= 0" if most == np.inf else f"be a number in 0 ... {most:g}"
    number = check_reals(value, name, wanted)
    if number.ndim or not 0 <= number <= most or not np.isfinite(number):
        raise ValueError(f"{name} must {wanted}, got {value!r}")
    return float(number)
