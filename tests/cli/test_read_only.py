"""An auditor's copy of a workspace, which nobody may write to, answers whatever only looks."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.running import erasable, make_tiny, told

NOBODY = 65534


@pytest.fixture(scope="module")
def tiny() -> Iterator[tuple[Path, str]]:
    """A workspace in a folder that everybody may look into, and its completed request."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    (folder / "ws").mkdir()
    states = make_tiny(folder / "ws")
    # Nobody may not be allowed to read Python, which imports some modules when they are needed.
    for args in [*looks(states["completed"]), ["report"]]:
        told(*args, folder=folder / "ws")
    yield folder, states["completed"]
    shutil.rmtree(folder)


@pytest.fixture
def copy(tiny: tuple[Path, str]) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir=tiny[0])) / "copy"
    folder.parent.chmod(0o755)
    shutil.copytree(tiny[0] / "ws", folder)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)


@contextmanager
def for_reading_alone(folder: Path) -> Iterator[None]:
    """Take away the right to write; root has it in any case, and acts as somebody else."""
    is_root = os.geteuid() == 0
    for path in [*folder.rglob("*"), folder]:
        if is_root:
            os.chown(path, NOBODY, NOBODY)
        path.chmod(0o500 if path.is_dir() else 0o400)
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def looks(request: str) -> list[list[str]]:
    return [
        ["status"], ["verify"], ["verify", "risk"], ["log", "verify"], ["log", "show"],
        ["receipt", "show", request], ["requests"], ["dataset", "list"], ["model", "list"],
        ["audit", "risk", "--deleted", request],
    ]  # fmt: skip


@pytest.mark.parametrize("left", ["as it was", "the ledger alone"])
def test_whatever_looks_is_answered(tiny: tuple[Path, str], copy: Path, left: str) -> None:
    if left == "the ledger alone":
        for name in ("ledger.db-wal", "ledger.db-shm", "lock"):
            (copy / name).unlink(missing_ok=True)
    page = Path(tempfile.mkdtemp(dir=tiny[0]))
    page.chmod(0o777)
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    with for_reading_alone(copy):
        for args in [*looks(tiny[1]), ["report", str(page / "page.html")]]:
            result = erasable(*args, folder=copy)
            assert (result.exit_code, result.fault) == (0, None), (args, result.stderr)
        assert "<!doctype html>" in (page / "page.html").read_text()
        for args in (["process"], ["request", "patient-9"], ["log", "head"]):
            result = erasable(*args, folder=copy)
            assert (result.exit_code, result.fault) == (2, None)
            assert "has a fault" not in result.stderr
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*")} == before


def test_what_was_written_last_is_not_left_out(tiny: tuple[Path, str], copy: Path) -> None:
    """A write-ahead log that cannot be read is told; an older state is not shown for the newest."""
    (copy / "ledger.db-wal").write_bytes(b"x" * 4096)
    (copy / "ledger.db-shm").unlink(missing_ok=True)
    with for_reading_alone(copy):
        result = erasable("status", folder=copy)
    assert result.exit_code == 2
    assert "'ledger.db-wal' beside it holds what was written last" in result.stderr
