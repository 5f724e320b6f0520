"""Structured problems and any solver: steps against the reference, runs, what is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import structured as reference
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers import structured
from jaxsolvers.decoding.problem import on_device
from jaxsolvers.engine.order import epoch_order, key_words
from jaxsolvers.members import member
from jaxsolvers.protocol import Problem
from jaxsolvers.structured import LinearChain, StructuredProblem, fit_structured
from jaxsolvers.structured.rounds import Linearized, advance, with_oracle

F = jnp.result_type(float)
N, K, D, ROUNDS, BATCH = 14, 3, 2, 20, 3
RNG = np.random.default_rng(23)
SIZES = RNG.integers(1, 5, N)
X = [RNG.normal(size=(size, D)).astype(F) for size in SIZES]
Y = [RNG.integers(0, K, size).tolist() for size in SIZES]
Y[0] = [k % K for k in range(SIZES[0])]
COST = np.array([[0, 1, 2], [1, 0, 1], [3, 1, 0]])
WEIGHT = np.where(np.arange(N) % 7 == 3, 0.0, RNG.uniform(0.5, 2, N))
WEIGHT = WEIGHT / WEIGHT[WEIGHT > 0].mean()  # as fit_structured divides them
PROBLEM = LinearChain(COST)
L1 = js.regularizers.L1(0.05)
ADAGRAD = {"learning_rate": 0.3, "delta": 0.1, "l1": 0.05}


def enumerated(w: np.ndarray, i: int) -> tuple[float, np.ndarray]:
    return reference.oracle(w, X[i].astype(float), Y[i], K, True, COST)


SOLVERS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "pegasos": (js.Pegasos(0.3), reference.pegasos, {"lam": 0.3}),
    "projected": (
        js.Pegasos(0.3, project=True), reference.pegasos, {"lam": 0.3, "project": True},
    ),
    "rda, example": (
        js.AdaGradRDA(0.3, 0.1, regularizer=L1), reference.adagrad,
        {"form": "rda", "accumulate": "example", **ADAGRAD},
    ),
    "rda, batch": (
        js.AdaGradRDA(0.3, 0.1, regularizer=L1, accumulate="batch"), reference.adagrad,
        {"form": "rda", "accumulate": "batch", **ADAGRAD},
    ),
    "fobos, example": (
        js.AdaGradFOBOS(0.3, 0.1, regularizer=L1), reference.adagrad,
        {"form": "mirror", "accumulate": "example", **ADAGRAD},
    ),
    "fobos, batch": (
        js.AdaGradFOBOS(0.3, 0.1, regularizer=L1, accumulate="batch"), reference.adagrad,
        {"form": "mirror", "accumulate": "batch", **ADAGRAD},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SOLVERS)
def test_every_one_of_20_rounds_equals_the_reference(name):
    solver, expected, settings = SOLVERS[name]
    batches = RNG.integers(0, N, (ROUNDS, BATCH))
    batches[4] = 3  # weighs nothing: no round
    given = PROBLEM.read((X, Y))
    size = PROBLEM.n_weights(given.examples)
    run = expected(enumerated, size, batches.tolist(), weights=WEIGHT, **settings)
    ready = js.Averaged(with_oracle(solver)).cast(F)
    at_zero = sum(s * enumerated(np.zeros(size), i)[0] for i, s in enumerate(WEIGHT)) / WEIGHT.sum()
    state = ready.init(Problem((size,), N, jnp.asarray(N, F), jnp.asarray(at_zero, F)), F)
    rows = on_device(given.examples, F)
    alive, problem = jnp.ones((), bool), PROBLEM.cast(F)
    weights = jnp.asarray(WEIGHT, F)
    inside = jax.jit(lambda state: (ready.solver.weights(state.inner), ready.weights(state)))
    for t, batch in enumerate(batches):
        index = jnp.asarray(batch[None], jnp.int32)
        state, alive, info = advance(problem, ready, state, alive, rows, weights, index)
        last, average = inside(state)
        assert_close(last, run.w[t].astype(F), "reference", name=f"round {t}")
        assert_close(average, run.average[t].astype(F), "reference", name=f"average {t}")
        # A loss is a difference of scores and costs of order 1.
        loss = np.array([run.loss[t]], F)
        assert_close(info.loss, loss, "reference", scale=max(1.0, run.loss[t]), name=f"loss {t}")
        assert int(info.violations[0]) == run.violations[t]
    assert bool(alive)


@pytest.mark.parametrize("order", ["cyclic", "permutation", "uniform"])
def test_a_fit_visits_the_examples_in_the_engines_order_and_resumes(order):
    options = {"batch_size": 4, "order": order, "key": 5}
    size = PROBLEM.n_weights(PROBLEM.read((X, Y)).examples)
    batches, losses = [], []
    for epoch in range(3):
        found = epoch_order(order, N, key_words(5), epoch)
        visited = np.arange(N) if found is None else found
        batches += [visited[at : at + 4].tolist() for at in range(0, N, 4)]
    run = reference.adagrad(
        enumerated, size, batches, form="rda", accumulate="example", weights=WEIGHT, **ADAGRAD
    )
    solver = SOLVERS["rda, example"][0]
    again = {"sample_weight": 3 * WEIGHT}  # only ratios count
    whole = fit_structured(solver, PROBLEM, (X, Y), epochs=3, **options, **again)
    assert_close(whole.model.weights, run.w[-1].astype(F), "run")
    weight = [sum(WEIGHT[i] for i in batch) for batch in batches]
    per_epoch = [slice(4 * epoch, 4 * epoch + 4) for epoch in range(3)]
    losses = [sum(run.loss[part]) / sum(weight[part]) for part in per_epoch]
    np.testing.assert_allclose(whole.history["progressive_loss"], losses, rtol=1e-4)
    violations = [sum(run.violations[part]) for part in per_epoch]
    np.testing.assert_array_equal(whole.history["violations"], violations)
    assert whole.history["seconds"].shape == (3,)
    part = fit_structured(solver, PROBLEM, (X, Y), epochs=1, **options, **again)
    kept = jax.tree.map(np.asarray, part.state.solver_state)
    for _ in range(2):  # a state serves twice
        rest = fit_structured(solver, PROBLEM, (X, Y), epochs=2, state=part.state, **again)
        assert_bitwise(np.asarray(rest.model.weights), np.asarray(whole.model.weights))
        np.testing.assert_array_equal(
            np.concatenate([part.history["violations"], rest.history["violations"]]),
            whole.history["violations"],
        )
    assert_bitwise(jax.tree.map(np.asarray, part.state.solver_state), kept)
    assert int(rest.state.epoch) == 3


def test_a_projected_fit_stays_in_the_ball_of_its_losses_at_0():
    size = PROBLEM.n_weights(PROBLEM.read((X, Y)).examples)
    batches = [list(range(at, min(at + 4, N))) for at in range(0, N, 4)] * 3
    run = reference.pegasos(enumerated, size, batches, lam=0.3, weights=WEIGHT, project=True)
    options = {"batch_size": 4, "order": "cyclic", "sample_weight": WEIGHT, "epochs": 3}
    fit = fit_structured(js.Pegasos(0.3, project=True), PROBLEM, (X, Y), **options)
    assert_close(fit.model.weights, run.w[-1].astype(F), "run")


def test_every_solver_of_one_vector_learns_and_others_are_refused():
    tagged = js.data.hidden_tags(30, 2, 3, length=4, separation=2.0, dtype=F)
    given = (tagged.sequences, tagged.labels)
    solvers = [
        js.SGD(0.01, 0.1), js.NORMA(0.02, 0.01), js.RDA(0.3, regularizer=L1), js.FOBOS(0.3),
        js.FullAdaGradFOBOS(0.3, 0.1, block_size=4),
        js.AdaGradRDA(lambda t: 0.3 / jnp.sqrt(t.astype(F)), 0.1),
    ]  # fmt: skip
    for solver in solvers:
        fit = fit_structured(solver, LinearChain(), given, epochs=8, batch_size=2)
        at_zero = fit.model.problem.cast(F), jnp.zeros_like(fit.model.weights)
        zero = structured.StructuredModel(at_zero[0], at_zero[1], fit.model.classes)
        before, after = (structured.objective(solver, m, given) for m in (zero, fit.model))
        assert after < 0.7 * before, type(solver).__name__
    joint = js.AdaGradRDA(0.1, loss=js.losses.MulticlassHinge())
    grouped = js.AdaGradRDA(0.1, regularizer=js.regularizers.GroupL2(0.1, axis=-2))
    for solver, message in (
        (js.SDCA(0.1), "solver must take any loss"),
        (js.AROW(), "solver must take any loss"),
        (js.PassiveAggressive(), "solver must take any loss"),
        (js.SVRG(0.1, 0.1, js.losses.Hinge()), "solver must not look at all examples"),
        (js.Pegasos(0.1, bias="unregularized"), "solver must have bias='none'"),
        (js.KernelPegasos(0.1, js.kernels.Linear()), "solver must have no kernel"),
        (js.Pegasos(0.1, loss=js.losses.Logistic()), "loss must be left at its default"),
        (joint, "loss must be left at its default"),
        (grouped, "GroupL2 couples classes"),
        (js.Pegasos(np.array([0.1, 0.2])), "lam must be a single number"),
        (js.Pegasos(-1), "lam must be a finite number > 0"),
        ("pegasos", "solver must be a jaxsolvers solver"),
    ):
        with pytest.raises(ValueError, match=message):
            fit_structured(solver, LinearChain(), given)


def test_arguments_and_states_are_checked():
    part = fit_structured(js.Pegasos(0.1), LinearChain(), (X, Y))
    rows, labels = np.concatenate(X), np.concatenate(Y)
    joint = js.AdaGradRDA(0.1, loss=js.losses.MulticlassHinge())
    other = js.fit(joint, rows, labels)
    with pytest.raises(ValueError, match="state was made with output = 'structure'"):
        js.fit(joint, rows, labels, state=part.state)
    for options, message in (
        ({"epochs": 0}, "epochs must be"),
        ({"batch_size": N + 1}, "batch_size must be at most"),
        ({"order": "random"}, "order must be one of"),
        ({"key": -1}, "key must be"),
        ({"sample_weight": np.ones(3)}, "sample_weight must have"),
        ({"state": part}, "state must be the state"),
        ({"state": part.state, "batch_size": 2}, "state was made with batch_size = 1"),
        ({"state": other.state}, "state was made with"),
        ({"problem": LinearChain(ends=False), "state": part.state}, "state was made with"),
        ({"problem": LinearChain(COST), "state": part.state}, "solver.problem.cost"),
        ({"problem": "chain"}, "problem must be one such as"),
        (
            {"examples": (X, [["z"] * len(y) for y in Y]), "state": part.state},
            "holds the label 'z'",
        ),
    ):
        arguments = {"problem": LinearChain(), "examples": (X, Y)} | options
        with pytest.raises(ValueError, match=message):
            fit_structured(js.Pegasos(0.1), **arguments)
    with pytest.raises(FloatingPointError, match="change learning_rate, or scale X"):
        huge = [1e30 * x.astype(np.float32) for x in X]
        fit_structured(
            js.AdaGradFOBOS(1e30, 1e-30, initial_accumulator=0), LinearChain(), (huge, Y)
        )


# ---- multiclass ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("cls", "accumulate", "cost"),
    [(js.AdaGradRDA, "example", COST), (js.AdaGradFOBOS, "batch", None)],
)
def test_sequences_of_one_label_are_the_multiclass_hinge(cls, accumulate, cost):
    rows = np.concatenate(X)
    labels = np.concatenate(Y)
    loss = js.losses.MulticlassHinge(cost)
    options = {"order": "cyclic", "batch_size": 3}
    own = {"regularizer": js.regularizers.L1(0.01), "accumulate": accumulate}
    joint, chain = cls(0.3, 0.1, loss=loss, **own), cls(0.3, 0.1, **own)
    problem = LinearChain(cost, ends=False)
    given = rows[:, None], labels[:, None]
    expected = ours = None
    for _ in range(3):  # after every pass
        expected = js.fit(joint, rows, labels, **options, state=expected and expected.state)
        ours = fit_structured(chain, problem, given, **options, state=ours and ours.state)
        parts = ours.model.parts
        assert_close(parts["emission"], np.asarray(expected.model.coef), "reference")
        assert not np.asarray(parts["transition"]).any()
        for name in ("progressive_loss", "violations"):
            np.testing.assert_allclose(ours.history[name], expected.history[name], rtol=1e-5)
    found = np.concatenate(ours.model.predict(given[0]))
    np.testing.assert_array_equal(found, expected.model.predict(rows))


# ---- cases -----------------------------------------------------------------------------------
@member
class Fixed(StructuredProblem):
    """Examples that hold their own margin at 0 and sub-gradient."""

    def n_weights(self, examples: Any) -> int:
        return int(examples["slope"].shape[-1])

    def decode(self, weights: Any, example: Any) -> Any:
        return jnp.zeros((), jnp.int32)

    augmented = decode

    def delta(self, example: Any, structure: Any) -> Any:
        return example["margin"]

    def difference(self, example: Any, structure: Any) -> Any:
        return example["slope"]


def fixed(margin: list[float], slope: list[list[float]]) -> dict[str, np.ndarray]:
    return {"margin": np.array(margin, F), "slope": np.array(slope, F)}


def test_the_sub_gradient_of_a_batch_is_the_mean_case_175():
    two = fixed([100.0, 100.0], [[2, 0], [0, 4]])
    four = {name: np.concatenate([value, value]) for name, value in two.items()}
    for examples in (two, four):
        n = len(examples["margin"])
        whole = {"batch_size": n, "order": "cyclic"}
        fit = fit_structured(js.Pegasos(0.5), Fixed(), examples, **whole)
        # The first step is -g/lam.
        np.testing.assert_array_equal(-0.5 * np.asarray(fit.model.weights), [1, 2])
        fit = fit_structured(js.FOBOS(1.0), Fixed(), examples, **whole)
        np.testing.assert_array_equal(-np.asarray(fit.model.weights), [1, 2])
        batch = js.AdaGradFOBOS(1.0, accumulate="batch")
        state = fit_structured(batch, Fixed(), examples, **whole).state.solver_state
        np.testing.assert_array_equal(state.accumulator, [1, 4])


def test_losses_are_clipped_per_example_and_then_averaged_case_176():
    examples = fixed([0.5, -0.3], [[1.0], [1.0]])
    solver = js.Pegasos(1.0)
    fit = fit_structured(solver, Fixed(), examples, batch_size=2)
    np.testing.assert_allclose(fit.history["progressive_loss"], [0.25], rtol=1e-6)
    assert fit.history["violations"].tolist() == [1.0]
    at_zero = structured.StructuredModel(Fixed(), np.zeros(1, F))
    value = structured.objective(solver, at_zero, examples)
    np.testing.assert_allclose(value, 0.25, rtol=1e-6)
    with pytest.raises(ValueError, match="problem must be one of LinearChain to be saved"):
        at_zero.save("nowhere.npz")
    with pytest.raises(ValueError, match="no decision values"):
        at_zero.decision_function(examples)
    with pytest.raises(ValueError, match="lengths must be None for Fixed"):
        at_zero.predict(examples, [1, 1])
    with pytest.raises(ValueError, match="examples must be arrays with the examples"):
        fit_structured(solver, Fixed(), {"margin": np.zeros(2), "slope": np.zeros((3, 1))})


def test_the_stand_in_for_the_loss_is_linear():
    value, slope = Linearized().value_and_slope(jnp.array([2.0, -1.0]), jnp.array([0.5, 3.0]))
    assert value.tolist() == [2.5, 2.0] and slope.tolist() == [1.0, 1.0]
