"""Keys, orders and where randomness must not come from."""

from __future__ import annotations

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers.engine.order import epoch_order, key_words, raw_bits

F = jnp.result_type(float)
RNG = np.random.default_rng(115)
X = RNG.normal(size=(10, 3)).astype(F)
Y = np.arange(10) % 4
RANDOM_ORDERS = pytest.mark.parametrize("order", ["permutation", "uniform"])


@RANDOM_ORDERS
def test_no_two_draws_of_a_run_are_the_same_case_115(order):
    words = key_words(0)
    epochs = [tuple(epoch_order(order, 10, words, epoch)) for epoch in range(50)]
    assert len(set(epochs)) == 50
    again = [tuple(epoch_order(order, 10, key_words(0), epoch)) for epoch in range(50)]
    assert again == epochs
    # Other choices of the same run draw from streams of their own.
    streams = [tuple(raw_bits(words, epoch, 10, s)) for epoch in range(3) for s in range(3)]
    assert len(set(streams)) == 9


def test_the_key_decides_the_order_case_115():
    keys = (0, 1, 2**32, 2**63, np.array([1, 2, 3, 4], np.uint32), np.array([1, 2], np.uint32))
    orders = [tuple(epoch_order("permutation", 50, key_words(key), 0)) for key in keys]
    assert len(set(orders)) == len(keys)
    first, second = (js.fit(js.Pegasos(0.1), X, Y == 0, key=key) for key in (0, 1))
    assert not np.array_equal(first.model.coef, second.model.coef)


def test_rankers_together_and_alone_see_one_order_whatever_the_generator_case_116():
    solver = js.AdaGradRDA(0.1)
    expected = js.fit_one_vs_rest(solver, X, Y, key=5).model.coef
    with jax.default_prng_impl("rbg"):
        assert_bitwise(js.fit_one_vs_rest(solver, X, Y, key=5).model.coef, expected)
        for k in range(4):
            alone = js.fit(solver, X, np.equal(Y, k), key=5).model.coef
            assert_close(alone, expected[k], "rewritten")
        wide = js.fit_one_vs_rest(solver, X, Y, key=jax.random.key(5)).model.coef
    assert np.isfinite(wide).all()


@pytest.mark.parametrize(
    "solver", [js.Pegasos(0.1), js.AdaGradRDA(0.1), js.AdaGradFOBOS(0.1)],
    ids=lambda solver: type(solver).__name__,
)  # fmt: skip
@RANDOM_ORDERS
def test_global_generators_neither_matter_nor_move_case_118(solver, order):
    coefs = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        before = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
        fit = js.fit_one_vs_rest(solver, X, Y, epochs=2, order=order, key=0)
        coefs.append(fit.model.coef)
        np.testing.assert_array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
        assert random.getstate() == before[1]
    assert_bitwise(*coefs)


KEYS = {
    "int": (7, 7),
    "numpy int": (np.int64(7), 7),
    "jax key": (jax.random.key(7), 7),
    "old jax key": (jax.random.PRNGKey(7), 7),
    "numpy words": (np.array([0, 7], np.uint32), 7),
    "wide jax key": (jax.random.key(7, impl="rbg"), None),
    "largest": (2**64 - 1, None),
}


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_gives_the_same_run_each_time_case_119(kind):
    key, same = KEYS[kind]
    coefs = [js.fit(js.Pegasos(0.1), X, Y == 0, epochs=2, key=key).model.coef for _ in range(2)]
    assert_bitwise(*coefs)
    if same is not None:
        number = js.fit(js.Pegasos(0.1), X, Y == 0, epochs=2, key=same).model.coef
        assert_bitwise(coefs[0], number)


def test_a_generator_is_no_key_and_is_not_consumed_case_119():
    for generator in (np.random.RandomState(0), np.random.default_rng(0)):
        with pytest.raises(ValueError, match="key must be an integer"):
            js.fit(js.Pegasos(0.1), X, Y == 0, key=generator)
    assert np.random.default_rng(0).random() == generator.random()
