"""Laws of every solver that need nothing but its own functions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
from contracts.streams import (
    FLOAT,
    D,
    N,
    batch,
    group,
    pick,
    problem,
    stack,
    trained,
    update,
    weights,
    with_gram,
)
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers.members import member, number
from jaxsolvers.protocol import Batch, Solver

every_solver = members.every_solver(*members.expansions())
DTYPES = [np.float32, np.float64] if FLOAT.itemsize == 8 else [np.float32]


def float_leaves(tree: Any) -> list[np.ndarray]:
    leaves = map(np.asarray, jax.tree.leaves(tree))
    return [leaf for leaf in leaves if np.issubdtype(leaf.dtype, np.floating)]


def is_finite(tree: Any) -> bool:
    return all(np.isfinite(leaf).all() for leaf in float_leaves(tree))


def innermost(solver: Solver, state: Any) -> tuple[Solver, Any]:
    """The solver within all wrappers, whose weights score the rows."""
    while hasattr(solver, "solver"):
        solver, state = solver.solver, state.inner
    return solver, state


# ---- programs ------------------------------------------------------------------------------------
@every_solver
def test_jit_equals_eager(solver: Solver) -> None:
    solver = solver.cast(FLOAT)
    state, rows = trained(solver), batch(solver, group(solver), 1)
    assert_close(update(solver, state, rows), solver.update(state, rows), "compiled")
    assert_close(weights(solver, state), solver.weights(state), "compiled")


@every_solver
def test_new_numbers_make_no_new_trace(solver: Solver) -> None:
    traces = 0

    @jax.jit
    def counted(solver: Solver, state: Any, rows: Batch) -> Any:
        nonlocal traces
        traces += 1
        return solver.update(state, rows)

    for numbers in (solver, members.other_numbers(solver)):
        for kind in (float, np.float32, np.float64, jnp.asarray):
            own = numbers.map_numbers(
                lambda leaf, kind=kind: leaf.value if leaf.spec.integer else kind(leaf.value)
            ).cast(FLOAT)
            state, _ = counted(own, own.init(problem(), FLOAT), batch(own, group(own)))
            counted(own, state, batch(own, group(own), 1))
    assert traces == 1


@every_solver
@pytest.mark.parametrize("dtype", DTYPES)
def test_types_and_structure_of_the_state_are_a_fixed_point(solver: Solver, dtype: Any) -> None:
    own, k = solver.cast(dtype), group(solver)
    state = own.init(problem(dtype=dtype), dtype)
    block = batch(own, 4 * k, dtype=dtype)
    results = {
        "update": jax.eval_shape(own.update, state, batch(own, k, dtype=dtype)),
        "sweep": jax.eval_shape(lambda s, b: own.sweep(s, b, k), state, block),
        "gram sweep": jax.eval_shape(lambda s, b: own.sweep(s, b, k), state, with_gram(block)),
    }
    for name, (after, info) in results.items():
        assert jax.tree.structure(after) == jax.tree.structure(state), name
        for leaf, before in zip(jax.tree.leaves(after), jax.tree.leaves(state), strict=True):
            types = (leaf.shape, leaf.dtype, leaf.weak_type)
            assert types == (before.shape, before.dtype, before.weak_type), name
            assert not leaf.weak_type and leaf.dtype in (dtype, np.int32, np.bool_), name
        assert all(field.shape == () and field.dtype == dtype for field in info[:4]), name
        assert info.finite.shape == () and info.finite.dtype == np.bool_, name
    final = jax.eval_shape(own.weights, state)
    shape = (own.budget, 1 + D) if own.own_vectors else (D,)
    assert final.shape == shape and final.dtype == dtype
    counters = [leaf.dtype for leaf in jax.tree.leaves(state) if leaf.dtype != dtype]
    assert counters and set(counters) == {np.dtype(np.int32)}


@every_solver
def test_init_can_be_donated(solver: Solver) -> None:
    """Each field owns its buffer, and none is the user's."""
    own, known = solver.cast(FLOAT), problem()
    donating = jax.jit(lambda s, rows: own.update(s, rows), donate_argnums=0)
    for make in (own.init, jax.jit(own.init, static_argnums=1)):
        state = make(known, FLOAT)
        pointers = [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(state)]
        assert len(set(pointers)) == len(pointers)
        expected = update(own, state, batch(own, group(own)))
        assert_close(donating(state, batch(own, group(own))), expected, "compiled")
        assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state))
    for leaf in jax.tree.leaves((known, own)):
        assert not leaf.is_deleted()


@every_solver
def test_a_sweep_is_its_rounds(solver: Solver) -> None:
    own, k = solver.cast(FLOAT), group(solver)
    start, block = trained(own), batch(own, 4 * k, 2)
    block = block._replace(weight=block.weight.at[k : 2 * k].set(0))
    after, infos = start, []
    for t in range(4):
        rows = jax.tree.map(lambda a, t=t: a[t * k : (t + 1) * k], block)
        after, info = update(own, after, rows)
        infos.append(info)
    sums = jax.tree.map(lambda *fields: sum(fields[1:], fields[0]), *infos)
    expected = (after, sums._replace(finite=np.True_))
    sweep = jax.jit(lambda state, block: own.sweep(state, block, k))
    assert_close(sweep(start, block), expected, "rewritten")
    assert_close(sweep(start, with_gram(block)), expected, "rewritten")


# ---- rankers -------------------------------------------------------------------------------------
def rankers(solver: Solver) -> tuple[Solver, Any, Batch]:
    """One ranker per number of the solver, each with that number changed, and one without.

    They share the rows but not states, targets and weights.
    """
    base, other = solver.cast(FLOAT), members.other_numbers(solver).cast(FLOAT)
    names = [leaf.name for leaf in base.numbers()]
    new = {leaf.name: leaf.value for leaf in other.numbers()}
    solvers = [base] + [
        base.map_numbers(lambda leaf, n=name: new[n] if leaf.name == n else leaf.value)
        for name in names
    ]
    states = [trained(own, seed=200 + 10 * i) for i, own in enumerate(solvers)]
    rows = [batch(solver, group(solver), 300 + i) for i in range(len(solvers))]
    shared = stack(rows)._replace(x=rows[0].x, index=rows[0].index)
    return stack(solvers), stack(states), shared


AXES = Batch(x=None, target=0, weight=0, index=None)


@jax.jit
def together(solver: Solver, state: Any, rows: Batch) -> Any:
    def one(solver: Solver, state: Any, rows: Batch) -> Any:
        after, info = solver.update(state, rows)
        return after, info, solver.weights(after)

    return jax.vmap(one, in_axes=(0, 0, AXES))(solver, state, rows)


@every_solver
def test_vmap_is_a_loop_over_rankers_and_over_each_number(solver: Solver) -> None:
    solvers, states, rows = rankers(solver)
    mapped = together(solvers, states, rows)
    for i in range(len(rows.target)):
        own, state = pick(solvers, i), pick(states, i)
        alone = rows._replace(target=rows.target[i], weight=rows.weight[i])
        after, info = update(own, state, alone)
        assert_close(pick(mapped, i), (after, info, weights(own, after)), "rewritten")


@every_solver
def test_permuting_rankers_permutes_results(solver: Solver) -> None:
    solvers, states, rows = rankers(solver)
    order = np.random.default_rng(0).permutation(len(rows.target))
    permuted = (pick(solvers, order), pick(states, order))
    own = rows._replace(target=rows.target[order], weight=rows.weight[order])
    before = together(solvers, states, rows)
    assert_close(together(*permuted, own), pick(before, order), "compiled")


@every_solver
def test_a_ranker_beyond_the_floats_never_changes_its_neighbours(solver: Solver) -> None:
    solvers, states, rows = rankers(solver)
    sound = np.arange(len(rows.target)) != 1
    healthy = pick(together(solvers, states, rows), sound)

    def poison(leaf: Any, value: float) -> Any:
        return leaf if leaf.dtype == np.int32 else leaf.at[1].set(value)

    huge = float(np.finfo(FLOAT).max) / 4
    cases = [
        (solvers, jax.tree.map(lambda leaf, v=value: poison(leaf, v), states))
        for value in (np.nan, np.inf, huge)
    ]
    cases += [(solvers.map_numbers(lambda leaf: poison(leaf.value, huge)), states)]
    for sick_solvers, sick_states in cases:
        mapped = together(sick_solvers, sick_states, rows)
        assert_bitwise(pick(mapped, sound), healthy)
        own, state = innermost(pick(sick_solvers, 1), pick(sick_states, 1))
        if not is_finite(weights(own, state)):
            assert not mapped[1].finite[1]  # it was scored with weights that are not numbers
        if not mapped[1].finite[1]:
            assert_bitwise(pick(mapped[0], 1), pick(sick_states, 1))  # the round was void


# ---- rows ----------------------------------------------------------------------------------------
@every_solver
@pytest.mark.parametrize("seed", [0, 1])
def test_a_batch_of_weight_zero_changes_nothing(solver: Solver, seed: int) -> None:
    for numbers in (solver, members.other_numbers(solver)):
        own = numbers.cast(FLOAT)
        rows = batch(own, group(own), seed)
        rows = rows._replace(weight=0 * rows.weight)
        for state in (own.init(problem(), FLOAT), trained(own)):
            after, info = update(own, state, rows)
            assert_bitwise(after, state)
            assert [float(field) for field in info] == [0, 0, 0, 0, 1]


@every_solver
def test_what_a_row_of_weight_zero_holds_does_not_matter(solver: Solver) -> None:
    own, k = solver.cast(FLOAT), group(solver)
    state = trained(own)
    huge = float(np.finfo(FLOAT).max) ** 0.75
    for at in range(k):
        rows = batch(own, k, 3)
        rows = rows._replace(weight=rows.weight.at[at].set(0))
        values = rows.x.values.at[at]
        other = -rows.target[at] if own.loss.classification else huge
        results = [
            update(
                own,
                state,
                rows._replace(
                    x=type(rows.x)(values.set(x)), target=rows.target.at[at].set(y), index=index
                ),
            )
            for x, y, index in (
                (0.0, rows.target[at], rows.index),
                (1.5, other, rows.index.at[at].set(N)),
                (huge, other, rows.index.at[at].set((rows.index[at] + 1) % N)),
            )
        ]
        assert_bitwise(results[1], results[0])
        assert_bitwise(results[2], results[0])


@every_solver
def test_a_row_of_weight_zero_put_in_anywhere_changes_nothing(solver: Solver) -> None:
    own, k = solver.cast(FLOAT), group(solver)
    rows = batch(own, k, 4)
    rows = rows._replace(weight=jnp.abs(rows.weight) + jnp.asarray(0.1, FLOAT))
    state = trained(own)
    expected = update(own, state, rows)
    dead = batch(own, 1, 5)
    dead = dead._replace(weight=0 * dead.weight)
    if own.single_row or k == 1:
        pieces = [[dead, rows], [rows, dead], [dead, rows, dead]]
        for sequence in pieces:
            after = state
            for piece in sequence:
                after, _ = update(own, after, piece)
            assert_bitwise(after, expected[0])
        return
    for at in range(k + 1):
        longer = jax.tree.map(lambda a, b, at=at: jnp.concatenate([a[:at], b, a[at:]]), rows, dead)
        assert_close(update(own, state, longer), expected, "rewritten")


@every_solver
def test_rows_without_features_repeated_rows_and_one_class_stay_finite(solver: Solver) -> None:
    for numbers in (solver, members.other_numbers(solver)):
        own, k = numbers.cast(FLOAT), group(solver)
        rows = batch(own, k, 6)
        one_class = rows._replace(target=jnp.ones_like(rows.target))
        zero = rows._replace(x=type(rows.x)(0 * rows.x.values))
        repeated = jax.tree.map(lambda a: jnp.broadcast_to(a[:1], a.shape), rows)
        for case in (zero, repeated, one_class):
            state = own.init(problem(), FLOAT)
            for _ in range(8):
                state, info = update(own, state, case)
                assert info.finite and is_finite((state, info, weights(own, state)))


@every_solver
@pytest.mark.parametrize("power", [0.3, 0.45, 0.9])
def test_huge_rows_give_finite_weights_or_are_reported(solver: Solver, power: float) -> None:
    """An accumulator may saturate at inf; a NaN, anywhere, is told by the next round's Info."""
    size = jnp.asarray(float(np.finfo(FLOAT).max) ** power, FLOAT)
    for numbers in (solver, members.other_numbers(solver)):
        own, k = numbers.cast(FLOAT), group(solver)
        state, sound = trained(own), True
        for t in range(6):
            rows = batch(own, k, 10 + t)
            before = state
            state, info = update(own, state, rows._replace(x=type(rows.x)(rows.x.values * size)))
            sound = sound and bool(info.finite)
            numbers_lost = any(np.isnan(leaf).any() for leaf in float_leaves(before))
            assert not (numbers_lost and info.finite)
            assert is_finite(weights(own, before)) or not sound
        assert sound or power > 0.4 or unbounded(own)


def unbounded(solver: Solver) -> bool:
    """Whether the loss has slopes without a bound, so that huge rows must diverge."""
    far = jnp.asarray(-1e6, FLOAT)
    return abs(float(solver.loss.value_and_slope(far, jnp.ones_like(far))[1])) > 100


# ---- axes ----------------------------------------------------------------------------------------
@every_solver
def test_the_declared_axes_are_those_of_the_state(solver: Solver) -> None:
    """Along "feature" fields have length d, along "example" n; "" says nothing of its axis."""
    own = solver.cast(FLOAT)
    for n, d in ((7, 3), (7, 4), (8, 3)):
        state = own.init(problem(n, d), FLOAT)
        axes = jax.tree.leaves(state.axes, is_leaf=lambda node: type(node) is tuple)
        leaves = jax.tree.leaves(state)
        assert len(axes) == len(leaves)
        for names, leaf in zip(axes, leaves, strict=True):
            known = {"feature": d, "example": n}
            sizes = tuple(
                known.get(name, size) for name, size in zip(names, leaf.shape, strict=True)
            )
            assert leaf.shape == sizes
            assert set(names) <= {*known, ""}


# ---- types ---------------------------------------------------------------------------------------
def test_members_of_different_types_have_different_tree_structures() -> None:
    classes = [*members.discover(Solver), *map(type, members.losses())]
    examples = [*members.losses(), *members.regularizers(), *members.plain_solvers()]
    first = {type(example): example for example in reversed(examples)}
    structures = [jax.tree.structure(example) for example in first.values()]
    assert len(set(structures)) == len(structures) == len(first)
    assert classes
    assert len({jax.tree.structure(solver) for solver in members.product()}) == len(
        members.product()
    )


@member
class Plus(Solver):
    rate: Any = number(default=1.0)

    def answer(self) -> Any:
        return self.rate


@member
class Minus(Solver):
    rate: Any = number(default=1.0)

    def answer(self) -> Any:
        return -self.rate


def test_types_with_like_fields_never_share_a_trace() -> None:
    """Both live and die where the other did, and each gets its own program."""

    @jax.jit
    def answer(solver: Any) -> Any:
        return solver.answer()

    for i in range(40):
        cls, sign = ((Plus, 1.0), (Minus, -1.0))[i % 2]
        assert float(answer(cls(jnp.asarray(2.0)))) == 2 * sign
        assert float(jax.jit(lambda s: s.answer())(cls(2.0))) == 2 * sign


def test_the_adagrad_forms_never_share_a_trace() -> None:
    """They have the same fields; only their classes differ."""
    rows = batch(js.AdaGradRDA(0.3), 4, 7)

    def path(form: Any) -> Any:
        own = form(0.3, 0.1, regularizer=js.regularizers.L1(0.05)).cast(FLOAT)
        state = trained(own)
        return weights(own, update(own, state, rows)[0])

    expected = {form: np.asarray(path(form)) for form in (js.AdaGradRDA, js.AdaGradFOBOS)}
    assert np.abs(expected[js.AdaGradRDA] - expected[js.AdaGradFOBOS]).max() > 1e-3
    for _ in range(10):
        for form, own in expected.items():
            np.testing.assert_array_equal(path(form), own)
