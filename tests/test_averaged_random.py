"""A random iterate: which one is held, that each is as likely, and that it is each ranker's own."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh
from references import averages, pegasos
from references.threefry import chance, threefry
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers.engine.order import key_words, ranker_seeds
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem
from jaxsolvers.solvers import averaged

F = jnp.result_type(float)
RNG = np.random.default_rng(2)
N, D, K = 40, 4, 21
X = RNG.normal(size=(N, D)).astype(F)
LABELS = RNG.permutation(np.arange(N) % K)
RANDOM = js.Averaged(js.Pegasos(0.1), start=5, kind="random")


def test_the_draws_are_threefry() -> None:
    # The known answers of the generator's authors, for zeros and for ones.
    assert threefry((0, 0), (0, 0)) == (0x6B200159, 0x99BA4EFE)
    assert threefry((2**32 - 1,) * 2, (2**32 - 1,) * 2) == (0x1CB996FC, 0xBB002BE7)
    for seed in np.array([[0, 0], [3, 2**32 - 5], [2**31, 1]], np.uint32):
        for t in (0, 1, 77, 2**31 - 2):
            ours = averaged.chance(jnp.asarray(seed.view(np.int32)), jnp.int32(t), F)
            np.testing.assert_allclose(ours, chance(seed, t), rtol=1e-6)


@pytest.mark.parametrize("batch_size", [1, 4])
def test_every_ranker_holds_the_iterate_of_the_plain_loop(batch_size: int) -> None:
    """With rows of weight 0, and as one tile sweeps them."""
    weight = RNG.uniform(0.5, 2, N) * (RNG.random(N) < 0.8)
    fit = js.fit_one_vs_rest(
        RANDOM, X, LABELS, epochs=2, order="cyclic", batch_size=batch_size, key=3,
        sample_weight=weight,
    )  # fmt: skip
    seeds = ranker_seeds(key_words(3), K)
    rounds = [np.arange(N)[i : i + batch_size] for i in range(0, N, batch_size)] * 2
    for k in range(K):
        y = np.where(np.equal(LABELS, k), 1.0, -1.0)
        run = pegasos.pegasos(
            X.astype(float), y, rounds, lam=0.1, weights=weight / weight[weight > 0].mean()
        )
        held = averages.random_iterate(
            np.zeros(D), run.w, run.t, chance=partial(chance, seeds[k]), start=5
        )
        assert_close(fit.model.coef[k], held[-1], "run", name=f"ranker {k}")


@partial(jax.jit, static_argnames="k")
def index_held(seeds: Any, *, k: int) -> Any:
    """Which of 24 rounds each of many rankers holds: w_t = t - 1 here."""
    solver = js.Averaged(js.SGD(1e-30, 1.0, js.losses.Absolute()), start=4, kind="random").cast(F)
    ones = jnp.ones(24, F)
    rows = Batch(Dense(ones[:, None]), 1000 * ones, ones, jnp.arange(24, dtype=jnp.int32))

    def one(seed: Any) -> Any:
        state = solver.init(Problem((1,), 24, seed=seed), F)
        return solver.weights(solver.sweep(state, rows, k)[0])[0]

    return jax.vmap(one)(seeds)


@pytest.mark.parametrize("k", [1, 2])
def test_every_round_is_held_as_often(k: int) -> None:
    seeds = ranker_seeds(key_words(0), 8000)
    held = np.asarray(index_held(jnp.asarray(seeds), k=k))
    assert (held == np.round(held)).all() and held.min() == 4 and held.max() == 24 // k - 1
    count = np.bincount(held.astype(int) - 4)
    expected = len(seeds) / len(count)
    freedom = len(count) - 1
    assert abs(((count - expected) ** 2 / expected).sum() - freedom) < 4 * np.sqrt(2 * freedom)


def test_what_is_held_depends_on_the_key_the_ranker_and_the_round_alone() -> None:
    whole = js.fit_one_vs_rest(RANDOM, X, LABELS, epochs=3, key=1)
    part = js.fit_one_vs_rest(RANDOM, X, LABELS, epochs=2, key=1)
    part = js.fit_one_vs_rest(RANDOM, X, LABELS, state=part.state)
    assert_bitwise(np.asarray(part.model.coef), np.asarray(whole.model.coef))
    mesh = Mesh(np.array(jax.devices()[:2]), ("rankers",))
    for place in ({"mesh": mesh}, {"chunk_size": 8}):
        fit = js.fit_one_vs_rest(RANDOM, X, LABELS, epochs=3, key=1, **place)
        assert_bitwise(np.asarray(fit.model.coef), np.asarray(whole.model.coef))
    blocks = js.fit_one_vs_rest(RANDOM, X, LABELS, epochs=3, key=1, block_size=8)
    assert_close(blocks.model.coef, whole.model.coef, "run")
    few = js.fit_one_vs_rest(RANDOM, X[LABELS < 9], LABELS[LABELS < 9], epochs=3, key=1)
    seeds = few.state.solver_state[0].counts.seed[:9]
    np.testing.assert_array_equal(seeds, whole.state.solver_state[0].counts.seed[:9])
    same = js.fit_one_vs_rest(RANDOM, X, np.zeros(N, int), classes=range(4), key=1)
    assert (
        len({tuple(w) for w in np.asarray(same.model.coef)[1:].tolist()}) == 3
    )  # each draws itself
    other = js.fit_one_vs_rest(RANDOM, X, LABELS, epochs=3, key=2, order="cyclic")
    cyclic = js.fit_one_vs_rest(RANDOM, X, LABELS, epochs=3, key=1, order="cyclic")
    assert np.abs(np.asarray(other.model.coef) - np.asarray(cyclic.model.coef)).max() > 0
