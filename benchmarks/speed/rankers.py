"""One-vs-rest at many rankers: jaxsolvers and scikit-learn in one run.

    python -m benchmarks.speed.rankers             the full run, results/rankers.json and .png
    python -m benchmarks.speed.rankers --tiny      seconds, for the tests

Tasks (blobs: unit rows around one centre per class; one pass, file order, no intercept):
  A  Pegasos, k = 1, exact rounds      n = 4096,  d = 784, 1000 rankers
  B  the same with few rankers         n = 20000, d = 784, 10 rankers
  D  AdaGrad-RDA in batches of 64      as A
The peer of all three is SGDClassifier (hinge, one pass, file order, n_jobs=2). Times are medians
after a first call, which is listed apart and holds the compilation.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsolvers as js
from benchmarks import plotting, recording

FULL = {
    "A": {"n": 4096, "d": 784, "rankers": 1000},
    "B": {"n": 20000, "d": 784, "rankers": 10},
    "D": {"n": 4096, "d": 784, "rankers": 1000},
}
TINY = {name: {"n": 96, "d": 12, "rankers": 20 if name != "B" else 4} for name in FULL}
CURVE = (1, 10, 100, 300, 1000, 3000, 5000, 10000, 15000)
GOALS = {"A": 50, "B": 5, "D": 25}


def solver_of(task: str) -> tuple[Any, int, float]:
    """The solver, its batch size, and FLOPs per (row, ranker, feature)."""
    if task == "D":
        return js.AdaGradRDA(0.1), 64, 6.0  # scores, gradient, squares: three products
    return js.Pegasos(1e-2), 1, 4.0  # scores and update: two products


def measure(task: str, shape: dict[str, int], repeats: int, peak: float) -> dict[str, Any]:
    """One task: ours on the device and from NumPy, and the peer."""
    n, d, rankers = shape["n"], shape["d"], shape["rankers"]
    rows, labels = js.data.blobs(2 * n, d, rankers)
    X, y, held, held_y = rows[:n], labels[:n], rows[n:], labels[n:]
    solver, batch, flops = solver_of(task)
    batch = min(batch, n)
    classes = np.arange(rankers)

    def ours(X: Any) -> js.Fit:
        fit = js.fit_one_vs_rest(solver, X, y, classes=classes, order="cyclic", batch_size=batch)
        jax.block_until_ready(fit.model.coef)
        return fit

    device_X = jnp.asarray(X)
    device, fit = recording.timed(lambda: ours(device_X), repeats)
    host, _ = recording.timed(lambda: ours(X), repeats)
    peer, model = recording.timed(lambda: sgd(X, y), max(3, repeats // 3) if n > 1000 else 1)
    floor = flops * n * d * rankers / (peak * 1e9)
    return {
        "task": task,
        **shape,
        "batch_size": batch,
        "solver": repr(solver),
        "seconds_device": device,
        "seconds_numpy": host,
        "seconds_sgdclassifier": peer,
        "ratio_device": peer["median"] / device["median"],
        "ratio_numpy": peer["median"] / host["median"],
        "goal_ratio": GOALS[task],
        "floor_seconds": floor,
        "share_of_floor": floor / device["median"],
        "gflops": flops * n * d * rankers / device["median"] / 1e9,
        "accuracy": float(np.mean(fit.model.predict(held) == held_y)),
        "accuracy_sgdclassifier": float(np.mean(model.predict(held) == held_y)),
    }


def sgd(X: np.ndarray, y: np.ndarray) -> Any:
    """scikit-learn's one-vs-rest SGD, one pass in file order."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import SGDClassifier

    model = SGDClassifier(
        alpha=1e-2, max_iter=1, tol=None, shuffle=False, fit_intercept=False, n_jobs=2
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def curve(counts: tuple[int, ...], n: int, d: int, repeats: int) -> dict[str, list[Any]]:
    """Seconds of one pass for growing numbers of rankers."""
    X, y = js.data.blobs(n, d, min(n, 1000))
    device_X = jnp.asarray(X)
    curves: dict[str, list[Any]] = {}
    for name, task in (
        ("Pegasos, k = 1, exact rounds", "A"),
        ("AdaGrad-RDA, batches of 64", "D"),
    ):
        solver, batch, _ = solver_of(task)
        points = []
        for rankers in counts:
            classes = np.arange(max(rankers, 2))
            labels = y % len(classes)

            def run(
                solver: Any = solver, batch: int = batch, classes: Any = classes, y: Any = labels
            ) -> Any:
                if len(classes) == 2:  # a single ranker
                    fit = js.fit(solver, device_X, y, order="cyclic", batch_size=min(batch, n))
                else:
                    fit = js.fit_one_vs_rest(
                        solver,
                        device_X,
                        y,
                        classes=classes,
                        order="cyclic",
                        batch_size=min(batch, n),
                    )
                return jax.block_until_ready(fit.model.coef)

            seconds, _ = recording.timed(run, repeats)
            points.append({"rankers": rankers, "seconds": seconds["median"]})
        curves[name] = points
    return curves


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tiny", action="store_true", help="small sizes, for tests")
    parser.add_argument("--tasks", default="ABD", help="which tasks (ABD)")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=None, help="folder of the results")
    parser.add_argument("--no-curve", action="store_true")
    options = parser.parse_args(arguments)
    repeats = 1 if options.tiny else options.repeats
    shapes = TINY if options.tiny else FULL
    peak = recording.matrix_peak(256 if options.tiny else 2048)
    record: dict[str, Any] = {"environment": recording.environment(), "peak_gflops": peak}
    record["tasks"] = [measure(task, shapes[task], repeats, peak) for task in options.tasks]
    for row in record["tasks"]:
        print(
            f"{row['task']}: {row['seconds_device']['median']:.4f} s on the device, "
            f"{row['seconds_numpy']['median']:.4f} s from NumPy, SGDClassifier "
            f"{row['seconds_sgdclassifier']['median']:.3f} s: {row['ratio_device']:.1f}x and "
            f"{row['ratio_numpy']:.1f}x (goal {row['goal_ratio']}x), floor "
            f"{row['floor_seconds']:.4f} s, {100 * row['share_of_floor']:.0f} % of it reached; "
            f"accuracy {row['accuracy']:.3f} against {row['accuracy_sgdclassifier']:.3f}"
        )
    if not options.no_curve:
        n, d = (64, 8) if options.tiny else (4096, 784)
        counts = (1, 5, 40) if options.tiny else CURVE
        record["curve"] = {"n": n, "d": d, "points": curve(counts, n, d, min(repeats, 3))}
        folder = recording.RESULTS if options.out is None else options.out
        folder.mkdir(parents=True, exist_ok=True)
        plotting.time_against_rankers(
            record["curve"]["points"],
            folder / "rankers.png",
            f"One pass over {n} rows of {d} features, {record['environment']['cores']} CPU cores",
        )
    path = recording.save("rankers", record, options.out)
    print(f"wrote {path}")
    return record


if __name__ == "__main__":
    main()
