"""A parser of options whose errors are one line and say what was probably meant."""

from __future__ import annotations

import argparse
import difflib
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

# argparse's own does not know -1e-3 or -inf and would take them for options.
_NEGATIVE = re.compile(r"-(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$|-inf$")


class HelpText(argparse.HelpFormatter):
    """Examples and lists as they are written, other paragraphs filled."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.split("\n\n")
        raw = "\n  "  # of examples and lists
        return "\n\n".join(
            textwrap.indent(part, indent)
            if raw in part
            else textwrap.fill(part, width, initial_indent=indent, subsequent_indent=indent)
            for part in paragraphs
        )


class Parser(argparse.ArgumentParser):
    """An ``ArgumentParser`` with one-line errors, suggestions and no abbreviations.

    Args:
      settings: as for ``argparse.ArgumentParser``.

    Example:
      >>> parser = Parser(prog="tool")
      >>> _ = parser.add_argument("--epochs", type=int)
      >>> parser.read(["--epochs", "3"]).epochs
      3
    """

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", HelpText)
        super().__init__(allow_abbrev=False, **settings)
        self._negative_number_matcher = _NEGATIVE
        self.hints: dict[str, str] = {}  # what to say of an option that is not accepted

    @property
    def option_strings(self) -> list[str]:
        """Every option, as users write it."""
        return list(self._option_string_actions)

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """The options of a command; an unknown one ends the program with 2."""
        options, unknown = self.parse_known_args(words)
        if unknown:
            asked: Parser = getattr(options, "parser", self)
            asked.refuse(unknown)
        return options

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """End the program with 2, naming the first word that was not understood."""
        word = next((word for word in unknown if word.startswith("-")), unknown[0])
        name = word.partition("=")[0]
        if not word.startswith("-"):
            self.error(f"unexpected word {word!r}")
        if name in self.hints:
            self.error(self.hints[name])
        self.error(f"unknown option {name}{nearest(name, self.option_strings)}")

    def error(self, message: str) -> NoReturn:
        """End the program with 2 and one line."""
        line = " ".join(message.split())
        self.exit(2, f"jaxsolvers: error: {line} (see {self.prog} --help)\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action,
                f"{value!r} is not one of {', '.join(names)}{nearest(str(value), names)}",
            )


def nearest(word: str, known: Iterable[str]) -> str:
    """What was probably meant, as the end of a message; empty where nothing is near.

    Example:
      >>> nearest("hing", ["hinge", "logistic"])
      '; did you mean hinge?'
    """
    names = list(known)
    longer = [name for name in names if len(word) > 2 and name.startswith(word)]
    near = longer if len(longer) == 1 else difflib.get_close_matches(word, names, n=1)
    return f"; did you mean {near[0]}?" if near else ""
