"""The benchmarks run in their tiny form and record what they measured."""

from __future__ import annotations

import json

import jax.numpy as jnp
import numpy as np
import pytest

import jaxsolvers as js
from benchmarks.papers import (
    ablations,
    kernel_machines,
    pegasos_report,
    pegasos_studies,
    seeds,
)
from benchmarks.speed import grid, memory, rankers, sdca, sparse, transforms


def test_rankers_measures_every_task_and_draws(tmp_path):
    rankers.main(["--tiny", "--out", str(tmp_path)])
    record = json.loads((tmp_path / "rankers.json").read_text())
    assert [row["task"] for row in record["tasks"]] == ["A", "B", "D"]
    for row in record["tasks"]:
        assert row["ratio_device"] > 0 and row["floor_seconds"] > 0
        assert abs(row["accuracy"] - row["accuracy_sgdclassifier"]) < 0.3
    assert record["environment"]["versions"]["jax"]
    assert (tmp_path / "rankers.png").stat().st_size > 1000


def test_memory_reports_the_rise_of_a_second_fit(tmp_path):
    sizes = ["--rankers", "700", "--features", "40", "--rows", "64"]
    record = memory.main([*sizes, "--out", str(tmp_path)])
    assert record["coef_bytes"] == 700 * 40 * 4
    assert record["state_bytes"] > 2 * record["coef_bytes"]


def test_sparse_measures_its_tasks(tmp_path):
    record = sparse.main(["--tiny", "--out", str(tmp_path)])
    assert [row["task"] for row in record["tasks"]] == ["F", "G"]
    for row in record["tasks"]:
        assert row["ratio"] > 0 and row["measured_non_zeros"] > 0
        assert abs(row["accuracy"] - row["accuracy_sgdclassifier"]) < 0.35
    assert json.loads((tmp_path / "sparse.json").read_text())["tasks"]


def test_sdca_measures_the_time_to_a_certified_gap(tmp_path):
    record = sdca.main(["--tiny", "--out", str(tmp_path)])
    assert record["worst_relative_gap"] <= sdca.RELATIVE_GAP and record["liblinear"]["reached"]
    assert record["ratio"] > 0 and record["floor_seconds"] > 0
    assert json.loads((tmp_path / "sdca.json").read_text())["epochs"] == record["epochs"]


def test_transforms_measures_every_transformation_beside_its_peer(tmp_path):
    record = transforms.main(["--tiny", "--out", str(tmp_path)])
    assert {row["transformation"] for row in record["transformations"]} == set(
        transforms.CONTENDERS
    )
    assert all(row["ratio"] > 0 for row in record["transformations"] if "peer" in row)
    assert json.loads((tmp_path / "transforms.json").read_text())["environment"]["versions"][
        "optax"
    ]


def test_grid_measures_one_program_beside_its_peer(tmp_path):
    (row,) = grid.main(["--tiny", "--out", str(tmp_path)])["tasks"]
    assert row["rankers"] == 27 and row["ratio"] > 0
    assert row["programs"] == 1 and row["programs_later"] == 0
    assert abs(row["best_error"] - row["best_error_sgdclassifier"]) < 0.2
    assert json.loads((tmp_path / "grid.json").read_text())["load_before"] >= 0


def test_ablations_measure_every_variant(tmp_path):
    record = ablations.main(["--tiny", "--out", str(tmp_path)])
    names = [row["name"] for row in record["variants"]]
    assert len(set(names)) == len(names) == 12
    for row in record["variants"]:
        assert row["passes_1"]["error"] < 0.6 and row["learning_rate"] > 0
    assert json.loads((tmp_path / "ablations.json").read_text())["variants"]


def test_kernel_machines_are_measured_beside_libsvm(tmp_path):
    record = kernel_machines.main(["--tiny", "--out", str(tmp_path)])
    (row,) = record["sets"]
    found = {machine["name"]: machine["points"][-1] for machine in row["machines"]}
    assert len(found) == 6
    assert abs(found["SDCA"]["error"] - row["libsvm"]["error"]) < 0.03
    for name, point in found.items():
        assert "Budgeted" not in name or max(point["support_vectors"]) <= 10
    assert json.loads((tmp_path / "kernel_machines.json").read_text())["sets"]


def test_pegasos_studies_measure_draw_and_tell(tmp_path):
    records = pegasos_studies.main(["--tiny", "--out", str(tmp_path)])
    assert set(records) == {"lambda", "batches", "orders", "projection"}
    for name, record in records.items():
        assert json.loads((tmp_path / f"pegasos_{name}.json").read_text())["sets"]
        assert 1000 < (tmp_path / f"pegasos_{name}.png").stat().st_size < 100_000
        assert "±" in (tmp_path / f"pegasos_{name}.md").read_text()
        (found,) = record["sets"]
        best = np.array(found["optimum"]["lower"])
        assert (best <= np.array(found["optimum"]["objective"]) + 1e-6).all()
    for row in records["lambda"]["sets"][0]["results"]:
        own = np.isin(np.float32(pegasos_studies.LAMS), np.float32(row["lam"]))
        bound = np.array(records["lambda"]["sets"][0]["optimum"]["lower"])[own]
        assert (np.array(row["objective"]["mean"]) >= bound - 1e-6).all(), row["contender"]


@pytest.mark.parametrize("kind", ["uniform", "permutation", "cyclic"])
def test_a_lane_is_the_fit_of_its_seed(kind):
    X, labels = js.data.blobs(60, 5, 2)
    y, lams = np.where(labels == 1, 1, -1).astype(np.float32), np.array([1e-2, 1e-1], np.float32)
    solver = js.Pegasos(lams, project=True).cast(np.float32).for_rankers(2)
    visits = seeds.orders(kind, len(y), 3, 2)
    found = seeds.objectives(solver, jnp.asarray(X), jnp.asarray(y), jnp.asarray(visits))
    for place, lam in enumerate(lams.tolist()):
        one = js.Pegasos(lam, project=True)
        fit = js.fit(one, X, y, epochs=2, order=kind, key=2, record=("objective",))
        np.testing.assert_allclose(found[2, place], fit.history["objective"], rtol=1e-4)


def test_growth_is_where_visits_leave_those_of_the_smallest_batch():
    visits = {1: [100, 110], 4: [90, 120], 16: [200, 190], 64: [800, np.inf]}
    assert pegasos_report.growth({k: np.array(v) for k, v in visits.items()}) == 16
    assert pegasos_report.growth({1: np.array([3.0]), 2: np.array([4.0])}) is None
    assert pegasos_report.told(0.12345, 0.004) == "0.123 ± 0.004"
    assert pegasos_report.clearly_lower((1.0, 0.1), (1.3, 0.1))
    cells = {"a": (1.0, 0.1), "b": (1.2, 0.1), "c": (1.5, 0.1)}
    assert pegasos_report.lowest(cells) == ["a", "b"]
