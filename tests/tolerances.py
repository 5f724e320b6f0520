"""Every tolerance of the suite, written once.

A tolerance is relative to the *scale* of what is compared, its largest magnitude: an entry that
is small because large terms cancel cannot be better than they are.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

# law: (float64, float32)
TOLERANCES = {
    "reference": (1e-10, 1e-5),  # round by round against the NumPy float64 references
    "run": (1e-10, 1e-4),  # whole runs against them
    "rewritten": (1e-10, 1e-5),  # two ways to order the same sums: sweep and loop, vmap and loop
    "compiled": (1e-12, 2e-6),  # one computation compiled in two ways: jit and eager
    "slope": (1e-6, 1e-6),  # finite differences, always in float64
}


# Fields that hold rounding itself, what a sum lost or how far an iteration is from its end: two
# ways to round agree on them in the scale of what was rounded, here about 1.
ROUNDING = ("lost", "residual")


def tolerance(law: str, dtype: Any) -> float:
    """The tolerance of ``law`` for a floating dtype."""
    return TOLERANCES[law][0 if np.dtype(dtype) == np.float64 else 1]


def assert_close(
    actual: Any, expected: Any, law: str, *, scale: float | None = None, name: str = ""
) -> None:
    """Two pytrees of arrays agree: floats within the law's tolerance, all else exactly.

    The dtype of ``actual`` sets the tolerance; ``scale`` is max |expected| of each leaf unless
    it is given. What a compensated sum has lost is rounding itself: its scale is the sum's, of
    order 1.
    """
    assert jax.tree.structure(actual) == jax.tree.structure(expected), name
    for (path, ours), theirs in zip(
        jax.tree_util.tree_leaves_with_path(actual), jax.tree.leaves(expected), strict=True
    ):
        message = f"{name}{jax.tree_util.keystr(path)}"
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        if not np.issubdtype(ours.dtype, np.floating):
            np.testing.assert_array_equal(ours, theirs, err_msg=message)
            continue
        finite = np.abs(theirs[np.isfinite(theirs)])
        size = (finite.max() if finite.size else 0.0) if scale is None else scale
        if scale is None and any(f".{field}" in message for field in ROUNDING):
            size = max(size, 1.0)
        limit = tolerance(law, ours.dtype)
        np.testing.assert_allclose(
            ours, theirs, rtol=limit, atol=limit * float(size), err_msg=message
        )


def assert_bitwise(actual: Any, expected: Any, name: str = "") -> None:
    """Two pytrees of arrays hold the same bits."""
    assert jax.tree.structure(actual) == jax.tree.structure(expected), name
    for (path, ours), theirs in zip(
        jax.tree_util.tree_leaves_with_path(actual), jax.tree.leaves(expected), strict=True
    ):
        message = f"{name}{jax.tree_util.keystr(path)}"
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        assert ours.dtype == theirs.dtype, message
        np.testing.assert_array_equal(ours, theirs, err_msg=message)
