"""The orders in which rows are visited: drawn by ourselves, from (key, epoch, n) alone."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from jaxsolvers.engine.order import epoch_order, key_words, raw_bits

RANDOM = pytest.mark.parametrize("order", ["permutation", "uniform"])


def orders(order: str, n: int, epochs: int, key: int = 1) -> np.ndarray:
    """(epochs, n) positions."""
    return np.stack([epoch_order(order, n, key_words(key), epoch) for epoch in range(epochs)])


@pytest.mark.parametrize("n", [1, 2, 5, 1000])
def test_a_permutation_visits_every_row_once_per_epoch(n):
    for rows in orders("permutation", n, 5):
        np.testing.assert_array_equal(np.sort(rows), np.arange(n))


def test_file_order_is_cyclic():
    assert epoch_order("cyclic", 10, key_words(0), 3) is None


def test_a_permutation_puts_any_row_anywhere():
    n, epochs = 10, 2000
    drawn = orders("permutation", n, epochs)
    places = np.zeros((n, n))
    for place in range(n):
        places[place] = np.bincount(drawn[:, place], minlength=n)
    # Each count is binomial(2000, 1/10): mean 200, deviation 13.4.
    assert np.abs(places - epochs / n).max() < 5 * 13.5
    chi_square = ((places - epochs / n) ** 2 / (epochs / n)).sum()
    assert 81 - 5 * 12.8 < chi_square < 81 + 5 * 12.8  # 81 degrees of freedom


def test_uniform_draws_are_independent_and_cover_the_rows_evenly():
    n = 20_000
    first, second = orders("uniform", n, 2)
    assert first.min() >= 0 and first.max() < n and len(first) == n
    never = 1 - len(np.unique(first)) / n  # exp(-1) for independent draws
    np.testing.assert_allclose(never, np.exp(-1), atol=0.01)
    counts = np.bincount(first // 200, minlength=100)  # 100 bins of mean 200
    assert 99 - 5 * 14.1 < ((counts - 200) ** 2 / 200).sum() < 99 + 5 * 14.1
    for a, b in ((first, second), (first[:-1], first[1:])):
        assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(n)


@pytest.mark.parametrize("n", [1, 3, 2**20 + 1])
def test_uniform_draws_stay_in_range(n):
    rows = epoch_order("uniform", n, key_words(0), 0)
    assert rows.min() >= 0 and rows.max() < n and rows.dtype == np.int64


@RANDOM
def test_same_key_same_order_other_key_or_epoch_other_order(order):
    np.testing.assert_array_equal(orders(order, 50, 5), orders(order, 50, 5))
    distinct = {tuple(row) for key in range(5) for row in orders(order, 50, 5, key)}
    assert len(distinct) == 25


@RANDOM
def test_epochs_are_drawn_in_any_sequence(order):
    words, expected = key_words(1), orders(order, 50, 5)
    for epoch in (4, 0, 3):
        np.testing.assert_array_equal(epoch_order(order, 50, words, epoch), expected[epoch])


@RANDOM
@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_the_default_generator_of_jax_does_not_matter(order, impl):
    expected = orders(order, 20, 3)
    with jax.default_prng_impl(impl):
        np.testing.assert_array_equal(orders(order, 20, 3), expected)


FROZEN = {
    ("permutation", 0): [8, 4, 1, 6, 3, 2, 7, 5, 9, 0],
    ("permutation", 1): [0, 5, 8, 3, 1, 9, 6, 4, 7, 2],
    ("uniform", 0): [8, 2, 4, 4, 0, 6, 2, 6, 0, 7],
    ("uniform", 1): [1, 5, 9, 5, 9, 2, 7, 9, 2, 7],
}


@pytest.mark.parametrize(("order", "epoch"), FROZEN)
def test_the_stream_is_frozen(order, epoch):
    # A change here changes every published run.
    found = epoch_order(order, 10, key_words(7), epoch)
    assert found.tolist() == FROZEN[order, epoch]


def test_the_raw_draws_are_frozen():
    words = key_words(7)
    assert raw_bits(words, 0, 2).tolist() == [16086915834549238692, 5448529601018347655]
    assert raw_bits(words, 2, 1).tolist() == [16719489708599865442]
    assert raw_bits(words, 0, 1, stream=1).tolist() == [15357568266549655283]
    wide = epoch_order("permutation", 10, np.array([1, 2, 3, 4], np.uint32), 5)
    assert wide.tolist() == [3, 5, 9, 7, 6, 0, 4, 8, 2, 1]


def test_words_of_a_key():
    assert key_words(0).tolist() == [0, 0]
    assert key_words(2**40 + 5).tolist() == [256, 5]
    assert key_words(jax.random.key(2**31)).tolist() == key_words(2**31).tolist()
    assert key_words(jax.random.PRNGKey(9)).tolist() == [0, 9]
    given = np.array([1, 2], np.uint32)
    words = key_words(given)
    words[0] = 7
    assert given.tolist() == [1, 2]  # the user's key is copied
