"""The transformations beside optax.adagrad, one jitted step that donates everything, in one run.

    python -m benchmarks.speed.transforms            10 million parameters, results/transforms.json
    python -m benchmarks.speed.transforms --tiny     seconds, for the tests

A step is update and apply_updates. The contenders take turns, so that what else the machine does
meets all of them; a ratio is the median over the turns of a contender's time by optax.adagrad's in
the same turn. `passes` counts the arrays of the parameters' size that a step must read or write.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxsolvers as js
from benchmarks import recording

L1 = js.regularizers.L1(1e-3)
# name: (transformation, arrays read or written in a step, the goal of its ratio, ratio to whom)
CONTENDERS: dict[str, tuple[Any, int, float | None, str]] = {
    "optax.adagrad": (optax.adagrad(0.1), 5, None, ""),
    "adagrad_fobos": (js.transforms.adagrad_fobos(0.1), 5, 1.3, "optax.adagrad"),
    "adagrad_fobos, l1": (
        js.transforms.adagrad_fobos(0.1, regularizer=L1),
        5,
        1.2,
        "adagrad_fobos",
    ),
    "adagrad_rda": (js.transforms.adagrad_rda(0.1), 8, 1.9, "optax.adagrad"),
    "adagrad_rda, l1": (js.transforms.adagrad_rda(0.1, regularizer=L1), 8, 1.2, "adagrad_rda"),
    "fobos": (js.transforms.fobos(0.1), 3, None, "optax.adagrad"),
    "rda": (js.transforms.rda(0.1), 6, None, "optax.adagrad"),
    "pegasos": (js.transforms.pegasos(0.1), 3, None, "optax.adagrad"),
}


def stepper(tx: Any, n: int) -> Callable[[Any], float]:
    """A function that does one step and returns its seconds."""

    def step(gradient: Any, state: Any, params: Any) -> Any:
        updates, state = tx.update(gradient, state, params)
        return state, optax.apply_updates(params, updates)

    compiled = jax.jit(step, donate_argnums=(1, 2))
    params = jnp.full(n, 0.5)
    held = [tx.init(params), params]

    def run(gradient: Any) -> float:
        began = time.perf_counter()
        held[:] = compiled(gradient, *held)
        jax.block_until_ready(held)
        return time.perf_counter() - began

    return run


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tiny", action="store_true", help="small sizes, for tests")
    parser.add_argument("--turns", type=int, default=21)
    parser.add_argument("--out", type=Path, default=None, help="folder of the results")
    options = parser.parse_args(arguments)
    n, turns = (1000, 3) if options.tiny else (10_000_000, options.turns)
    gradient = jax.random.normal(jax.random.key(0), (n,))
    steps = {name: stepper(tx, n) for name, (tx, *_) in CONTENDERS.items()}
    first = {name: step(gradient) for name, step in steps.items()}
    taken = [{name: step(gradient) for name, step in steps.items()} for _ in range(turns)]
    seconds = {name: np.array([turn[name] for turn in taken]) for name in steps}
    rows = []
    for name, (_, passes, goal, peer) in CONTENDERS.items():
        median = float(np.median(seconds[name]))
        row = {
            "transformation": name,
            "first": first[name],
            "median": median,
            "all": seconds[name].tolist(),
            "passes": passes,
            "bytes_per_second": 4 * n * passes / median,
        }
        print(f"{name}: {1e3 * median:.2f} ms, {row['bytes_per_second'] / 1e9:.1f} GB/s", end="")
        if peer:
            row |= {
                "peer": peer,
                "goal": goal,
                "ratio": float(np.median(seconds[name] / seconds[peer])),
            }
            print(f", {row['ratio']:.2f}x {peer} (goal {goal})", end="")
        print()
        rows.append(row)
    record = {"environment": recording.environment(), "parameters": n, "transformations": rows}
    path = recording.save("transforms", record, options.out)
    print(f"wrote {path}")
    return record


if __name__ == "__main__":
    main()
