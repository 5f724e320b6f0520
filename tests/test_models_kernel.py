"""Kernel models: what they answer, in blocks, and their files."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from references import kernels as reference
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers import kernels
from jaxsolvers.cli.model_files import load_model
from jaxsolvers.models import scores
from jaxsolvers.models.archive import read_archive, write_archive

FLOAT = np.dtype(jnp.result_type(float))
RNG = np.random.default_rng(9)
SUPPORT = RNG.normal(size=(6, 3)).astype(FLOAT)
DUAL = RNG.normal(size=(4, 6)).astype(FLOAT)
INTERCEPT = RNG.normal(size=4).astype(FLOAT)
NAMES = np.array(["ant", "bee", "cat", "dog"])
ROWS = RNG.normal(size=(11, 3)).astype(FLOAT)
RBF = js.kernels.RBF(0.5)
MODEL = js.KernelModel(SUPPORT, DUAL, RBF, INTERCEPT, NAMES)
EXPECTED = reference.matrix("rbf", ROWS, SUPPORT, gamma=0.5) @ DUAL.T + INTERCEPT


def test_scores_predictions_and_best_classes() -> None:
    assert_close(MODEL.decision_function(ROWS), EXPECTED, "reference")
    some = MODEL.decision_function(ROWS, classes=["dog", "bee"])
    assert_close(some, EXPECTED[:, [3, 1]], "reference")
    assert MODEL.predict(ROWS).tolist() == NAMES[EXPECTED.argmax(axis=1)].tolist()
    indices, values = MODEL.top_k(ROWS, 2)
    np.testing.assert_array_equal(indices, np.argsort(-EXPECTED, axis=1)[:, :2])
    assert_close(values, -np.sort(-EXPECTED, axis=1)[:, :2], "reference")
    sets = dataclasses.replace(MODEL, output="sets").predict(ROWS, threshold=0.1)
    assert sets == [tuple(NAMES[row > 0.1].tolist()) for row in EXPECTED]
    alone = js.KernelModel(SUPPORT, DUAL[0], RBF, INTERCEPT[0], NAMES[:2])
    assert_close(alone.decision_function(ROWS), EXPECTED[:, 0], "reference")
    assert alone.predict(ROWS).tolist() == NAMES[(EXPECTED[:, 0] > 0).astype(int)].tolist()
    assert MODEL.n_features == 3 and MODEL.n_rankers == 4 and alone.n_rankers is None


@pytest.mark.parametrize("kind", ["numpy", "jax", "sparse", "function"])
def test_blocks_tiles_and_storage_change_nothing(kind: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(kernels, "TILE_ROWS", 4)
    monkeypatch.setattr(scores, "_NUMBERS", 8)
    as_kind = {"jax": jnp.asarray, "sparse": scipy.sparse.csr_matrix}.get(kind, np.asarray)
    model = dataclasses.replace(
        MODEL, support_vectors=as_kind(SUPPORT), dual_coef=jnp.asarray(DUAL)
    )
    if kind == "function":
        model = dataclasses.replace(model, kernel=lambda A, B: RBF.values(A, B))
    assert_close(model.decision_function(as_kind(ROWS)), EXPECTED, "rewritten")
    np.testing.assert_array_equal(model.predict(as_kind(ROWS)), MODEL.predict(ROWS))
    assert model.decision_function(as_kind(ROWS[:0])).shape == (0, 4)


KERNELS = [
    js.kernels.Linear(),
    RBF,
    js.kernels.Laplacian(np.float32(0.25)),
    js.kernels.Polynomial(3, 0.5, 2.0),
    js.kernels.Precomputed(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_a_saved_model_predicts_the_same_bits(kernel: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    at = np.array([7, 1, 0, 5, 2, 4], np.int32)
    for rows in (SUPPORT, scipy.sparse.csr_matrix(SUPPORT)):
        own = None if kernel.precomputed else rows
        model = js.KernelModel(own, DUAL, kernel, INTERCEPT, NAMES, "indicator", at, 8)
        X = RNG.normal(size=(5, model.n_features)).astype(FLOAT)
        model.save(path)
        again = js.load(path)
        assert type(again.kernel) is type(kernel) and again.output == "indicator"
        assert_bitwise(again.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.n_train == 8 and again.support.tolist() == at.tolist()
    if kernel.precomputed:
        expected = X[:, at] @ DUAL.T + INTERCEPT
        assert_close(model.decision_function(X), expected, "rewritten")


def test_a_fitted_model_is_saved_with_its_kernel(tmp_path: Path) -> None:
    y = np.where((ROWS**2).sum(axis=1) > 2, "far", "near")
    fit = js.fit(js.KernelPegasos(0.01, js.kernels.RBF(1)), ROWS, y, epochs=20)
    fit.model.save(tmp_path / "model")
    again = js.load(tmp_path / "model")
    assert again.predict(ROWS).tolist() == fit.model.predict(ROWS).tolist() == y.tolist()
    assert again.n_rankers is None
    assert len(again.support) == len(jax.device_get(again.support_vectors)) <= 11


def test_what_no_file_can_hold_is_refused(tmp_path: Path) -> None:
    model = dataclasses.replace(MODEL, kernel=lambda A, B: A @ B.T)
    with pytest.raises(ValueError, match=r"^kernel must be one of js\.kernels to be saved"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("entry", "value", "match"),
    [
        ("kernel", np.array("Cauchy"), "unknown kernel 'Cauchy'"),
        ("kernel", None, "no entry 'kernel'"),
        ("kernel_gamma", None, "its kernel has other numbers"),
        ("kernel_gamma", np.array(-1.0), "kernel.gamma must be"),
        ("kernel_width", np.array(1.0), "its kernel has other numbers"),
        ("dual_coef", np.ones((4, 5)), "dual_coef must be"),
        ("support_vectors", None, "support_vectors must be"),
    ],
)
def test_damaged_files_are_refused(
    entry: str, value: Any, match: str, tmp_path: Path, monkeypatch: Any
) -> None:
    path = tmp_path / "model.npz"
    MODEL.save(path)
    kind, arrays = read_archive(path)
    arrays = {name: array for name, array in arrays.items() if name != entry}
    write_archive(path, kind, arrays if value is None else arrays | {entry: value})
    with pytest.raises(ValueError, match=rf"^path: .* is no model of jaxsolvers: .*{match}"):
        js.load(path)


@pytest.mark.parametrize(
    ("match", "change"),
    [
        (r"^dual_coef must be \(K, 6\) or \(6,\)", {"dual_coef": DUAL[:, :5]}),
        (r"^dual_coef must be", {"intercept": INTERCEPT[:3]}),
        (r"^classes must be of shape \(4,\)", {"classes": NAMES[:3]}),
        (r"^kernel must be one of js\.kernels", {"kernel": "rbf"}),
        (r"^support must be positions", {"kernel": js.kernels.Precomputed()}),
        (r"^output must be one of", {"output": "best"}),
    ],
)
def test_fields_that_do_not_fit_are_refused(match: str, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=match):
        dataclasses.replace(MODEL, **change)
    with pytest.raises(ValueError, match=r"^X must be of shape \(n, 3\) as in training"):
        MODEL.predict(ROWS[:, :2])


def test_the_objective_is_that_of_the_features() -> None:
    """With a linear kernel, intercept and sample weights included."""
    solver, y = js.Pegasos(0.1, js.losses.Logistic()), np.arange(11) % 3
    dual = js.Kernelized(solver, js.kernels.Linear())
    options = {"epochs": 2, "intercept": "column"}
    weight = RNG.uniform(0.5, 1, 11)
    for fit, labels in ((js.fit_one_vs_rest, y), (js.fit, y > 0)):
        primal = fit(solver, ROWS, labels, **options).model
        model = fit(dual, ROWS, labels, **options).model
        expected = js.metrics.objective(solver, primal, ROWS, labels, sample_weight=weight)
        found = js.metrics.objective(dual, model, ROWS, labels, sample_weight=weight)
        assert_close(found, expected, "run")
        assert_close(model.square_norms(), (np.asarray(primal.coef) ** 2).sum(axis=-1), "run")
    precomputed = js.KernelModel(None, DUAL, js.kernels.Precomputed(), INTERCEPT, NAMES, "label",
                                 np.arange(6), 6)  # fmt: skip
    with pytest.raises(ValueError, match=r"^kernel must not be precomputed"):
        precomputed.square_norms()


def test_the_command_line_says_that_it_reads_linear_models(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="holds a KernelModel; the command line reads linear"):
        load_model(str(tmp_path / "model.npz"))
