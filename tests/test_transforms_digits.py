"""A small network on the digits: trained to be sparse, beside a pruned one."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

import jaxsolvers as js

HIDDEN, BATCH, STEPS, SEEDS = 64, 64, 2000, 3


def scores(params, X):
    hidden = jax.nn.relu(X @ params[0]["w"] + params[0]["b"])
    return hidden @ params[1]["w"] + params[1]["b"]


def train(tx, X, y):
    """A training per seed, scanned and mapped over the seeds; the params (SEEDS, ...)."""

    def loss(params, rows):
        own = scores(params, X[rows])
        return optax.softmax_cross_entropy_with_integer_labels(own, y[rows]).mean()

    @jax.jit
    @jax.vmap
    def run(seed):
        first, second, key = jax.random.split(jax.random.key(seed), 3)
        start = [
            {"w": jax.random.normal(key, shape, X.dtype) / shape[0] ** 0.5, "b": zeros}
            for key, shape, zeros in (
                (first, (64, HIDDEN), jnp.zeros(HIDDEN, X.dtype)),
                (second, (HIDDEN, 10), jnp.zeros(10, X.dtype)),
            )
        ]

        def step(carry, key):
            params, state = carry
            rows = jax.random.randint(key, (BATCH,), 0, len(y), jnp.int32)
            updates, state = tx.update(jax.grad(loss)(params, rows), state, params)
            return (optax.apply_updates(params, updates), state), None

        return jax.lax.scan(step, (start, tx.init(start)), jax.random.split(key, STEPS))[0][0]

    return jax.tree.map(np.asarray, run(jnp.arange(SEEDS, dtype=jnp.int32)))


def matrices(params):
    return np.concatenate([np.ravel(layer["w"]) for layer in params])


def pruned(params, share):
    """The params with that share of the matrices' entries, the smallest, set to 0."""
    limit = np.quantile(np.abs(matrices(params)), share)
    return [{"w": np.where(np.abs(p["w"]) <= limit, 0, p["w"]), "b": p["b"]} for p in params]


def test_a_sparse_network_beats_a_pruned_one_at_equal_zeros(capsys):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = (X[order] / 16).astype(np.float32), y[order].astype(np.int32)
    held, held_y = X[1300:], y[1300:]
    l1 = {"w": js.regularizers.L1(2e-3), "b": None}
    start = 0.1 + 1e-7  # as optax.adagrad: without a regularizer the two are the same
    ours = js.transforms.adagrad_fobos(0.3, regularizer=[l1, l1], initial_accumulator=start)
    clip = optax.clip_by_global_norm(1.0)

    def accuracy(params):
        return float(np.mean(np.argmax(scores(params, held), axis=1) == held_y))

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        runs = [
            train(optax.chain(clip, tx), jnp.asarray(X[:1300]), jnp.asarray(y[:1300]))
            for tx in (ours, optax.adagrad(0.3))
        ]
        rows = []
        for i in range(SEEDS):
            sparse, dense = (jax.tree.map(lambda leaf, i=i: leaf[i], run) for run in runs)
            zeros = float(np.mean(matrices(sparse) == 0))
            cut = pruned(dense, zeros)
            rows.append((zeros, accuracy(sparse), accuracy(cut), accuracy(dense)))
    zeros, sparse, cut, dense = np.array(rows).T
    with capsys.disabled():
        print(f"\nzeros {zeros}, accuracy {sparse}; pruned {cut}; optax.adagrad itself {dense}")
    assert np.all(sparse >= 0.95)
    assert np.all(zeros > 0.3)
    assert np.all(sparse > cut)
