"""What a structured problem is: the pieces by which solvers and models meet it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.features import product
from jaxsolvers.members import Array, Member


class Given(NamedTuple):
    """Examples as arrays."""

    examples: Any  # pytree of NumPy arrays with the examples on the leading axis
    n: int
    classes: np.ndarray | None = None  # (K,) the labels that structures are made of


class StructuredProblem(Member):
    """Structures with scores linear in the weights: a feature map and a decoder.

    A structure s of an example x scores ``<w, phi(x, s)>``; the loss of weights w is

        l(w) = max_s Delta(s, y) + <w, phi(x, s)> - <w, phi(x, y)>,

    with the cost Delta(s, y) >= 0 of answering s where y is right, 0 for s = y (Tsochantaridis,
    Joachims, Hofmann, Altun, JMLR 2005, margin rescaling). Its sub-gradient is
    ``phi(x, s^) - phi(x, y)`` at an s^ that attains the maximum, 0 where the loss is 0: each
    example is clipped at 0 by itself, and a batch takes the mean.

    A subclass is a dataclass decorated with ``members.member``. It writes :meth:`n_weights`,
    :meth:`decode`, and either :meth:`augmented`, :meth:`delta` and :meth:`difference`, or
    :meth:`oracle` alone, which may be of any convex function of the weights. All of these are
    for ONE example and traced; ``fit_structured`` maps them over a batch. Where examples are
    plain arrays the other methods need no word.

    Example:
      >>> import jax.numpy as jnp, numpy as np, jaxsolvers as js
      >>> from jaxsolvers.members import member
      >>> @member
      ... class Signs(js.structured.StructuredProblem):
      ...     def n_weights(self, examples):
      ...         return examples["x"].shape[-1]
      ...     def decode(self, weights, example):
      ...         return jnp.where(jnp.dot(weights, example["x"]) > 0, 1, -1)
      ...     def augmented(self, weights, example):
      ...         return -example["y"]  # the only other structure
      ...     def delta(self, example, structure):
      ...         return jnp.ones(())
      ...     def difference(self, example, structure):
      ...         return -example["y"] * example["x"]  # a binary hinge
      >>> rows = {"x": np.array([[2.0], [-1.0]], "float32"), "y": np.array([1, -1], "int32")}
      >>> fit = js.structured.fit_structured(js.Pegasos(0.1), Signs(), rows)
      >>> fit.model.predict(rows).tolist()
      [1, -1]
    """

    # ---- for one example, traced -------------------------------------------------------------
    def n_weights(self, examples: Any) -> int:
        """D, from the shapes of the examples."""
        raise NotImplementedError

    def decode(self, weights: Array, example: Any) -> Any:
        """The structure of the largest score, as arrays."""
        raise NotImplementedError

    def augmented(self, weights: Array, example: Any) -> Any:
        """The structure of the largest ``Delta(s, y) + <w, phi(x, s)>``."""
        raise NotImplementedError

    def delta(self, example: Any, structure: Any) -> Array:
        """Delta(structure, y), ()."""
        raise NotImplementedError

    def difference(self, example: Any, structure: Any) -> Array:
        """``phi(x, structure) - phi(x, y)``, (D,)."""
        raise NotImplementedError

    def oracle(self, weights: Array, example: Any) -> tuple[Array, Array]:
        """The loss () and a sub-gradient (D,) of one example at ``weights`` (D,)."""
        rival = self.augmented(weights, example)
        slope = self.difference(example, rival)
        value = self.delta(example, rival) + product(weights, slope)
        # Strict, and NaN stays NaN: who looks for it finds it.
        return jnp.maximum(value, 0), jnp.where(value <= 0, 0, slope)

    def decision(self, weights: Array, example: Any) -> Any:
        """Scores that tell how clear an answer was, as arrays."""
        raise ValueError(f"{type(self).__name__} has no decision values")

    # ---- for all examples, on the host ---------------------------------------------------------
    def read(self, examples: Any, classes: np.ndarray | None = None) -> Given:
        """Training examples as the user gave them, checked.

        Args:
          examples: here a pytree of arrays with the examples on the leading axis.
          classes: those of the run that is continued, or None.

        Raises:
          ValueError: what is wrong with them.
        """
        arrays = jax.tree.map(np.asarray, examples)
        lengths = {a.shape[:1] for a in jax.tree.leaves(arrays)}
        if len(lengths) != 1 or lengths & {(), (0,)}:
            raise ValueError(
                "examples must be arrays with the examples on the leading axis, got shapes "
                f"{[a.shape for a in jax.tree.leaves(arrays)]}"
            )
        return Given(arrays, next(iter(lengths))[0])

    def inputs(self, X: Any, lengths: Any, n_weights: int, classes: np.ndarray | None) -> Any:
        """What :meth:`decode` needs of examples to predict, checked; as :meth:`read` gives it."""
        if lengths is not None:
            raise ValueError(f"lengths must be None for {type(self).__name__}, got {lengths!r}")
        return self.read(X, classes).examples

    def answers(self, found: Any, examples: Any, classes: np.ndarray | None) -> Any:
        """Structures, or decision values, of many examples as users want them."""
        return found

    def named_weights(self, weights: Any, n_classes: int) -> dict[str, Any]:
        """The weights by name, in their shapes."""
        return {"weights": weights}


def is_floating(leaf: Any) -> bool:
    """Whether an array holds floats, 16-bit ones too."""
    return bool(jnp.issubdtype(leaf.dtype, jnp.floating))


def on_device(examples: Any, dtype: Any) -> Any:
    """The arrays of examples on the device, floats as ``dtype``, all else as it is."""

    def put(leaf: Any) -> Array:
        return jnp.asarray(leaf, dtype if is_floating(leaf) else None)

    return jax.tree.map(put, examples)
