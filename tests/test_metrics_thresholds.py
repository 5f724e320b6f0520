"""Thresholds against trying all of them."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import jaxsolvers as js

tune = js.metrics.tune_thresholds
N, K = 40, 12


def measure(targets: np.ndarray, scores: np.ndarray, t: float, beta: float, w: np.ndarray) -> float:
    yes = scores > t
    bottom = beta**2 * w[targets].sum() + w[yes].sum()
    return (1 + beta**2) * w[yes & targets].sum() / bottom if bottom > 0 else 0.0


@pytest.mark.parametrize("beta", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_other_threshold_has_a_larger_measure(beta: float, weighted: bool) -> None:
    """Ties, rows of weight 0, infinite scores; the highest of the best, between two scores."""
    rng = np.random.default_rng(int(10 * beta) + weighted)
    scores = np.round(rng.normal(size=(N, K)) * 3) / 4
    scores[0, :3], scores[1, :3] = np.inf, -np.inf
    scores = scores.astype(jnp.result_type(float))
    targets = rng.random((N, K)) < 0.4
    targets[0] = True
    w = rng.integers(0, 4, N).astype(float) if weighted else np.ones(N)
    w[0] = 1
    found = tune(targets, scores, beta=beta, sample_weight=w if weighted else None)
    for k, t in enumerate(np.asarray(found, float)):
        live = w > 0
        own = targets[live, k], scores[live, k]
        tried = [np.nextafter(s, -np.inf) for s in np.unique(own[1])]
        values = np.array([measure(*own, s, beta, w[live]) for s in tried])
        reached = measure(*own, t, beta, w[live])
        assert reached == pytest.approx(values.max(), rel=1e-6)
        best = np.flatnonzero(values >= values.max() * (1 - 1e-6))[-1]
        levels = np.unique(own[1])
        above, below = levels[best], levels[best - 1] if best else -np.inf
        assert below <= t < above
        if np.isfinite([below, above]).all():
            assert t == pytest.approx((below + above) / 2)


def test_a_model_answers_by_the_thresholds() -> None:
    X, Y = js.data.multilabel_text(200, 200, n_labels=6)
    fit = js.fit_one_vs_rest(js.AdaGradRDA(0.5), X, Y, epochs=2, intercept="column")
    scores = np.asarray(fit.model.decision_function(X))
    thresholds = tune(Y, scores)
    answers = np.asarray(fit.model.predict(X, threshold=thresholds).todense()) > 0
    np.testing.assert_array_equal(answers, scores > np.asarray(thresholds))
    np.testing.assert_array_equal(tune(Y.toarray(), scores), thresholds)
    inside = jax.jit(lambda t, s: tune(t, s))(jnp.asarray(Y.toarray()), jnp.asarray(scores))
    np.testing.assert_array_equal(inside, thresholds)


def test_a_ranker_without_positives_never_says_yes() -> None:
    targets = scipy.sparse.csr_array(np.array([[1, 0], [0, 0], [1, 0]]))
    scores = np.array([[3.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
    with pytest.warns(UserWarning, match="1 of 2 rankers have no positive row"):
        found = tune(targets, scores)
    np.testing.assert_array_equal(found, [1.5, np.inf])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tune([1, 1], [0.5, 0.25]) == np.nextafter(0.25, 0)
        assert tune([True, False, True], [3, 1, 2]) == 1.5


@pytest.mark.parametrize("beta", [0, -1.0, np.inf, np.nan, [1.0, 2.0], "one"])
def test_a_beta_that_is_none_is_named(beta: object) -> None:
    with pytest.raises(ValueError, match="beta must be one finite number > 0"):
        tune([1, 0], [0.5, 0.25], beta=beta)
