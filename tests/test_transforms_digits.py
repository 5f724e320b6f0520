"""A small network on the digits: a sparse one beside a pruned one."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

import jaxsolvers as js

HIDDEN, BATCH, STEPS = 64, 64, 1500


def scores(params, X):
    hidden = jax.nn.relu(X @ params[0]["w"] + params[0]["b"])
    return hidden @ params[1]["w"] + params[1]["b"]


def train(tx, seed, X, y):
    """One scanned training from `seed`; the params."""

    def loss(params, rows):
        own = scores(params, X[rows])
        return optax.softmax_cross_entropy_with_integer_labels(own, y[rows]).mean()

    @jax.jit
    def run(key):
        first, second, key = jax.random.split(key, 3)
        params = [
            {"w": jax.random.normal(first, (64, HIDDEN)) / 8, "b": jnp.zeros(HIDDEN)},
            {"w": jax.random.normal(second, (HIDDEN, 10)) / HIDDEN**0.5, "b": jnp.zeros(10)},
        ]

        def step(carry, key):
            params, state = carry
            rows = jax.random.randint(key, (BATCH,), 0, len(y))
            updates, state = tx.update(jax.grad(loss)(params, rows), state, params)
            return (optax.apply_updates(params, updates), state), None

        keys = jax.random.split(key, STEPS)
        return jax.lax.scan(step, (params, tx.init(params)), keys)[0][0]

    return run(jax.random.key(seed))


def matrices(params):
    return np.concatenate([np.ravel(layer["w"]) for layer in params])


def pruned(params, share):
    """The params with that share of the matrices' entries, the smallest, set to 0."""
    limit = np.quantile(np.abs(matrices(params)), share)
    return [{"w": jnp.where(jnp.abs(p["w"]) <= limit, 0, p["w"]), "b": p["b"]} for p in params]


def test_a_sparse_network_beats_a_pruned_one_at_equal_zeros(capsys):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = jnp.asarray(X[order] / 16, jnp.float32), jnp.asarray(y[order], jnp.int32)
    X, y, held, held_y = X[:1300], y[:1300], X[1300:], y[1300:]
    l1 = {"w": js.regularizers.L1(1e-3), "b": None}
    ours = optax.chain(
        optax.clip_by_global_norm(1.0), js.transforms.adagrad_fobos(0.05, regularizer=[l1, l1])
    )
    theirs = optax.chain(optax.clip_by_global_norm(1.0), optax.adagrad(0.05))

    def accuracy(params):
        return float(jnp.mean(jnp.argmax(scores(params, held), axis=1) == held_y))

    sparse, dense, cut, zeros = [], [], [], []
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        for seed in range(3):
            params, peer = train(ours, seed, X, y), train(theirs, seed, X, y)
            zeros.append(float(np.mean(matrices(params) == 0)))
            sparse.append(accuracy(params))
            dense.append(accuracy(peer))
            cut.append(accuracy(pruned(peer, zeros[-1])))
    with capsys.disabled():
        print(f"\nzeros {zeros}\nsparse {sparse}\npruned {cut}\ndense {dense}")
    assert min(sparse) >= 0.95
    assert min(zeros) > 0.3
    assert np.mean(sparse) > np.mean(cut)
