"""The table of cases and the tests named after them agree."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROW = re.compile(r"^\| (\d{3}) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")
LATER = (
    "sparse rows and files",
    "optax transforms",
    "kernels and structured",
    "ranking metrics",
    "checkpoints and devices",
    "estimators",
)


def table() -> dict[str, str]:
    """The last column of each row, by case."""
    rows = ROW.findall((TESTS / "cases.md").read_text())
    assert len({number for number, *_ in rows}) == len(rows)
    return {number: where for number, _, _, where in rows}


def functions(path: Path) -> set[str]:
    """The test functions of a file."""
    tree = ast.parse(path.read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {name for name in names if name.startswith("test_")}


def test_all_cases_are_in_the_table():
    numbers = list(table())
    assert len(numbers) == 120 and numbers == sorted(numbers)
    assert numbers[0] == "001" and numbers[-1] == "179"


@pytest.mark.parametrize("case", table())
def test_every_case_names_its_tests_or_later_work(case):
    where = table()[case]
    named = TEST.findall(where)
    for file, name in named:
        assert name in functions(TESTS / file), f"{file} has no {name}"
        assert f"case_{case}" in name
    later = re.findall(r"later: ([a-z ]+?)(?: \(|<br>|$| and estimators)", where)
    assert all(area in LATER for area in later), later
    assert named or later


def test_every_test_of_a_case_is_in_the_table():
    listed = {(case, test) for case, where in table().items() for test in TEST.findall(where)}
    for path in sorted(TESTS.rglob("test_*.py")):
        file = path.relative_to(TESTS).as_posix()
        for name in functions(path):
            for case in re.findall(r"case_(\d{3})", name):
                assert (case, (file, name)) in listed, f"{file}::{name} is not in cases.md"
