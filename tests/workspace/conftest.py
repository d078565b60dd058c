"""On which databases tests run: SQLite, and those of the files below on PostgreSQL, too.

There is one server per process (tests/conftest.py), and a database per workspace.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from zlib import crc32

import backends
import ledger_template
import pytest
import stores
from postgres_server import Server

from effort import in_turn

HERE = Path(__file__).parent
ON_BOTH = {
    "data": [
        "test_data_sets", "test_holders", "test_gone_subjects", "test_pulling",
        "test_pulling_fails", "test_syncing",
    ],
    "evidence": [
        "test_clock", "test_consistency", "test_log", "test_receipts", "test_ledger_checks",
        "test_suppressions",
    ],
    "ledger": ["test_bulk"],
    "identity": ["test_external_files", "test_subjects", "test_suppression"],
    "locking": ["test_leases"],
    "models": [
        "test_deleting", "test_fitting", "test_kept_records", "test_older_versions", "test_recipes",
        "test_using", "test_verifying",
    ],
    "requests": [
        "test_after_an_erasure", "test_failing_models", "test_few_statements",
        "test_held_and_exported", "test_history", "test_hooks", "test_late_records",
        "test_no_match", "test_persons", "test_restoring", "test_types", "test_worker",
    ],
    "backups": ["test_restore"],
    "": [
        "test_crashes", "test_lock", "test_one_moment", "test_report", "test_residue", "test_team",
        "test_two_processes",
    ],
}  # fmt: skip
"""Where what is tested is in the ledger, or goes through it."""

IN_SOAK = {
    "test_after_an_erasure", "test_clock", "test_consistency", "test_data_sets", "test_deleting",
    "test_fitting", "test_history", "test_holders", "test_hooks", "test_kept_records",
    "test_gone_subjects", "test_log", "test_no_match", "test_older_versions",
    "test_external_files", "test_persons", "test_pulling", "test_pulling_fails", "test_receipts",
    "test_recipes", "test_ledger_checks", "test_report", "test_restore", "test_restoring",
    "test_subjects", "test_suppression", "test_suppressions", "test_syncing", "test_types",
    "test_using", "test_verifying",
}  # fmt: skip
"""Of these, what `make test` has no time for on PostgreSQL; soaks run it there in turns."""

IN_EVERY_SOAK = {
    "test_failing_models", "test_held_and_exported", "test_late_records", "test_one_moment",
    "test_residue", "test_two_processes",
}  # fmt: skip
"""And what each soak runs there."""

TURNS = 3

BACKENDS = ("sqlite", "postgres")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on both databases, unless it says on which.

    ``backend("sqlite")`` is about SQLite alone; with ``backend(soak="postgres")`` a test is run
    there by `make soak` alone.
    """
    path = Path(metafunc.module.__file__)
    if path.stem not in ON_BOTH.get(path.parent.relative_to(HERE).as_posix().strip("."), ()):
        return
    marks = metafunc.definition.iter_markers("parametrize")
    if any("backend" in mark.args[0] for mark in marks):
        return  # it is told with something else that depends on it
    said = metafunc.definition.get_closest_marker("backend")
    names = said.args if said is not None and said.args else BACKENDS
    if path.stem in IN_SOAK and not in_turn(crc32(metafunc.function.__name__.encode()), TURNS):
        names = [name for name in names if name != "postgres"]
    later = said.kwargs.get("soak") if said else None
    if path.stem in IN_SOAK | IN_EVERY_SOAK:
        later = "postgres"
    given = [pytest.param(n, marks=[pytest.mark.soak] if n == later else []) for n in names]
    metafunc.parametrize("backend", given, indirect=True, scope="session")


@pytest.fixture(scope="session", autouse=True)
def _template() -> Iterator[None]:
    with ledger_template.repeated():
        yield


@pytest.fixture(scope="session", autouse=True)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """The database that workspaces have their ledger in; on SQLite unless a test says otherwise."""
    name = getattr(request, "param", "sqlite")
    if name == "sqlite":
        yield name
        return
    with _place(name, request):
        yield name


def _place(name: str, request: pytest.FixtureRequest) -> AbstractContextManager[None]:
    """Return what has workspaces made in a database, or with an object store beside SQLite."""
    if name == "objects":
        return stores.in_folders()
    if name == "s3":
        return stores.on(request.getfixturevalue("s3"))
    return backends.on(request.getfixturevalue("server"))


@pytest.fixture(autouse=True)
def _databases(backend: str, request: pytest.FixtureRequest) -> Iterator[None]:
    """Drop the databases that a test made."""
    if backend != "postgres":
        yield
        return
    server: Server = request.getfixturevalue("server")
    before = server.made
    yield
    for number in range(before + 1, server.made + 1):
        server.drop(f"t{number}")
