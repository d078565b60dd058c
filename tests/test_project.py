"""The project's own rules: rooms, file sizes, what is exported, examples, the demo, the docs."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import erasable
from optional import TORCH
from pages import module_of

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
# Packages that nobody imports from outside: what they do is reached through `Workspace`. Their
# modules need no list of what they export: a name with an underscore is their own.
INNER = ("erasable.workspace.", "erasable.cli", "erasable.__main__")
REFERENCE = "\n".join(page.read_text() for page in sorted((ROOT / "docs" / "api").glob("*.md")))


@cache
def public_modules() -> list[str]:
    """Every module whose path has no underscore in it, and which can be imported here."""
    found = pkgutil.walk_packages(erasable.__path__, "erasable.")
    names = [module.name for module in found if TORCH or module.name != "erasable.neural"]
    return ["erasable", *(name for name in names if not re.search(r"\._", name))]


def is_inner(module: str) -> bool:
    """Tell a module for the package's own use: of `core`, those that no page describes."""
    if not module.startswith("erasable.core."):
        return module.startswith(INNER)
    return re.search(rf"^::: {re.escape(module)}\b", REFERENCE, re.M) is None


def exported(name: str) -> Iterator[tuple[str, Any]]:
    """Yield the classes and functions that a module exports; its exceptions need no example."""
    module = importlib.import_module(name)
    for attribute in getattr(module, "__all__", ()):
        thing = getattr(module, attribute)
        if not (inspect.isclass(thing) or inspect.isroutine(thing)):
            continue
        if inspect.isclass(thing) and issubclass(thing, BaseException):
            continue
        yield f"{name}.{attribute}", thing


def missing_from_all(module: ModuleType) -> set[str]:
    """Find public classes and functions that a module shows but does not export."""
    package = hasattr(module, "__path__")
    shown = set()
    for name, thing in vars(module).items():
        if name.startswith("_") or not (inspect.isclass(thing) or inspect.isroutine(thing)):
            continue
        home = getattr(thing, "__module__", "") or ""
        ours = home.startswith("erasable") if package else home == module.__name__
        if ours and not isinstance(thing, type(list[int])):
            shown.add(name)
    return shown - set(module.__all__)


@pytest.mark.parametrize("name", [each for each in public_modules() if not is_inner(each)])
def test_all_is_complete(name: str) -> None:
    module = importlib.import_module(name)
    assert hasattr(module, "__all__"), f"{name} does not say what it exports"
    assert len(set(module.__all__)) == len(module.__all__)
    assert [a for a in module.__all__ if not hasattr(module, a)] == []
    assert missing_from_all(module) == set()
    assert set(module.__all__) <= set(dir(module))


def test_what_all_misses_is_found() -> None:
    module = ModuleType("erasable.somewhere")
    exec("def shown(): ...\ndef left_out(): ...\ndef _private(): ...", vars(module))
    module.__all__ = ["shown"]
    assert missing_from_all(module) == {"left_out"}


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(thing, id=name)
        for module in public_modules()
        if not is_inner(module)
        for name, thing in exported(module)
    ],
)
def test_public_objects_have_an_example(thing: Any) -> None:
    text = inspect.getdoc(thing) or ""
    assert re.search(r"^Examples\n-{8}$", text, re.MULTILINE), "no Examples section"
    assert ">>> " in text, "an example that does not run"


def test_every_test_file_has_tests() -> None:
    files = list((ROOT / "tests").rglob("test_*.py"))
    barren = [path.name for path in files if not _holds_tests(path.read_text(encoding="utf-8"))]
    assert barren == []
    assert not _holds_tests("def check_nothing(): ...\n")


def _holds_tests(text: str) -> bool:
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    return any(function.name.startswith("test_") for function in functions)


def _strange_imports(folder: Path) -> list[str]:
    """Return what scripts import from their neighbours that is not there."""
    trees = {path.stem: ast.parse(path.read_text()) for path in folder.glob("*.py")}
    given = {
        name: {node.name for node in tree.body if hasattr(node, "name")}
        | {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
        for name, tree in trees.items()
    }
    return [
        f"{name}: {each.name} of {node.module}"
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in given and not node.level
        for each in node.names
        if each.name not in given[str(node.module)]
    ]


@pytest.mark.parametrize("folder", ["benchmarks", "experiments"])
def test_scripts_import_what_there_is(folder: str) -> None:
    assert not _strange_imports(ROOT / folder)


def test_a_strange_import_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("from two import here, gone\n")
    (tmp_path / "two.py").write_text("here = 1\n")
    assert _strange_imports(tmp_path) == ["one: gone of two"]


def _lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    code = "from importlinter.cli import lint_imports_command as run; run(['--no-cache'])"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def _copy_of_source(folder: Path) -> Path:
    caches = shutil.ignore_patterns("__pycache__")
    shutil.copy(ROOT / "pyproject.toml", folder)
    return shutil.copytree(SOURCE / "erasable", folder / "erasable", ignore=caches)


def test_imports_go_one_way(tmp_path: Path) -> None:
    _copy_of_source(tmp_path)
    done = _lint_imports(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


ROOMS, TABLES, KERNELS = "Packages import downwards", "Tables are read", "Kernels are compiled"
WORKSPACE = "The packages of the workspace"


@pytest.mark.parametrize(
    ("room", "line", "contract"),
    [
        ("core/errors.py", "import erasable.cluster", ROOMS),
        ("core/errors.py", "import erasable", ROOMS),
        ("cluster/__init__.py", "import erasable.preprocessing", ROOMS),
        ("preprocessing/__init__.py", "import erasable.pipeline", ROOMS),
        ("pipeline/__init__.py", "import erasable.audit", ROOMS),
        ("audit/__init__.py", "import erasable.utils", ROOMS),
        ("utils/__init__.py", "import erasable.workspace", ROOMS),
        ("workspace/store/disk.py", "import erasable.workspace.ledger.engine", WORKSPACE),
        ("workspace/data/datasets.py", "import erasable.workspace.models.fitting", WORKSPACE),
        ("core/errors.py", "import pandas", TABLES),
        ("cluster/__init__.py", "import numba", KERNELS),
    ],
)
def test_a_forbidden_import_is_caught(tmp_path: Path, room: str, line: str, contract: str) -> None:
    path = _copy_of_source(tmp_path) / room
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
    done = _lint_imports(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    broken = re.findall(r"^(.*) BROKEN\b", done.stdout, re.MULTILINE)
    assert [name.startswith(contract) for name in broken] == [True]


def _imports(source: Path) -> dict[str, set[str]]:
    """Return the modules that each module imports, late and for types, too."""
    files = {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
        for path in source.rglob("*.py")
    }
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        found: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                package = f"{name}._" if path.name == "__init__.py" else name
                base = package.rsplit(".", node.level)[0] if node.level else ""
                base = ".".join(filter(None, [base, node.module]))
                found.update({base, *(f"{base}.{alias.name}" for alias in node.names)})
        graph[name] = (found & files.keys()) - {name}
    return graph


def _cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, in one step or several."""
    reached: dict[str, set[str]] = {}
    for name, waiting in graph.items():
        found, waiting = reached.setdefault(name, set()), set(waiting)
        while waiting:
            found |= waiting
            waiting = set().union(*(graph[each] for each in waiting)) - found
    groups = {tuple(sorted(o for o in reached[n] if n in reached[o])) for n in graph}
    return sorted(map(list, groups - {()}), key=len, reverse=True)


def test_few_modules_import_each_other() -> None:
    """A module imports the module that has what it needs, and not the package that shows it."""
    found = _cycles(_imports(SOURCE))
    assert len(found) <= 6, found
    assert max(map(len, found)) <= 3, found[0]


@pytest.mark.parametrize(
    "line",
    [
        "from pack import b",
        "from . import b",
        "from .b import x",
        "import pack.b as b",
        "def late():\n    import pack.b",
        "if TYPE_CHECKING:\n    from pack.b import x",
    ],
)
def test_a_cycle_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("from pack.c import x\n")
    (tmp_path / "pack" / "a.py").write_text(f"{line}\n")
    (tmp_path / "pack" / "b.py").write_text("from pack.a import x\n")
    (tmp_path / "pack" / "c.py").write_text("import pack.a\n")
    found = _cycles(_imports(tmp_path))
    through_package = line.startswith(("from pack import", "from . import"))
    names = ["a", "b", "c"] if through_package else ["a", "b"]
    assert found == [[*["pack"] * through_package, *(f"pack.{each}" for each in names)]]
    (tmp_path / "pack" / "a.py").write_text("import pathlib\n")
    assert _cycles(_imports(tmp_path)) == []


@pytest.mark.parametrize(
    ("before", "statement", "unwanted"),
    [
        ("sys", "erasable", ["numba", "numpy", "pandas", "polars", "scipy", "sklearn"]),
        # Whatever scikit-learn imports by itself is not our doing.
        ("sklearn.cluster", "erasable.cluster", ["matplotlib", "pandas", "polars", "pyarrow"]),
    ],
)
def test_imports_are_lazy(before: str, statement: str, unwanted: list[str]) -> None:
    code = (
        f"import sys, {before}; before = set(sys.modules); import {statement}; "
        f"print(sorted(set({unwanted}) & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("arguments", "status"), [([], 1), (["-n", "1"], 1), (["-k", "one"], 0), (["tests"], 0)]
)
def test_a_full_run_with_too_few_tests_fails(
    tmp_path: Path, arguments: list[str], status: int
) -> None:
    (tmp_path / "tests").mkdir()
    plugins = ("effort.py", "entropy.py", "last_words.py", "optional.py", "parameter_names.py")
    for name in ("conftest.py", *plugins):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests")
    (tmp_path / "tests" / "test_it.py").write_text("def test_one(): ...\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = tests\ntestpaths = tests\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    whole = {name: value for name, value in os.environ.items() if name != "ERASABLE_QUARTER"}
    done = subprocess.run(
        command, cwd=tmp_path, env=whole, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert ("1 tests were collected; at least" in done.stdout) == bool(status)
    assert "1 passed" in done.stdout.splitlines()[-1]


def test_the_readme_shows_what_the_demo_does() -> None:
    page = module_of("docs", "readme_story")
    shown = page.BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert list(map(page.masked, shown)) == [page.masked(page.story())]
    assert page.masked("1 of 3 differ") != page.masked("2 of 3 differ")  # figures are held


def test_the_demo_ends_where_a_check_finds_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from erasable.workspace.models import verifying

    monkeypatch.setattr(verifying, "_judge", lambda *arguments: ("different", "by design"))
    monkeypatch.chdir(tmp_path)
    assert module_of("examples", "demo").tell(tmp_path) == 1
    assert "receipt" not in capsys.readouterr().out


def test_every_package_of_estimators_is_reached_by_its_name() -> None:
    packages = {cls.__module__.split(".")[1] for _, cls, _ in erasable.all_estimators()}
    # `refit` is reached as `erasable.Refit`; networks need torch.
    assert packages - {*dir(erasable)} <= {"neural", "refit"}


def test_the_readme_names_every_estimator() -> None:
    page = module_of("docs", "estimator_table")
    assert page.TABLE.findall((ROOT / "README.md").read_text(encoding="utf-8")) == [page.table()]
    assert {tags["exactness"] for _, _, tags in erasable.all_estimators()} == {"bitwise"}


def test_the_docs_say_how_each_estimator_differs_from_its_twin() -> None:
    page = module_of("docs", "twin_table")
    assert page.TABLE.findall(page.PAGE.read_text(encoding="utf-8")) == [page.table()]


def test_the_docs_say_what_a_column_of_each_type_becomes() -> None:
    page = module_of("docs", "dtype_table")
    assert page.TABLE.findall(page.PAGE.read_text(encoding="utf-8")) == [page.table()]


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], ids=lambda page: page.name
)
def test_links_in_the_docs_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = [t for t in re.findall(r"\]\(([^)#\s]+)", text) if not re.match(r"\w+:", t)]
    paths = [page.parent / target for target in targets]
    made = [path for path in paths if path.with_suffix(".py").exists()]  # from a notebook
    assert [path for path in paths if not path.exists() and path not in made] == []


def _private_uses(source: str) -> set[str]:
    """Return packages of others of which a module uses private names, or the insides of numba."""
    used = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            parts = [*node.module.split("."), *(alias.name for alias in node.names)]
            inside = any(part.startswith("_") and part != "__future__" for part in parts[1:])
            if parts[0] != "erasable" and (inside or parts[:2] == ["numba", "core"]):
                used.add(parts[0])
    return used - set(sys.stdlib_module_names)


def test_what_is_used_in_private_has_an_upper_bound() -> None:
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    used = set().union(*map(_private_uses, sources))
    assert {"numba", "sklearn"} <= used
    needs = (ROOT / "pyproject.toml").read_text()
    names = {"sklearn": "scikit-learn"}
    unbounded = {
        name for name in used if not re.search(rf'"{names.get(name, name)}>=[\d.]+,<', needs)
    }
    assert unbounded == set()
    assert _private_uses("from scipy._lib import _util") == {"scipy"}


def test_the_lowest_version_of_every_dependency_is_tried() -> None:
    compatibility = module_of("tests/soak", "compatibility")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = [*project["dependencies"], *project["optional-dependencies"]["workspace"]]
    names = {re.split(r"[>=<]", each)[0] for each in needs}
    assert names | set(compatibility.TOOLS) == {pin.split("==")[0] for pin in compatibility.pins()}
    assert compatibility.lowest(["s3fs[all]>=2026.4,<3"]) == {"s3fs": "2026.4"}
    with pytest.raises(ValueError, match="'numpy<3' has no lower bound"):
        compatibility.lowest(["numpy<3"])
