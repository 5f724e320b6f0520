"""What a finished run proves of the optimum."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from references import pegasos
from references.certificate import bound_from_counts, violation_counts
from tolerances import assert_close

import jaxsolvers as js
from jaxsolvers.engine.order import epoch_order, key_words

F = jnp.result_type(float)
RNG = np.random.default_rng(6)
N, D, K = 48, 5, 17
X = (RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.7)).astype(F)
LABELS = RNG.permutation(np.arange(N) % K)
LAM = np.geomspace(0.5, 0.005, K)
EPOCHS = 3


@pytest.mark.parametrize(("order", "k"), [("permutation", 1), ("permutation", 6), ("cyclic", 4)])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_certificate_of_pegasos_is_the_bound_from_counts(
    order: str, k: int, sparse: bool
) -> None:
    rows = scipy.sparse.csr_matrix(X) if sparse else X
    solver: Any = js.Averaged(js.Pegasos(LAM)) if k == 6 else js.Pegasos(LAM)
    fit = js.fit_one_vs_rest(
        solver, rows, LABELS, epochs=EPOCHS, order=order, batch_size=k, record=("objective",)
    )
    assert fit.history["certificate"].shape == (K,)
    rounds: list[Any] = []
    for epoch in range(EPOCHS):
        visited = epoch_order(order, N, key_words(0), epoch)
        visited = np.arange(N) if visited is None else visited
        rounds += [visited[i : i + k] for i in range(0, N, k)]
    for c in range(K):
        y = np.where(np.equal(LABELS, c), 1.0, -1.0)
        run = pegasos.pegasos(X.astype(float), y, rounds, lam=LAM[c])
        counts = violation_counts(X.astype(float), y, run.w, rounds)
        assert counts.max() <= EPOCHS  # nothing to clip
        bound = bound_from_counts(X.astype(float), y, counts, lam=LAM[c], rounds=len(rounds), k=k)
        assert_close(np.asarray(fit.history["certificate"][c], F), bound, "run", scale=1.0)
    best = js.fit_one_vs_rest(js.SDCA(LAM), X, LABELS, epochs=60, record=("objective",))
    assert (fit.history["certificate"] <= best.history["objective"][-1] + 1e-6).all()


@pytest.mark.parametrize("loss", [js.losses.Hinge(), js.losses.Logistic()], ids=["hinge", "log"])
def test_the_certificate_of_sdca_is_its_dual_objective(loss: Any) -> None:
    weight, factors = RNG.uniform(0.3, 2, N), np.linspace(0.5, 3, K)
    options: dict[str, Any] = {
        "sample_weight": weight, "positive_weight": factors, "intercept": "column",
        "record": ("objective", "gap"),
    }  # fmt: skip
    first = js.fit_one_vs_rest(js.SDCA(LAM, loss), X, LABELS, epochs=EPOCHS, **options)
    more = js.fit_one_vs_rest(js.SDCA(LAM, loss), X, LABELS, state=first.state, **options)
    for fit in (first, more):
        dual = fit.history["objective"][-1] - fit.history["gap"][-1]
        assert_close(fit.history["certificate"].astype(F), dual, "run", scale=1.0)
    y = RNG.normal(size=N)
    real = js.fit(js.SDCA(0.1, js.losses.Huber(0.5)), X, y, epochs=2, sample_weight=weight)
    assert real.history["certificate"].shape == ()
    alpha = np.asarray(real.state.solver_state.dual, float)
    p = weight / weight.sum()
    w = X.T.astype(float) @ (p * alpha) / 0.1
    expected = p @ (alpha * y - alpha**2 / 2) - 0.05 * w @ w
    assert_close(np.asarray(real.history["certificate"], F), expected, "run", scale=1.0)


def test_stopped_rankers_have_certificates_of_their_own_epochs() -> None:
    fit = js.fit_one_vs_rest(js.Pegasos(LAM), X, LABELS, epochs=20, tol=0.02, patience=2)
    assert len(set(fit.history["epochs_run"])) > 2
    for epochs in set(fit.history["epochs_run"]):
        own = fit.history["epochs_run"] == epochs
        plain = js.fit_one_vs_rest(js.Pegasos(LAM), X, LABELS, epochs=int(epochs))
        np.testing.assert_array_equal(
            fit.history["certificate"][own], plain.history["certificate"][own]
        )


def test_where_counts_prove_nothing_there_is_no_certificate() -> None:
    y = np.where(LABELS < 8, 1, -1)
    state = js.fit(js.Pegasos(0.1), X, y).state
    assert "certificate" in js.fit(js.Pegasos(0.1), X, y).history
    runs: list[tuple[Any, dict[str, Any]]] = [
        (js.Pegasos(0.1), {"order": "uniform"}),
        (js.Pegasos(0.1), {"batch_size": 5}),
        (js.Pegasos(0.1), {"state": state}),
        (js.Pegasos(0.1), {"sample_weight": np.linspace(1, 2, N)}),
        (js.Pegasos(0.1, project=True), {}),
        (js.Pegasos(0.1, js.losses.SquaredHinge()), {}),
        (js.Pegasos(0.1, bias="search"), {}),
        (js.Pegasos(0.1, bias="unregularized"), {}),
        (js.AdaGradRDA(0.1), {}),
        (js.KernelPegasos(0.1, js.kernels.RBF(0.3)), {}),
    ]
    for solver, options in runs:
        assert "certificate" not in js.fit(solver, X, y, **options).history
    for options in ({"positive_weight": 2.0}, {"negatives": 1.0}):
        fit = js.fit_one_vs_rest(js.Pegasos(0.1), X, LABELS, **options)
        assert "certificate" not in fit.history
    fit = js.fit(js.Pegasos(0.1), X, y, sample_weight=np.full(N, 3.0))  # equal weights
    assert "certificate" in fit.history
