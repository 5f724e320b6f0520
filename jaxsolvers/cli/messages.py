"""The library's messages in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Collection

_OTHER_NAMES = {"key": "--seed", "n_features": "--features", "n": "--rows"}
_HINTS = {
    "multilabel=True reads": "--task multilabel reads",
    "header=True": "--header",
    "zero_based=True or 'auto' reads": "--zero-based yes or auto reads",
    "zero_based=True": "--zero-based yes",
    "zero_based=False": "--zero-based no",
    "; all in history['positives']": "",
    " or a schedule t -> number": "",
    "; all in state.alive": "",
}
# How reading complains of features beyond the width that is asked for.
_TOO_WIDE = re.compile(r"an index must be at most \d+ with n_features|X must have \d+ features")


def one_line(text: str) -> str:
    """The text without line breaks.

    Example:
      >>> one_line("one,\\n  two")
      'one, two'
    """
    return " ".join(text.split())


def in_words_of_options(text: str, options: Collection[str]) -> str:
    """A message that starts with the name of an argument, with that of its option.

    Args:
      text: the message.
      options: the options of the command, as users write them.

    Example:
      >>> in_words_of_options("batch_size must be an integer >= 1, got 0", ["--batch-size"])
      '--batch-size must be an integer >= 1, got 0'
    """
    for theirs, ours in _HINTS.items():
        text = text.replace(theirs, ours)
    if "--drop-new-features" in options and _TOO_WIDE.search(text):
        text += "; --drop-new-features leaves out what the training did not know"
    first = re.match(r"[A-Za-z_][\w.]*(?= (?:must|needs|is|holds)\b)", text)
    if first is None:
        return text
    option = "--" + first[0].replace("_", "-")
    if option not in options:
        option = _OTHER_NAMES.get(first[0], option)
    return option + text[first.end() :] if option in options else text
