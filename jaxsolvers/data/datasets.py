"""Generated data sets."""

from __future__ import annotations

import numpy as np

__all__ = ["blobs"]


def blobs(
    n: int, d: int, n_classes: int, seed: int = 0, dtype: str = "float32"
) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors around one centre per class.

    Centres are standard normal in R^d; a row is ``0.5 centre[label] + noise`` with standard
    normal noise, scaled to norm 1.

    Args:
      n: rows, at least one per class.
      d: features.
      n_classes: classes; every label occurs.
      seed: of the NumPy generator.
      dtype: of X.

    Returns:
      X (n, d) and labels (n,) int64.

    Raises:
      ValueError: fewer rows than classes, or a size below 1.

    Example:
      >>> import jaxsolvers as js
      >>> X, y = js.data.blobs(6, 4, 3)
      >>> X.shape, sorted(set(y.tolist()))
      ((6, 4), [0, 1, 2])
    """
    if min(n, d, n_classes) < 1 or n < n_classes:
        raise ValueError(
            f"n must be at least n_classes, and all sizes at least 1; got n={n}, d={d}, "
            f"n_classes={n_classes}"
        )
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_classes, d))
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    rng.shuffle(labels)
    X = 0.5 * centres[labels] + rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X.astype(dtype), labels
