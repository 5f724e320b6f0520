"""Laws of classes trained as one problem: joint losses, and regularizers that couple rankers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
import scipy.sparse
from jax.sharding import Mesh
from references import joint as reference
from test_losses_joint import COST, FLOAT, C, known_as
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem

N, D = 60, 5
DEVICES = Mesh(np.array(jax.devices()), ("rankers",))
LOSSES = [*members.joint_losses(), js.losses.MulticlassHinge(COST)]
PENALTIES: list[tuple[Any, reference.Prox]] = [
    (js.regularizers.NoRegularizer(), reference.identity),
    (js.regularizers.L1(0.02), reference.soft(0.02)),
]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=["hinge", "logistic", "costs"])


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, classes and weights, some of them 0; one column never seen, one seldom."""
    rng = np.random.default_rng(seed)
    X = 0.5 * rng.normal(size=(N, D))
    X[:, 1] *= rng.random(N) < 0.3
    X[:, 2] = 0
    labels = rng.permutation(np.arange(N) % C)
    X[:, 3] += 0.7 * (labels == 1)
    weight = rng.uniform(0.5, 1.5, N) * (rng.random(N) < 0.85)
    weight /= weight[weight > 0].mean()
    return X.astype(FLOAT), labels.astype(np.int32), weight


def solvers(loss: Any) -> list[Any]:
    return [
        js.AdaGradRDA(0.3, 0.1, loss=loss, regularizer=js.regularizers.L1(0.01)),
        js.AdaGradFOBOS(0.3, loss=loss, accumulate="batch", compensated=True),
        js.RDA(0.3, loss=loss),
        js.FOBOS(0.3, loss=loss, regularizer=js.regularizers.SquaredL2(0.1)),
        js.Averaged(js.AdaGradFOBOS(0.3, loss=loss, regularizer=js.regularizers.L1(0.01))),
        js.Pegasos(0.3, loss, project=True),
        js.Averaged(js.NORMA(0.3, 0.5, loss)),
    ]


# ---- against the reference -----------------------------------------------------------------------
@pytest.mark.parametrize("k", [1, 7])
@every_loss
def test_every_round_equals_the_numpy_loop(loss: Any, k: int) -> None:
    X, labels, weight = data()
    index = np.append(np.arange(N), np.full(-N % k, N)).reshape(-1, k)[:20]
    batches = [[i for i in batch if i < N] for batch in index.tolist()]
    padded = [np.concatenate([a, np.zeros_like(a[:1])])[index] for a in (X, labels, weight)]
    x, y, s = (jnp.asarray(a, t) for a, t in zip(padded, (FLOAT, jnp.int32, FLOAT), strict=True))
    rounds = Batch(Dense(x), y, s, jnp.asarray(index, jnp.int32))
    for form, make in (("rda", js.AdaGradRDA), ("mirror", js.AdaGradFOBOS)):
        for accumulate in ("example", "batch"):
            for regularizer, prox in PENALTIES:
                solver = make(
                    0.3, 0.05, loss=loss, regularizer=regularizer, accumulate=accumulate
                ).cast(FLOAT)
                run = reference.adagrad(
                    X.astype(float), labels, batches, known_as(loss), prox, n_classes=C, form=form,
                    learning_rate=0.3, delta=0.05, accumulate=accumulate, weights=weight,
                )  # fmt: skip
                states, weights, info = trajectory(solver, rounds)
                name = f"{form} {accumulate} {type(regularizer).__name__}"
                assert_close(weights, np.array(run.w), "run", name=name)
                assert_close(states.accumulator, np.array(run.accumulator), "run", name=name)
                np.testing.assert_array_equal(states.t, run.t)
                assert_close(info.loss, np.array(run.loss), "run", name=name)
                np.testing.assert_array_equal(info.mistakes, run.mistakes)
                np.testing.assert_array_equal(info.violations, run.violations)


@jax.jit
def trajectory(solver: Any, rounds: Batch) -> Any:
    def one_round(state: Any, batch: Batch) -> Any:
        state, info = solver.update(state, batch)
        return state, (state, solver.weights(state), info)

    return jax.lax.scan(one_round, solver.init(Problem((C, D), N), FLOAT), rounds)[1]


def test_fit_in_file_order_is_the_numpy_loop() -> None:
    X, labels, weight = data(1)
    names = np.array(["ant", "bee", "cat", "dog"])
    loss = js.losses.MulticlassHinge()
    run = reference.adagrad(
        X.astype(float), labels, [[i] for i in range(N)] * 2, known_as(loss), reference.identity,
        n_classes=C, form="mirror", learning_rate=0.3, delta=0.0, accumulate="example",
        weights=weight,
    )  # fmt: skip
    fit = js.fit(
        js.AdaGradFOBOS(0.3, loss=loss), X, names[labels], epochs=2, order="cyclic",
        sample_weight=weight,
    )  # fmt: skip
    assert fit.model.coef.shape == (C, D)
    assert fit.model.classes.tolist() == names.tolist()
    assert_close(fit.model.coef, run.w[-1], "run")
    best = (X @ run.w[-1].T).argmax(axis=1)
    np.testing.assert_array_equal(fit.model.predict(X), names[best])
    losses = np.reshape(run.loss, (2, N)).sum(axis=1) / weight.sum()
    assert_close(fit.history["progressive_loss"].astype(FLOAT), losses, "run")
    mistakes = np.reshape(run.mistakes, (2, N)).sum(axis=1)
    np.testing.assert_array_equal(fit.history["mistakes"], mistakes)


# ---- the same whatever runs it -------------------------------------------------------------------
@every_loss
def test_sparse_rows_devices_and_split_runs_give_the_same(loss: Any) -> None:
    X, labels, weight = data(2)
    sparse = scipy.sparse.csr_array(X)
    for solver in solvers(loss)[LOSSES.index(loss) % 2 :: 2]:
        settings: dict[str, Any] = {"sample_weight": weight, "batch_size": 4, "intercept": "column"}
        whole = js.fit(solver, X, labels, epochs=2, **settings)
        rows = js.fit(solver, sparse, labels, epochs=2, **settings)
        assert_close(rows.model.coef, whole.model.coef, "run", scale=1.0)
        assert_close(rows.model.intercept, whole.model.intercept, "run", scale=1.0)
        apart = js.fit(solver, X, labels, epochs=2, mesh=DEVICES, **settings)
        assert_bitwise(np.asarray(apart.model.coef), np.asarray(whole.model.coef))
        first = js.fit(solver, X, labels, epochs=1, **settings)
        second = js.fit(solver, X, labels, state=first.state, sample_weight=weight)
        assert_bitwise(second.model.coef, whole.model.coef)
        assert whole.model.intercept.shape == (C,) and (whole.model.intercept != 0).any()


@every_loss
def test_rows_of_weight_zero_change_nothing(loss: Any) -> None:
    X, labels, _ = data(3)
    x, y = Dense(jnp.asarray(X[:7])), jnp.asarray(labels[:7])
    for solver in solvers(loss):
        own = solver.cast(FLOAT)
        state = own.init(Problem((C, D), N, loss_at_zero=jnp.ones((), FLOAT)), FLOAT)
        index = jnp.arange(7, dtype=jnp.int32)
        state, _ = step(own, state, Batch(x, y, jnp.ones(7, FLOAT), index))
        after, info = step(own, state, Batch(x, y, jnp.zeros(7, FLOAT), index))
        assert_bitwise(after, state)
        assert [float(field) for field in info] == [0, 0, 0, 0, 1]
        for leaf, old in zip(jax.tree.leaves(after), jax.tree.leaves(state), strict=True):
            assert (leaf.dtype, leaf.shape, leaf.weak_type) == (old.dtype, old.shape, old.weak_type)


@jax.jit
def step(solver: Any, state: Any, rows: Batch) -> Any:
    return solver.update(state, rows)


def test_the_objective_is_that_of_all_classes() -> None:
    X, labels, weight = data(4)
    loss = js.losses.MulticlassHinge(COST)
    solver = js.AdaGradFOBOS(0.3, loss=loss, regularizer=js.regularizers.L1(0.01))
    model = js.fit(solver, X, labels, intercept="column").model
    z = X @ np.asarray(model.coef, float).T + np.asarray(model.intercept, float)
    losses = [reference.hinge(row, int(y), COST)[0] for row, y in zip(z, labels, strict=True)]
    expected = np.average(losses, weights=weight) + 0.01 * np.abs(model.coef).sum()
    ours = js.metrics.objective(solver, model, X, labels, sample_weight=weight)
    assert ours.shape == ()
    np.testing.assert_allclose(ours, expected, rtol=1e-5)


# ---- refusals ------------------------------------------------------------------------------------
def test_what_does_not_fit_is_refused_by_name() -> None:
    X, labels, _ = data()
    joint = js.losses.MulticlassHinge()
    with pytest.raises(ValueError, match="loss must be one with a dual step for SDCA"):
        js.fit(js.SDCA(0.1, loss=joint), X, labels)
    with pytest.raises(ValueError, match="bias='batch' must come with loss Hinge, got Multiclass"):
        js.fit(js.Pegasos(0.1, loss=joint, bias="batch"), X, labels, batch_size=4)
    with pytest.raises(ValueError, match=r"loss must be a loss of one score here.*js.fit takes"):
        js.fit_one_vs_rest(js.AdaGradFOBOS(0.1, loss=joint), X, labels)
    with pytest.raises(ValueError, match="y must hold two classes"):
        js.fit(js.AdaGradFOBOS(0.1, loss=joint), X, 0 * labels)
    first = js.fit(js.AdaGradFOBOS(0.1, loss=joint), X, labels)
    with pytest.raises(ValueError, match="y holds the label 7"):
        js.fit(js.AdaGradFOBOS(0.1, loss=joint), X, labels + 7, state=first.state)
