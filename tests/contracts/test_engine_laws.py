"""Laws of whole runs: chunks, devices, split runs, traces, programs, lost rankers."""

from __future__ import annotations

import dataclasses
import re
import warnings
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
from contracts.streams import FLOAT
from jax.sharding import Mesh
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers.engine import run as engine_run
from jaxsolvers.engine import tile, tile_questions
from jaxsolvers.protocol import Solver

one_of_each = members.every_solver(few=members.one_of_each)
DEVICES = Mesh(np.array(jax.devices()), ("rankers",))
FEW, MANY = 20, 1100  # rankers: one tile of 32, and three of 512 with dummies in the last
HISTORY = ("progressive_loss", "mistakes", "violations")


@cache
def rows(n: int, d: int, n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, labels and sample weights, some of them 0."""
    rng = np.random.default_rng(n)
    X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)).astype(FLOAT)
    weight = rng.uniform(0.5, 1.5, n) * (rng.random(n) < 0.9)
    return X, rng.integers(n_classes, size=n), weight


def batch_size(solver: Solver) -> int:
    """Gram sweeps of single rows, true batches elsewhere."""
    return members.rows_per_round(solver, 1 if solver.gram else 4)


def few(solver: Solver, **changed: Any) -> Any:
    X, labels, weight = rows(60, 6, FEW)
    options = {"classes": np.arange(FEW), "sample_weight": weight, "epochs": 2}
    options |= {"batch_size": None if "state" in changed else batch_size(solver)}
    return js.fit_one_vs_rest(solver, X, labels, **(options | changed))


def many(solver: Solver, **changed: Any) -> Any:
    """Rankers that differ in their classes, weights and in one number."""
    X, labels, weight = rows(120, 12, MANY)
    first = next(iter(solver.numbers())).name
    spread = np.linspace(0.5, 2.0, MANY)
    varied = solver.map_numbers(
        lambda leaf: np.asarray(leaf.value * spread) if leaf.name == first else leaf.value
    )
    return js.fit_one_vs_rest(
        varied, X, labels, classes=np.arange(MANY), sample_weight=weight,
        positive_weight=1 + spread, batch_size=batch_size(solver), **changed,
    )  # fmt: skip


def result(fit: Any) -> dict[str, Any]:
    """All that a run leaves behind, rankers on the first axis, without the dummies."""
    tiles = [jax.tree.map(np.asarray, state) for state in fit.state.tiles()]
    n_rankers = len(fit.state.alive)
    state = jax.tree.map(lambda *parts: np.concatenate(parts)[:n_rankers], *tiles)
    return {
        "coef": np.asarray(fit.model.coef),
        "intercept": np.asarray(fit.model.intercept),
        "alive": np.asarray(fit.state.alive),
        "state": jax.tree.leaves(state),
        "history": [fit.history[name].T for name in HISTORY],
    }


def pick(found: Any, which: Any) -> Any:
    """The rankers of a result or a part of it."""
    return jax.tree.map(lambda leaf: leaf[which], found)


# ---- the same bits -------------------------------------------------------------------------------
@members.every_solver(js.Pegasos(0.3, project=True), few=members.one_of_each)
def test_chunks_and_devices_give_the_same_bits_as_the_whole(solver: Solver) -> None:
    whole = result(many(solver))
    assert whole["coef"].shape == (MANY, 12)
    assert (np.ptp(whole["coef"], axis=0) > 0).mean() > 0.5
    assert whole["alive"].all()
    for change in ({"chunk_size": 700}, {"mesh": DEVICES}):
        assert_bitwise(result(many(solver, **change)), whole, name=str(change))


@one_of_each
def test_a_split_run_gives_the_same_bits_as_the_whole(solver: Solver) -> None:
    whole = few(solver, epochs=3)
    first = few(solver, epochs=1)
    halves = few(solver, epochs=2, state=first.state)
    joined = result(halves)
    joined["history"] = [
        np.concatenate([first.history[name], halves.history[name]]).T for name in HISTORY
    ]
    assert_bitwise(joined, result(whole))
    # the state was copied, not donated: it continues a second time
    assert_bitwise(result(few(solver, epochs=2, state=first.state)), result(halves))


@pytest.mark.filterwarnings("ignore:1 of 1100 rankers left:RuntimeWarning")
def test_chunks_and_devices_continue_a_run_with_the_same_bits() -> None:
    """A ranker of the second tile was lost before: it stays as it was, and lost."""
    solver, lost = js.AdaGradFOBOS(0.1), np.arange(MANY) == 700
    first, whole = many(solver, epochs=1), result(many(solver, epochs=2))
    with_loss = dataclasses.replace(first.state, alive=first.state.alive & ~lost)
    for change in ({}, {"chunk_size": 512}, {"mesh": DEVICES}):
        resumed = result(many(solver, epochs=1, state=with_loss, **change))
        for name in ("coef", "state", "alive"):
            ours, theirs = resumed[name], whole[name]
            assert_bitwise(pick(ours, ~lost), pick(theirs, ~lost), name=f"{change} {name}")
        assert_bitwise(pick(resumed["state"], lost), pick(result(first)["state"], lost))
        assert not resumed["alive"][lost].any()


@pytest.mark.parametrize("solver", [js.Averaged(js.Pegasos(0.1)), js.AdaGradFOBOS(0.1)])
def test_a_split_run_of_one_ranker_gives_the_same_bits_as_the_whole(solver: Solver) -> None:
    X, labels, _ = rows(60, 6, FEW)
    whole = js.fit(solver, X, labels < 10, epochs=3, batch_size=7, key=3)
    first = js.fit(solver, X, labels < 10, epochs=2, batch_size=7, key=3)
    second = js.fit(solver, X, labels < 10, epochs=1, state=first.state)
    assert_bitwise(second.model.coef, whole.model.coef)
    assert_bitwise(second.state.solver_state, whole.state.solver_state)


@members.every_solver(where=members.drawless, few=members.one_of_each)
def test_permuting_classes_permutes_rankers(solver: Solver) -> None:
    order = np.random.default_rng(1).permutation(FEW)
    permuted = result(few(solver, classes=order))
    assert_close(permuted, pick(result(few(solver)), order), "compiled")


@one_of_each
def test_a_row_of_weight_zero_is_a_row_left_out(solver: Solver) -> None:
    X, labels, weight = rows(60, 6, FEW)
    options: dict[str, Any] = {"order": "cyclic", "epochs": 1}
    live = weight > 0
    assert 40 < live.sum() < 60
    # Batches of the same rows: single ones, or all of them.
    single = members.rows_per_round(solver, 1) == 1
    sizes = (1, 1) if single else (len(X), int(live.sum()))
    kept = few(solver, batch_size=sizes[0], **options)
    left_out = js.fit_one_vs_rest(
        solver, X[live], labels[live], classes=np.arange(FEW), sample_weight=weight[live],
        batch_size=sizes[1], **options,
    )  # fmt: skip
    assert_close(result(kept)["coef"], np.asarray(left_out.model.coef), "rewritten")
    for name in HISTORY:
        ours = kept.history[name].astype(FLOAT)
        assert_close(ours, left_out.history[name], "rewritten", name=name)


# ---- traces --------------------------------------------------------------------------------------
def programs() -> tuple[int, ...]:
    return tuple(f._cache_size() for f in (tile.advance, tile.begin, tile_questions.tile_weights))


@one_of_each
def test_new_numbers_make_no_new_program(solver: Solver) -> None:
    few(solver)
    before = programs()
    other = members.other_numbers(solver)
    few(other)
    for kind in (np.float32, np.float64, jnp.asarray):
        few(
            other.map_numbers(
                lambda leaf, kind=kind: leaf.value if leaf.spec.integer else kind(leaf.value)
            )
        )
    name = next(iter(other.numbers())).name
    varied = np.linspace(0.1, 0.2, FEW)
    few(other.map_numbers(lambda leaf: varied if leaf.name == name else leaf.value))
    few(other, epochs=1, positive_weight=2.0, key=5, order="uniform", sample_weight=None)
    assert programs() == before


@pytest.mark.parametrize("cls", members.discover(Solver))
def test_a_new_choice_makes_a_new_program(cls: type) -> None:
    some = {type(solver): solver for solver in reversed(members.product())}[cls]
    if "loss" in members.part_fields(cls) and len(members.choices(cls)) > 2:
        some = dataclasses.replace(some, loss=js.losses.Hinge())  # with which all choices go
    options = [dataclasses.replace(some, **chosen) for chosen in members.choices(cls)]
    options = list(filter(members.is_valid, options))
    few(some)
    for solver in options:
        few(solver)
    before = tile.advance._cache_size()
    for solver in options:
        few(solver)
    assert tile.advance._cache_size() == before >= len(options)


def test_two_solvers_with_like_fields_take_turns_and_never_share_a_program() -> None:
    forms = (js.AdaGradRDA, js.AdaGradFOBOS)
    make = {form: lambda form=form: few(form(0.1, loss=js.losses.Logistic())) for form in forms}
    alone = {form: result(make[form]()) for form in forms}
    assert np.abs(alone[forms[0]]["coef"] - alone[forms[1]]["coef"]).max() > 1e-3
    for _ in range(5):
        for form in forms:
            assert_bitwise(result(make[form]()), alone[form])


# ---- programs ------------------------------------------------------------------------------------
LARGEST = 1 << 20
COLLECTIVES = (
    "all-reduce", "all-gather", "all-to-all", "collective-permute", "collective-broadcast",
    "reduce-scatter", "partition-id", " send(", " recv(",
)  # fmt: skip
SIZES = {"pred": 1, "s8": 1, "u8": 1, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}


class Captured(Exception):
    """Raised in place of the first call, with the program in its arguments."""


def captured(run: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """(compiled text, header of the lowered text) of the first ``advance`` of a run, not run."""

    def advance(*args: Any, plan: Any) -> Any:
        lowered = tile.advance.lower(*args, plan=plan)
        n_leaves = len(jax.tree.leaves(args))
        raise Captured(lowered.compile().as_text(), n_leaves)

    monkeypatch.setattr(engine_run, "advance", advance)
    with pytest.raises(Captured) as caught:
        run()
    return caught.value.args


def largest_constant(compiled: str) -> int:
    """Bytes of the largest constant of a compiled program's text."""
    found = re.findall(r"= (\w+)\[([\d,]*)\]\S* constant\(", compiled)
    sizes = [
        SIZES[kind] * int(np.prod([int(n) for n in dims.split(",") if n])) for kind, dims in found
    ]
    return max(sizes, default=0)


def n_parameters(compiled: str) -> int:
    """Inputs of the entry computation."""
    entry = compiled[compiled.index("ENTRY ") :]
    return len(re.findall(r" parameter\(\d+\)", entry[: entry.index("\n}")]))


@one_of_each
def test_the_program_of_four_devices_has_no_collective_and_no_large_constant(
    solver: Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, labels, _ = rows(20_000, 20, FEW)
    assert X.nbytes > LARGEST  # so that X itself, folded into the program, would be seen
    compiled, n_leaves = captured(
        lambda: js.fit_one_vs_rest(solver, X, labels, mesh=DEVICES, batch_size=batch_size(solver)),
        monkeypatch,
    )
    assert "num_partitions=4" in compiled
    assert not [word for word in COLLECTIVES if word in compiled]
    assert largest_constant(compiled) < LARGEST
    assert n_parameters(compiled) <= n_leaves  # nor is it an input that nobody handed in


def test_the_measure_of_constants_sees_an_array_closed_over() -> None:
    folded = jnp.asarray(np.random.default_rng(0).normal(size=(600, 600)))
    compiled = jax.jit(lambda w: w @ folded).lower(jnp.ones(600)).compile().as_text()
    assert largest_constant(compiled) >= LARGEST or n_parameters(compiled) > 1


# ---- types ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "solver", [js.Pegasos(0.1, project=True), js.Averaged(js.AdaGradRDA(0.1)), js.AdaGradFOBOS(0.1)]
)
def test_single_precision_stays_single_precision(solver: Solver) -> None:
    X, labels, _ = rows(60, 6, FEW)
    fit = js.fit_one_vs_rest(solver, X.astype(np.float32), labels)
    assert fit.model.coef.dtype == fit.model.intercept.dtype == np.float32
    types = {np.dtype(leaf.dtype) for leaf in jax.tree.leaves(fit.state.solver_state)}
    assert types == {np.dtype(np.float32), np.dtype(np.int32)}
    assert fit.state.alive.dtype == bool
    resumed = js.fit_one_vs_rest(solver, X.astype(np.float32), labels, state=fit.state)
    assert resumed.model.coef.dtype == np.float32


# ---- lost rankers --------------------------------------------------------------------------------
@one_of_each
def test_a_ranker_beyond_the_floats_never_changes_the_bits_of_its_neighbours(
    solver: Solver,
) -> None:
    """One ranker's step size is as large as floats are; alive tells if that was too much."""
    limits = np.finfo(FLOAT)
    steps = {
        "lam": limits.tiny,
        "r": limits.tiny,
        "learning_rate": limits.max / 2,
        "C": limits.max / 2,
    }
    step = next(n for n, _, _ in solver.numbers() if n.split(".")[-1] in steps)
    extreme = steps[step.split(".")[-1]]
    own = np.arange(FEW) == 3

    def rates(sick: bool) -> Solver:
        return solver.map_numbers(
            lambda leaf: (
                np.where(own & sick, float(extreme), leaf.value)
                if leaf.name == step
                else leaf.value
            )
        )

    healthy = result(few(rates(False)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        fit = few(rates(True))
    assert_bitwise(pick(result(fit), ~own), pick(healthy, ~own))
    assert fit.state.alive[~own].all()
    assert np.isfinite(fit.model.coef).all()
    assert fit.state.alive[3] or fit.model.intercept[3] == -np.inf


def test_a_lost_ranker_is_told_once_and_by_number() -> None:
    rate = np.where(np.arange(FEW) == 7, float(np.finfo(FLOAT).max / 2), 0.1)
    solver = js.AdaGradFOBOS(rate, loss=js.losses.Squared())
    with pytest.warns(
        RuntimeWarning, match=r"1 of 20 rankers .* first is 7.*learning_rate"
    ) as caught:
        fit = few(solver)
    assert len(caught) == 1
    assert np.flatnonzero(~np.asarray(fit.state.alive)).tolist() == [7]
    np.testing.assert_array_equal(fit.model.coef[7], 0)
