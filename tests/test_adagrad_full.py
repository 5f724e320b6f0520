"""AdaGrad with a full metric against eigendecompositions in NumPy, round by round."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from references.adagrad_full import adagrad_full
from tolerances import assert_close

import jaxsolvers as js
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem
from jaxsolvers.regularizers.full_metric import rank_tolerance
from jaxsolvers.solvers import matrix_root

FLOAT = np.dtype(jnp.result_type(float))
ROUNDS, D = 50, 6
L1, NONE = js.regularizers.L1(0.02), js.regularizers.NoRegularizer()
NET = js.regularizers.ElasticNet(0.01, 0.1)
FORMS = {js.FullAdaGradRDA: "rda", js.FullAdaGradFOBOS: "mirror"}
both_forms = pytest.mark.parametrize("form", list(FORMS), ids=["rda", "mirror"])


class Lane(NamedTuple):
    """A stream with the numbers of its solver."""

    delta: float
    initial: float
    X: np.ndarray  # (ROUNDS, k, D)


def lanes(k: int) -> list[Lane]:
    """Rows of full rank, a few rows again and again, rows in a plane; delta 0 and more."""
    rng = np.random.default_rng(3)
    free = 0.7 * rng.normal(size=(ROUNDS, k, D))
    free[:, :, 2] = 0  # never seen
    few = np.broadcast_to(0.7 * rng.normal(size=(2, 1, D)), (2, k, D))[np.arange(ROUNDS) % 2]
    plane = rng.normal(size=(ROUNDS, k, 2)) @ rng.normal(size=(2, D))
    return [
        Lane(0.0, 0.0, free),
        Lane(0.5, 0.0, free),
        Lane(0.0, 0.0, few),
        Lane(0.1, 0.0, few),
        Lane(0.0, 0.0, plane),
        Lane(0.0, 0.3, plane),
    ]


@jax.jit
def paths(solver: Any, rounds: Batch) -> Any:
    """States and weights after each round, of every lane."""

    def one(solver: Any, rounds: Batch) -> Any:
        def one_round(state: Any, batch: Batch) -> Any:
            state, _ = solver.update(state, batch)
            return state, (state, solver.weights(state))

        return jax.lax.scan(one_round, solver.init(Problem((D,), 0), FLOAT), rounds)[1]

    return jax.vmap(one)(solver, rounds)


CONFIGS: list[tuple[int, dict[str, Any]]] = [
    (1, {"block_size": None, "regularizer": NONE}),
    (1, {"block_size": 4, "regularizer": L1, "refresh": 5}),
    (7, {"block_size": None, "regularizer": L1, "accumulate": "example", "refresh": 5}),
    (7, {"block_size": 3, "regularizer": NET, "accumulate": "example", "compensated": True}),
    (7, {"block_size": 4, "regularizer": js.regularizers.SquaredL2(0.1), "accumulate": "batch"}),
    (7, {"block_size": None, "regularizer": js.regularizers.Box(-0.3, 0.2), "accumulate": "batch"}),
]


@pytest.mark.parametrize(("k", "config"), CONFIGS)
@both_forms
def test_every_round_equals_an_eigendecomposition(form: Any, k: int, config: Any) -> None:
    rng = np.random.default_rng(k)
    own = lanes(k)
    X = np.stack([lane.X for lane in own]).astype(FLOAT)
    y = np.where(X @ rng.normal(size=D) + 0.5 * rng.normal(size=X.shape[:3]) > 0, 1.0, -1.0)
    s = rng.uniform(0.5, 1.5, y.shape) * (rng.random(y.shape) < 0.9)
    loss = js.losses.Logistic()  # smooth: no decision that float32 might take otherwise
    numbers = {
        "delta": np.array([lane.delta for lane in own]),
        "initial_accumulator": np.array([lane.initial for lane in own]),
    }
    solver = form(0.3, loss=loss, trips=800, **numbers, **config).cast(FLOAT)
    solver = solver.map_numbers(lambda leaf: jnp.broadcast_to(leaf.value, len(own)))
    index = jnp.zeros(y.shape, jnp.int32)
    states, w = paths(
        solver, Batch(Dense(jnp.asarray(X)), jnp.asarray(y, FLOAT), jnp.asarray(s, FLOAT), index)
    )
    name, strengths = members.reference_regularizer(config["regularizer"], D)
    size = config.get("block_size") or D
    for at, lane in enumerate(own):
        flat = np.arange(ROUNDS * k).reshape(ROUNDS, k).tolist()
        run = adagrad_full(
            X[at].reshape(-1, D), y[at].ravel(), flat, weights=s[at].astype(FLOAT).ravel(),
            form=FORMS[form], learning_rate=0.3, delta=lane.delta, loss="logistic",
            initial_accumulator=lane.initial, regularizer=name, strengths=strengths,
            accumulate=config.get("accumulate", "example"), block_size=size,
            refresh=config.get("refresh", 1), tolerance=rank_tolerance(FLOAT, size),
        )  # fmt: skip
        # In float32 a small eigenvalue is known to eps times the condition of G, its direction too.
        assert_close(w[at], np.array(run.w), "run", name=f"weights of {at}")
        G = [scipy.linalg.block_diag(*b)[:D, :D] for b in np.asarray(states.accumulator[at])]
        assert_close(np.array(G), np.array(run.accumulator), "run", name="G")
        np.testing.assert_array_equal(states.t[at], run.t)
        assert (np.asarray(states.residual[at]) <= 1e3 * np.finfo(FLOAT).eps).all()
        assert run.doubt > 0.02  # no eigenvalue hung on the last bit


@jax.jit
def absorbed(solver: Any, gradients: Any, squares: Any) -> Any:
    """(state, weights) after each gradient; ``squares`` their outer products, or None."""

    def one_round(state: Any, given: Any) -> Any:
        state = solver.absorb(state, *given, rounds=jnp.int32(1 if squares is None else 3))
        return state, (state, solver.weights(state))

    start = solver.init(Problem(gradients.shape[1:]), FLOAT)
    return jax.lax.scan(one_round, start, (gradients, squares))[1]


def gradients(seed: int, n: int, *shape: int) -> Any:
    return jnp.asarray(np.random.default_rng(seed).normal(size=(n, *shape)), FLOAT)


def falling(t: Any) -> Any:
    """A schedule."""
    return 0.3 / jnp.sqrt(t.astype(FLOAT))


@both_forms
def test_diagonal_data_and_blocks_of_one_column_give_the_diagonal_solver(form: Any) -> None:
    diagonal = {js.FullAdaGradRDA: js.AdaGradRDA, js.FullAdaGradFOBOS: js.AdaGradFOBOS}[form]
    one_hot = gradients(0, 30, 1) * jnp.eye(D, dtype=FLOAT)[np.arange(30) % (D - 1)]
    dense = gradients(1, 30, D)
    for regularizer in (L1, js.regularizers.SquaredL2(0.1), js.regularizers.Box(-0.3, 0.2)):
        settings: dict[str, Any] = {"regularizer": regularizer, "compensated": True}
        expected = absorbed(diagonal(falling, **settings).cast(FLOAT), one_hot, None)[1]
        ours = absorbed(form(falling, trips=300, **settings).cast(FLOAT), one_hot, None)[1]
        assert_close(ours, np.asarray(expected), "reference", name=type(regularizer).__name__)
        expected = absorbed(diagonal(falling, 0.1, **settings).cast(FLOAT), dense, None)[1]
        ours = absorbed(form(falling, 0.1, block_size=1, **settings).cast(FLOAT), dense, None)[1]
        assert_close(ours, np.asarray(expected), "compiled")


@both_forms
def test_joint_weights_have_a_metric_for_each_class(form: Any) -> None:
    """Blocks that do not divide d, and outer products of batches by the layout's own verb."""
    rng = np.random.default_rng(2)
    X, c = rng.normal(size=(8, 3, D)).astype(FLOAT), rng.normal(size=(8, 3, 2)).astype(FLOAT)
    given = [(Dense(jnp.asarray(x)), jnp.asarray(a)) for x, a in zip(X, c, strict=True)]
    pulled = jnp.stack([x.pull_back(a) for x, a in given])
    outer = jnp.stack([x.pull_back_outer(a, 4) for x, a in given])
    rows = np.pad(np.einsum("tik,tij->tkij", c, X), [(0, 0)] * 3 + [(0, 2)]).reshape(8, 2, 3, 2, 4)
    assert_close(outer, np.einsum("tkiba,tkibc->tkbac", rows, rows), "compiled")
    solver = form(0.3, 0.1, regularizer=L1, block_size=4, trips=100).cast(FLOAT)
    state, together = absorbed(solver, pulled, outer)
    assert state.accumulator.shape == (8, 2, 2, 4, 4) and together.shape == (8, 2, D)
    for k in range(2):
        alone = absorbed(solver, pulled[:, k], outer[:, k])[1]
        assert_close(together[:, k], np.asarray(alone), "rewritten")


@both_forms
def test_a_root_is_taken_in_its_rounds_only(form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """After rounds 1, 6, 11, ... of 20, whatever is mapped over what; once for all rankers."""
    taken, plain = [], matrix_root.matrix_root

    def counted(sums: Any) -> Any:
        jax.debug.callback(lambda: taken.append(sums.shape))
        return plain(sums)

    monkeypatch.setattr(matrix_root, "matrix_root", counted)
    streams = gradients(3, 20, 2, 3, 4)

    def run(refresh: int) -> Any:
        solver = form(0.3, refresh=refresh).cast(FLOAT)

        def one_round(state: Any, gradient: Any) -> Any:
            state = solver.absorb(state, gradient, rounds=jnp.int32(1))
            return state, (solver.weights(state), state.factor.roots)

        def one(gradients: Any) -> Any:
            return jax.lax.scan(one_round, solver.init(Problem((4,)), FLOAT), gradients)[1]

        out = jax.jit(jax.vmap(jax.vmap(one, in_axes=1), in_axes=1))(streams)
        jax.effects_barrier()
        return out

    w, roots = run(5)
    assert taken == [(6, 1, 4, 4)] * 4
    changed = np.abs(np.diff(np.asarray(roots)[1, 1, :, 0], axis=0)).max(axis=1) > 0
    assert np.flatnonzero(changed).tolist() == [4, 9, 14]
    assert np.abs(np.asarray(w) - np.asarray(run(1)[0])).max() > 1e-3
    assert len(taken) == 4 + 20


def test_compensated_sums_keep_small_terms() -> None:
    steps = jnp.full((2000, 2), FLOAT.type(1e-4))
    totals = {}
    for compensated in (False, True):
        solver = js.FullAdaGradRDA(
            0.1, initial_accumulator=1.0, compensated=compensated, block_size=1
        ).cast(FLOAT)
        totals[compensated] = float(absorbed(solver, steps, None)[0].accumulator[-1, 0, 0, 0])
    assert abs(totals[True] - (1 + 2e-5)) < 1e-6
    assert FLOAT.itemsize == 8 or totals[False] == 1.0


def test_one_vs_rest_is_a_loop_of_fits_and_sparse_rows_are_dense_ones() -> None:
    rng = np.random.default_rng(6)
    X = (rng.normal(size=(40, D)) * (rng.random((40, D)) < 0.5)).astype(FLOAT)
    labels = np.arange(40) % 3
    settings: dict[str, Any] = {"epochs": 2, "batch_size": 4, "intercept": "column", "key": 1}
    for solver in (
        js.FullAdaGradRDA(0.3, regularizer=L1, refresh=6, trips=300),
        js.FullAdaGradFOBOS(np.array([0.1, 0.2, 0.3]), 0.1, regularizer=NET, trips=300),
    ):
        whole = js.fit_one_vs_rest(solver, X, labels, **settings).model
        sparse = js.fit_one_vs_rest(solver, scipy.sparse.csr_array(X), labels, **settings).model
        assert_close(sparse.coef, np.asarray(whole.coef), "run")
        for k in range(3):
            rate = np.broadcast_to(solver.learning_rate, 3)[k]
            own = solver.map_numbers(
                lambda leaf, rate=rate: rate if leaf.name == "learning_rate" else leaf.value
            )
            one = js.fit(own, X, np.where(labels == k, 1, -1), **settings).model
            assert_close(whole.coef[k], np.asarray(one.coef), "run")


@pytest.mark.parametrize("field", ["block_size", "refresh", "trips"])
def test_settings_are_refused_by_name(field: str) -> None:
    for bad in (0, -1, 2.0, True, "3"):
        solver = js.FullAdaGradRDA(0.1, **{field: bad})
        with pytest.raises(ValueError, match=f"{field} must be an integer >= 1"):
            js.fit(solver, np.eye(2), [1, -1])
