"""Transformations among optax's own, bad arguments, and the AdaGrads of other packages."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from references import optax_like
from tolerances import assert_close
from transformed import L1, TRANSFORMS, scan, stacked, tree, types

import jaxsolvers as js

FOBOS, RDA = js.transforms.adagrad_fobos, js.transforms.adagrad_rda


@pytest.fixture
def mixed():
    """What optax itself needs: its wrappers fail under strict promotion."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


WRAPPERS = {
    "chain": lambda tx: optax.chain(optax.clip_by_global_norm(1.0), tx),
    "accumulated": lambda tx: optax.MultiSteps(tx, every_k_schedule=2).gradient_transformation(),
    "finite": lambda tx: optax.apply_if_finite(tx, max_consecutive_errors=2),
    "partition": lambda tx: optax.partition(
        {"ours": tx, "theirs": optax.sgd(0.1)},
        lambda params: jax.tree.map(lambda leaf: "ours" if leaf.ndim else "theirs", params),
    ),
    "masked": lambda tx: optax.masked(
        tx, {"layers": False, "empty": True, "half": True, "none": True}
    ),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_scan_works_inside_every_wrapper_of_optax(wrapper, mixed):
    for name in ("adagrad_rda", "adagrad_fobos", "pegasos, master"):
        tx, params = WRAPPERS[wrapper](TRANSFORMS[name]), tree()
        ours = scan(tx, params, stacked(4))
        assert types(jax.tree.map(lambda leaf: leaf[0], ours)) == types(params)
        for leaf in jax.tree.leaves(ours):
            assert np.all(np.isfinite(np.asarray(leaf, np.float32)))


def test_steps_of_two_batches_are_steps_with_their_mean(mixed):
    params, tx = jnp.asarray([1.0, -1.0], jnp.float32), FOBOS(0.2, regularizer=L1)
    pairs = jnp.asarray(np.random.default_rng(0).normal(size=(3, 2, 2)), jnp.float32)
    whole = scan(tx, params, jnp.mean(pairs, axis=1))
    ours = scan(WRAPPERS["accumulated"](tx), params, pairs.reshape(6, 2))
    assert_close(ours[1::2], whole, "reference")


def test_a_step_that_is_not_finite_is_left_out(mixed):
    tx, params = WRAPPERS["finite"](RDA(0.2)), jnp.ones(2)
    good = jnp.asarray([[1.0, 1.0], [0.5, -1.0]])
    bad = jnp.stack([good[0], jnp.asarray([jnp.nan, 1.0]), good[1]])
    np.testing.assert_array_equal(scan(tx, params, bad)[2], scan(tx, params, good)[1])


def test_strengths_are_injected_through_a_factory(mixed):
    def make(learning_rate, strength):
        return FOBOS(learning_rate, regularizer=js.regularizers.L1(strength))

    params = jnp.asarray([1.0, 0.1])
    tx = optax.inject_hyperparams(make)(learning_rate=0.1, strength=0.5)
    state = jax.jit(tx.init)(params)
    state.hyperparams["strength"] = jnp.asarray(5.0)
    updates, _ = jax.jit(tx.update)(jnp.ones(2), state, params)
    plain = make(0.1, 5.0)
    assert_close(updates, plain.update(jnp.ones(2), plain.init(params), params)[0], "reference")


def test_a_donated_step_needs_no_copy():
    for name in ("adagrad_rda", "fobos, master"):  # copies of the params are buffers of their own
        tx, params = TRANSFORMS[name], {"w": jnp.ones(8)}
        update = jax.jit(tx.update, donate_argnums=(1, 2))
        updates, state = update({"w": jnp.ones(8)}, tx.init(params), params)
        assert np.all(np.isfinite(updates["w"]))
        assert types(state) == types(tx.init(updates))


# ---- bad arguments ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FOBOS(0.0), "learning_rate must be a finite number > 0"),
        (lambda: RDA(0.1, delta=-1.0), "delta must be a finite number >= 0"),
        (lambda: RDA(0.1, initial_accumulator=-1.0), "initial_accumulator must be"),
        (lambda: FOBOS(0.1, compensated=1), "compensated must be one of False, True"),
        (lambda: FOBOS(0.1, regularizer=js.regularizers.L1(-1.0)), "regularizer.strength must be"),
        (lambda: js.transforms.pegasos(0.0), "lam must be a finite number > 0"),
        (lambda: js.transforms.pegasos(1.0, loss_at_zero=0.0), "loss_at_zero must be"),
        (lambda: js.transforms.pegasos(1.0, t0=-1), "t0 must be an integer >= 0"),
        (lambda: js.transforms.pegasos(1.0, t0=1.5), "t0 must be an integer >= 0"),
        (lambda: js.transforms.fobos("fast"), "learning_rate must be"),
    ],
)
def test_a_number_out_of_range_is_named_when_the_transformation_is_made(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("name", TRANSFORMS)
def test_leaves_that_are_not_real_floating_are_named_by_path(name):
    for bad in (jnp.arange(3), jnp.ones(2, jnp.complex64), jnp.ones(2, bool)):
        params = {"layers": [jnp.ones(2), bad]}
        with pytest.raises(ValueError, match=r"params\['layers'\]\[1\] must be of real floating"):
            TRANSFORMS[name].init(params)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_gradients_unlike_the_params_are_named(name):
    tx, params = TRANSFORMS[name], {"w": jnp.ones(2), "b": jnp.ones(())}
    state = tx.init(params)
    with pytest.raises(ValueError, match=r"updates\['w'\] must have the shape"):
        tx.update({"w": jnp.ones(()), "b": jnp.ones(())}, state, params)
    with pytest.raises(ValueError, match="updates must be a tree like params"):
        tx.update({"w": jnp.ones(2)}, state, params)


def test_a_regularizer_may_be_a_prefix_and_skip_what_a_mask_took_out(mixed):
    strong = js.regularizers.L1(100.0)
    own = {"layers": (strong, None), "empty": strong, "half": None, "none": {}}
    updates = scan(FOBOS(0.1, regularizer=own), tree(), stacked(1))
    assert np.all(np.asarray(updates["layers"][0].kernel) == 0)
    assert np.all(np.asarray(updates["half"], np.float32) != 0)
    masked = WRAPPERS["masked"](FOBOS(0.1, regularizer=own))
    state = masked.init(tree())
    assert jax.tree.structure(masked.update(tree(1), state, tree())[0]) == jax.tree.structure(
        tree()
    )


# ---- the AdaGrads of other packages ----------------------------------------------------------
L1_L2 = {"l1": 0.03, "l2": 0.2}
NET = js.regularizers.ElasticNet(**L1_L2)
START = np.array([1.0, -0.5, 0.02, 2.0])
GRADIENTS = np.random.default_rng(8).normal(size=(15, 4)) * [1.0, 0.1, 0.01, 3.0]


def torch_rate(count):
    return 0.3 / (1 + jnp.asarray(count).astype(jnp.float32) * 0.5)


PACKAGES = {
    "optax": (
        lambda: FOBOS(0.3, initial_accumulator=0.1 + 1e-7),
        optax_like.optax_adagrad(START, GRADIENTS, 0.3),
    ),
    "torch": (lambda: FOBOS(0.3, 1e-10), optax_like.torch_adagrad(START, GRADIENTS, 0.3)),
    "torch, lr_decay": (
        lambda: FOBOS(torch_rate, delta=1e-10),
        optax_like.torch_adagrad(START, GRADIENTS, 0.3, lr_decay=0.5),
    ),
    "torch, weight_decay": (
        lambda: optax.chain(optax.add_decayed_weights(0.1), FOBOS(0.3, 1e-10)),
        optax_like.torch_adagrad(START, GRADIENTS, 0.3, weight_decay=0.1),
    ),
    "tensorflow": (
        lambda: FOBOS(0.3, initial_accumulator=0.1),
        optax_like.tensorflow_adagrad(START, GRADIENTS, 0.3),
    ),
    "tensorflow v2": (
        lambda: FOBOS(0.3, delta=1e-3, initial_accumulator=0.1),
        optax_like.tensorflow_adagrad(START, GRADIENTS, 0.3, epsilon=1e-3),
    ),
    "tensorflow proximal": (
        lambda: FOBOS(0.3, regularizer=NET, initial_accumulator=0.1),
        optax_like.tensorflow_proximal_adagrad(START, GRADIENTS, 0.3, **L1_L2),
    ),
    "tensorflow dual averaging": (
        lambda: RDA(0.3, regularizer=NET, initial_accumulator=0.1),
        optax_like.tensorflow_adagrad_da(GRADIENTS, 0.3, **L1_L2),
    ),
}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_arguments_of_the_table_reproduce_the_other_package(package, x64, mixed):
    make, theirs = PACKAGES[package]
    dtype = np.float64 if x64 else np.float32
    start = np.zeros(4) if "dual" in package else START
    ours = scan(make(), jnp.asarray(start, dtype), jnp.asarray(GRADIENTS, dtype))
    if package == "torch, lr_decay" and x64:  # its schedule is computed in float32
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    else:
        assert_close(ours, theirs, "reference")


def test_optax_itself_makes_the_same_steps(x64, mixed):
    dtype = np.float64 if x64 else np.float32
    start, gradients = jnp.asarray(START, dtype), jnp.asarray(GRADIENTS, dtype)
    theirs = scan(optax.adagrad(0.3), start, gradients)
    assert_close(scan(PACKAGES["optax"][0](), start, gradients), theirs, "reference")
