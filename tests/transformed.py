"""Runs of transformations that the tests of them share."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxsolvers as js


class Layer(NamedTuple):
    kernel: Any
    bias: Any


L1 = js.regularizers.L1(0.05)
NET = js.regularizers.ElasticNet(0.03, 0.2)


def decaying(count: Any) -> Any:
    """A schedule that counts from 0; exact under strict promotion."""
    return 0.5 / (1.0 + jnp.asarray(count).astype(jnp.float32))


TRANSFORMS = {
    "adagrad_rda": js.transforms.adagrad_rda(0.3, 0.1, L1),
    "adagrad_rda, schedule": js.transforms.adagrad_rda(decaying, compensated=True),
    "adagrad_fobos": js.transforms.adagrad_fobos(0.3, 0.1, L1, compensated=True),
    "adagrad_fobos, master": js.transforms.adagrad_fobos(decaying, master=True),
    "rda": js.transforms.rda(0.3, L1),
    "fobos": js.transforms.fobos(decaying, L1),
    "fobos, master": js.transforms.fobos(0.3, master=True),
    "full_adagrad": js.transforms.full_adagrad(0.3, 0.1, block_size=4, compensated=True),
    "full_adagrad, rda": js.transforms.full_adagrad(decaying, form="rda", refresh=2),
    "pegasos": js.transforms.pegasos(0.2, project=True),
    "pegasos, master": js.transforms.pegasos(0.2, t0=3, master=True),
}


def tree(seed: int = 0) -> Any:
    """A nested tree: a matrix, a scalar, an empty leaf, low precision, containers, a None."""
    draw = np.random.default_rng(seed).normal
    return {
        "layers": (
            Layer(jnp.asarray(draw(size=(3, 2)), jnp.float32), jnp.asarray(draw(), jnp.float32)),
            [jnp.asarray(draw(size=4), jnp.bfloat16), None],
        ),
        "empty": jnp.zeros((0,), jnp.float32),
        "half": jnp.asarray(draw(size=(2,)), jnp.float16),
        "none": {},
    }


def types(values: Any) -> Any:
    """Shape, dtype and weak type of every leaf, and the structure."""
    described = jax.tree.map(lambda x: (x.shape, x.dtype.name, x.weak_type), values)
    return jax.tree.structure(values), jax.tree.leaves(described)


def scan(tx: Any, params: Any, gradients: Any) -> Any:
    """The params after each of the rounds, stacked, as one jitted scan; gradients (T, ...)."""

    @jax.jit
    def run(params: Any, gradients: Any) -> Any:
        def step(carry: Any, gradient: Any) -> Any:
            params, state = carry
            updates, state = tx.update(gradient, state, params)
            params = optax.apply_updates(params, updates)
            return (params, state), params

        return jax.lax.scan(step, (params, tx.init(params)), gradients)[1]

    return run(params, gradients)


def stacked(rounds: int, seed: int = 1) -> Any:
    """Gradients for `rounds` rounds of :func:`tree`."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *[tree(seed + i) for i in range(rounds)])
