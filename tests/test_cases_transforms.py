"""Failures that users of optax transformations met: numbers, trees, masks, params, devices."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding
from tolerances import assert_bitwise, assert_close
from transformed import L1, TRANSFORMS, tree, types

import jaxsolvers as js

FOBOS, RDA = js.transforms.adagrad_fobos, js.transforms.adagrad_rda


@pytest.fixture
def mixed():
    """What optax itself needs: its wrappers fail under strict promotion."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@jax.tree_util.register_pytree_with_keys_class
class Touchy:
    """A container of parameters that must never be called."""

    def __init__(self, w: Any, b: Any) -> None:
        self.w, self.b = w, b

    def __call__(self, *args: Any) -> Any:
        raise AssertionError("a container was called")

    def tree_flatten_with_keys(self) -> Any:
        key = jax.tree_util.GetAttrKey
        return ((key("w"), self.w), (key("b"), self.b)), None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> Any:
        return cls(*children)


class Pair(NamedTuple):
    w: Any
    b: Any


def test_a_zero_gradient_is_no_step_and_shapes_make_a_state_case_001():
    with jax.debug_nans(True):
        tx, params = FOBOS(0.1), {"w": jnp.zeros(2, jnp.float32)}
        updates, state = jax.jit(tx.update)(params, tx.init(params), params)
    np.testing.assert_array_equal(updates["w"], [0, 0])
    np.testing.assert_array_equal(state.held.accumulator["w"], [0, 0])
    shapes = {"w": jax.ShapeDtypeStruct((2,), jnp.float32)}
    assert types(tx.init(shapes)) == types(tx.init(params))
    assert types(jax.eval_shape(tx.init, shapes)) == types(tx.init(params))
    with pytest.raises(ValueError, match=r"adagrad_rda keeps the values of params.*eval_shape"):
        RDA(0.1).init(shapes)
    assert types(jax.eval_shape(RDA(0.1).init, shapes)) == types(RDA(0.1).init(params))


@pytest.mark.parametrize("make", [RDA, FOBOS])
def test_a_schedule_starts_at_0_injected_or_not_case_007(make, mixed):
    asked = []

    def schedule(count):
        asked.append(count)
        return count + 1.0

    def run(tx, regularizer=None):
        params, moved = jnp.asarray([1.0]), []
        state = tx.init(params)
        for _ in range(3):
            updates, state = tx.update(jnp.asarray([1.0]), state, params)
            params = params + updates
            moved.append(float(updates[0]))
        return moved

    for own in (None, js.regularizers.L1(0.1)):
        plain = run(make(schedule, regularizer=own))
        injected = run(optax.inject_hyperparams(make)(schedule, regularizer=own))
        np.testing.assert_allclose(plain, injected, rtol=1e-6)
    assert [int(n) for n in asked[:3]] == [0, 1, 2]
    plain = run(make(schedule))
    assert plain[0] == pytest.approx(-1)
    if make is FOBOS:
        assert plain[1] == pytest.approx(-2 / np.sqrt(2))


def test_injection_leaves_structural_arguments_alone_case_008(mixed):
    params = jnp.ones((4, 4))
    for make, arguments in (
        (FOBOS, {"learning_rate": 0.1, "delta": 0.1, "compensated": True, "master": True}),
        (RDA, {"learning_rate": 0.1, "compensated": True, "regularizer": L1}),
        (js.transforms.fobos, {"learning_rate": 0.1, "master": True}),
        (js.transforms.pegasos, {"lam": 0.1, "project": True, "t0": 2, "master": True}),
    ):
        tx = optax.inject_hyperparams(make)(**arguments)
        state = jax.jit(tx.init)(params)
        updates, after = jax.jit(tx.update)(params, state, params)
        plain = make(**arguments)
        assert_close(updates, plain.update(params, plain.init(params), params)[0], "reference")
        assert types(after) == types(state)


@pytest.mark.parametrize("make", [RDA, FOBOS])
def test_a_container_with_a_call_method_is_never_called_case_010(make, mixed):
    params = Touchy(jnp.ones(2), jnp.ones(()))
    own = Touchy(js.regularizers.L1(0.1), None)
    for tx in (
        make(0.1, regularizer=own),
        optax.inject_hyperparams(make, static_args="regularizer")(0.1, regularizer=own),
    ):
        state = tx.init(params)
        updates, _ = jax.jit(tx.update)(params, state, params)
        assert isinstance(updates, Touchy)
    by_function = make(0.1, regularizer=lambda params: Touchy(js.regularizers.L1(0.1), None))
    same, _ = by_function.update(params, by_function.init(params), params)
    assert_close(same, updates, "reference")


def test_a_transformation_made_under_jit_leaks_no_tracer_case_011(mixed):
    schedule = optax.piecewise_constant_schedule(0.1, {2: 0.5})

    def first(params):
        tx = optax.chain(optax.clip_by_global_norm(1.0), FOBOS(schedule, regularizer=L1))
        state = tx.init(params)
        return tx.update(params, state, params)

    with jax.check_tracer_leaks(True):
        updates, _ = jax.jit(first)({"w": jnp.ones(2)})
    assert np.all(np.isfinite(updates["w"]))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_params_left_out_are_named_before_anything_changes_case_013(name):
    tx = TRANSFORMS[name]
    state = tx.init(tree())
    before = jax.tree.map(jnp.array, state)
    with pytest.raises(ValueError, match=rf"{name.split(',')[0]} needs params.*got params None"):
        tx.update(tree(1), state)
    assert_bitwise(state, before)


def test_masked_leaves_pass_through_case_014(mixed):
    params = {"w": jnp.asarray([1.0, 2.0]), "b": jnp.asarray([0.0])}
    ones = jax.tree.map(jnp.ones_like, params)
    for make in (RDA, FOBOS):
        for own in (None, {"w": js.regularizers.L1(0.0), "b": None}):
            tx = optax.masked(make(0.1, regularizer=own), {"w": True, "b": False})
            updates, _ = jax.jit(tx.update)(ones, tx.init(params), params)
            np.testing.assert_allclose(updates["w"], [-0.1, -0.1], rtol=1e-5)
            np.testing.assert_array_equal(updates["b"], [1.0])


def test_a_mask_in_another_container_is_named_with_both_structures_case_016():
    params = Pair(jnp.ones(2), jnp.ones(()))
    tx = FOBOS(0.1, regularizer={"w": L1, "b": None})
    state = FOBOS(0.1).init(params)
    with pytest.raises(TypeError, match=r"(?s)regularizer.*mask.*'b'.*'w'.*Pair"):
        tx.update(params, state, params)
    with pytest.raises(ValueError, match=r"regularizer must be a Regularizer object.*got True"):
        FOBOS(0.1, regularizer=Pair(True, False)).update(params, state, params)
    same, _ = FOBOS(0.1, regularizer=Pair(L1, None)).update(params, state, params)
    assert same.b == pytest.approx(-0.1)


def test_a_mask_around_a_mask_is_the_rule_leaf_by_leaf_case_017(mixed):
    params = {"a": {"x": 1.0, "y": 2.0}, "b": {"x": 3.0, "y": 4.0}}
    params = jax.tree.map(jnp.asarray, params)
    l1 = js.regularizers.L1(0.5)
    for own in (l1, {"a": {"x": l1, "y": l1}, "b": {"x": l1, "y": None}}):
        inner = optax.masked(FOBOS(0.1, regularizer=own), {"a": {"x": True, "y": False}, "b": True})
        tx = optax.masked(optax.chain(inner, optax.scale(-1)), {"a": True, "b": False})
        updates, _ = jax.jit(tx.update)(params, tx.init(params), params)
        # a.x: H = 1 and x <- soft(1 - .1, .05); a.y only scaled; b passes through.
        expected = {"a": {"x": 0.15, "y": -2.0}, "b": {"x": 3.0, "y": 4.0}}
        assert jax.tree.structure(updates) == jax.tree.structure(params)
        for ours, theirs in zip(jax.tree.leaves(updates), jax.tree.leaves(expected), strict=True):
            assert float(ours) == pytest.approx(theirs, rel=1e-5)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_float32_params_keep_float32_states_case_019(name):
    tx, params = TRANSFORMS[name], {"w": jnp.zeros(3, jnp.float32)}
    state = tx.init(params)
    updates, after = tx.update(params, state, params)
    found = {leaf.dtype.name for leaf in jax.tree.leaves((state, updates, after))}
    assert found <= {"float32", "int32"}


@pytest.mark.parametrize("make", [RDA, FOBOS, js.transforms.rda, js.transforms.fobos])
def test_the_kind_of_the_learning_rate_changes_no_update_dtype_case_020(make):
    params = jnp.ones(8, jnp.bfloat16)
    for rate in (0.1, jnp.bfloat16(0.1), np.float32(0.1), np.float64(0.1), jnp.float32(0.1)):
        for own in (rate, lambda count, rate=rate: rate):
            tx = make(own)
            updates, state = jax.jit(tx.update)(params, tx.init(params), params)
            assert updates.dtype == jnp.bfloat16
            assert types(state) == types(tx.init(params))


def test_small_steps_add_up_in_a_master_copy_case_026():
    # SGD: rates that undo the root of t. Half the spacing below 1.0 is 0.002.
    def steady(count):
        return jnp.sqrt(jnp.asarray(count).astype(jnp.float32) + 1)

    def run(tx):
        def step(carry, _):
            params, state = carry
            updates, state = tx.update(jnp.full(1, 1e-3, jnp.bfloat16), state, params)
            return (optax.apply_updates(params, updates), state), None

        params = jnp.ones(1, jnp.bfloat16)
        (params, _), _ = jax.lax.scan(step, (params, tx.init(params)), length=100)
        return float(params[0])

    assert run(js.transforms.fobos(steady, master=True)) == pytest.approx(0.9, abs=0.01)
    assert run(js.transforms.fobos(steady)) == 1.0  # what the docstring warns of
    # A form that computes its weights from sums needs no copy: 1 - 0.1 = sqrt(T) eta g.
    assert run(js.transforms.rda(10.0)) == pytest.approx(0.9, abs=0.01)


def test_one_strength_serves_a_tuple_of_params_under_jit_case_049():
    params = (jnp.asarray([0.5, -2.0]), jnp.asarray([1.0]))
    tx = js.transforms.fobos(1.0, js.regularizers.L1(0.5))
    zero = jax.tree.map(jnp.zeros_like, params)
    updates, _ = jax.jit(tx.update)(zero, tx.init(params), params)
    new = optax.apply_updates(params, updates)
    np.testing.assert_array_equal(new[0], [0, -1.5])
    np.testing.assert_array_equal(new[1], [0.5])


def test_every_transformation_works_with_its_defaults_case_065():
    params = {"w": jnp.ones((4, 2))}
    for make in (getattr(js.transforms, name) for name in js.transforms.__all__):
        tx = make(0.1)
        updates, _ = tx.update(params, tx.init(params), params)
        assert np.all(np.isfinite(updates["w"])) and np.any(np.asarray(updates["w"]) != 0)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_an_update_keeps_the_sharding_of_the_params_case_130(name):
    tx, mesh = TRANSFORMS[name], Mesh(np.array(jax.devices()), ("rows",))
    rows, everywhere = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("rows",), ()))
    plain = {"w": jnp.arange(16.0).reshape(8, 2) - 7, "b": jnp.ones(())}
    gradient = jax.tree.map(lambda leaf: 0.1 * leaf + 1, plain)
    where = {"w": rows, "b": everywhere}
    params, shard = jax.device_put(plain, where), jax.device_put(gradient, where)
    state = tx.init(params)
    for array in jax.tree.leaves(state):
        if array.shape == (8, 2):
            assert array.sharding.is_equivalent_to(rows, 2)
    alone = jax.jit(tx.update)(gradient, tx.init(plain), plain)
    for start in (state, jax.device_put(state, everywhere)):  # a replicated state works as well
        updates, after = jax.jit(tx.update)(shard, start, params)
        new = jax.jit(optax.apply_updates)(params, updates)
        assert new["w"].sharding.is_equivalent_to(rows, 2)
        assert_close((updates, after), alone, "reference")


def test_params_that_move_are_followed_or_both_devices_named_case_133():
    first, second = jax.devices()[:2]
    tx, params = FOBOS(0.1), jnp.ones(3)
    state = tx.init(params)  # bound to no device: it follows
    there = jax.device_put(params, second)
    updates, after = jax.jit(tx.update)(there, state, there)
    assert updates.devices() == {second} == after.held.accumulator.devices()
    bound = tx.init(jax.device_put(params, SingleDeviceSharding(first)))
    with pytest.raises(ValueError, match=r"incompatible devices.*\[1\].*\[0\]"):
        jax.jit(tx.update)(there, bound, there)
