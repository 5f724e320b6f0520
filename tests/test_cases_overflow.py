"""Numbers too large for the floats: refused, or one error that says so."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import jaxsolvers as js

SOLVERS = {
    "pegasos": js.Pegasos(0.1),
    "projected": js.Pegasos(0.1, project=True),
    "squared": js.Pegasos(0.1, loss=js.losses.Squared()),
    "rda": js.AdaGradRDA(0.1, regularizer=js.regularizers.L1(0.1)),
    "mirror": js.AdaGradFOBOS(0.1, regularizer=js.regularizers.SquaredL2(0.1)),
    "mean": js.Averaged(js.AdaGradFOBOS(0.1)),
    "sgd": js.SGD(0.1, 0.1, loss=js.losses.Squared()),
    "norma": js.NORMA(0.1, 0.5),
    "sdca": js.SDCA(0.1),
    "sdca logistic": js.SDCA(0.1, js.losses.Logistic()),
}


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("size", [1e30, 3e38])
def test_huge_rows_give_finite_weights_or_one_clear_error_case_178(name, size):
    X, y = np.array([[size], [-size]], np.float32), [1, 0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit = js.fit(SOLVERS[name], X, y, epochs=3)
        except FloatingPointError as error:
            assert "X" in str(error) and "scale" in str(error)
            assert "lam" in str(error) or "learning_rate" in str(error)
        else:
            assert np.isfinite(fit.model.coef).all() and bool(fit.state.alive)
    assert not caught


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("front", [js.fit, js.fit_one_vs_rest])
def test_rows_that_are_not_finite_are_refused_case_178(front, bad):
    X = np.ones((4, 2), np.float32)
    X[2, 1] = bad
    for rows in (X, jnp.asarray(X), X.astype(np.float16), np.asfortranarray(X)):
        with pytest.raises(ValueError, match=r"X must be finite, got .* at \(2, 1\)"):
            front(js.Pegasos(0.1), rows, [0, 1, 0, 1])


@pytest.mark.parametrize("front", [js.fit, js.fit_one_vs_rest])
@pytest.mark.parametrize(
    "solver",
    [
        js.AdaGradFOBOS(1e20, loss=js.losses.Squared()),
        js.AdaGradFOBOS(1e20, loss=js.losses.Squared(), accumulate="batch"),
        js.Pegasos(1e-20, loss=js.losses.Squared()),
        js.Averaged(js.Pegasos(1e-20, loss=js.losses.Squared())),
        js.SGD(1e-30, 1e20, loss=js.losses.Squared()),
        js.NORMA(1e-20, 0.5, loss=js.losses.Squared()),
    ],
    ids=["example", "batch", "pegasos", "mean", "sgd", "norma"],
)
def test_a_run_that_diverges_ends_in_one_error_case_179(front, solver):
    X = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(FloatingPointError, match=r"learning rate.*(learning_rate|lam).*X"):
            front(solver, X, [0, 1, 0, 1], epochs=1000)
    assert not caught
