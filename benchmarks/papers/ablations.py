"""What the AdaGrad paper left out: the root, the sum, the counts, delta, passes, the full matrix.

    python -m benchmarks.papers.ablations          on kdd_census, results/ablations.json
    python -m benchmarks.papers.ablations --tiny   seconds, on generated rows, for the tests

Hinge loss, rows one at a time in file order. Each variant takes the learning rate that errs least
on the last quarter of the training rows after one pass over the others; then it passes over all
of them. Every ablation is a solver written here: one file is enough for one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxsolvers as js
from benchmarks import real_sets, recording
from jaxsolvers.losses import Hinge
from jaxsolvers.members import Array, Number, member, number, part
from jaxsolvers.protocol import Batch, Info, Loss, Problem, Regularizer, keep_where
from jaxsolvers.regularizers import NoRegularizer
from jaxsolvers.solvers.first_order import FirstOrder, feature_axes

RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
FULL_RATES = (0.03, 0.1)  # of full blocks, whose roots take most of the time
DELTAS = (0.0, 0.01, 0.1, 1.0)
PASSES = (1, 3, 10)
FULL_PASSES = (1,)


class History(NamedTuple):
    """The state of the ablations."""

    t: Any  # () int32
    current: Any  # (d,) w
    history: Any  # (d,) what the step sizes are made of

    @property
    def axes(self) -> History:
        return feature_axes(self, "t")


@member
class NoRoot(FirstOrder):
    """Steps eta/(delta + sum g^2): the metric without its square root."""

    learning_rate: Number = number(above=0)
    delta: Number = number(default=1.0, minimum=0)
    loss: Any = part(Loss, default=Hinge())
    regularizer: Any = part(Regularizer, default=NoRegularizer())

    def init(self, problem: Problem, dtype: Any) -> History:
        zero = [jnp.zeros(problem.shape, dtype) for _ in range(2)]
        return History(jnp.zeros((), jnp.int32), *zero)

    def absorb(
        self, state: History, gradient: Array, square: Array | None = None, rounds: Number = 1
    ) -> History:
        history = state.history + gradient * gradient
        metric = self.delta + history
        linear = metric * state.current - self.learning_rate * gradient
        moved = self.regularizer.solve(linear, metric, self.learning_rate)
        current = jnp.where(metric > 0, moved, state.current)
        return keep_where(rounds > 0, History(state.t + rounds, current, history), state)

    def weights(self, state: History) -> Array:
        return state.current


@member
class ExponentialAverage(FirstOrder):
    """Steps eta/(sqrt(t) sqrt(A)), A <- decay A + (1 - decay) g^2: old gradients are forgotten."""

    learning_rate: Number = number(above=0)
    decay: Number = number(default=0.999, minimum=0, below=1)
    loss: Any = part(Loss, default=Hinge())
    regularizer: Any = part(Regularizer, default=NoRegularizer())
    lazy = False  # every round moves every average

    def init(self, problem: Problem, dtype: Any) -> History:
        zero = [jnp.zeros(problem.shape, dtype) for _ in range(2)]
        return History(jnp.zeros((), jnp.int32), *zero)

    def absorb(
        self, state: History, gradient: Array, square: Array | None = None, rounds: Number = 1
    ) -> History:
        t = state.t + rounds
        history = self.decay * state.history + (1 - self.decay) * gradient * gradient
        metric = jnp.sqrt(jnp.maximum(t, 1).astype(gradient.dtype) * history)
        linear = metric * state.current - self.learning_rate * gradient
        moved = self.regularizer.solve(linear, metric, self.learning_rate)
        current = jnp.where(metric > 0, moved, state.current)
        return keep_where(rounds > 0, History(t, current, history), state)

    def weights(self, state: History) -> Array:
        return state.current


@member
class SeenCount(FirstOrder):
    """Steps eta/sqrt(n_i), n_i the sum of x_i^2 so far: of binary features, how often they came."""

    learning_rate: Number = number(above=0)
    loss: Any = part(Loss, default=Hinge())
    regularizer: Any = part(Regularizer, default=NoRegularizer())

    def init(self, problem: Problem, dtype: Any) -> History:
        zero = [jnp.zeros(problem.shape, dtype) for _ in range(2)]
        return History(jnp.zeros((), jnp.int32), *zero)

    def update(self, state: History, batch: Batch) -> tuple[History, Info]:
        seen = batch.x.pull_back_squares((batch.weight > 0).astype(batch.weight.dtype))
        return super().update(state._replace(history=state.history + seen), batch)

    def absorb(
        self, state: History, gradient: Array, square: Array | None = None, rounds: Number = 1
    ) -> History:
        metric = jnp.sqrt(state.history)
        linear = metric * state.current - self.learning_rate * gradient
        moved = self.regularizer.solve(linear, metric, self.learning_rate)
        current = jnp.where(metric > 0, moved, state.current)
        return keep_where(rounds > 0, state._replace(t=state.t + rounds, current=current), state)

    def weights(self, state: History) -> Array:
        return state.current


def variants(block: int, refresh: int) -> Iterator[tuple[str, Any, int]]:
    """(name, learning rate -> solver, rows per round)."""
    for delta in DELTAS:
        yield f"AdaGrad-FOBOS, delta {delta:g}", lambda r, d=delta: js.AdaGradFOBOS(r, d), 1
    yield "AdaGrad-RDA", lambda r: js.AdaGradRDA(r), 1
    yield "FOBOS: no metric at all", lambda r: js.FOBOS(r), 1
    yield "no root", lambda r: NoRoot(r), 1
    yield "exponential average", lambda r: ExponentialAverage(r), 1
    yield "times the feature was seen", lambda r: SeenCount(r), 1
    yield "batches of 64, diagonal", lambda r: js.AdaGradFOBOS(r), 64
    for size in (block // 4, block):
        full = f"batches of 64, blocks of {size}, root every {refresh} rows"
        yield full, lambda r, b=size: js.FullAdaGradFOBOS(r, block_size=b, refresh=refresh), 64


class Split(NamedTuple):
    """Rows and labels for training and for a test."""

    X: Any
    y: np.ndarray
    test_X: Any
    test_y: np.ndarray


def census() -> Split:
    """kdd_census, each value of each column a binary feature: 3,998 of them, 39 a row."""
    import scipy.sparse

    where = real_sets.folder()
    assert where is not None, "the data folder is absent"
    data = np.load(where / "kdd_census" / "census.npz")
    sizes = np.maximum(data["x_train"].max(axis=0), data["x_test"].max(axis=0)).astype(int) + 1
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def one_hot(codes: np.ndarray) -> Any:
        n, columns = codes.shape
        at = (codes + first).astype(np.int32).ravel()
        ends = np.arange(0, n * columns + 1, columns)
        values = np.ones(n * columns, np.float32)
        return scipy.sparse.csr_array((values, at, ends), shape=(n, int(sizes.sum())))

    return Split(one_hot(data["x_train"]), data["y_train"], one_hot(data["x_test"]), data["y_test"])


def generated(n: int = 400, d: int = 60) -> Split:
    """Rows of text with two labels."""
    X, y = js.data.sparse_text(2 * n, d, 2, nnz=8)
    return Split(X[:n], y[:n], X[n:], y[n:])


def measured(fit: js.Fit, X: Any, y: np.ndarray) -> dict[str, float]:
    """Error and average precision of the positive class."""
    scores = fit.model.decision_function(X)
    positive = y == fit.model.classes[1]
    return {
        "error": float(np.mean((np.asarray(scores) > 0) != positive)),
        "average_precision": float(js.metrics.average_precision(positive, scores)),
    }


def best_rate(make: Any, data: Split, k: int, rates: tuple[float, ...]) -> float:
    """The learning rate that errs least on the last quarter of the training rows."""
    cut = 3 * len(data.y) // 4
    found = {}
    for rate in rates:
        try:
            fit = train(make(rate), data.X[:cut], data.y[:cut], k, 1)
        except FloatingPointError:
            continue
        found[rate] = measured(fit, data.X[cut:], data.y[cut:])["error"]
    return min(found, key=lambda rate: (found[rate], rate))


def train(solver: Any, X: Any, y: np.ndarray, k: int, passes: int) -> js.Fit:
    return js.fit(solver, X, y, epochs=passes, batch_size=k, order="cyclic", intercept="column")


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tiny", action="store_true", help="generated rows, for tests")
    parser.add_argument("--out", type=Path, default=None, help="folder of the results")
    options = parser.parse_args(arguments)
    tiny = options.tiny
    data, (block, refresh) = (generated(), (16, 100)) if tiny else (census(), (256, 2000))
    rates, most = (RATES[2:4], PASSES[:2]) if tiny else (RATES, PASSES)
    record: dict[str, Any] = {
        "environment": recording.environment(),
        "set": "generated" if tiny else "kdd_census",
        "rows": len(data.y),
        "features": data.X.shape[1],
        "variants": [],
    }
    for name, make, k in variants(block, refresh):
        began = time.perf_counter()
        full = isinstance(make(1.0), js.FullAdaGradFOBOS)
        rate = best_rate(make, data, k, FULL_RATES if full and not tiny else rates)
        row: dict[str, Any] = {"name": name, "learning_rate": rate, "rows_per_round": k}
        own = FULL_PASSES if full and not tiny else most
        for passes in own:
            fit = train(make(rate), data.X, data.y, k, passes)
            jax.block_until_ready(fit.model.coef)
            row[f"passes_{passes}"] = measured(fit, data.test_X, data.test_y)
            row["seconds_per_pass"] = float(np.median(fit.history["seconds"]))
        row["progressive_error"] = float(fit.history["mistakes"][0]) / len(data.y)
        row["seconds"] = time.perf_counter() - began
        record["variants"].append(row)
        shown = ", ".join(
            f"{passes} passes {row[f'passes_{passes}']['error']:.4f} "
            f"({row[f'passes_{passes}']['average_precision']:.3f})"
            for passes in own
        )
        print(
            f"{name}: rate {rate:g}, online error {row['progressive_error']:.4f}, test error (AP) "
            f"{shown}, {row['seconds_per_pass']:.1f} s a pass",
            flush=True,
        )
    path = recording.save("ablations", record, options.out)
    print(f"wrote {path}")
    return record


if __name__ == "__main__":
    main()
