"""The benchmarks run in their tiny form and record what they measured."""

from __future__ import annotations

import json

from benchmarks.papers import ablations, kernel_machines
from benchmarks.speed import memory, rankers, sdca, sparse, transforms


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
