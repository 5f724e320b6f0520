"""Whether what a run leaves behind has room in memory, known before anything is made."""

from __future__ import annotations

import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.members import Leaf
from jaxsolvers.protocol import Problem, Solver

UNKNOWN_BYTES = 1 << 36  # where nothing tells how much memory there is


def state_bytes(solver: Solver, width: int, n_examples: int, dtype: Any) -> int:
    """Bytes of one ranker's training state, of ``width`` weights."""

    def one(leaf: Leaf) -> Any:
        alone = jnp.ndim(leaf.value) <= leaf.spec.rank
        return leaf.value if alone else np.asarray(leaf.value)[0]

    zero = jnp.zeros((), dtype)
    problem = Problem((width,), n_examples, zero, zero)

    def init(solver: Solver) -> Any:
        return solver.init(problem, dtype)

    state = jax.eval_shape(init, solver.map_numbers(one).cast(dtype).without_kernel())
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


def memory_bytes(device: Any) -> int:
    """Memory of the device, or where that does not tell of the machine."""
    told = (device.memory_stats() or {}) if device is not None else {}
    if "bytes_limit" in told:
        return int(told["bytes_limit"])
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return UNKNOWN_BYTES
