"""Timing and recording: every figure is stored with what it was measured on."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

RESULTS = Path(__file__).resolve().parent / "results"


def timed(run: Callable[[], Any], repeats: int) -> tuple[dict[str, Any], Any]:
    """Seconds of ``run`` (which must wait for its result): first call apart, then the median."""
    seconds = []
    result = None
    for _ in range(repeats + 1):
        began = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - began)
    first, *rest = seconds
    return {"first": first, "median": float(np.median(rest)), "all": rest}, result


def environment() -> dict[str, Any]:
    """Machine, versions and commit."""
    root = Path(__file__).resolve().parents[1]
    commit = subprocess.run(
        ["git", "-C", str(root), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    names = ("jax", "jaxlib", "numpy", "optax", "scikit-learn", "jaxsolvers")
    versions = {}
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "commit": commit,
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "versions": versions,
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "devices": [f"{d.platform}: {d.device_kind}" for d in jax.devices()],
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def save(name: str, record: dict[str, Any], folder: Path | None = None) -> Path:
    """Write a record as JSON and return its path."""
    folder = RESULTS if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


def matrix_peak(size: int = 2048, repeats: int = 5) -> float:
    """GFLOP/s of a large float32 matrix product: the ceiling the floors are written against."""
    a = jax.numpy.ones((size, size), np.float32)
    multiply = jax.jit(lambda a: jax.numpy.matmul(a, a, precision=jax.lax.Precision.HIGHEST))
    times, _ = timed(lambda: multiply(a).block_until_ready(), repeats)
    return 2 * size**3 / min(times["all"]) / 1e9
