"""The notebooks run, cell by cell, in their tiny form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


def cells(notebook: Path) -> list[dict]:
    return [c for c in json.loads(notebook.read_text())["cells"] if c["cell_type"] == "code"]


def test_there_are_notebooks():
    assert [notebook.stem for notebook in NOTEBOOKS][:1] == ["01_quickstart"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_without_outputs(notebook):
    assert all(not c["outputs"] and c["execution_count"] is None for c in cells(notebook))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(notebook, tmp_path):
    # A process of its own: a user's settings, not the strict ones of the tests.
    script = tmp_path / "notebook.py"
    script.write_text("\n\n".join("".join(c["source"]) for c in cells(notebook)))
    root = notebook.parents[1]
    environment = {**os.environ, "JAXSOLVERS_TINY": "1", "MPLBACKEND": "Agg"}
    environment["PYTHONPATH"] = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "accuracy" in done.stdout
