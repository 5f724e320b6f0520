"""The command line."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from jaxsolvers import cli


def test_demo_prints_accuracy_precision_and_speed(capsys):
    assert cli.main(["demo", "--rankers", "40", "--rows", "128"]) == 0
    printed = capsys.readouterr().out
    digits = [float(value) for value in re.findall(r"accuracy ([\d.]+)", printed)][:2]
    assert min(digits) >= 0.93, printed
    assert len(re.findall(r"mean average precision ([\d.]+)", printed)) == 4
    assert len(re.findall(r"rows x rankers per second", printed)) == 2


def test_unknown_word_exits_with_2_and_usage():
    with pytest.raises(SystemExit) as stop:
        cli.main(["dance"])
    assert stop.value.code == 2


def test_bad_size_exits_with_2_and_names_it(capsys):
    assert cli.main(["demo", "--rankers", "40", "--rows", "8", "--epochs", "1"]) == 2
    assert "n_classes" in capsys.readouterr().err


def test_module_answers_help():
    done = subprocess.run(
        [sys.executable, "-m", "jaxsolvers", "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "demo" in done.stdout
