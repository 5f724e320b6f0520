"""Batches of rows: lists of them, iterators, and runs continued batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
import scipy.sparse
from references import averages, pegasos
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js

F = jnp.result_type(float)
RNG = np.random.default_rng(4)
N, D, K = 61, 5, 4
X = (RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.6)).astype(F)
LABELS = np.arange(N) % K
CUTS = list(zip(range(0, N, 12), [*range(12, N, 12), N], strict=True))  # the last one is short
SOLVERS = [
    js.Averaged(js.Pegasos(0.1), start=20),
    js.Averaged(js.AdaGradRDA(0.3), kind="random"),
    js.AdaGradFOBOS(0.3, 0.01, regularizer=js.regularizers.ElasticNet(0.01, 0.1)),
]


def batches(rows: Any = X, y: Any = LABELS, *more: Any) -> list[tuple[Any, ...]]:
    return [tuple(part[a:b] for part in (rows, y, *more)) for a, b in CUTS]


def once(given: list[Any]) -> Iterator[Any]:
    yield from given


@pytest.mark.parametrize("sparse", [False, True])
@members.each(SOLVERS, "solver")
def test_an_iterator_is_its_batches_one_by_one_and_the_rows_in_one_run(
    solver: Any, sparse: bool
) -> None:
    rows = scipy.sparse.csr_matrix(X) if sparse else X
    settings: dict[str, Any] = {"order": "cyclic", "intercept": "column", "batch_size": 4, "key": 5}
    parts: list[js.Fit] = []
    for part, y in batches(rows):
        state = parts[-1].state if parts else None
        parts.append(js.fit_one_vs_rest(solver, part, y, state=state, **settings))
    streamed = js.fit_one_vs_rest(solver, once(batches(rows)), **settings)
    assert_bitwise(
        jax.tree.map(np.asarray, jax.tree.leaves((streamed.model.coef, streamed.state))),
        jax.tree.map(np.asarray, jax.tree.leaves((parts[-1].model.coef, parts[-1].state))),
    )
    whole = js.fit_one_vs_rest(solver, rows, LABELS, **settings)
    listed = js.fit_one_vs_rest(solver, batches(rows), **settings)
    for fit in (streamed, listed):
        assert_close(fit.model.coef, whole.model.coef, "run", scale=1.0)
        assert_close(fit.model.intercept, whole.model.intercept, "run", scale=1.0)
    for name in ("mistakes", "violations", "positives"):
        expected = np.stack([part.history[name][0] for part in parts])
        np.testing.assert_array_equal(streamed.history[name], expected)
        np.testing.assert_array_equal(streamed.history[name].sum(axis=0), whole.history[name][0])
    assert streamed.history["epochs_run"].tolist() == [1] * K


@pytest.mark.parametrize("kind", ["uniform", "polynomial"])
def test_the_average_at_any_time_is_that_of_the_rounds_so_far(kind: str) -> None:
    y = np.where(LABELS < 2, 1.0, -1.0)
    run = pegasos.pegasos(X.astype(float), y, [[i] for i in range(N)], lam=0.2)
    args = (np.zeros(D), run.w, run.t)
    mean = averages.uniform_average(*args)
    if kind == "polynomial":
        mean = averages.polynomial_average(*args, power=3.0)
    fit: Any = None
    for (a, b), batch in zip(CUTS, batches(X, y), strict=True):
        state = None if fit is None else fit.state
        solver = js.Averaged(js.Pegasos(0.2), kind=kind)
        fit = js.fit(solver, batch, order="cyclic", state=state)
        assert_close(fit.model.coef, mean[b - 1], "run", name=f"rows {a} ... {b - 1}")
    assert int(fit.state.solver_state.counts.t) == N


def test_weights_of_a_stream_are_used_as_given() -> None:
    weight = RNG.uniform(0.5, 4, N) * (RNG.random(N) < 0.8)
    weight[CUTS[2][0] : CUTS[2][1]] = 0  # a batch that weighs nothing changes nothing
    y = np.where(LABELS < 2, 1.0, -1.0)
    fit = js.fit(js.Pegasos(0.2), once(batches(X, y, weight)), order="cyclic")
    run = pegasos.pegasos(X.astype(float), y, [[i] for i in range(N)], lam=0.2, weights=weight)
    assert_close(fit.model.coef, run.w[-1], "run")
    assert int(fit.state.solver_state.scalars.t) == (weight > 0).sum()
    many = js.fit_one_vs_rest(
        js.Pegasos(0.2), once(batches(X, LABELS, weight)), order="cyclic", positive_weight=3.0
    )
    own = weight * np.where(LABELS == 1, 3.0, 1.0)
    y = np.where(LABELS == 1, 1.0, -1.0)
    run = pegasos.pegasos(X.astype(float), y, [[i] for i in range(N)], lam=0.2, weights=own)
    assert_close(many.model.coef[1], run.w[-1], "run")


def test_a_list_of_batches_can_be_read_again_and_an_iterator_cannot() -> None:
    twice = js.fit_one_vs_rest(js.Pegasos(0.1), batches(), epochs=2, order="cyclic")
    whole = js.fit_one_vs_rest(js.Pegasos(0.1), X, LABELS, epochs=2, order="cyclic")
    assert_close(twice.model.coef, whole.model.coef, "run")
    with pytest.raises(ValueError, match="epochs must be 1 for an iterator, which"):
        js.fit_one_vs_rest(js.Pegasos(0.1), once(batches()), epochs=2)
    more = js.fit_one_vs_rest(js.Pegasos(0.1), once(batches()), state=whole.state)
    assert int(more.state.solver_state[0].scalars.t[0]) == 3 * N

    class Anew:
        """Neither a list nor a source, and read as often as asked."""

        def __iter__(self) -> Iterator[Any]:
            return once(batches())

    again = js.fit_one_vs_rest(js.Pegasos(0.1), Anew(), epochs=2, order="cyclic")
    assert_bitwise(np.asarray(again.model.coef), np.asarray(twice.model.coef))


def test_a_batch_shorter_than_a_round_is_a_short_round() -> None:
    parts = [(X[:3], [0, 1, 2]), (X[3:10], [0, 1, 2, 0, 1, 2, 0])]
    fit = js.fit_one_vs_rest(js.AdaGradRDA(0.1, accumulate="batch"), once(parts), batch_size=5)
    assert fit.state.solver_state[0].t[0] == 3


WRONG: list[tuple[str, Any, dict[str, Any]]] = [
    ("y must be None for an iterator", None, {"y": LABELS}),
    ("sample_weight must be None for an iterator", None, {"sample_weight": np.ones(N)}),
    ("tol and eval_set must be None for an iterator", None, {"tol": 0.1}),
    ("tol and eval_set must be None for an iterator", None, {"eval_set": (X, LABELS)}),
    ("record must hold 'theory' alone for", None, {"record": ("objective",)}),
    ("X must be an array, .* for SDCA, which keeps", None, {"solver": js.SDCA(0.1)}),
    ("X must give at least one batch, got an iterator that is used up", [], {}),
    (r"X must give batches \(X, y\) .* got ndarray as batch 0", [X], {}),
    (r"X must give batches .* got tuple of 1 parts as batch 1", [(X, LABELS), (X,)], {}),
    ("batch 1 of X: y holds the label 9", [(X, LABELS), (X, np.full(N, 9))], {}),
    ("batch 1 of X: .*features", [(X, LABELS), (X[:, :2], LABELS)], {}),
    ("batch 1 of X: X must be finite", [(X, LABELS), (X * np.nan, LABELS)], {}),
    ("y must have one entry per row", [(X, LABELS[:3])], {}),
]


@pytest.mark.parametrize(("message", "given", "arguments"), WRONG)
def test_what_an_iterator_cannot_do_is_refused(
    message: str, given: Any, arguments: dict[str, Any]
) -> None:
    solver = arguments.pop("solver", js.Pegasos(0.1))
    with pytest.raises(ValueError, match=f"^{message}"):
        js.fit_one_vs_rest(solver, once(batches() if given is None else given), **arguments)


@pytest.mark.parametrize(
    "solver",
    [
        js.SDCA(0.1),
        js.SVRG(0.1),
        js.Pegasos(0.1, bias="batch"),
        js.KernelPegasos(0.1, js.kernels.Linear()),
    ],
)
def test_solvers_that_look_at_rows_again_refuse_an_iterator(solver: Any) -> None:
    with pytest.raises(ValueError, match=r"X must be .* that can be read again for .* an iterator"):
        js.fit_one_vs_rest(solver, once(batches()), batch_size=1 if solver.single_row else 2)


def test_a_radius_made_of_all_targets_is_refused() -> None:
    solver = js.Pegasos(0.1, js.losses.Squared(), project=True)
    with pytest.raises(ValueError, match="project must be False for an iterator with Squared"):
        js.fit(solver, once(batches(X, LABELS.astype(float))))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "y must be given"),
        (X.tolist(), "y must be given"),
        ([(X, LABELS), (X[:, :2], LABELS)], "X of chunk 1 must"),
        ([(X, LABELS), X], "chunk 1 must be"),
        ([(X, LABELS), (X, LABELS[:2])], "y of chunk 1 must"),
    ],
)
def test_what_is_no_list_of_batches_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        js.fit_one_vs_rest(js.Pegasos(0.1), given)
