"""Transformations: the contract of optax; every leaf as its solver and the reference run it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from references import adagrad as reference
from references import pegasos as reference_pegasos
from tolerances import assert_close
from transformed import L1, NET, TRANSFORMS, decaying, scan, stacked, tree, types

import jaxsolvers as js
from jaxsolvers.protocol import Problem
from jaxsolvers.transforms.leafwise import following

ROUNDS = 12


# ---- the contract ----------------------------------------------------------------------------
@pytest.mark.parametrize("name", TRANSFORMS)
def test_init_and_update_keep_types_and_one_trace_serves_all_rounds(name):
    tx, params, traces = TRANSFORMS[name], tree(), []
    state = jax.jit(tx.init)(params)

    @jax.jit
    def update(gradient, state, params):
        traces.append(1)
        return tx.update(gradient, state, params, value=0.0, anything="ignored")

    assert types(state) == types(tx.init(params))
    assert types(state) == types(jax.eval_shape(tx.init, params))
    for seed in (1, 2, 3):
        updates, after = update(tree(seed), state, params)
        assert types(updates) == types(params)
        assert types(after) == types(state)
        params, state = optax.apply_updates(params, updates), after
        assert types(params) == types(tree())
    assert len(traces) == 1
    assert int(optax.tree.get(state, "count")) == (6 if "t0" in name or "pegasos, m" in name else 3)
    if "full" in name:
        return  # operation by operation its roots compile for each leaf, 10 s and more
    eager, _ = tx.update(tree(1), tx.init(tree()), tree())
    jitted, _ = update(tree(1), tx.init(tree()), tree())
    for ours, theirs in zip(jax.tree.leaves(eager), jax.tree.leaves(jitted), strict=True):
        if ours.dtype == np.float32:  # of narrower ones the last bit may differ
            assert_close(ours, theirs, "reference")


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_arrays_of_a_state_are_trees_like_params(name):
    tx, params, seen = TRANSFORMS[name], tree(), []
    state = tx.init(params)

    def look(array, leaf):
        seen.append("full" in name or array.shape == leaf.shape)  # it has blocks for each leaf
        return array

    mapped = optax.tree_utils.tree_map_params(tx, look, state, params)
    assert all(seen)
    assert types(mapped) == types(state)
    scalars = [x for x in jax.tree.leaves(state) if x.shape == ()]
    n_trees = len(seen) // len(jax.tree.leaves(params))
    # One scalar leaf in the params: what is shared is not there once per leaf.
    assert len(scalars) - n_trees <= 3


def test_an_empty_tree_has_a_state_and_no_updates():
    for tx in TRANSFORMS.values():
        for params in ({}, (), {"a": None}):
            state = tx.init(params)
            updates, after = jax.jit(tx.update)(params, state, params)
            assert updates == params
            assert types(after) == types(state)


def test_the_counter_stays_at_the_largest_number():
    assert int(following(jnp.asarray(2**31 - 1, jnp.int32))) == 2**31 - 1
    assert int(following(jnp.asarray(0, jnp.int32))) == 1


# ---- every leaf against its solver and the reference ------------------------------------------
SOLVERS = {
    "adagrad_rda": (js.transforms.adagrad_rda, js.AdaGradRDA),
    "adagrad_fobos": (js.transforms.adagrad_fobos, js.AdaGradFOBOS),
    "rda": (js.transforms.rda, js.RDA),
    "fobos": (js.transforms.fobos, js.FOBOS),
}


@pytest.mark.parametrize("scheduled", [False, True])
@pytest.mark.parametrize("name", SOLVERS)
def test_every_leaf_is_run_by_the_solver(name, scheduled):
    make, solver = SOLVERS[name]
    params = {"a": tree()["layers"][0].kernel, "b": jnp.asarray([1.0, -2.0], jnp.float32)}
    draw = np.random.default_rng(3).normal
    gradients = {k: jnp.asarray(draw(size=(ROUNDS, *v.shape)), v.dtype) for k, v in params.items()}
    regularizers = {"a": NET, "b": None}
    rate = decaying if scheduled else 0.3
    ours = scan(make(rate, regularizer=regularizers), params, gradients)
    for key, leaf in params.items():
        own = regularizers[key] or js.regularizers.NoRegularizer()
        eta = (lambda t: decaying(t - 1)) if scheduled else rate
        member = solver(eta, regularizer=own).cast(np.float32)

        @jax.jit
        def run(leaf, gradients, member=member):
            def step(state, gradient):
                state = member.absorb(state, gradient)
                return state, member.weights(state)

            state = member.init(Problem(leaf.shape, centre=leaf), leaf.dtype)
            return jax.lax.scan(step, state, gradients)[1]

        assert_close(ours[key], run(leaf, gradients[key]), "reference", name=key)


@pytest.mark.parametrize("form", ["rda", "mirror"])
@pytest.mark.parametrize(
    ("rate", "regularizer", "strengths"),
    [
        (0.3, None, {}),
        (0.3, L1, {"strength": 0.05}),
        (lambda n: 0.5 / (1.0 + n), NET, {"l1": 0.03, "l2": 0.2}),
    ],
    ids=["none", "l1", "elastic net, schedule"],
)
def test_adagrad_is_the_reference_round_by_round(form, rate, regularizer, strengths, x64):
    dtype = np.float64 if x64 else np.float32
    draw = np.random.default_rng(5).normal
    params, gradients = draw(size=6).astype(dtype), draw(size=(ROUNDS, 6)).astype(dtype)
    gradients[:, 0] = 0  # a coordinate without history keeps its value
    make = js.transforms.adagrad_rda if form == "rda" else js.transforms.adagrad_fobos
    schedule = (lambda n: 0.5 / (1.0 + n.astype(dtype))) if callable(rate) else rate
    tx = make(schedule, 0.0, regularizer)
    ours = scan(tx, {"w": jnp.asarray(params)}, {"w": jnp.asarray(gradients)})["w"]
    kind = {None: "none", L1: "l1", NET: "elastic_net"}[regularizer]
    state, theirs = reference.begin(params), []
    for gradient in gradients.astype(float):
        state = reference.step(
            state,
            gradient,
            form=form,
            learning_rate=(lambda t: rate(t - 1)) if callable(rate) else rate,
            regularizer=kind,
            strengths=strengths,
        )
        theirs.append(state.w)
    assert_close(ours, np.array(theirs), "reference")
    assert np.all(np.asarray(ours)[:, 0] == params[0])
    assert ours.dtype == dtype


@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("t0", [0, 5])
def test_pegasos_is_the_reference_on_the_whole_tree(project, t0, x64):
    dtype, lam, rng = np.float64 if x64 else np.float32, 0.1, np.random.default_rng(6)
    X, y = rng.normal(size=(ROUNDS, 5)), rng.choice([-1.0, 1.0], ROUNDS)
    w0 = rng.normal(size=5) if t0 else np.zeros(5)
    run = reference_pegasos.pegasos(
        X, y, [[i] for i in range(ROUNDS)], lam=lam, project=project, w0=w0, t0=t0
    )
    tx = js.transforms.pegasos(lam, project=project, t0=t0)

    def loss(params, x, y):
        score = jnp.sum(params["a"] * x[:2]) + jnp.sum(params["b"] * x[2:])
        return jnp.where(y * score < 1, -y * score, 0)

    def step(carry, row):
        params, state = carry
        updates, state = tx.update(jax.grad(loss)(params, *row), state, params)
        params = optax.apply_updates(params, updates)
        return (params, state), params

    params = {"a": jnp.asarray(w0[:2], dtype), "b": jnp.asarray(w0[2:], dtype)}
    rows = (jnp.asarray(X, dtype), jnp.asarray(y, dtype))
    _, ours = jax.jit(lambda p, rows: jax.lax.scan(step, (p, tx.init(p)), rows))(params, rows)
    ours = np.concatenate([ours["a"], ours["b"]], axis=1)
    assert_close(ours, np.array(run.w), "reference")


def test_the_first_step_of_pegasos_forgets_the_params_unless_they_are_a_warm_start():
    params, gradient = jnp.asarray([3.0, 1.0]), jnp.asarray([1.0, 0.0])
    cold, warm = js.transforms.pegasos(0.5), js.transforms.pegasos(0.5, t0=1)
    new = params + cold.update(gradient, cold.init(params), params)[0]
    np.testing.assert_allclose(new, [-2.0, 0.0], atol=1e-6)
    new = params + warm.update(gradient, warm.init(params), params)[0]
    np.testing.assert_allclose(new, [0.5, 0.5], atol=1e-6)


def test_many_transformations_at_once():
    rates = jnp.asarray([0.1, 0.2, 0.4], jnp.float32)
    params, gradient = jnp.ones(4), jnp.asarray([1.0, -2.0, 0.0, 0.5])

    def first(rate):
        tx = js.transforms.adagrad_fobos(rate, rate, js.regularizers.L1(rate))
        return tx.update(gradient, tx.init(params), params)[0]

    together = jax.jit(jax.vmap(first))(rates)
    for rate, own in zip(rates.tolist(), together, strict=True):
        assert_close(own, first(rate), "reference")


def test_exact_zeros_are_exact_in_every_dtype():
    l1 = js.regularizers.L1(9.0)
    for make in (js.transforms.adagrad_rda, js.transforms.adagrad_fobos):
        for leaf in jax.tree.leaves(scan(make(0.5, regularizer=l1), tree(), stacked(3))):
            assert np.all(np.asarray(leaf[-1], np.float32) == 0)


def test_norms_balls_and_groups_see_a_leaf_as_one_vector():
    ball, groups = js.regularizers.L1Ball(0.5), js.regularizers.GroupL2(2.0, axis=-1)
    draw = np.random.default_rng(9).normal
    params = {"a": jnp.asarray(draw(size=(3, 2)), jnp.float32), "b": jnp.ones((), jnp.float32)}
    gradients = {k: jnp.asarray(draw(size=(4, *v.shape)), jnp.float32) for k, v in params.items()}
    for make in (js.transforms.adagrad_rda, js.transforms.adagrad_fobos):
        ours = scan(make(0.3, 0.1, ball), params, gradients)
        for leaf in jax.tree.leaves(ours):
            totals = np.abs(np.asarray(leaf)).reshape(4, -1).sum(1)
            assert np.all(totals <= 0.5 + 1e-6)
        ours = scan(make(0.3, 0.1, {"a": groups, "b": None}), params, gradients)["a"]
        dead = np.asarray(ours[-1]) == 0
        assert np.all(dead.any(axis=1) == dead.all(axis=1)) and dead.any()
    with pytest.raises(ValueError, match="delta must be > 0 with Simplex"):
        js.transforms.adagrad_fobos(0.1, regularizer=js.regularizers.Simplex(1.0))
