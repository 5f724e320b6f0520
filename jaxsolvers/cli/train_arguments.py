"""The options of ``train``, but for those that a solver's class declares."""

from __future__ import annotations

import argparse
from typing import Any

from jaxsolvers.cli.parsing import Parser
from jaxsolvers.cli.reading_arguments import add_file_form, add_labels_file

DEFAULT_SOLVER = "adagrad-rda"


def add_train(commands: Any, prog: str, data: str) -> Parser:
    """The command ``train``; ``data`` says what a data file is."""
    parser: Parser = commands.add_parser(
        "train",
        help="train a model from a file and save it",
        description="Train linear rankers from a file of labelled rows and save the model.\n\n"
        "Two labels give one ranker, more give one ranker per label, several labels in a row give "
        "one ranker per label that says yes or no, real targets give a regression.",
        epilog=f"""examples:
  {prog} train news.svm -o news.npz
  {prog} train news.svm.gz -o news.npz --validation test.svm.gz --normalize l2
  {prog} train news.svm -o news.npz --regularizer l1 --regularizer.strength 1e-5
  {prog} train news.svm -o news.npz --solver pegasos --lam 1e-4 --average
  {prog} train tags.svm -o tags.npz --task multilabel --positive-weight 10
  {prog} train prices.svm -o prices.npz --task regression --loss huber --loss.delta 2
  {prog} train huge.svm -o huge.npz --stream

'{prog} train --solver NAME --help' lists the options of a solver, '{prog} solvers' all.""",
    )
    parser.add_argument("data", metavar="DATA", help=data)
    parser.add_argument(
        "-o", "--output", metavar="MODEL", required=True, help="where the model is saved"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace MODEL whatever it is (default: only if it is a model)",
    )
    task = parser.add_argument_group("task")
    task.add_argument(
        "--task",
        choices=("auto", "binary", "multiclass", "multilabel", "regression"),
        default="auto",
        help="what the labels mean. auto: several labels in a line or none are multilabel, two "
        "different labels binary, whole numbers multiclass, other numbers regression "
        "(default: %(default)s)",
    )
    task.add_argument(
        "--positive-weight",
        type=float,
        metavar="W",
        help="factor on the weight of a ranker's positive rows (default: 1)",
    )
    task.add_argument(
        "--negatives",
        type=float,
        metavar="R",
        help="with many rankers: negative rows drawn per positive one in each epoch (default: all)",
    )
    _add_solver(parser)
    _add_run(parser)
    reading = parser.add_argument_group("reading the data")
    reading.add_argument(
        "--stream",
        action="store_true",
        help="read the file anew in each epoch, never holding it (svmlight only)",
    )
    reading.add_argument(
        "--features", type=int, metavar="N", help="number of features (default: the largest found)"
    )
    add_labels_file(reading)
    add_file_form(reading)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--validation", metavar="FILE", help="evaluate the model on this file afterwards"
    )
    output.add_argument(
        "--drop-new-features",
        action="store_true",
        help="in that file, leave out features beyond those of DATA (default: an error)",
    )
    output.add_argument(
        "--sparse", action="store_true", help="save only the coefficients that are not 0"
    )
    output.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="show a progress bar (default: when the screen is a terminal)",
    )
    output.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="print nothing but the validation, warnings and errors",
    )
    return parser


def _add_solver(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "solver",
        "Every number and choice of the solver is an option: --learning-rate, --loss, "
        "--loss.gamma, --regularizer, --regularizer.strength, --average and others.",
    )
    group.add_argument(
        "--solver", metavar="NAME", default=DEFAULT_SOLVER, help="(default: %(default)s)"
    )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another way to write these options: --set loss.gamma=0.5; can be repeated. Several "
        "numbers, separated by commas, are one for each class",
    )


def _add_run(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("training")
    group.add_argument(
        "--epochs", type=int, default=5, metavar="N", help="passes (default: %(default)s)"
    )
    group.add_argument("--batch-size", type=int, metavar="N", help="rows per round (default: 1)")
    group.add_argument(
        "--order",
        choices=("permutation", "uniform", "cyclic"),
        default="permutation",
        help="a new order in each epoch, independent draws, or the order of the file "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the orders (default: %(default)s)"
    )
    group.add_argument(
        "--intercept",
        choices=("none", "column"),
        help="a constant feature beside the others (default: column; none with a --bias)",
    )
    group.add_argument(
        "--block-size", type=int, metavar="N", help="rows handled together; for speed only"
    )
    group.add_argument(
        "--chunk-size", type=int, metavar="N", help="rankers trained at a time, to bound memory"
    )
    group.add_argument(
        "--float64", action="store_true", help="read and train in 64-bit floats (default: 32)"
    )
