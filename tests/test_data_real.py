"""Real data: the gates that only real rows can show."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest
from conftest import data_folder

import jaxsolvers as js

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
