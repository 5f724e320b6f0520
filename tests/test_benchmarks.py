"""The benchmarks run in their tiny form and record what they measured."""

from __future__ import annotations

import json

from benchmarks.papers import ablations
from benchmarks.speed import grid, memory, rankers, sparse, transforms


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
