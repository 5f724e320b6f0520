"""Real data: the gates that only real rows can show."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import data_folder

import jaxsolvers as js
from benchmarks import real, real_sets

DATA = data_folder()


def mnist(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Pixels / 255 (n, 784) float32 and labels (n,), in file order."""
    images = lzma.decompress((folder / f"{part}-images-idx3-ubyte.xz").read_bytes())
    labels = lzma.decompress((folder / f"{part}-labels-idx1-ubyte.xz").read_bytes())
    pixels = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784)
    return (pixels / 255).astype(np.float32), np.frombuffer(labels, np.uint8, offset=8)


@pytest.mark.data
@pytest.mark.skipif(DATA is None, reason="the data folder is absent")
def test_one_pass_over_mnist_in_file_order_reaches_its_accuracy():
    assert DATA is not None
    X, y = mnist(DATA / "mnist", "train")
    held_X, held_y = mnist(DATA / "mnist", "t10k")
    fit = js.fit_one_vs_rest(js.AdaGradFOBOS(0.03), X, y, order="cyclic")
    accuracy = 1 - float(js.metrics.error_rate(held_y, fit.model.predict(held_X)))
    print(f"MNIST, one pass, AdaGradFOBOS(0.03): {accuracy:.4f}")
    assert accuracy >= 0.905
    assert fit.state.alive.all()


@pytest.mark.data
@pytest.mark.skipif(DATA is None, reason="the data folder is absent")
def test_one_pass_of_the_joint_hinge_over_mnist_reaches_its_accuracy():
    assert DATA is not None
    X, y = mnist(DATA / "mnist", "train")
    held_X, held_y = mnist(DATA / "mnist", "t10k")
    solver = js.AdaGradFOBOS(0.03, loss=js.losses.MulticlassHinge())
    fit = js.fit(solver, X, y, order="cyclic")
    accuracy = 1 - float(js.metrics.error_rate(held_y, fit.model.predict(held_X)))
    print(f"MNIST, one pass, AdaGradFOBOS(0.03), joint MulticlassHinge: {accuracy:.4f}")
    assert accuracy >= 0.918


@pytest.mark.data
@pytest.mark.exhaustive
@pytest.mark.skipif(DATA is None, reason="the data folder is absent")
def test_three_passes_over_rcv1_rank_its_topics_nearly_as_well_as_linear_svc():
    data = real_sets.with_positives(real_sets.load("rcv1_topics_27k"))
    assert data.y.shape[1] == 102
    fit = real.fitted(data, (1.0, 2.0, 5e-6, 3.0))
    ours = real.quality(data, lambda X: np.asarray(fit.model.decision_function(X)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, theirs = real.peers(data)["LinearSVC"]
    print(
        f"RCV1, 102 topics, mean average precision: {ours.mean_average_precision:.4f}, "
        f"LinearSVC {theirs.mean_average_precision:.4f}"
    )
    assert ours.mean_average_precision >= theirs.mean_average_precision - 0.02
    assert fit.model.density < 0.2


@pytest.mark.data
@pytest.mark.exhaustive
@pytest.mark.skipif(DATA is None, reason="the data folder is absent")
def test_all_classes_of_wordnet_train_in_eight_gigabytes(tmp_path, root, x64):
    if x64:  # the promise is for float32
        return
    command = [sys.executable, "-m", "benchmarks.real", "--wordnet", "--out", str(tmp_path)]
    environment = {**os.environ, "JAXSOLVERS_DATA": str(DATA), "XLA_FLAGS": ""}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    found = json.loads((tmp_path / "wordnet.json").read_text())["wordnet"]
    assert found["labels"] == 17157
    assert found["peak_bytes"] <= 8 * 2**30
    assert found["precision_at"]["1"] > 0.02
