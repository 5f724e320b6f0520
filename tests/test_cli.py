"""The command line as a whole: help, exit codes, and the small commands."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from command_line import Runner, save

import jaxsolvers as js
from jaxsolvers import cli
from jaxsolvers.cli import solver_catalog
from jaxsolvers.cli.arguments import build_parser
from jaxsolvers.cli.messages import one_line
from jaxsolvers.losses import Hinge
from jaxsolvers.members import choice, member, number, part
from jaxsolvers.protocol import Loss

COMMANDS = ("train", "predict", "evaluate", "info", "solvers", "convert", "demo")


@pytest.fixture
def run(capsys):
    return Runner(capsys)


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


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
    assert all(command in done.stdout for command in COMMANDS)
    assert "python -m jaxsolvers train" in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(run, command):
    done = run(command, "--help")
    assert done.code == 0 and done.err == ""
    assert f"jaxsolvers {command}" in done.out
    assert command == "demo" or f"examples:\n  jaxsolvers {command}" in done.out


def test_every_option_is_explained():
    parser, _ = build_parser()
    (commands,) = (a for a in parser._actions if isinstance(a.choices, dict))
    assert sorted(commands.choices) == sorted(COMMANDS)
    for command in commands.choices.values():
        for action in command._actions:
            assert action.help and len(action.help) > 8, (command.prog, action.option_strings)
            number = isinstance(action.default, (int, float)) and action.nargs != 0
            shown = "default" in action.help or str(action.default) in action.help
            assert shown or not number, (command.prog, action.option_strings)


def test_train_explains_the_options_of_a_solver(run):
    printed = run("train", "--solver", "pegasos", "--loss=huber", "--help").out
    assert "--lam X" in printed and "regularization strength" in printed
    assert "--loss.delta X" in printed and "default: 0.0001" in printed
    assert "--learning-rate" not in printed.split("settings of pegasos")[1].split("examples")[0]
    other = run("train", "--help").out
    assert "--lam" not in other.split("examples:")[0] and "--set NAME=VALUE" in other


def test_help_imports_neither_jax_nor_numpy():
    # Beside a stand-in for the package, so that only the command line's own imports count.
    code = f"""
import sys, types
package = types.ModuleType("jaxsolvers")
package.__path__, package.__version__ = {list(js.__path__)!r}, "0"
sys.modules["jaxsolvers"] = package
from jaxsolvers.cli import main
for words in (["--help"], ["train", "--help"], ["predict", "-h"], ["info", "-h"]):
    try:
        main(words)
    except SystemExit as stop:
        assert stop.code == 0
late = [name for name in sys.modules if name.split(".")[0] in ("jax", "numpy", "scipy")]
print("late:", late)
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("late: []\n")


def test_the_version_is_that_of_the_package(run):
    assert run("--version") == (0, f"jaxsolvers {js.__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "COMMAND"),
        (["trian", "x"], "did you mean train?"),
        (
            ["train", "x", "-o", "y", "--epoch", "3"],
            "unknown option --epoch; did you mean --epochs",
        ),
        (["train", "x", "-o", "y", "--batchsize=3"], "did you mean --batch-size?"),
        (["train", "x", "-o", "y", "--task", "multilable"], "did you mean multilabel?"),
        (["train", "x", "-o", "y", "--solver", "pegassos"], "did you mean pegasos?"),
        (["train", "x", "-o", "y", "--loss", "hing"], "did you mean hinge?"),
        (
            ["train", "x", "-o", "y", "--lam", "1"],
            "belongs to --solver norma, --solver pegasos, --solver sdca",
        ),
        (["train", "x", "-o", "y", "--loss.gamma", "1"], "--loss smoothed-hinge, not to hinge"),
        (["train", "x", "-o", "y", "--epochs", "many"], "--epochs"),
        (["train", "x", "y", "-o", "z"], "unexpected word 'y'"),
        (["train", "x"], "-o/--output"),
        (["predict", "m", "d", "--scores", "--top-k", "3"], "not allowed with"),
        (["evaluate", "m"], "DATA"),
        (["solvers", "pegasus"], "did you mean pegasos?"),
    ],
)
def test_bad_usage_is_one_line_that_helps(run, words, expected):
    assert expected in run.refused(*words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--set", "lam=1"], "--set must name one of learning_rate, delta, loss"),
        (["--set", "learning_rate"], "--set must be NAME=VALUE"),
        (["--set", "delta=1", "--delta", "2"], "--delta must be given once"),
        (["--learning-rate", "0"], "--learning-rate must be a finite number > 0, got 0"),
        (["--learning-rate", "-1e-3"], "--learning-rate must be a finite number > 0, got -0.001"),
        (["--learning-rate", "nan"], "--learning-rate must be a finite number > 0, got nan"),
        (["--delta", "much"], "--delta must be a finite number >= 0, got 'much'"),
        (["--accumulate", "rows"], "--accumulate must be one of example, batch, got 'rows'"),
        (["--regularizer", "l1"], "--regularizer.strength must be given"),
        (["--average-start", "3"], "--average-start needs --average"),
        (["--average", "--average-start", "1.5"], "must be an integer >= 0"),
        (["--epochs", "0"], "--epochs must be an integer >= 1, got 0"),
        (["--batch-size", "1000"], "--batch-size must be at most the number of rows 48, got 1000"),
        (["--seed", "-1"], "--seed must be an integer"),
        (["--features", "3"], "X must have 3 features, got 12"),
        (["--positive-weight", "0"], "--positive-weight must be a finite number > 0"),
        (["--negatives", "2"], "--negatives must be left out for --task binary"),
        (["--chunk-size", "2"], "--chunk-size must be left out for --task binary"),
        (["--task", "regression", "--loss", "hinge"], "--loss squared"),
        (["--task", "binary", "--loss", "squared"], "--loss hinge"),
        (["--task", "multilabel"], "one label per row"),
        (["--stream"], "--stream is for svmlight files"),
    ],
)
def test_bad_settings_are_named_as_options(run, tmp_path, words, expected):
    data = save(tmp_path, "binary", "dense.npz")
    assert expected in run.refused("train", data, "-o", tmp_path / "model.npz", *words)
    assert not (tmp_path / "model.npz").exists()


def test_failures_are_one_line_and_a_traceback_on_request(run, tmp_path, monkeypatch):
    def broken(*arguments, **more):
        raise KeyError("a fault of ours")

    data, model = save(tmp_path, "binary", "dense.npz"), tmp_path / "model.npz"
    monkeypatch.setattr("jaxsolvers.cli.train.fit", broken)
    done = run("train", data, "-o", model)
    assert done.code == 1 and done.err.count("\n") == 1
    assert "unexpected KeyError" in done.err and "--debug" in done.err
    done = run("train", data, "-o", model, "--debug")
    assert done.code == 1 and "Traceback" in done.err and "a fault of ours" in done.err


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 130, "jaxsolvers: interrupted\n"),
        (BrokenPipeError(), 141, ""),
        (OSError(28, "No space left on device", "model"), 1, "model: No space left"),
        (PermissionError(13, "Permission denied", "model"), 2, "model: Permission denied"),
        (FloatingPointError("it\ndiverged"), 2, "jaxsolvers: error: it diverged\n"),
        (MemoryError(), 1, "unexpected MemoryError"),
    ],
)
def test_exit_codes_tell_what_happened(run, tmp_path, monkeypatch, error, code, text):
    def stopped(*arguments, **more):
        raise error

    data, model = save(tmp_path, "binary", "dense.npz"), tmp_path / "model.npz"
    monkeypatch.setattr("jaxsolvers.cli.train.fit", stopped)
    monkeypatch.setattr("jaxsolvers.cli.entry._forget_output", lambda: None)
    done = run("train", data, "-o", model)
    assert done.code == code and text in done.err and done.err.count("\n") == bool(text)
    assert not model.exists()


def test_a_reader_that_leaves_ends_the_output_quietly(tmp_path):
    data, model = save(tmp_path, "binary", "svm"), tmp_path / "model.npz"
    cli.main(["train", str(data), "-o", str(model), "-q"])
    command = f"'{sys.executable}' -m jaxsolvers predict {model} {data} | true"
    done = subprocess.run(
        ["bash", "-c", f"{command}; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == "" and done.stdout.strip() in ("141", "0")  # 0: all was written before


def test_convert_prints_a_strength(run):
    assert run.fine("convert", "0.01", "lam", "C", "--rows", 1000, "--loss", "hinge") == "0.1\n"
    half = run.fine("convert", "0.5", "C", "lam", "--rows", 100, "--loss", "squared-hinge")
    assert half == f"{js.convert(0.5, 'C', 'lam', n=100, loss='squared_hinge')}\n"
    assert "--rows must be given" in run.refused("convert", "0.01", "lam", "C")
    assert "'lam'" in run.refused("convert", "0.01", "lamb", "C", "--rows", 10)


def test_solvers_lists_all_that_can_be_chosen(run):
    printed = run.fine("solvers")
    for cls in (*solver_catalog.solvers().values(), js.losses.Huber, js.regularizers.ElasticNet):
        assert re.search(rf"^  {solver_catalog.name_of(cls)} ", printed, re.M)
    assert len(solver_catalog.solvers()) >= 3
    assert "--regularizer.l1 " in printed and "--average-power" in printed
    one = run.fine("solvers", "AdaGradRDA")
    assert "argmin" in one and "--initial-accumulator" in one and ">>>" not in one


def test_settings_of_a_program_are_integers_or_none(run, tmp_path):
    data, model = save(tmp_path, "binary", "dense.npz"), tmp_path / "model.npz"
    full = ("train", "--solver", "full-adagrad-rda", data, "-o", model)
    run.fine(*full, "--metric-block-size", "3", "--refresh", 2, "--set", "trips=5")
    known = run.fine("info", model)
    assert "block_size 3" in known and "refresh 2" in known and "trips 5" in known
    run.fine(*full, "--metric-block-size", "none", "--block-size", 16)
    assert "block_size none" in run.fine("info", model)
    assert "an integer >= 1 or None, default: none" in one_line(
        run("train", *full[1:3], "--help").out
    )
    for bad in ("0", "2.5", "1,2"):
        for option in ("--refresh", "--metric-block-size"):
            assert f"{option} must be an integer >= 1" in run.refused(*full, option, bad)


@member
class Scaled(js.AdaGradRDA):
    """A solver that the command line has never heard of.

    Args:
      learning_rate: eta.
      shrink: by how much,
        on two lines.
      fast: whether it is.
    """

    loss: Loss = part(Loss, default=Hinge())
    shrink: float = number(default=0.5, minimum=0)
    fast: bool = choice(False, True, default=False)


def test_a_new_solver_gets_its_options_by_itself(run, tmp_path, monkeypatch):
    monkeypatch.setattr(js, "__all__", [*js.__all__, "Scaled"])
    monkeypatch.setattr(js, "Scaled", Scaled, raising=False)
    solver_catalog.solvers.cache_clear()
    try:
        printed = run("train", "--solver", "scaled", "--help").out
        assert "--shrink X" in printed and "by how much, on two lines" in " ".join(printed.split())
        data, model = save(tmp_path, "binary", "dense.npz"), tmp_path / "model.npz"
        run.fine("train", "--solver", "scaled", "--shrink", "2", "--fast", data, "-o", model)
        known = run.fine("info", model)
        assert "shrink 2" in known and "fast yes" in known
        assert np.isfinite(np.asarray(js.load(model).coef)).all()
        message = run.refused("train", data, "-o", model, "--solver", "scaled", "--shrink=-1")
        assert "--shrink must be a finite number >= 0" in message
    finally:
        solver_catalog.solvers.cache_clear()
