"""Strict settings for every test: 4 CPU devices, no promotion, no broadcasting of ranks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import jax
import jaxlib
import pytest

# The suite compiles some thousand small programs, and the compiler's quick way takes a third of
# the time. JAXSOLVERS_COMPILER=full takes the users' way. Only for releases known to have these
# flags: an unknown one would end the process.
QUICK = jaxlib.__version__.startswith("0.10.") and os.environ.get("JAXSOLVERS_COMPILER") != "full"
if QUICK:
    flags = (
        "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
        " --xla_cpu_parallel_codegen_split_count=1"
    )
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}"

jax.config.update("jax_num_cpu_devices", 4)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

_ROOT = Path(__file__).resolve().parents[1]


def data_folder() -> Path | None:
    """The real data sets: JAXSOLVERS_DATA, or shared/data beside the checkout."""
    named = os.environ.get("JAXSOLVERS_DATA")
    folder = Path(named) if named else _ROOT.parent / "shared" / "data"
    return folder if (folder / "mnist").is_dir() else None


@pytest.fixture(scope="session")
def root() -> Path:
    return _ROOT


@pytest.fixture(scope="session")
def x64() -> bool:
    return bool(jax.config.jax_enable_x64)


@pytest.fixture(scope="module", autouse=True)
def _free_programs() -> Iterator[None]:
    """Compiled programs of a module are dropped with it: a worker would hold gigabytes."""
    yield
    jax.clear_caches()
