"""Units of regularization: every formula against the objectives that define the units."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
from references import losses as reference
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

import jaxsolvers as js
from jaxsolvers.protocol import Loss

UNITS = ["lam", "alpha", "C", "C_light", "C_perf"]
RNG = np.random.default_rng(17)
N, D = 30, 3
X = RNG.normal(size=(N, D))
Y = np.where(X @ [1.0, -1.0, 0.5] + RNG.normal(size=N) > 0, 1.0, -1.0)
REAL = X @ [1.0, -1.0, 0.5] + 0.3 * RNG.normal(size=N)


def units(loss: str) -> list[str]:
    return [*UNITS, "ridge_alpha"] if loss == "squared" else UNITS


def halved(unit: str, loss: str) -> float:
    """The factor on our loss by which the unit's package writes it."""
    without_half = {"squared_hinge"} if unit == "alpha" else {"squared_hinge", "squared"}
    return 2.0 if loss in without_half and unit != "lam" else 1.0


def package_objective(unit: str, value: float, loss: str, norm: Any, total: Any) -> Any:
    """The objective of a unit, given ||w||^2 and the sum of our losses."""
    total = total * halved(unit, loss)
    match unit:
        case "lam" | "alpha":
            return value / 2 * norm + total / N
        case "C" | "C_light":
            return norm / 2 + value * total
        case "C_perf":
            return norm / 2 + value * 100 / N * total
        case "ridge_alpha":
            return value * norm + total
    raise AssertionError(unit)


@pytest.mark.parametrize("loss", reference.NAMES)
def test_every_unit_weighs_norm_and_loss_alike(loss: str) -> None:
    """Objectives of one strength in two units are equal up to a factor, whatever w is."""
    norms, totals = RNG.uniform(0.1, 9, 20), RNG.uniform(0.1, 900, 20)
    for source, target in itertools.product(units(loss), repeat=2):
        value = 0.37
        other = js.convert(value, source, target, n=N, loss=loss)
        ours = package_objective(source, value, loss, norms, totals)
        theirs = package_objective(target, other, loss, norms, totals)
        ratio = ours / theirs
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12, err_msg=f"{source} {target}")


@pytest.mark.parametrize("loss", reference.NAMES)
def test_round_trips_of_numbers_and_arrays(loss: str) -> None:
    values = 10.0 ** RNG.uniform(-9, 9, (4, 5))
    for source, target in itertools.product(units(loss), repeat=2):
        there = js.convert(values, source, target, n=12345, loss=loss)
        assert there.shape == values.shape and there.dtype == np.float64
        back = js.convert(there, target, source, n=12345, loss=loss)
        np.testing.assert_allclose(back, values, rtol=1e-14)
        alone = js.convert(float(values[0, 0]), source, target, n=12345, loss=loss)
        assert type(alone) is float and alone == there[0, 0]
        for via in units(loss):
            halfway = js.convert(values, source, via, n=12345, loss=loss)
            found = js.convert(halfway, via, target, n=12345, loss=loss)
            np.testing.assert_allclose(found, there, rtol=1e-14)


def test_the_formulas_by_hand() -> None:
    assert js.convert(0.25, "lam", "C", n=16) == 0.25
    assert js.convert(0.25, "lam", "C", n=16, loss="logistic") == 0.25
    assert js.convert(0.25, "lam", "C", n=16, loss="squared_hinge") == 0.125
    assert js.convert(0.25, "lam", "alpha") == 0.25
    assert js.convert(0.25, "lam", "alpha", loss="squared_hinge") == 0.5
    assert js.convert(0.25, "lam", "ridge_alpha", n=16, loss="squared") == 4.0
    assert js.convert(0.25, "lam", "alpha", loss="squared") == 0.25
    assert js.convert(5.0, "C_perf", "C_light", n=50) == 10.0
    assert js.convert(5.0, "C_light", "C") == 5.0
    assert js.convert(np.float32(0.5), "C_perf", "lam") == 0.02  # n drops out
    assert js.convert(0.3, "C", "C") == 0.3  # to the bit


def test_losses_are_named_or_given_themselves() -> None:
    for loss in members.losses():
        name = members.reference_name(loss, reference.NAMES)
        assert js.convert(0.3, "lam", "C", n=7, loss=loss) == js.convert(
            0.3, "lam", "C", n=7, loss=name
        )


def test_any_kind_of_array_of_values() -> None:
    for values in ([1, 10], (1.0, 10.0), np.array([1, 10], np.int8), jnp.array([1.0, 10.0])):
        np.testing.assert_array_equal(js.convert(values, "C", "lam", n=5), [0.2, 0.02])
    grid = js.convert(np.logspace(-3, 3, 4), "C", "lam", n=np.int64(1000))
    np.testing.assert_allclose(grid, [1.0, 0.01, 1e-4, 1e-6], rtol=1e-14)


def test_a_sum_of_sample_weights_takes_the_place_of_n() -> None:
    """LIBLINEAR weighs C by s_i; our mean divides by the sum of the s_i."""
    weight = RNG.uniform(0.5, 2.0, N)
    losses, norm, lam = RNG.uniform(0, 3, N), RNG.uniform(0.1, 9, 8), 0.3
    C = js.convert(lam, "lam", "C", n=weight.sum())
    ours = lam / 2 * norm + (weight * losses).sum() / weight.sum()
    theirs = norm / 2 + C * (weight * losses).sum()
    np.testing.assert_allclose(ours / theirs, lam, rtol=1e-12)


# ---- against scikit-learn ------------------------------------------------------------------------
def our_objective(loss: Loss, lam: float, y: np.ndarray) -> Any:
    """Ours at w, by the NumPy references."""
    name, parameter = members.reference_loss(loss)

    def value(w: np.ndarray) -> float:
        pairs = zip((X @ w).tolist(), y.tolist(), strict=True)
        mean = sum(reference.value(name, z, t, parameter) for z, t in pairs) / len(y)
        return float(lam / 2 * (w @ w) + mean)

    return value


EXACT: dict[str, Any] = {
    "fit_intercept": False, "tol": 1e-12, "max_iter": 10**6, "random_state": 0,
}  # fmt: skip
TUBE = js.losses.EpsilonInsensitive(0.2)
PEERS = {
    "LinearSVC hinge": ("C", js.losses.Hinge(), lambda C: LinearSVC(C=C, loss="hinge", **EXACT)),
    "LinearSVC": ("C", js.losses.SquaredHinge(), lambda C: LinearSVC(C=C, **EXACT)),
    "logistic": ("C", js.losses.Logistic(), lambda C: LogisticRegression(C=C, **EXACT)),
    "LinearSVR": ("C", TUBE, lambda C: LinearSVR(C=C, epsilon=0.2, **EXACT)),
    "LinearSVR squared": (
        "C",
        js.losses.Squared(),
        lambda C: LinearSVR(C=C, loss="squared_epsilon_insensitive", epsilon=0, **EXACT),
    ),
    "Ridge": ("ridge_alpha", js.losses.Squared(), lambda a: Ridge(alpha=a, fit_intercept=False)),
}


@pytest.mark.parametrize("peer", PEERS)
def test_the_minimiser_of_a_peer_minimises_our_objective(peer: str) -> None:
    unit, loss, make = PEERS[peer]
    y = Y if loss.classification else REAL
    for lam in (0.02, 0.3):
        w = make(js.convert(lam, "lam", unit, n=N, loss=loss)).fit(X, y).coef_.ravel()
        ours = our_objective(loss, lam, y)
        best = minimize(ours, w, method="Nelder-Mead", options={"fatol": 1e-12, "xatol": 1e-10})
        assert ours(w) <= best.fun * (1 + 1e-6)
        # A strength off by a factor of two is seen by the same test.
        other = our_objective(loss, 2 * lam, y)
        wrong = minimize(other, w, method="Nelder-Mead", options={"fatol": 1e-12, "xatol": 1e-10})
        assert other(w) > wrong.fun * (1 + 1e-6)


@pytest.mark.parametrize("kind", [SVC, SVR])
def test_libsvm_with_its_free_intercept(kind: Any) -> None:
    loss, y = (js.losses.Hinge(), Y) if kind is SVC else (TUBE, REAL)
    extra = {} if kind is SVC else {"epsilon": 0.2}
    lam = 0.1
    peer = kind(kernel="linear", C=js.convert(lam, "lam", "C", n=N, loss=loss), tol=1e-9, **extra)
    w, b = peer.fit(X, y).coef_.ravel(), float(peer.fit(X, y).intercept_[0])
    name, parameter = members.reference_loss(loss)

    def ours(v: np.ndarray) -> float:
        pairs = zip((X @ v[:-1] + v[-1]).tolist(), y.tolist(), strict=True)
        mean = sum(reference.value(name, z, t, parameter) for z, t in pairs) / N
        return float(lam / 2 * (v[:-1] @ v[:-1]) + mean)

    start = np.append(w, b)
    best = minimize(ours, start, method="Nelder-Mead", options={"fatol": 1e-12, "xatol": 1e-10})
    assert ours(start) <= best.fun * (1 + 1e-6)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
def test_alpha_is_the_strength_in_the_objective_of_sgd_classifier(loss: str) -> None:
    """Its losses as its documentation writes them: the squared hinge without a half."""
    plain = {
        "hinge": lambda m: np.maximum(0, 1 - m),
        "squared_hinge": lambda m: np.maximum(0, 1 - m) ** 2,
        "logistic": lambda m: np.log1p(np.exp(-m)),
    }[loss]
    lam = 0.2
    alpha = js.convert(lam, "lam", "alpha", loss=loss)
    member = next(m for m in members.losses() if members.reference_loss(m)[0] == loss)
    ours = our_objective(member, lam, Y)
    points = RNG.normal(size=(10, D))
    theirs = [alpha / 2 * (w @ w) + plain(Y * (X @ w)).mean() for w in points]
    ratio = np.array([ours(w) for w in points]) / theirs
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)


def test_a_fit_with_the_converted_strength_comes_near_the_peer() -> None:
    C = 0.05
    peer = LinearSVC(C=C, loss="hinge", **EXACT).fit(X, Y).coef_.ravel()
    lam = js.convert(C, "C", "lam", n=N)
    F = jnp.result_type(float)
    fit = js.fit(js.Averaged(js.Pegasos(lam), kind="polynomial"), X.astype(F), Y, epochs=300)
    ours = our_objective(js.losses.Hinge(), lam, Y)
    assert ours(np.asarray(fit.model.coef, float)) <= ours(peer) * 1.002


# ---- what is refused -----------------------------------------------------------------------------
@pytest.mark.parametrize("bad", [0, 0.0, -1.0, np.nan, np.inf, [1.0, 0.0], [0.1, np.nan]])
def test_strengths_that_are_not_positive(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"^value must be a finite number > 0, got"):
        js.convert(bad, "lam", "alpha")


@pytest.mark.parametrize("bad", ["0.1", None, True, [True], 1j, [[1.0], [1.0, 2.0]]])
def test_strengths_that_are_no_numbers(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"^value must "):
        js.convert(bad, "lam", "alpha")


@pytest.mark.parametrize("bad", [0, -5, np.nan, np.inf, True, "30", [30], [30, 40]])
def test_an_n_that_is_not_one_positive_number(bad: Any) -> None:
    for target in ("C", "alpha"):  # wrong even where it is not needed
        with pytest.raises(ValueError, match=r"^n must be "):
            js.convert(0.1, "lam", target, n=bad)


def test_n_is_asked_for_exactly_where_it_matters() -> None:
    means, sums = {"lam", "alpha", "C_perf"}, {"C", "C_light", "ridge_alpha"}
    for source, target in itertools.product(units("squared"), repeat=2):
        if (source in means) == (target in means):
            assert js.convert(0.3, source, target, loss="squared") == js.convert(
                0.3, source, target, n=77, loss="squared"
            )
            continue
        with pytest.raises(ValueError, match=rf"^n must be given .*'{source}' to '{target}'"):
            js.convert(0.3, source, target, loss="squared")
    assert means | sums == set(units("squared"))


def test_units_and_losses_that_do_not_exist() -> None:
    for bad in ("Lam", "lambda", "", None, 1):
        with pytest.raises(ValueError, match=r"^source must be one of 'lam', 'alpha', 'C'"):
            js.convert(0.1, bad, "C", n=5)
        with pytest.raises(ValueError, match=r"^target must be one of 'lam', 'alpha', 'C'"):
            js.convert(0.1, "lam", bad, n=5)
        with pytest.raises(ValueError, match=r"^loss must be one of 'hinge'"):
            js.convert(0.1, "lam", "C", n=5, loss=bad)
    with pytest.raises(ValueError, match=r"^loss must be 'squared' for ridge_alpha"):
        js.convert(0.1, "lam", "ridge_alpha", n=5)


@pytest.mark.parametrize(("value", "n"), [(1e-320, 1), (1e308, 1e300), (1e-200, 1e-200)])
def test_results_beyond_the_floats(value: float, n: float) -> None:
    with pytest.raises(ValueError, match=r"^value must be such that the result is a finite"):
        js.convert(value, "lam", "C", n=n)


def test_nothing_is_traced() -> None:
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(lambda v: js.convert(v, "lam", "alpha"))(jnp.ones(()))
