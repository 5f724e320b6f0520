"""The house stays in order: imports one way, small files, exports, docstrings that run."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from members import discover

import jaxsolvers as js
from jaxsolvers.protocol import Solver

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "jaxsolvers"
FILES = sorted(PACKAGE.rglob("*.py"))
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages([str(PACKAGE)], "jaxsolvers.")
    if not module.name.endswith("__main__")
)

# A layer imports itself and the layers before it, never the ones after it.
LAYERS = [
    {"checks", "replacing"},
    {"members", "csr"},
    {"protocol"},
    {"features"},
    {"losses", "regularizers", "kernels", "decoding"},
    {"solvers", "feature_maps"},
    {"transforms"},
    {"models", "metrics", "theory", "data", "conversion"},
    {"engine"},
    {"labels"},
    {"multiclass", "one_vs_one", "ranking", "structured", "selection"},
    {"estimators", "cli", "__main__", "__init__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
ALLOWED_OUTSIDE = {"jax", "numpy", "jaxsolvers"}
OPTIONAL = {  # where an extra may be imported
    "tqdm": {"engine/progress.py"},
    "sklearn": {"cli/demo.py", "data", "estimators"},
    "optax": {"transforms"},
}


def imported(path: Path) -> set[str]:
    """Modules a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def place(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def top(module: str) -> str | None:
    """The part of the house that a module of ours belongs to."""
    parts = module.split(".")
    return parts[1] if parts[0] == "jaxsolvers" and len(parts) > 1 else None


@pytest.mark.parametrize("path", FILES, ids=place)
def test_imports_go_one_way(path):
    own = path.relative_to(PACKAGE).with_suffix("").parts[0]
    assert own in LEVEL, f"{own} has no layer: put it into LAYERS"
    for module in imported(path):
        other = top(module)
        if own == "__init__" or other is None or module == f"jaxsolvers.{own}":
            continue
        if not (PACKAGE / other).exists() and not (PACKAGE / f"{other}.py").exists():
            continue  # a name of the package itself, such as jaxsolvers.fit
        assert other in LEVEL, f"{other} has no layer: put it into LAYERS"
        assert LEVEL[other] <= LEVEL[own], f"{place(path)} imports {module}, a later layer"


@pytest.mark.parametrize("path", FILES, ids=place)
def test_imports_nothing_but_core_dependencies_and_declared_extras(path):
    for module in imported(path):
        name = module.split(".")[0]
        if name in ALLOWED_OUTSIDE or name in sys.stdlib_module_names:
            continue
        allowed = OPTIONAL.get(name, set())
        assert any(place(path).startswith(where) for where in allowed), f"{place(path)}: {module}"


@pytest.mark.parametrize(
    "path",
    sorted(
        p for folder in ("jaxsolvers", "tests", "benchmarks") for p in (ROOT / folder).rglob("*.py")
    ),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_no_file_is_longer_than_400_lines(path):
    assert len(path.read_text().splitlines()) <= 400


def test_no_file_is_named_after_nothing():
    stems = {path.stem for path in FILES}
    assert not stems & {"utils", "util", "misc", "common", "helpers", "base"}


@pytest.mark.parametrize("name", js.__all__)
def test_every_export_exists_and_has_a_docstring(name):
    thing = getattr(js, name)
    assert inspect.getdoc(thing), name


@pytest.mark.parametrize(
    "module",
    [
        js.losses,
        js.regularizers,
        js.kernels,
        js.feature_maps,
        js.metrics,
        js.data,
        js.structured,
        js.theory,
        js.transforms,
    ],
)
def test_every_name_of_a_public_module_is_documented_with_an_example(module):
    for name in module.__all__:
        text = inspect.getdoc(getattr(module, name)) or ""
        assert text.splitlines()[0].strip(), name
        assert ">>>" in text, f"{module.__name__}.{name} has no example"


@pytest.mark.parametrize(
    "function",
    [
        js.fit,
        js.fit_one_vs_rest,
        js.structured.fit_structured,
        js.fit_one_vs_one,
        js.grid_search,
        js.lambda_path,
        js.online_selection,
        *(getattr(module, n) for module in (js.metrics, js.transforms) for n in module.__all__),
    ],
)
def test_every_argument_is_described(function):
    text = inspect.getdoc(function) or ""
    for section in ("Args:", "Returns:", "Raises:", "Example:"):
        assert section in text, f"{function.__name__} lacks {section}"
    for argument in inspect.signature(function).parameters:
        assert re.search(rf"\b{argument}\b", text.split("Args:")[1]), (
            f"{function.__name__}: {argument}"
        )


WITH_KERNEL = [js.BudgetedPegasos, js.KernelPegasos, js.Kernelized]


@pytest.mark.parametrize("solver", [*discover(Solver), *WITH_KERNEL])
def test_every_solver_describes_its_fields_and_its_source(solver):
    text = inspect.getdoc(solver) or ""
    for field in solver.__dataclass_fields__:
        assert re.search(rf"^\s+{field}\b.*:", text, re.M), f"{solver.__name__}.{field}"
    assert re.search(r"20\d\d|JMLR|Corollary", text), solver.__name__


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    module = importlib.import_module(name)
    assert module.__doc__, name
    # A user's settings: the strict ones of the tests change no value, only what may be mixed.
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        assert doctest.testmod(module).failed == 0


def test_import_needs_no_extra_and_loads_nothing_lazy():
    code = (
        "import sys, jaxsolvers; "
        "late = {'sklearn', 'scipy', 'matplotlib', 'tqdm', 'optax'}; "
        "lazy = ('data', 'structured', 'theory', 'transforms'); "
        "late |= {f'jaxsolvers.{name}' for name in lazy}; "
        "print(sorted(late & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    import_of_jax = subprocess.run(
        [sys.executable, "-c", code.replace("jaxsolvers; ", "jax; ", 1)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout == import_of_jax.stdout


def test_names_of_the_front_are_listed():
    assert set(js.__all__) <= set(dir(js))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        js.nothing


def test_the_readme_names_every_export_and_its_commands():
    readme = (ROOT / "README.md").read_text()
    for name in js.__all__:
        assert name in readme, name
    assert not re.search(r"[A-Z]+_TABLE", readme)
    for link in re.findall(r"\]\(([^)#:]+)\)", readme):
        assert (ROOT / link).exists(), link
    assert 'pip install "PATH[cli]" && python -m jaxsolvers demo' in readme
    assert 'pip install "PATH[test]" && python -m pytest PATH/tests' in readme


def test_the_python_of_the_readme_runs(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    shrunk = {  # the others are small as they are
        "4096, 784, n_classes=1000": "128, 12, n_classes=20",
        "2000, 10_000, n_labels=100": "200, 300, n_labels=10",
        "2000, 64, n_classes=5": "100, 8, n_classes=5",
    }
    assert all(any(size in block for block in blocks) for size in shrunk)
    for block in blocks:
        small = block
        for size, less in shrunk.items():
            small = small.replace(size, less)
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            exec(compile(small, "README.md", "exec"), {})


def test_files_named_in_contributing_exist():
    for name in re.findall(r"`([\w/]+\.(?:py|md))`", (ROOT / "CONTRIBUTING.md").read_text()):
        places = (ROOT, PACKAGE, ROOT / "tests")
        assert any((place / name).exists() for place in places), name


def test_the_project_speaks_of_itself_alone():
    banned = re.compile("|".join(("pypi" + r"\.org", "/work" + "/", "issue" + r" #\d")))
    texts = [
        *FILES,
        *(p for p in ROOT.glob("*.md")),
        ROOT / "pyproject.toml",
        ROOT / ".ci" / "run",
    ]
    for path in texts:
        assert not banned.search(path.read_text()), path
