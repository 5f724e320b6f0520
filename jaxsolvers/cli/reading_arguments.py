"""Options that say how a data file is to be read."""

from __future__ import annotations

from typing import Any


def add_labels_file(group: Any) -> None:
    """The option for labels in a file of their own."""
    group.add_argument(
        "--labels",
        metavar="FILE",
        help="labels of an .npz file without y: an .npy file, (n,) or an indicator (n, K), or a "
        "sparse indicator as scipy.sparse.save_npz writes it",
    )


def add_file_form(group: Any, trained: bool = False) -> None:
    """The options for what an svmlight file does not say of itself."""
    default = "as in training, else auto" if trained else "auto"
    group.add_argument(
        "--zero-based",
        choices=("auto", "yes", "no"),
        default=None if trained else "auto",
        help="whether the first feature has index 0. auto: an index 0 anywhere in the file says "
        f"yes (default: {default})",
    )
    group.add_argument(
        "--header", action="store_true", help="the first line is 'rows features [labels]'"
    )
    given = "as in training" if trained else "none"
    group.add_argument(
        "--normalize",
        choices=("none", "l2", "l1", "max"),
        default=None if trained else "none",
        help=f"divide each row by its norm (default: {given})",
    )
