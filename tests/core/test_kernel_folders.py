"""Kernels that a wheel carries: used where source, numba and processor are those they are for."""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

from erasable.core import _kernel_folders
from erasable.core._kernel_folders import Level

pytestmark = [
    pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled"),
    pytest.mark.skipif(not _kernel_folders.levels(), reason=f"no levels of {platform.machine()}"),
]

TOOL = Path(__file__).resolve().parents[2] / "packaging" / "kernels.py"

KERNEL = """
from erasable.core._jit import kernel

@kernel
def half(x):
    return x * 0.5

@kernel
def f(x):
    return half(x) + {more}
"""
USE = """
import sys
from pathlib import Path
import numba
from erasable.core import _kernel_folders as folders

folders._ROOT, folders.SHIPPED = Path(sys.argv[1]), Path(sys.argv[2])
{before}
from erasable.core._jit import n_compiled
from used import f
print(f(3.0), n_compiled())
"""
BASE = Level("x86-64", ("64bit", "sse2"))


def _tool() -> Any:
    spec = importlib.util.spec_from_file_location("kernels", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def used(folder: Path, cache: str, before: str = "", **environment: str) -> list[str]:
    """Call the kernel in a process of its own; return its answer, and how many were compiled."""
    level = f"Level = folders.Level; folders.LEVELS = {{{platform.machine()!r}: ({BASE!r},)}}"
    done = subprocess.run(
        [sys.executable, "-c", USE.format(before=f"{level}; {before}"), str(folder / "package"),
         str(folder / "shipped")],
        cwd=folder / "package", capture_output=True, text=True, check=False,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / cache)} | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a kernel, and what a wheel of it carries."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "used.py").write_text(KERNEL.format(more="1.0"))
    cpu = {"NUMBA_CPU_NAME": BASE.name, "NUMBA_CPU_FEATURES": BASE.flattened}
    assert used(tmp_path, "made", **cpu) == ["2.5", "2"]
    tool = _tool()
    monkeypatch.setattr(tool, "PACKAGE", tmp_path / "package")
    assert tool.arrange(tmp_path / "made", tmp_path / "shipped") >= 1
    return tmp_path


def test_kernels_of_a_wheel_are_not_compiled(folder: Path) -> None:
    assert used(folder, "empty") == ["2.5", "0"]
    assert not list((folder / "empty").rglob("*.nbc"))


NOT_WRITABLE = """
from numba.core import caching
def fail(*given):
    raise OSError
caching._CacheLocator.ensure_cache_path = fail
"""


@pytest.mark.skipif(os.name == "nt", reason="no modes of folders")
@pytest.mark.parametrize(("more", "n_compiled"), [("", "0"), ("folders.LEVELS = {}", "2")])
def test_a_container_without_a_writable_folder(folder: Path, more: str, n_compiled: str) -> None:
    """Kernels of the wheel are used; others are kept in a temporary folder."""
    before = f"{NOT_WRITABLE}\n{more}"
    assert used(folder, "empty", before, TMPDIR=str(folder)) == ["2.5", n_compiled]
    assert used(folder, "empty", before, TMPDIR=str(folder)) == ["2.5", "0"]
    assert not (folder / "empty").exists()


@pytest.mark.parametrize(
    "before",
    [
        "folders.LEVELS = {}",
        f"folders.LEVELS = {{{platform.machine()!r}: (Level('x86-64', ('64bit', 'more')),)}}",
        "folders.SHIPPED = Path('nowhere')",
        "from numba.core import caching; caching.numba.__version__ = '0.1'",
    ],
    ids=["other machine", "lesser processor", "no wheel", "other numba"],
)
def test_they_are_compiled_where_they_do_not_fit(folder: Path, before: str) -> None:
    assert used(folder, "empty", before) == ["2.5", "2"]
    assert used(folder, "empty", before) == ["2.5", "0"]  # by then they are in the cache


def test_they_are_compiled_for_a_processor_that_is_named(folder: Path) -> None:
    assert used(folder, "empty", NUMBA_CPU_NAME="generic") == ["2.5", "2"]


def test_they_are_compiled_after_the_source_has_changed(folder: Path) -> None:
    # Of another length: Python takes a file of the same second and length for the same.
    (folder / "package" / "used.py").write_text(KERNEL.format(more="2.00"))
    assert used(folder, "empty") == ["3.5", "2"]


@pytest.mark.parametrize("content", [b"", b"damaged"])
def test_damaged_files_are_compiled_again(folder: Path, content: bytes) -> None:
    for file in (folder / "shipped").rglob("*.nbc"):
        file.write_bytes(content)
    assert used(folder, "empty") == ["2.5", "2"]


def test_a_processor_runs_a_level_with_less_than_it_has() -> None:
    for level in _kernel_folders.fitting():
        assert level in _kernel_folders.levels()
    v3, v2 = _kernel_folders.LEVELS["x86_64"]
    assert set(v2.features) < set(v3.features)
