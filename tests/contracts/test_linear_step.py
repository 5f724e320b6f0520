"""The contract of LinearStep.

The test's own solvers against NumPy loops, sweeps against rounds, kernels against features.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
from contracts.linear_solvers import ShrinkingSGD
from contracts.streams import FLOAT, D, N, batch, pick, problem, stack, weights, with_gram
from references import averages
from references import losses as reference_losses
from references.passive_aggressive import passive_aggressive
from references.sdca import sdca
from references.threefry import chance
from tolerances import assert_close

import jaxsolvers as js
from jaxsolvers.features import Dense, Gram
from jaxsolvers.losses.dual import DualLoss
from jaxsolvers.protocol import Batch, Info, Problem, Solver

SQUARED_HINGE = js.losses.SquaredHinge()
OWN = [
    js.SDCA(0.05),
    js.SDCA(0.05, SQUARED_HINGE),
    ShrinkingSGD(0.3, 0.4),
    ShrinkingSGD(0.9, 0.4, project=True),
    js.PassiveAggressive(0.7),
]


def sweeping() -> list[Solver]:
    """Every solver with a Gram sweep, one per choice, and around each of them a wrapper."""
    plain: dict[Any, Solver] = {}
    for solver in members.plain_solvers():
        if solver.gram:
            own = tuple((n, v) for n, s, v in solver.specs() if s.kind == "choice")
            plain.setdefault((type(solver), own), solver)
    inside = [*plain.values(), OWN[0], OWN[2], OWN[3]]
    wrappers = [members.wrapped(solver) for solver in inside]
    return [
        *plain.values(),
        *OWN,
        *(kinds[i % len(kinds)] for i, kinds in enumerate(wrappers) if kinds),
    ]


SWEEPING = sweeping()


@jax.jit
def rounds(solver: Solver, state: Any, rows: Batch) -> Any:
    """States, weights and Infos after each of the rounds on the leading axis of ``rows``."""

    def one_round(state: Any, rows: Batch) -> Any:
        state, info = solver.update(state, rows)
        return state, (state, solver.weights(state), info)

    return jax.lax.scan(one_round, state, rows)[1]


def one_by_one(solver: Solver, state: Any, block: Batch, k: int) -> Any:
    """State and Info of a block whose rounds are made by ``update``."""
    cut = jax.tree.map(lambda a: a.reshape(-1, k, *a.shape[1:]), block)
    states, _, infos = rounds(solver, state, cut)
    *sums, finite = (np.asarray(field) for field in infos)
    return pick(states, -1), Info(*(field.sum(dtype=FLOAT) for field in sums), finite.all())


def sweep(solver: Solver, state: Any, block: Batch, k: int) -> Any:
    return _sweep(solver, state, block, k)


_sweep = jax.jit(lambda solver, state, block, k: solver.sweep(state, block, k), static_argnums=3)


def untied(solver: Any, info: Info) -> Info:
    """The Info without what rounding decides: some solvers put rows exactly on the margin."""
    inner = getattr(solver, "solver", solver)
    tied = isinstance(inner, (js.SDCA, js.PassiveAggressive))
    return info._replace(violations=0 * info.violations) if tied else info


# ---- the test's own solvers against NumPy -------------------------------------------------------
class Stream:
    """N rows and an order that repeats rows within a block; row 5 is 0, some weigh 0."""

    def __init__(self, length: int = 48) -> None:
        rng = np.random.default_rng(21)
        self.X = np.asarray(0.8 * rng.normal(size=(N, D)), FLOAT).astype(float)
        self.X[5] = 0
        self.y = np.where(rng.random(N) < 0.5, -1.0, 1.0)
        self.s = rng.uniform(0.3, 2.0, N) * (rng.random(N) < 0.85)
        self.order = rng.integers(N // 2, size=length)
        self.order[4:8] = self.order[3]
        self.order[10] = 5

    def rows(self) -> Batch:
        """One row per round."""
        at = self.order[:, None]
        x, y, s = (jnp.asarray(a[at], FLOAT) for a in (self.X, self.y, self.s))
        return Batch(Dense(x), y, s, jnp.asarray(at, jnp.int32))

    def blocks(self, size: int) -> list[Batch]:
        """The same rows in blocks, ready for the fast sweep."""
        flat = jax.tree.map(lambda a: a[:, 0], self.rows())
        cut = jax.tree.map(lambda a: a.reshape(-1, size, *a.shape[1:]), flat)
        return [with_gram(pick(cut, i)) for i in range(len(self.order) // size)]

    def start(self, solver: Solver) -> Any:
        live = jnp.asarray(self.s.sum(), FLOAT)
        return solver.init(Problem((D,), N, live, jnp.ones((), FLOAT)), FLOAT)


def check_against(solver: Any, run: Any, fields: dict[str, Any]) -> None:
    """Rounds one by one after every round, Gram sweeps after every block."""
    stream, own = Stream(), solver.cast(FLOAT)
    states, w, info = rounds(own, stream.start(own), stream.rows())
    # (no violations: these solvers put rows exactly on the margin, where rounding decides)
    found = {"w": w, "dual": states.dual, "t": states.scalars.t}
    found |= {"loss": info.loss, "weight": info.weight}
    fields = fields | {"w": run.w, "t": run.t, "loss": run.loss, "weight": run.weight}
    for name, expected in fields.items():
        assert_close(found[name], np.array(expected), "reference", name=name)
    for size in (16, 24):
        state = stream.start(own)
        for i, block in enumerate(stream.blocks(size)):
            state, _ = sweep(own, state, block, 1)
            last = (i + 1) * size - 1
            assert_close(weights(own, state), run.w[last], "reference", name=f"block {i}")
            assert int(state.scalars.t) == run.t[last]
            if "dual" in fields:
                assert_close(state.dual, fields["dual"][last], "reference", name=f"block {i}")


DUAL = [loss for loss in members.losses() if isinstance(loss, DualLoss)]


@members.each(DUAL, "loss")
def test_sdca_equals_the_numpy_loop_with_repeated_rows_and_weights(loss: Any) -> None:
    data, (name, parameter) = Stream(), members.reference_loss(loss)
    run = sdca(data.X, data.y, data.order, lam=0.05, loss=name, parameter=parameter, weights=data.s)
    check_against(js.SDCA(0.05, loss), run, {"dual": run.dual})


def test_passive_aggressive_equals_the_numpy_loop() -> None:
    data = Stream()
    rounds = [[i] for i in data.order]
    run = passive_aggressive(data.X, data.y, rounds, C=0.7, variant="pa1", weights=data.s)
    check_against(js.PassiveAggressive(0.7), run, {})


def shrinking_sgd(solver: ShrinkingSGD, data: Stream) -> tuple[list[np.ndarray], list[float]]:
    """The weights and the bias after each round of one row, by the letter."""
    name, _ = members.reference_loss(solver.loss)
    w, bias = np.zeros(D), 0.0
    weights, biases = [], []
    for i in data.order:
        if data.s[i] > 0:
            z = w @ data.X[i] + bias
            step = -solver.eta * data.s[i] * reference_losses.slope(name, z, data.y[i])
            w = (1 - solver.eta * solver.lam) * w + step * data.X[i]
            bias += step
            if solver.project:
                w = w / max(1.0, np.linalg.norm(w))
        weights.append(w)
        biases.append(bias)
    return weights, biases


@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("kind", ["uniform", "polynomial", "random"])
def test_shrinking_steps_a_bias_and_their_average_equal_the_numpy_loop(
    project: bool, kind: str
) -> None:
    """A factor b other than 1 enters the vector, the average and the rows before it."""
    plain, data = ShrinkingSGD(0.9, 0.4, project=project), Stream()
    w, bias = shrinking_sgd(plain, data)
    assert not project or np.isclose(np.linalg.norm(w, axis=1), 1).sum() > 5
    counters = np.cumsum(data.s[data.order] > 0).tolist()
    args = (np.zeros(D), w, counters)
    mean = averages.uniform_average(*args, start=2)
    if kind == "polynomial":
        mean = averages.polynomial_average(*args, power=2.0, start=2)
    elif kind == "random":
        draw = partial(chance, np.zeros(2, np.uint32))
        mean = averages.random_iterate(*args, chance=draw, start=2)
    own = js.Averaged(plain, start=2, kind=kind, power=2.0).cast(FLOAT)
    states, found, _ = rounds(own, data.start(own), data.rows())
    assert_close(states.inner.vector, np.array(w), "reference", name="w")
    assert_close(states.inner.scalars.bias, np.array(bias), "reference", name="bias")
    assert_close(found, np.array(mean), "reference", name="mean")
    state = data.start(own)
    for i, block in enumerate(data.blocks(16)):
        state, _ = sweep(own, state, block, 1)
        last = 16 * (i + 1) - 1
        assert_close(state.inner.vector, w[last], "reference", name=f"w of block {i}")
        assert_close(weights(own, state), mean[last], "reference", name=f"mean of block {i}")


# ---- sweeps are their rounds --------------------------------------------------------------------
# stretches of 16, of several batches, of one batch larger than a stretch, of single rows
EACH = list({(type(s), *members.chosen(s)): s for s in SWEEPING}.values())  # of each choice one
CASES = [
    *((solver, 32, 1) for solver in SWEEPING),
    *((solver, 21, 7) for solver in EACH if not solver.single_row),
    *((ShrinkingSGD(0.9, 0.4, project=True), *shape) for shape in ((30, 3), (40, 20), (17, 1))),
    (js.Pegasos(0.3), 40, 20),
]


@pytest.mark.parametrize(
    ("solver", "size", "k"), CASES, ids=[f"{members.label(s)}-{n}-{k}" for s, n, k in CASES]
)
def test_a_gram_sweep_is_its_rounds(solver: Solver, size: int, k: int) -> None:
    own = solver.cast(FLOAT)
    state = own.init(problem(), FLOAT)
    for seed in (31, 32):
        block = batch(own, size, seed)
        block = block._replace(weight=block.weight.at[2 * k : 3 * k].set(0))
        slow, slow_info = one_by_one(own, state, block, k)
        fast, fast_info = sweep(own, state, with_gram(block), k)
        assert_close(fast, slow, "rewritten")
        assert_close(untied(own, fast_info), untied(own, slow_info), "rewritten")
        assert_close(weights(own, fast), weights(own, slow), "rewritten")
        state = slow


@members.each(SWEEPING, "solver")
def test_a_gram_sweep_without_live_rows_changes_nothing(solver: Solver) -> None:
    own = solver.cast(FLOAT)
    block = with_gram(batch(own, 32, 33))
    state, _ = sweep(own, own.init(problem(), FLOAT), block, 1)
    after, info = sweep(own, state, block._replace(weight=0 * block.weight), 1)
    jax.tree.map(np.testing.assert_array_equal, after, state)
    assert [float(field) for field in info] == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("mapped", ["all", "solver", "state", "target"])
@members.each([js.Pegasos(0.3, project=True), js.Averaged(js.SDCA(0.05))], "solver")
def test_a_gram_sweep_of_lanes_is_a_loop_over_rankers(solver: Solver, mapped: str) -> None:
    """Whatever differs between the rankers; what does not is not mapped at all."""
    solvers = [s.cast(FLOAT) for s in (solver, members.other_numbers(solver), solver)]
    own, block = solvers[0], with_gram(batch(solver, 32, 34))
    states = [
        sweep(s, s.init(problem(), FLOAT), batch(own, 8, i), 1)[0] for i, s in enumerate(solvers)
    ]
    targets = [batch(own, 32, 40 + i).target for i in range(3)]
    everything = (stack(solvers), stack(states), jnp.stack(targets))
    names = ["solver", "state", "target"]
    axes = [0 if mapped in (name, "all") else None for name in names]
    given = [a if axis == 0 else pick(a, 0) for a, axis in zip(everything, axes, strict=True)]

    def one(solver: Solver, state: Any, target: Any) -> Any:
        return solver.sweep(state, block._replace(target=target), 1)

    results = jax.jit(jax.vmap(one, in_axes=axes))(*given)
    for i in range(3):
        alone = [pick(a, i) if axis == 0 else a for a, axis in zip(given, axes, strict=True)]
        expected, info = sweep(alone[0], alone[1], block._replace(target=alone[2]), 1)
        assert_close(pick(results[0], i), expected, "rewritten")
        assert_close(untied(own, pick(results[1], i)), untied(own, info), "rewritten")


def test_a_gram_sweep_of_rankers_with_rows_of_their_own() -> None:
    own = js.Pegasos(0.3, project=True).cast(FLOAT)
    blocks = [with_gram(batch(own, 32, 50 + i)) for i in range(3)]
    state = own.init(problem(), FLOAT)
    results = jax.jit(jax.vmap(lambda block: own.sweep(state, block, 1)))(stack(blocks))
    for i, block in enumerate(blocks):
        assert_close(pick(results, i), sweep(own, state, block, 1), "rewritten")


def test_a_lost_ranker_in_a_gram_sweep_never_changes_its_neighbours() -> None:
    for solver in (js.Averaged(js.Pegasos(0.3, project=True)),):
        own, block = solver.cast(FLOAT), with_gram(batch(solver, 32, 60))
        state, _ = sweep(own, own.init(problem(), FLOAT), block, 1)
        states = stack([state] * 3)
        lanes = jax.jit(jax.vmap(lambda s, own=own, block=block: own.sweep(s, block, 1)))
        healthy = pick(lanes(states), np.array([0, 2]))
        for value in (np.nan, np.inf):
            vector = states.inner.vector.at[1, 0].set(value)
            sick = states._replace(inner=states.inner._replace(vector=vector))
            after, info = lanes(sick)
            assert info.finite.tolist() == [True, False, True]
            jax.tree.map(
                np.testing.assert_array_equal, pick((after, info), np.array([0, 2])), healthy
            )
            jax.tree.map(np.testing.assert_array_equal, pick(after, 1), pick(sick, 1))  # void


# ---- kernels ------------------------------------------------------------------------------------
X = jnp.asarray(np.random.default_rng(70).normal(size=(N, D)), FLOAT)


def of_features(block: Batch) -> Batch:
    return block._replace(x=Dense(X.at[block.index].get(mode="fill", fill_value=0)))


def of_examples(block: Batch) -> Batch:
    x = of_features(block).x
    return block._replace(x=Gram(x.values @ X.T, x.square_norms(), block.index))


def check_kernel(solver: Solver, size: int, k: int, fast: bool) -> None:
    """On a Gram layout V holds a coefficient per example; X' V is the vector of the features."""
    own = solver.cast(FLOAT)
    left, right = own.init(problem(), FLOAT), own.init(problem(d=N), FLOAT)
    for step in range(3):
        block = batch(own, size, 80 + step)
        block = block._replace(index=block.index.at[3].set(N), weight=block.weight.at[3].set(0))
        rows = of_examples(block)
        left, info = sweep(own, left, of_features(block), k)
        right, other = sweep(own, right, with_gram(rows) if fast else rows, k)
        assert_close(untied(own, other), untied(own, info), "rewritten")
        assert_close(weights(own, right) @ X, weights(own, left), "rewritten")
        inner, other = (getattr(state, "inner", state) for state in (left, right))
        assert_close(other._replace(vector=()), inner._replace(vector=()), "rewritten")


@members.each(EACH, "solver")
def test_a_linear_kernel_sweeps_like_the_features(solver: Solver) -> None:
    check_kernel(solver, 32, 1, fast=True)


@members.each([s for s in SWEEPING if not hasattr(s, "solver")], "solver")
def test_a_linear_kernel_is_the_features_round_by_round(solver: Solver) -> None:
    size, k = (32, 1) if solver.single_row else (21, 7)
    check_kernel(solver, size, k, fast=False)
