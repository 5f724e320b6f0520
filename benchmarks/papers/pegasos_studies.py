"""Pegasos' experiments: lambda, the size of batches, the order of rows, the projection.

    python -m benchmarks.papers.pegasos_studies                all four; or name some of
    python -m benchmarks.papers.pegasos_studies lambda         them: lambda, batches, orders,
    python -m benchmarks.papers.pegasos_studies orders         projection
    python -m benchmarks.papers.pegasos_studies --tiny         generated rows, for the tests

Each writes results/pegasos_NAME.json, .png and .md. Hinge loss, float32, unit rows with a constant
feature, on usps (the digit 8 against the others) and on 20,000 rows of covtype (class 1 against
the others). All values of lambda are rankers of one fit; hundreds of seeds are lanes of one
program (``seeds.py``). Excess is above the dual objective of a long run of SDCA, which no weights
get below.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import jaxsolvers as js
from benchmarks import real_sets, recording
from benchmarks.papers import pegasos_report, seeds
from jaxsolvers.losses import Hinge

LAMS = np.geomspace(1e-7, 1e-3, 17).astype(np.float32)
SVRG_LAMS = LAMS[::2]
SVRG_RATES = (0.03, 0.1, 0.3)
SVRG_PASSES = 3  # over the rows in an epoch: two for the snapshot, one of rounds
KINDS = ("uniform", "permutation", "shuffled once", "cyclic")


class Sizes(NamedTuple):
    """How much a run does."""

    keys: int = 5  # seeds of the study of lambda
    passes: tuple[int, ...] = (3, 30)
    best_passes: int = 100  # of SDCA, for the optimum
    batch_lam: float = 1e-4
    batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    batch_seeds: int = 10
    excesses: tuple[float, ...] = (0.05, 0.01)  # of the optimum
    most_visits: int = 1_500_000  # k T at which a run to an accuracy gives up
    order_lams: tuple[float, ...] = (1e-3, 1e-4, 1e-5)
    order_seeds: int = 100
    projection_lams: tuple[float, ...] = (1e-3, 1e-4, 1e-5, 1e-6)
    projection_seeds: int = 200
    epochs: tuple[int, ...] = (1, 3, 10)


FULL = Sizes()
TINY = Sizes(
    keys=2, passes=(3, 6), best_passes=20, batch_lam=1e-3, batches=(1, 8, 64), batch_seeds=3,
    excesses=(1.0, 0.5), most_visits=8000, order_lams=(1e-3, 1e-4), order_seeds=4,
    projection_lams=(1e-3, 1e-4), projection_seeds=5, epochs=(1, 2),
)  # fmt: skip


class Optimum(NamedTuple):
    """What SDCA finds for every value of ``LAMS``."""

    lower: np.ndarray  # the dual objective, below every objective
    objective: np.ndarray

    def at(self, lam: float) -> float:
        """The dual objective of one of ``LAMS``."""
        place = int(np.argmin(np.abs(np.log(LAMS / lam))))
        assert np.isclose(LAMS[place], lam, rtol=1e-3), lam
        return float(self.lower[place])

    def record(self, passes: int) -> dict[str, Any]:
        return {
            "passes": passes,
            "lam": LAMS.tolist(),
            "lower": self.lower.tolist(),
            "objective": self.objective.tolist(),
        }


def data_sets(tiny: bool) -> Iterator[real_sets.DenseSet]:
    if tiny:
        X, labels = js.data.blobs(400, 10, 2)
        y = np.where(labels == 1, 1, -1).astype(np.float32)
        yield real_sets.DenseSet("generated", X[:200], y[:200], X[200:], y[200:])
    else:
        yield real_sets.digit_eight()
        yield real_sets.cover_type(20_000)


def fitted(solver: Any, data: real_sets.DenseSet, rankers: int, **settings: Any) -> js.Fit:
    """The binary problem once per ranker, whose numbers differ."""
    targets = np.repeat(data.y[:, None] > 0, rankers, axis=1)
    return js.fit_one_vs_rest(solver, data.X, targets, record=("objective",), **settings)


def optimum(data: real_sets.DenseSet, passes: int) -> Optimum:
    """SDCA's bounds, found once per process."""
    if (data.name, passes) in _FOUND:
        return _FOUND[data.name, passes]
    solver = js.SDCA(LAMS)
    fit = fitted(solver, data, len(LAMS), epochs=passes)
    targets = np.repeat(data.y[:, None] > 0, len(LAMS), axis=1)
    gap = np.asarray(js.metrics.duality_gap(solver, fit.state, data.X, targets), np.float64)
    found = np.asarray(fit.history["objective"][-1], np.float64)
    return _FOUND.setdefault((data.name, passes), Optimum(found - gap, found))


_FOUND: dict[tuple[str, int], Optimum] = {}


def spread(values: np.ndarray, axis: int = 0) -> dict[str, Any]:
    """Mean and standard error over runs."""
    runs = values.shape[axis]
    error = values.std(axis=axis, ddof=1) / np.sqrt(runs)
    return {"mean": values.mean(axis=axis).tolist(), "standard_error": error.tolist()}


# ---- lambda --------------------------------------------------------------------------------


def study_lambda(data: real_sets.DenseSet, size: Sizes) -> dict[str, Any]:
    """The objective after fixed passes over the rows against lambda."""
    best = optimum(data, size.best_passes)
    lams, rates = (grid.ravel() for grid in np.meshgrid(SVRG_LAMS, SVRG_RATES))
    contenders: tuple[tuple[str, Any, np.ndarray, int], ...] = (
        ("Pegasos", js.Pegasos(LAMS), LAMS, 1),
        ("Pegasos, averaged", js.Averaged(js.Pegasos(LAMS), kind="polynomial"), LAMS, 1),
        (
            "SVRG",
            js.SVRG(lams, rates.astype(np.float32), loss=Hinge()),
            SVRG_LAMS,
            SVRG_PASSES,
        ),
        ("SDCA", js.SDCA(LAMS), LAMS, 1),
    )
    rows = []
    for name, solver, own_lams, per_epoch in contenders:
        rankers = len(lams) if name == "SVRG" else len(own_lams)
        began = time.process_time()
        objectives, errors = [], []
        for key in range(size.keys):
            epochs = max(size.passes) // per_epoch
            fit = fitted(solver, data, rankers, epochs=epochs, key=key)
            objectives.append(np.asarray(fit.history["objective"], np.float64))
            scores = np.asarray(fit.model.decision_function(data.test_X))
            errors.append(np.mean((scores > 0) != (data.test_y > 0)[:, None], axis=0))
        seconds = (time.process_time() - began) / size.keys
        for passes in size.passes:
            found = np.stack(objectives)[:, passes // per_epoch - 1]
            row = {"contender": name, "passes": passes, "cpu_seconds_per_fit": seconds}
            wrong = np.stack(errors) if passes == max(size.passes) else None
            if name == "SVRG":
                found, wrong, row["learning_rate"] = best_rates(found, wrong)
            row |= {"lam": own_lams.tolist(), "objective": spread(found)}
            if wrong is not None:
                row["test_error"] = spread(wrong)
            rows.append(row)
    return {"optimum": best.record(size.best_passes), "results": rows}


def best_rates(
    objectives: np.ndarray, errors: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None, list[float]]:
    """For each lambda the learning rate that ends lowest, chosen in hindsight."""
    shape = (len(objectives), len(SVRG_RATES), len(SVRG_LAMS))
    grid = np.where(np.isfinite(objectives), objectives, np.inf).reshape(shape)
    best = grid.mean(axis=0).argmin(axis=0)
    at = np.arange(len(SVRG_LAMS))
    wrong = None if errors is None else errors.reshape(shape)[:, best, at]
    return grid[:, best, at], wrong, [SVRG_RATES[i] for i in best]


# ---- batches -------------------------------------------------------------------------------


def study_batches(data: real_sets.DenseSet, size: Sizes) -> dict[str, Any]:
    """Rounds T until the last weights are within an excess of the optimum, against k."""
    best = optimum(data, size.best_passes)
    lower = best.at(size.batch_lam)
    solver = js.Pegasos(size.batch_lam).cast(np.float32)
    X, y = jnp.asarray(data.X), jnp.asarray(data.y)
    rows = []
    for k in size.batches:
        states, start = seeds.begun(solver, X, size.batch_seeds), 0
        rounds = np.full((len(size.excesses), size.batch_seeds), np.nan)
        for stop in checkpoints(size.most_visits // k):
            ends = (jnp.asarray(t, jnp.int32) for t in (start, stop))
            states, objective = seeds.advanced(solver, X, y, states, *ends, k=k)
            excess = np.asarray(objective, np.float64) / lower - 1
            for place, wanted in enumerate(size.excesses):
                rounds[place, np.isnan(rounds[place]) & (excess <= wanted)] = stop
            if np.isfinite(rounds).all():
                break
            start = stop
        rows += [
            {"k": k, "excess": wanted, "rounds": [None if np.isnan(t) else int(t) for t in own]}
            for wanted, own in zip(size.excesses, rounds, strict=True)
        ]
    return {
        "optimum": best.record(size.best_passes),
        "lam": size.batch_lam,
        "lower": lower,
        "results": rows,
    }


def checkpoints(most: int) -> Iterator[int]:
    """1, 2, ... growing by a fourth root of 2: when the objective is looked at."""
    last, at = 0, 1.0
    while last < most:
        if int(at) > last:
            last = min(int(at), most)
            yield last
        at *= 2**0.25


# ---- orders and projection -----------------------------------------------------------------


def excesses(
    solver: js.Pegasos, data: real_sets.DenseSet, lower: np.ndarray, visits: np.ndarray
) -> np.ndarray:
    """Relative excess of every seed, lambda and epoch, (seeds, L, epochs)."""
    own = solver.cast(np.float32).for_rankers(len(lower))
    X, y = jnp.asarray(data.X), jnp.asarray(data.y)
    found = seeds.objectives(own, X, y, jnp.asarray(visits))
    return np.asarray(found, np.float64) / lower[:, None] - 1


def study_orders(data: real_sets.DenseSet, size: Sizes) -> dict[str, Any]:
    """The excess after each epoch in four orders, over many seeds."""
    best, lams = optimum(data, size.best_passes), np.array(size.order_lams, np.float32)
    lower = np.array([best.at(lam) for lam in size.order_lams])
    rows = []
    for kind in KINDS:
        count = 1 if kind == "cyclic" else size.order_seeds
        visits = seeds.orders(kind, len(data.y), count, max(size.epochs))
        found = excesses(js.Pegasos(lams), data, lower, visits)
        for place, lam in enumerate(size.order_lams):
            own = found[:, place]
            told = spread(own) if count > 1 else {"mean": own[0].tolist(), "standard_error": None}
            rows.append({"order": kind, "seeds": count, "lam": lam, "excess": told})
    return {
        "optimum": best.record(size.best_passes),
        "epochs": list(size.epochs),
        "results": rows,
    }


def study_projection(data: real_sets.DenseSet, size: Sizes) -> dict[str, Any]:
    """The excess with and without the projection, seed by seed in the same order of rows."""
    best, lams = optimum(data, size.best_passes), np.array(size.projection_lams, np.float32)
    lower = np.array([best.at(lam) for lam in size.projection_lams])
    visits = seeds.orders("permutation", len(data.y), size.projection_seeds, max(size.epochs))
    began = time.perf_counter()
    plain, projected = (
        excesses(js.Pegasos(lams, project=project), data, lower, visits)
        for project in (False, True)
    )
    seconds = time.perf_counter() - began
    rows = []
    for place, lam in enumerate(size.projection_lams):
        own, other = plain[:, place], projected[:, place]
        rows.append(
            {
                "lam": lam,
                "unprojected": spread(own),
                "projected": spread(other),
                "projected_minus_unprojected": spread(other - own),
                "share_projected_lower": np.mean(other < own, axis=0).tolist(),
                "share_equal": np.mean(other == own, axis=0).tolist(),
            }
        )
    return {
        "optimum": best.record(size.best_passes),
        "epochs": list(size.epochs),
        "seeds": size.projection_seeds,
        "seconds_of_all_runs": seconds,
        "results": rows,
    }


STUDIES: dict[str, Callable[[real_sets.DenseSet, Sizes], dict[str, Any]]] = {
    "lambda": study_lambda,
    "batches": study_batches,
    "orders": study_orders,
    "projection": study_projection,
}


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("studies", nargs="*", metavar="study", help=f"of {', '.join(STUDIES)}")
    parser.add_argument("--tiny", action="store_true", help="generated rows, for tests")
    parser.add_argument("--out", type=Path, default=None, help="folder of the results")
    options = parser.parse_args(arguments)
    if unknown := set(options.studies) - set(STUDIES):
        parser.error(f"study must be one of {', '.join(STUDIES)}, got {', '.join(unknown)}")
    size = TINY if options.tiny else FULL
    records = {}
    for name in options.studies or STUDIES:
        record: dict[str, Any] = {
            "environment": recording.environment(),
            "study": name,
            "loss": "hinge",
            "sets": [],
        }
        for data in data_sets(options.tiny):
            began = time.process_time()
            found = STUDIES[name](data, size)
            seconds = time.process_time() - began
            n, d = data.X.shape
            shape = {"rows": n, "features": d, "test_rows": len(data.test_y)}
            record["sets"].append({"set": data.name, **shape, "cpu_seconds": seconds, **found})
            print(f"{name}, {data.name}: {seconds:.0f} s of CPU", flush=True)
        path = recording.save(f"pegasos_{name}", record, options.out)
        text = pegasos_report.written(record, path.parent)
        print(f"{text}\nwrote {path}", flush=True)
        records[name] = record
    return records


if __name__ == "__main__":
    main()
