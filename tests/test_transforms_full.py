"""full_adagrad: the solver on raveled leaves, its blocks, and injection."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tolerances import assert_close
from transformed import NET, decaying, scan, types

import jaxsolvers as js
from jaxsolvers.protocol import Problem

DRAW = np.random.default_rng(12).normal
PARAMS = {"a": jnp.asarray(DRAW(size=(3, 2)), jnp.float32), "b": jnp.ones((), jnp.float32)}
GRADIENTS = {k: jnp.asarray(DRAW(size=(8, *v.shape)), jnp.float32) for k, v in PARAMS.items()}
SOLVERS = {"fobos": js.FullAdaGradFOBOS, "rda": js.FullAdaGradRDA}
DIAGONAL = {"fobos": js.transforms.adagrad_fobos, "rda": js.transforms.adagrad_rda}
full = js.transforms.full_adagrad


@pytest.mark.parametrize("form", SOLVERS)
@pytest.mark.parametrize(
    "arguments",
    [{}, {"block_size": 4, "refresh": 2}, {"regularizer": js.regularizers.SquaredL2(0.3)}],
    ids=["plain", "blocks", "squared l2"],
)
def test_every_leaf_is_run_by_the_solver_on_its_entries(form, arguments):
    ours = scan(full(decaying, 0.1, form=form, **arguments), PARAMS, GRADIENTS)
    solver = SOLVERS[form](lambda t: decaying(t - 1), 0.1, **arguments).cast(np.float32)
    for key, leaf in PARAMS.items():
        start = leaf.reshape(-1)

        @jax.jit
        def run(start, gradients):
            def step(state, gradient):
                state = solver.absorb(state, gradient)
                return state, solver.weights(state)

            state = solver.init(Problem(start.shape, centre=start), start.dtype)
            return jax.lax.scan(step, state, gradients)[1]

        theirs = run(start, GRADIENTS[key].reshape(8, -1))
        assert_close(ours[key].reshape(8, -1), theirs, "reference", name=key)


@pytest.mark.parametrize("form", SOLVERS)
def test_blocks_of_one_entry_are_the_diagonal_metric(form):
    ours = scan(full(0.3, 0.1, NET, form=form, block_size=1), PARAMS, GRADIENTS)
    assert_close(ours, scan(DIAGONAL[form](0.3, 0.1, NET), PARAMS, GRADIENTS), "reference")


def test_injection_leaves_block_sizes_alone_case_008():
    params = jnp.ones((4, 4))
    arguments = {"block_size": 4, "refresh": 2, "trips": 5}
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        tx = optax.inject_hyperparams(full)(learning_rate=0.1, **arguments)
        state = jax.jit(tx.init)(params)
        updates, after = jax.jit(tx.update)(params, state, params)
    assert types(after) == types(state)
    assert state.inner_state.held.accumulator.shape == (4, 4, 4)
    plain = full(0.1, **arguments)
    assert_close(updates, plain.update(params, plain.init(params), params)[0], "reference")


def test_leaves_of_any_shape_and_no_entries_have_a_state():
    params = {"empty": jnp.zeros((0, 3)), "scalar": jnp.ones(())}
    for form in SOLVERS:
        tx = full(0.1, form=form)
        updates, state = tx.update(params, tx.init(params), params)
        assert updates["empty"].shape == (0, 3) and float(updates["scalar"]) == pytest.approx(-0.1)
        assert types(state) == types(tx.init(params))
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), params)
    assert types(full(0.1).init(shapes)) == types(full(0.1).init(params))
    for tx in (full(0.1, form="rda"), full(0.1, master=True)):
        with pytest.raises(ValueError, match="full_adagrad keeps the values of params"):
            tx.init(shapes)


@pytest.mark.parametrize(
    ("error", "words", "arguments"),
    [
        (TypeError, "takes block_size, refresh, trips, got blocksize", {"blocksize": 4}),
        (ValueError, "block_size must be an integer >= 1", {"block_size": 0}),
        (ValueError, "refresh must be", {"refresh": 1.5}),
        (ValueError, "form must be one of 'fobos', 'rda', got 'mirror'", {"form": "mirror"}),
        (ValueError, "master must be False with form 'rda'", {"form": "rda", "master": True}),
    ],
)
def test_bad_arguments_are_named(error, words, arguments):
    with pytest.raises(error, match=words):
        full(0.1, **arguments)
