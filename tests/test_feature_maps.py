"""Feature maps approximate their kernels: unbiased, as far off as the theory says, exactly."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from references import kernels as reference
from tolerances import assert_close

import jaxsolvers as js
from jaxsolvers import kernels

FLOAT = np.dtype(jnp.result_type(float))
RandomFourier, Nystroem = js.feature_maps.RandomFourier, js.feature_maps.Nystroem
RNG = np.random.default_rng(3)
X = np.asarray(0.7 * RNG.normal(size=(11, 4)) * (RNG.random((11, 4)) < 0.7), FLOAT)
KERNELS = [(js.kernels.RBF(0.4), "rbf", 0.4), (js.kernels.Laplacian(0.3), "laplacian", 0.3)]
DRAWS, SIZE = 2000, 64


@pytest.mark.parametrize("form", ["cosine", "paired"])
@pytest.mark.parametrize(("kernel", "name", "gamma"), KERNELS)
def test_random_fourier_features_are_unbiased(
    kernel: Any, name: str, gamma: float, form: str
) -> None:
    """The mean over 2,000 maps of 64 features; its error and spread are those of the theory."""

    @jax.jit
    @jax.vmap
    def gram(key: Any) -> Any:
        phi = RandomFourier.draw(key, 4, SIZE, kernel, form, FLOAT).features(jnp.asarray(X))
        return phi @ phi.T

    found = np.asarray(gram(jax.random.split(jax.random.key(1), DRAWS)), float)
    exact = reference.matrix(name, X, X, gamma=gamma)
    spread = found.std(axis=0)
    assert np.abs(found.mean(axis=0) - exact).max() < 5 * spread.max() / np.sqrt(DRAWS) + 1e-6
    # Var of one cosine pair: (1 + k(2 delta))/2 - k^2 <= 1; of one cosine with offset <= 3/2.
    assert spread.max() < np.sqrt((1.5 if form == "cosine" else 2.0) / SIZE)
    if form == "paired":  # their variance is that of cos(<omega, x - z>)
        double = reference.matrix(name, 2 * X, 2 * X, gamma=gamma)
        theory = np.sqrt(((1 + double) / 2 - exact**2) / (SIZE / 2))
        np.testing.assert_allclose(spread, theory, atol=0.06 * theory.max())
        np.testing.assert_allclose(np.diagonal(found, axis1=1, axis2=2), 1, atol=2e-6)


def test_the_error_shrinks_like_one_over_the_root_of_the_features() -> None:
    exact = reference.matrix("rbf", X, X, gamma=0.4)
    errors = []
    for size in (64, 4096):

        def gram(key: Any, size: int = size) -> Any:
            phi = RandomFourier.draw(key, 4, size, KERNELS[0][0], "paired", FLOAT)
            return phi.features(jnp.asarray(X)) @ phi.features(jnp.asarray(X)).T

        found = np.asarray(jax.jit(jax.vmap(gram))(jax.random.split(jax.random.key(5), 50)))
        errors.append(float(np.sqrt(np.mean((found - exact) ** 2))))
    assert 6 < errors[0] / errors[1] < 10  # sqrt(64) = 8


def test_the_frequencies_have_the_spectrum_of_the_kernel() -> None:
    normal = np.asarray(RandomFourier.draw(2, 5, 20_000, js.kernels.RBF(0.3)).frequencies)
    np.testing.assert_allclose(normal.var(), 0.6, rtol=0.02)
    cauchy = np.asarray(RandomFourier.draw(2, 5, 20_000, js.kernels.Laplacian(0.3)).frequencies)
    np.testing.assert_allclose(np.quantile(np.abs(cauchy), 0.5), 0.3, rtol=0.02)


def test_nystroem_is_exact_among_all_rows_and_a_projection_among_few() -> None:
    rows = X.copy()
    rows[7] = rows[2]  # a singular matrix
    kernel = js.kernels.RBF(0.4)
    K = reference.matrix("rbf", rows, rows, gamma=0.4)
    # Roots of eigenvalues as small as the rounding of K, 1e-6 of the largest, enter in float32.
    limit = 1e-9 if np.float64 == FLOAT else 1e-4
    phi = np.asarray(Nystroem.draw(0, rows, 11, kernel).features(rows), float)
    np.testing.assert_allclose(phi @ phi.T, K, atol=limit)
    some = Nystroem.draw(0, rows, 5, kernel)
    phi = np.asarray(some.features(rows), float)
    at = [int(np.flatnonzero((rows == row).all(axis=1))[0]) for row in np.asarray(some.landmarks)]
    projection = K[:, at] @ np.linalg.pinv(K[np.ix_(at, at)]) @ K[at]
    np.testing.assert_allclose(phi @ phi.T, projection, atol=limit)


@pytest.mark.parametrize("kind", ["cosine", "paired", "nystroem", "function"])
def test_tiles_sparse_rows_and_tracing_change_nothing(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind in ("cosine", "paired"):
        own: Any = RandomFourier.draw(3, 4, 6, KERNELS[1][0], kind, FLOAT)
    else:
        kernel = js.kernels.RBF(0.4) if kind == "nystroem" else lambda A, B: np.asarray(A @ B.T)
        own = Nystroem.draw(3, scipy.sparse.csr_matrix(X), 6, kernel)
    whole = own.features(X)
    assert whole.shape == (11, own.n_components) == (11, 6)
    if kind != "function":
        traced = jax.jit(lambda own, X: own.features(X))(own, jnp.asarray(X))
        assert_close(traced, whole, "rewritten")
    monkeypatch.setattr(kernels, "TILE_ROWS", 4)
    assert_close(own.features(X), whole, "rewritten")
    assert_close(own.features(scipy.sparse.csr_matrix(X)), whole, "rewritten")


def test_a_linear_solver_on_the_features_learns_what_is_not_linear() -> None:
    rows = np.asarray(RNG.normal(size=(300, 2)), np.float32)
    inside = (rows**2).sum(axis=1) < 1.4
    phi = RandomFourier.draw(0, 2, 200, js.kernels.RBF(1.0)).features(rows)
    model = js.fit(js.Averaged(js.Pegasos(1e-3)), phi, inside, epochs=10).model
    assert (model.predict(phi) == inside).mean() > 0.95


@pytest.mark.parametrize(
    ("match", "bad"),
    [
        (r"^kernel must be js.kernels.RBF or", lambda: draw(js.kernels.Linear())),
        (r"^kernel.gamma must be", lambda: draw(js.kernels.RBF(-1.0))),
        (r"^n_components must be even", lambda: draw(js.kernels.RBF(1.0), 5, "paired")),
        (r"^n_components must be an integer >= 1", lambda: draw(js.kernels.RBF(1.0), 0)),
        (r"^form must be one of 'cosine', 'paired'", lambda: draw(js.kernels.RBF(1.0), 4, "sin")),
        (
            r"^X must be of shape \(n, 4\) as in training",
            lambda: draw(js.kernels.RBF(1.0)).features(X[:, :3]),
        ),
        (r"^X must be finite", lambda: draw(js.kernels.RBF(1.0)).features(X / 0)),
        (
            r"^n_components must be an integer in 1 ... 11",
            lambda: Nystroem.draw(0, X, 12, js.kernels.RBF(1.0)),
        ),
        (
            r"^kernel must be met through rows",
            lambda: Nystroem.draw(0, X, 2, js.kernels.Precomputed()),
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:(divide|invalid).*:RuntimeWarning")
def test_bad_input_is_named(match: str, bad: Any) -> None:
    with pytest.raises(ValueError, match=match):
        bad()


def draw(kernel: Any, size: int = 4, form: str = "cosine") -> Any:
    return RandomFourier.draw(0, 4, size, kernel, form)
