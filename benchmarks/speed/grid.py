"""Cross-validation of a grid: jaxsolvers and scikit-learn in one run.

    python -m benchmarks.speed.grid                the full run, results/grid.json
    python -m benchmarks.speed.grid --tiny         seconds, for the tests

Task K: usps (7,291 rows, 256 features, 10 classes), 20 values of lambda by 5 folds by 10 classes:
1,000 rankers of Pegasos, exact rounds, 5 passes. The peer is SGDClassifier with the same alphas on
the same folds, hinge, 5 passes without a stopping rule, its one-vs-rest on two cores
(``n_jobs=2``): 100 calls of 10 fits each. On our side each core is a device of the
mesh, and blocks have 64 rows. Both score the rows held out, neither trains a model on
all rows. Both run in turns, times are medians; our first call is listed apart and holds the
compilation. Where the data folder is absent, blobs of the same size stand in.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

import jaxsolvers as js
from benchmarks import real_sets, recording

FULL = {"rows": 7291, "features": 256, "classes": 10, "points": 20, "folds": 5, "passes": 5}
TINY = {"rows": 120, "features": 12, "classes": 3, "points": 3, "folds": 3, "passes": 2}
GATE, GOAL = 15, 50


def load(shape: dict[str, int], tiny: bool) -> tuple[str, np.ndarray, np.ndarray]:
    """The name of the set, its rows and its labels."""
    folder = real_sets.folder()
    if folder is None or tiny:
        X, y = js.data.blobs(shape["rows"], shape["features"], shape["classes"])
        return "blobs", X, y
    held = np.load(folder / "usps" / "usps.npz")
    return "usps", held["x_train"].astype(np.float32) / 1000, held["y_train"].astype(int)


def sgd(
    X: np.ndarray, y: np.ndarray, lam: np.ndarray, folds: np.ndarray, passes: int
) -> np.ndarray:
    """Error rates (points, folds) of scikit-learn's one-vs-rest SGD."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import SGDClassifier

    errors = np.empty((len(lam), len(np.unique(folds))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for p, f in np.ndindex(errors.shape):
            own = folds != f
            model = SGDClassifier(
                alpha=lam[p], max_iter=passes, tol=None, fit_intercept=False, n_jobs=2,
                random_state=0,
            ).fit(X[own], y[own])  # fmt: skip
            errors[p, f] = np.mean(model.predict(X[~own]) != y[~own])
    return errors


def measure(shape: dict[str, int], tiny: bool, repeats: int) -> dict[str, Any]:
    """Ours and the peer on one set."""
    name, X, y = load(shape, tiny)
    lam = np.geomspace(1e-6, 1e-1, shape["points"])
    folds = np.random.default_rng(0).permutation(len(y)) % shape["folds"]
    mesh = Mesh(np.array(jax.devices()), ("rankers",))

    def ours() -> js.GridResult:
        return js.grid_search(
            js.Pegasos(lam), X, y, folds=folds, epochs=shape["passes"], refit=False, mesh=mesh,
            block_size=64,
        )  # fmt: skip

    compiled: list[str] = []

    def listen(event: str, seconds: float, **told: Any) -> None:
        if event.endswith("backend_compile_duration"):
            compiled.append(told.get("fun_name", ""))

    jax.monitoring.register_event_duration_secs_listener(listen)
    began = time.perf_counter()
    found = ours()
    seconds: dict[str, Any] = {"first": time.perf_counter() - began}
    programs = sum("advance" in name for name in compiled)
    ours_took, theirs_took = [], []
    for _ in range(repeats):  # in turns: other work on the machine meets both alike
        began = time.perf_counter()
        ours()
        ours_took.append(time.perf_counter() - began)
        began = time.perf_counter()
        theirs = sgd(X, y, lam, folds, shape["passes"])
        theirs_took.append(time.perf_counter() - began)
    seconds |= {"median": float(np.median(ours_took)), "all": ours_took}
    peer = {"median": float(np.median(theirs_took)), "all": theirs_took}
    again = sum("advance" in name for name in compiled) - programs
    rankers = shape["points"] * shape["folds"] * len(np.unique(y))
    work = 4.0 * len(y) * X.shape[1] * rankers * shape["passes"]
    return {
        "task": "K",
        "set": name,
        **shape,
        "rows": len(y),
        "rankers": rankers,
        "solver": "Pegasos, exact rounds",
        "seconds": seconds,
        "programs": programs,  # compiled for all rankers together
        "programs_later": again,
        "seconds_sgdclassifier": peer,
        "ratio": peer["median"] / seconds["median"],
        "ratio_with_compilation": peer["median"] / seconds["first"],
        "gate_ratio": GATE,
        "goal_ratio": GOAL,
        "gflops": work / seconds["median"] / 1e9,
        "best_error": float(found.table["score"].min()),
        "best_error_sgdclassifier": float(theirs.mean(axis=1).min()),
        "best_lam": float(found.best.lam),
    }


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tiny", action="store_true", help="small sizes, for tests")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=None, help="folder of the results")
    options = parser.parse_args(arguments)
    record: dict[str, Any] = {"environment": recording.environment()}
    record["load_before"] = os.getloadavg()[0]  # of other work on the same cores
    row = measure(
        TINY if options.tiny else FULL,
        options.tiny,
        1 if options.tiny else options.repeats,
    )
    record["tasks"], record["load_after"] = [row], os.getloadavg()[0]
    print(
        f"K, {row['set']}: {row['seconds']['median']:.3f} s (first {row['seconds']['first']:.2f}, "
        f"{row['programs']} programs) for {row['rankers']} rankers, SGDClassifier "
        f"{row['seconds_sgdclassifier']['median']:.2f} s: {row['ratio']:.1f}x (gate "
        f"{row['gate_ratio']}x, goal {row['goal_ratio']}x), {row['ratio_with_compilation']:.1f}x "
        f"with the compilation, {row['gflops']:.0f} GFLOP/s; best error {row['best_error']:.4f} "
        f"against {row['best_error_sgdclassifier']:.4f}"
    )
    path = recording.save("grid", record, options.out)
    print(f"wrote {path}")
    return record


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)
    main()
