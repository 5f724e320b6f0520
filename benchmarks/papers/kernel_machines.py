"""Kernel machines beside libsvm: how many passes they take to its test error.

    python -m benchmarks.papers.kernel_machines          results/kernel_machines.json
    python -m benchmarks.papers.kernel_machines --tiny   seconds, on generated rows, for the tests

The sets are usps and reuters_moneyfx, the problem the same for both sides: an RBF kernel, hinge
loss, lam = 1/(C m), a machine per label against the others where there are more than two, no
intercept here (libsvm has one). Kernel values are computed once and given to all solvers
(``js.kernels.Precomputed``); their time is apart. The last rows keep a budget of support vectors
per machine and learn from the features.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxsolvers as js
from benchmarks import real_sets, recording

PASSES = (5, 10, 20, 40, 80)
BUDGET_PASSES = (1, 5)
ALLOWED = 0.003  # of the test rows beyond libsvm's error


class Machine(NamedTuple):
    """A data set and the numbers of its kernel machine."""

    name: str
    X: Any  # (n, d) dense or CSR
    y: np.ndarray  # (n,) labels
    test_X: Any
    test_y: np.ndarray
    gamma: float
    C: float
    budgets: tuple[int, ...]

    @property
    def lam(self) -> float:
        return js.convert(self.C, "C", "lam", n=len(self.y), loss="hinge")


def usps() -> Machine:
    """Digits of 256 grey values in [-1, 1]."""
    where = real_sets.folder()
    assert where is not None, "the data folder is absent"
    data = np.load(where / "usps" / "usps.npz")
    X, test_X = ((data[part] / 1000).astype(np.float32) for part in ("x_train", "x_test"))
    return Machine("usps", X, data["y_train"], test_X, data["y_test"], 1 / 128, 10.0, (50, 200))


def reuters() -> Machine:
    """Is a news story of Reuters about money-fx? Rows of length 1; C and gamma are Pegasos' own."""
    data = real_sets.load("reuters_moneyfx")
    return Machine(data.name, data.X, data.y, data.test_X, data.test_y, 1.0, 1.0, ())


def generated(n: int = 150) -> Machine:
    """Points of the plane, labels by their distance from 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * n, 2)).astype(np.float32)
    y = np.digitize((X**2).sum(axis=1), [0.8, 2.5])
    return Machine("generated", X[:n], y[:n], X[n:], y[n:], 1.0, 10.0, (10,))


def libsvm(data: Machine) -> dict[str, Any]:
    """Test error and seconds of scikit-learn's SVC, a machine per label as here."""
    from sklearn.svm import SVC

    labels = np.unique(data.y)
    X, test_X = (part.astype(np.float64) for part in (data.X, data.test_X))
    began = time.perf_counter()
    scores, supports = [], []
    for label in labels if len(labels) > 2 else labels[1:]:
        machine = SVC(C=data.C, gamma=data.gamma).fit(X, data.y == label)
        scores.append(machine.decision_function(test_X))
        supports.append(int(machine.n_support_.sum()))
    found = np.stack(scores, axis=1)
    guess = labels[found.argmax(axis=1)] if len(labels) > 2 else labels[(found[:, 0] > 0) * 1]
    return {
        "error": float(np.mean(guess != data.test_y)),
        "seconds": time.perf_counter() - began,
        "support_vectors": supports,
    }


def contenders(lam: float) -> dict[str, Any]:
    """The solvers, on kernel values given."""
    kernel = js.kernels.Precomputed()
    pegasos = js.KernelPegasos(lam, kernel)
    return {
        "SDCA": js.Kernelized(js.SDCA(lam), kernel),
        "KernelPegasos": pegasos,
        "KernelPegasos, polynomial average": js.Averaged(pegasos, kind="polynomial"),
    }


def after_passes(
    solver: Any, data: Machine, X: Any, test_X: Any, passes: tuple[int, ...]
) -> Iterator[dict[str, Any]]:
    """Error, seconds so far and support vectors of a machine after each number of passes."""
    front = js.fit_one_vs_rest if len(np.unique(data.y)) > 2 else js.fit
    state, done, seconds = None, 0, 0.0
    for count in passes:
        began = time.perf_counter()
        fit = front(solver, X, data.y, epochs=count - done, state=state)
        jax.block_until_ready(fit.model.dual_coef)
        seconds += time.perf_counter() - began
        state, done = fit.state, count
        error = np.mean(np.asarray(fit.model.predict(test_X)) != data.test_y)
        each = np.count_nonzero(np.atleast_2d(np.asarray(fit.model.dual_coef)), axis=1)
        yield {
            "passes": count,
            "error": float(error),
            "seconds": seconds,
            "support_vectors": each.tolist(),
        }


def measure(data: Machine, passes: tuple[int, ...], budget_passes: tuple[int, ...]) -> Any:
    """One set: libsvm, the machines on all kernel values, those within a budget."""
    row: dict[str, Any] = {
        "set": data.name,
        "rows": len(data.y),
        "test_rows": len(data.test_y),
        "gamma": data.gamma,
        "C": data.C,
        "lam": data.lam,
        "libsvm": libsvm(data),
        "machines": [],
    }
    theirs = row["libsvm"]["error"]
    print(f"{data.name}: libsvm errs {100 * theirs:.2f} %, {row['libsvm']['seconds']:.1f} s")
    kernel = js.kernels.RBF(data.gamma)
    began = time.perf_counter()
    values, test_values = kernel.matrix(data.X), kernel.matrix(data.test_X, data.X)
    jax.block_until_ready((values, test_values))
    row["kernel_seconds"] = time.perf_counter() - began
    every = [
        (name, solver, values, test_values, passes) for name, solver in contenders(data.lam).items()
    ]
    for budget in data.budgets:
        for rule in ("merge", "project", "remove"):
            solver = js.BudgetedPegasos(data.lam, kernel, budget, rule)
            name = f"BudgetedPegasos, {budget} vectors, {rule}"
            every.append((name, solver, data.X, data.test_X, budget_passes))
    for name, solver, X, test_X, counts in every:
        found = list(after_passes(solver, data, X, test_X, counts))
        within = [point["passes"] for point in found if point["error"] <= theirs + ALLOWED]
        row["machines"].append({"name": name, "points": found, "within_of_libsvm": within})
        shown = ", ".join(f"{p['passes']}: {100 * p['error']:.2f} %" for p in found)
        print(f"  {name}: after passes {shown}; {found[-1]['seconds']:.1f} s", flush=True)
    return row


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tiny", action="store_true", help="generated rows, for tests")
    parser.add_argument("--out", type=Path, default=None, help="folder of the results")
    options = parser.parse_args(arguments)
    sets, counts = ((usps, reuters), (PASSES, BUDGET_PASSES))
    if options.tiny:
        sets, counts = ((generated,), ((2, 10), (5,)))
    elif real_sets.folder() is None:
        raise SystemExit("the real data sets are absent: set JAXSOLVERS_DATA to their folder")
    record: dict[str, Any] = {
        "environment": recording.environment(),
        "allowed": ALLOWED,
        "sets": [measure(make(), *counts) for make in sets],
    }
    print(f"wrote {recording.save('kernel_machines', record, options.out)}")
    return record


if __name__ == "__main__":
    main()
