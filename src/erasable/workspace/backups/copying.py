"""Copies of a workspace in another folder, with the ledger in PostgreSQL.

The law kept here: the commit of the new ledger makes the copy, after every row, every file, the log
and every receipt were compared with the source. Until then the source takes no change, and a copy
that fails leaves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from erasable.core.errors import EvidenceError
from erasable.workspace.backups import tables
from erasable.workspace.backups.backup import files_of, troubles
from erasable.workspace.backups.place import Ground, removed_on_failure
from erasable.workspace.backups.restore import check_receipts
from erasable.workspace.context import Context
from erasable.workspace.evidence import log
from erasable.workspace.identity.keys import KEYS
from erasable.workspace.ledger.address import Address
from erasable.workspace.ledger.engine import Ledger
from erasable.workspace.models import hooks
from erasable.workspace.store.location import Location
from erasable.workspace.store.own_files import refuse_own


@dataclass(slots=True)
class Copied:
    """The result of a copy, which was found equal."""

    path: str  # the folder of the copy
    rows: dict[str, int] = field(default_factory=dict)  # by table
    n_files: int = 0  # data and models
    n_receipts: int = 0  # that hold in the copy
    log_size: int = 0
    log_root: str = ""  # hexadecimal; that of the source
    # models whose hooks are due, in both from now on
    hooks_due: list[str] = field(default_factory=list)


def copy(
    source: Context,
    root: str | os.PathLike[str],
    address: Address,
    location: Location | None = None,
) -> Copied:
    """Copy a workspace; the source stays as it is.

    Parameters
    ----------
    source : Context
    root : path-like
        A folder that is empty or not there.
    address : Address
        Where the ledger of the copy is to be: a schema that is empty or not there.
    location : Location, default=None
        Where data and models of the copy are to be; by default in its folder.

    Returns
    -------
    Copied

    Raises
    ------
    WorkspaceError
        The folder, schema or location is in use, or the source does not hold.
    WorkspaceBusyError
        Another process is at work on the source.
    WorkspaceServerError
        The server of the address, or the object store, cannot be reached, or refuses.
    """
    refuse_own(root, source.root)
    ground = Ground(Path(root).resolve(), address, location)
    ground.check(resumes=False)
    with source.lock(), source.ledger.holding() as reading, removed_on_failure(ground):
        kept = source.disk.path(KEYS)
        context = ground.begin(source.disk.read(KEYS) if kept.is_file() else None)
        copied = Copied(str(ground.root), hooks_due=hooks.due(source, reading))
        ledger = context.ledger
        try:
            copied.n_files = _copy_files(source, reading, context)
            with ledger.transaction() as writing:
                address.refuse_taken(writing)
                ledger.build(writing)
                copied.rows = _copy_tables(source, reading, writing, address.schema)
                context.ledger = _Within(writing)
                _verify(source, reading, context, copied)
        finally:
            ledger.close()
    return copied


def _copy_files(source: Context, reading: Connection, context: Context) -> int:
    """Copy data and models, as far as the ledger refers to them."""
    wanted = files_of(reading)
    with source.progress("copying files", len(wanted)) as advance:
        for each in wanted:
            context.store.write(each.key, source.store.open(each))
            advance()
    return len(wanted)


def _copy_tables(
    source: Context, reading: Connection, writing: Connection, schema: str
) -> dict[str, int]:
    """Copy the tables as their database keeps them."""
    counts = {}
    with source.progress("copying tables", len(tables.kept())) as advance:
        for table in tables.kept():
            copied = partial(tables.read, reading, table)
            counts[table.name] = tables.load_compared(writing, table, copied, schema=schema)
            advance()
    return counts


class _Within(Ledger):
    """A ledger inside of an open transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        yield self._connection

    looking = reading


def _verify(source: Context, reading: Connection, context: Context, copied: Copied) -> None:
    """Verify the log and every receipt of the copy, by the files of the copy."""
    with context.ledger.reading() as connection:
        was, now = log.tree(reading), log.tree(connection)
    copied.log_size, copied.log_root = len(now), now.root().hex()
    messages = (
        [] if was.root() == now.root() else ["the log has another root than that of the source"]
    )
    if messages := messages + troubles(context):
        raise EvidenceError(
            f"the workspace does not hold: {messages[0]}; expected one that does; nothing was "
            "copied, run `erasable log verify` on the source, and restore it from a backup"
        )
    copied.n_receipts = check_receipts(context, source.keys.public_pem)
