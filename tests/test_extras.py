"""What `pip install erasable` brings, what extras bring, and what says so where one is missing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from bare import OTHERS, WORKSPACE

from erasable.core._optional import needs
from erasable.core.errors import ErasableError, MissingPackageError

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
BLOCK = """
import sys
sys.path.insert(0, {scripts!r})
import bare
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
"""


def _without(names: set[str], code: str) -> subprocess.CompletedProcess[str]:
    """Run code where packages cannot be imported."""
    before = BLOCK.format(scripts=str(ROOT / "tests" / "soak"), names=names)
    line = [sys.executable, "-c", before + code]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_the_packages_that_are_always_installed() -> None:
    names = {re.split(r"[>=<]", each)[0] for each in PROJECT["dependencies"]}
    assert names == {
        "joblib", "lazy-loader", "narwhals", "numba", "numpy", "scikit-learn", "scipy",
        "threadpoolctl",
    }  # fmt: skip


def test_every_package_is_imported_without_extras() -> None:
    done = _without(WORKSPACE | OTHERS, "bare.check_packages(); bare.audit_and_select()")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["narwhals", "joblib"])
def test_a_package_that_is_needed_and_missing_is_found(name: str) -> None:
    done = _without(WORKSPACE | OTHERS | {name}, "bare.check_packages()")
    assert done.returncode == 1
    assert f"No module named '{name}" in done.stderr


@pytest.mark.parametrize("extra", ["plots", "workspace"])
def test_a_missing_message_is_found(extra: str) -> None:
    done = _without(set(), f"bare.asks_for({extra!r}, lambda: __import__('json'))")
    assert f"AssertionError: nothing asks for {extra}" in done.stderr
    code = (
        "from erasable.core._optional import needs\ndef use():\n    with needs('a', 'b'): import c"
    )
    assert _without({"c"}, f"{code}\nbare.asks_for('a', use)").returncode == 0
    assert "has not" in _without({"c"}, f"{code}\nbare.asks_for({extra!r}, use)").stderr


def _named_extras(source: str) -> set[str]:
    return {
        node.args[0].value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("needs", "_needs")
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


def test_every_extra_that_a_message_names_is_there() -> None:
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    named = set().union(*map(_named_extras, sources))
    assert {"dask", "images", "neural", "parquet", "plots", "workspace"} <= named <= set(EXTRAS)
    assert _named_extras("with needs('other', 'x'): pass") - set(EXTRAS) == {"other"}


def _joined(extra: str) -> set[str]:
    """Return the extras that the first line of one joins."""
    return set(EXTRAS[extra][0].removeprefix("erasable[").removesuffix("]").split(","))


def test_all_has_every_extra_for_users() -> None:
    named = _joined("all") | _joined("targets")
    assert named == set(EXTRAS) - {"all", "bench", "dev", "docs", "serving"}
    # `make` has targets of their own for others.
    assert _joined("dev") == _joined("all") - {"boosting", "neural", "targets"}


def test_what_is_missing_is_named() -> None:
    with pytest.raises(MissingPackageError) as told, needs("plots", "a plot"):
        import no_such_package.figure  # type: ignore[import-not-found]
    assert isinstance(told.value, ErasableError)
    assert isinstance(told.value, ModuleNotFoundError)
    assert told.value.name == "no_such_package"
    with (
        pytest.raises(MissingPackageError, match="a plot needs used_later, which"),
        needs("plots", "a plot", "json", "used_later"),
    ):
        pass
    with (
        pytest.raises(MissingPackageError, match="inner"),
        needs("plots", "outer"),
        needs("images", "inner"),
    ):
        import no_such_package  # noqa: F401


def test_a_missing_module_of_ours_is_a_fault() -> None:
    with pytest.raises(ModuleNotFoundError) as told, needs("plots", "a plot"):
        import erasable.no_such_module  # type: ignore[import-not-found]  # noqa: F401
    assert not isinstance(told.value, MissingPackageError)


@pytest.mark.parametrize("missing", sorted(WORKSPACE))
def test_the_command_line_says_in_one_line_what_to_install(missing: str) -> None:
    code = "sys.argv = ['erasable', 'status']\nfrom erasable.cli import run\nrun()"
    done = _without({missing}, code)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert f"needs {missing}, which is not installed; run `pip install 'erasable[workspace]'`" in (
        done.stderr
    )
