"""Peak memory of a large one-vs-rest run against its state and its result.

    python -m benchmarks.speed.memory              15,000 rankers x 10,000 features

Prints the rise of the peak resident set during a second fit, X excluded, beside
state + coef: a run must not hold a second copy of either.
"""

from __future__ import annotations

import argparse
import threading
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsolvers as js
from benchmarks import recording


def resident() -> int:
    """Resident set of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


class Peak:
    """Largest resident set seen while the block runs, by sampling."""

    def __enter__(self) -> Peak:
        self.largest, self._done = resident(), False
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done:
            self.largest = max(self.largest, resident())
            time.sleep(0.001)

    def __exit__(self, *_: object) -> None:
        self._done = True
        self._thread.join()
        self.largest = max(self.largest, resident())


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rankers", type=int, default=15000)
    parser.add_argument("--features", type=int, default=10000)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(0)
    X = jnp.asarray(rng.standard_normal((options.rows, options.features)), jnp.float32)
    y = rng.integers(0, options.rankers, options.rows)

    def once() -> js.Fit:
        fit = js.fit_one_vs_rest(
            js.AdaGradRDA(0.1),
            X,
            y,
            classes=np.arange(options.rankers),
            batch_size=options.batch_size,
            order="cyclic",
        )
        jax.block_until_ready(fit.model.coef)
        return fit

    fit = once()
    coef = fit.model.coef.nbytes
    state = sum(leaf.nbytes for leaf in jax.tree.leaves(fit.state))
    del fit
    before = resident()
    with Peak() as peak:
        began = time.perf_counter()
        kept = once()  # its state and weights count
        seconds = time.perf_counter() - began
    rise = peak.largest - before
    del kept
    record = {
        "environment": recording.environment(),
        "rankers": options.rankers,
        "features": options.features,
        "rows": options.rows,
        "state_bytes": state,
        "coef_bytes": coef,
        "rise_of_peak_bytes": rise,
        "ratio": rise / (state + coef),
        "seconds": seconds,
    }
    print(
        f"state {state / 2**20:.0f} MiB + coef {coef / 2**20:.0f} MiB; the peak rose by "
        f"{rise / 2**20:.0f} MiB: {100 * record['ratio']:.1f} % ({seconds:.2f} s)"
    )
    recording.save("memory", record, options.out)
    return record


if __name__ == "__main__":
    main()
