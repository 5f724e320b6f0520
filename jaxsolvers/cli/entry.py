"""From words to an exit code: reads the options, runs the command, reports what went wrong."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from jaxsolvers.cli.arguments import build_parser
from jaxsolvers.cli.messages import in_words_of_options, one_line

__all__ = ["main"]

BAD_INPUT, FAILURE, INTERRUPTED, PIPE_CLOSED = 2, 1, 130, 141

# Of a path that cannot be used; other faults of the system are failures.
_PATHS = (errno.ENOENT, errno.EACCES, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
      arguments: words after the program's name; ``sys.argv`` by default.

    Returns:
      The exit code: 0; 2 for bad usage, bad data, a missing extra or a training that diverged; 1
      for an unexpected failure; 130 after an interrupt; 141 if the reader of the output left.

    Raises:
      SystemExit: from ``--help``, ``--version`` (0) and words that are not understood (2).

    Example:
      >>> main(["convert", "0.01", "lam", "C", "--rows", "1000"])
      0.1
      0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    options: argparse.Namespace | None = None
    try:
        with _warnings_as_lines():
            options = _read(words)
            import_module(f"jaxsolvers.cli.{options.command}").run(options)
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _report("interrupted", INTERRUPTED, debug)
    except BrokenPipeError:
        _forget_output()
        return PIPE_CLOSED
    except OSError as error:
        code = BAD_INPUT if error.errno in _PATHS else FAILURE
        return _report(f"error: {_system_fault(error)}", code, debug)
    except (ValueError, FloatingPointError, ImportError) as error:
        known = options.parser.option_strings if options is not None else []
        return _report(f"error: {in_words_of_options(str(error), known)}", BAD_INPUT, debug)
    except Exception as error:
        kind = type(error).__name__
        more = "" if debug else " (--debug shows where)"
        return _report(f"error: unexpected {kind}: {error}{more}", FAILURE, debug)
    return 0


def _read(words: Sequence[str]) -> argparse.Namespace:
    parser, train = build_parser()
    helping = any(word in ("-h", "--help") for word in words)
    named = any(word.partition("=")[0] == "--solver" for word in words)
    if words[:1] == ["train"] and (named or not helping):
        # Only now: the options of a solver are those that its class declares.
        from jaxsolvers.cli.solver_options import add_solver_options

        words = add_solver_options(train, words)
    return parser.read(words)


def _report(message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"jaxsolvers: {one_line(message)}", file=sys.stderr)
    return code


def _system_fault(error: OSError) -> str:
    if error.filename is None:
        return str(error)
    return f"{os.fsdecode(error.filename)}: {error.strerror}"


def _forget_output() -> None:
    # Or the interpreter would complain once more when it flushes stdout at its end.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """The library's warnings as one line each; what concerns programmers only is left out."""

    def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
        print(
            f"jaxsolvers: warning: {one_line(in_words_of_options(str(message), []))}",
            file=sys.stderr,
        )

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
            for category in (UserWarning, RuntimeWarning):
                warnings.simplefilter("always", category)
            warnings.showwarning = show
        yield
