"""svmlight lines read one by one: slow, exact, and with an error for every fault.

This is the definition of the format that the fast reader (``svmlight_parse.py``) is held to:

    line    = [label] [qid:integer] {index:value} [# comment]
    label   = number, or number{,number} with several labels; may be absent then
    index   = digits
    value   = number
    number  = [+-] digits [. digits] [e [+-] digits], also .5 and 5.

Blanks and tabs part the tokens, a line may end with CR LF, lines without tokens are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple, NoReturn

from jaxsolvers.checks import MAX_COUNT
from jaxsolvers.data.line_chunks import Chunk
from jaxsolvers.data.svmlight_options import Options

NUMBER = rb"[+-]?+(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+"
MAX_LABEL = MAX_COUNT - 1  # labels are columns, counted from 0
EXACT_INTEGER = 2**53  # above it a float64 skips integers

_NUMBER = re.compile(NUMBER)
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_DIGITS = re.compile(rb"[0-9]+")
_TOKEN = re.compile(rb"[^ \t]+")
_STRANGE = re.compile(rb"[^\x20-\x7e\t]")


class Row(NamedTuple):
    """One line that holds a row. Columns are positions in the line, from 1."""

    line: int
    labels: list[float]  # one, or any number with several labels
    label_columns: list[int]
    qid: int | None
    indices: list[int]  # ascending, as written
    values: list[float]
    columns: list[int]


class Fault(Exception):
    """A fault of a line, before its file and line are known."""

    def __init__(self, column: int, problem: str):
        super().__init__(column, problem)
        self.column, self.problem = column, problem


def exact_rows(chunk: Chunk, options: Options) -> Iterator[Row]:
    """The rows of a chunk in order.

    Raises:
      ValueError: the first fault, with file, line, column and token.
    """
    for number, text in enumerate(chunk.text.split(b"\n")[:-1], chunk.line):
        try:
            row = _parse(text.removesuffix(b"\r"), number, options)
        except Fault as fault:
            refuse(chunk.name, number, fault.column, fault.problem)
        if row is not None:
            yield row


def refuse(name: str, line: int, column: int, problem: str) -> NoReturn:
    """Raise the ValueError of a place in a file."""
    raise ValueError(f"{name}, line {line}, column {column}: {problem}")


class Place(NamedTuple):
    """Where a number stands in a file."""

    name: str
    line: int
    column: int


def find_index(chunk: Chunk, options: Options, wanted: Callable[[int], bool]) -> Place:
    """The first index that is wanted; there must be one."""
    return next(
        Place(chunk.name, row.line, min(columns))
        for row in exact_rows(chunk, options)
        if (columns := [c for i, c in zip(row.indices, row.columns, strict=True) if wanted(i)])
    )


def find_label(chunk: Chunk, options: Options, wanted: Callable[[float], bool]) -> Place:
    """The first label that is wanted; there must be one."""
    return next(
        Place(chunk.name, row.line, column)
        for row in exact_rows(chunk, options)
        for label, column in zip(row.labels, row.label_columns, strict=True)
        if wanted(label)
    )


def shown(token: bytes) -> str:
    """A token as messages show it."""
    text = token.decode("ascii", "backslashreplace")
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _parse(text: bytes, number: int, options: Options) -> Row | None:
    body = text.partition(b"#")[0]
    strange = _STRANGE.search(body)
    inner = text.find(b"\r")
    if inner >= 0 and (strange is None or inner <= strange.start()):
        raise Fault(inner + 1, "a carriage return must end its line, got one inside it")
    if strange is not None:
        byte = strange.group()[0]
        raise Fault(strange.start() + 1, f"the byte 0x{byte:02x} has no place in a data line")
    tokens = [(match.start() + 1, match.group()) for match in _TOKEN.finditer(body)]
    if not tokens:
        return None
    labels, label_columns = _labels(*tokens[0], options)
    at = 0 if options.multilabel and not labels else 1
    qid = None
    if at < len(tokens) and tokens[at][1].startswith(b"qid:"):
        qid = _qid(*tokens[at])
        at += 1
    elif options.query_id:
        column, token = tokens[min(at, len(tokens) - 1)]
        raise Fault(column, f"query_id=True needs qid:integer here, got {shown(token)}")
    entries = [_entry(column, token, number, options) for column, token in tokens[at:]]
    entries.sort()  # by index, then by column
    for (index, _, _), (again, column, _) in pairwise(entries):
        if index == again:
            raise Fault(column, f"index {index} is given twice on this line")
    indices = [index for index, _, _ in entries]
    values = [value for _, _, value in entries]
    columns = [column for _, column, _ in entries]
    return Row(number, labels, label_columns, qid, indices, values, columns)


def _labels(column: int, token: bytes, options: Options) -> tuple[list[float], list[int]]:
    if b":" in token:
        if options.multilabel:
            return [], []
        raise Fault(
            column,
            f"a label must come first, got {shown(token)} "
            "(multilabel=True reads rows without labels)",
        )
    if not options.multilabel:
        return [_label(column, token, options)], [column]
    labels, columns = [], []
    for part in token.split(b","):
        label = _label(column, part, options)
        if not (label.is_integer() and 0 <= label <= MAX_LABEL):
            raise Fault(column, f"a label must be a column, 0 ... {MAX_LABEL}, got {shown(part)}")
        labels.append(label)
        columns.append(column)
        column += len(part) + 1
    return labels, columns


def _label(column: int, token: bytes, options: Options) -> float:
    if not _NUMBER.fullmatch(token):
        hint = " (multilabel=True reads several labels)" if b"," in token else ""
        raise Fault(column, f"a label must be a finite number, got {shown(token)}{hint}")
    label = float(token)
    if abs(label) == float("inf"):
        raise Fault(column, f"a label must be a finite number, got {shown(token)}")
    if (
        abs(label) >= EXACT_INTEGER
        and _INTEGER.fullmatch(token)
        and str(int(label)).lstrip("-") != token.lstrip(b"+-0").decode()
    ):
        raise Fault(column, f"the label {shown(token)} cannot be held exactly by a float64")
    return label


def _qid(column: int, token: bytes) -> int:
    digits = token.removeprefix(b"qid:")
    # 20 characters: a sign and the 19 digits of the largest int64.
    if not _INTEGER.fullmatch(digits) or len(digits) > 20 or not -(2**63) <= int(digits) < 2**63:
        raise Fault(column, f"a query id must be a 64-bit integer, got {shown(token)}")
    return int(digits)


def _entry(column: int, token: bytes, number: int, options: Options) -> tuple[int, int, float]:
    index, colon, value = token.partition(b":")
    if not colon:
        hint = ""
        if number == 1 and _DIGITS.fullmatch(token):
            hint = " (header=True reads a first line 'rows features labels')"
        raise Fault(column, f"expected index:value, got {shown(token)}{hint}")
    if index == b"qid":
        raise Fault(column, f"a query id comes once, right after the label, got {shown(token)}")
    if not _DIGITS.fullmatch(index):
        raise Fault(column, f"an index must be digits only, got {shown(token)}")
    digits = index.lstrip(b"0")
    # The length first: Python refuses to convert thousands of digits.
    if len(digits) > 10 or int(digits or b"0") > MAX_COUNT:
        raise Fault(column, f"an index must be at most {MAX_COUNT}, got {shown(token)}")
    if not _NUMBER.fullmatch(value):
        raise Fault(column + len(index) + 1, f"a value must be a finite number, got {shown(token)}")
    real = float(value)
    if abs(real) >= options.largest_value:
        raise Fault(
            column + len(index) + 1,
            f"a value must be finite in {options.dtype.name}, got {shown(token)}",
        )
    return int(digits or b"0"), column, real
