"""The commands and their options, told without importing JAX."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from jaxsolvers import __version__
from jaxsolvers.cli.parsing import Parser
from jaxsolvers.cli.reading_arguments import add_file_form, add_labels_file
from jaxsolvers.cli.train_arguments import add_train

_DATA = (
    "an svmlight file (plain, .gz, .bz2 or .xz), or an .npz file with X and y; the content "
    "decides, not the name"
)


def build_parser() -> tuple[Parser, Parser]:
    """The parser of all commands, and the one of ``train``, which still lacks the solver's options.

    Example:
      >>> build_parser()[0].read(["info", "rows.svm"]).file
      'rows.svm'
    """
    prog = _program()
    parser = Parser(
        prog=prog,
        description="Linear rankers, one or thousands at once: Pegasos, AdaGrad and relatives.",
        epilog=f"""examples:
  {prog} train train.svm -o model.npz
  {prog} evaluate model.npz test.svm
  {prog} predict model.npz new.svm -o labels.txt

'{prog} COMMAND --help' explains a command. Exit codes: 0 fine, 2 bad usage or bad
data, 1 an unexpected failure, 130 interrupted.""",
    )
    parser.add_argument("--version", action="version", version=f"jaxsolvers {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    train = add_train(commands, prog, _DATA)
    _add_predict(commands, prog)
    _add_evaluate(commands, prog)
    _add_info(commands, prog)
    _add_solvers(commands, prog)
    _add_convert(commands, prog)
    _add_demo(commands)
    for command in commands.choices.values():
        command.add_argument("--debug", action="store_true", help="show a traceback with an error")
        command.set_defaults(parser=command)
    return parser, train


def _program() -> str:
    place = os.path.normpath(sys.argv[0]).split(os.sep)
    module = place[-2:] == ["jaxsolvers", "__main__.py"]
    return "python -m jaxsolvers" if module else "jaxsolvers"


def _add_predict(commands: Any, prog: str) -> None:
    parser = commands.add_parser(
        "predict",
        help="predict the labels of new rows",
        description="Predict with a model of 'train'. Writes one line per row: the label; for "
        "several labels a row, those with a score above the threshold, separated by commas; for "
        "regression the score.",
        epilog=f"""examples:
  {prog} predict model.npz new.svm                      labels, to the screen
  {prog} predict model.npz new.svm --top-k 5 -o top.txt the five best labels and their scores
  {prog} predict tags.npz new.svm --threshold -0.5      more labels per row""",
    )
    _add_model_and_data(parser)
    output = parser.add_argument_group("output")
    output.add_argument("-o", "--output", metavar="FILE", help="write here, not to the screen")
    output.add_argument("--force", action="store_true", help="replace FILE if it exists")
    form = output.add_mutually_exclusive_group()
    form.add_argument(
        "--scores",
        action="store_true",
        help="write scores, not labels: one per class, in the order that 'info' shows",
    )
    form.add_argument(
        "--top-k", type=int, metavar="K", help="write the K best labels of each row as label:score"
    )
    output.add_argument(
        "--threshold",
        type=float,
        metavar="T",
        default=0.0,
        help="score above which the answer is yes (default: %(default)s); for two classes or "
        "several labels a row",
    )
    _add_reading(parser)


def _add_evaluate(commands: Any, prog: str) -> None:
    parser = commands.add_parser(
        "evaluate",
        help="measure a model on labelled rows",
        description="Measure a model of 'train' on rows whose labels are known.\n\n"
        "One label a row: accuracy and error rate; with two classes also average precision and "
        "area under the ROC curve of the second one.\n\n"
        "Many classes, or several labels a row: mean average precision over the classes that "
        "have a row, and precision at 1, 3 and 5, the share of right ones among the best labels "
        "of a row.\n\n"
        "Regression: mean squared error, mean absolute error and R^2.",
        epilog=f"""examples:
  {prog} evaluate model.npz test.svm
  {prog} evaluate model.npz test.svm.gz --json""",
    )
    _add_model_and_data(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print one JSON object")
    _add_reading(parser, labels=True)


def _add_info(commands: Any, prog: str) -> None:
    parser = commands.add_parser(
        "info",
        help="describe a model or a data file",
        description="Describe a model (shape, classes, density, how it was trained) or a data "
        "file (rows, features, non-zeros, labels, index base, query ids). Which one it is, the "
        "content decides.",
        epilog=f"""examples:
  {prog} info model.npz
  {prog} info train.svm --json""",
    )
    parser.add_argument("file", metavar="FILE", help="a model, an svmlight file or an .npz file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    group = parser.add_argument_group("reading the data")
    add_labels_file(group)
    add_file_form(group)


def _add_solvers(commands: Any, prog: str) -> None:
    parser = commands.add_parser(
        "solvers",
        help="list the solvers, losses and regularizers with their options",
        description="List the solvers, losses and regularizers, and the options that each has "
        "in 'train'.",
        epilog=f"""examples:
  {prog} solvers
  {prog} solvers adagrad-rda""",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="only this one, in full")


def _add_convert(commands: Any, prog: str) -> None:
    units = "lam, alpha, C, C_light, C_perf or ridge_alpha"
    parser = commands.add_parser(
        "convert",
        help="convert a strength of regularization between packages",
        description="Print the strength that has the same minimiser in another package's "
        "units: lam (here), alpha (SGDClassifier), C (LIBLINEAR, scikit-learn), C_light "
        "(SVM^light), C_perf (SVM^perf), ridge_alpha (scikit-learn's Ridge).",
        epilog=f"""examples:
  {prog} convert 0.01 lam C --rows 1000
  {prog} convert 1 C lam --rows 1000 --loss squared_hinge""",
    )
    parser.add_argument("value", type=float, metavar="VALUE", help="the strength, > 0")
    parser.add_argument("source", metavar="SOURCE", help=f"its unit: {units}")
    parser.add_argument("target", metavar="TARGET", help="the unit wanted, one of the same")
    parser.add_argument("--rows", type=float, metavar="N", help="number of training rows")
    parser.add_argument(
        "--loss", default="hinge", metavar="NAME", help="the loss (default: %(default)s)"
    )


def _add_demo(commands: Any) -> None:
    demo = commands.add_parser(
        "demo",
        help="digits one-vs-rest, then a thousand synthetic rankers (under a minute)",
        description="Train one-vs-rest on scikit-learn's digits (extra: cli), then on generated "
        "rows with one ranker per class; print accuracy, mean average precision and speed.",
    )
    demo.add_argument("--rankers", type=int, default=1000, help="synthetic classes (1000)")
    demo.add_argument("--rows", type=int, default=4096, help="synthetic rows (4096)")
    demo.add_argument("--epochs", type=int, default=20, help="passes over the digits (20)")


def _add_model_and_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a file that 'train' or model.save wrote")
    parser.add_argument("data", metavar="DATA", help=_DATA)


def _add_reading(parser: argparse.ArgumentParser, labels: bool = False) -> None:
    group = parser.add_argument_group(
        "reading the data", "Index base and row norms are those of the training, unless given."
    )
    if labels:
        add_labels_file(group)
    add_file_form(group, trained=True)
    group.add_argument(
        "--drop-new-features",
        action="store_true",
        help="leave out features beyond those of the training (default: an error)",
    )
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="print nothing but results and errors"
    )
