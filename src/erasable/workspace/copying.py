"""Copy a workspace to another folder, with its ledger in PostgreSQL.

The law kept here: the commit of the new ledger makes the copy, and nothing is committed that was
not held against the source: every row, every file, the log and every receipt. Until then the
source takes no change, and of a copy that fails nothing is left.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from sqlalchemy import Connection, Table, select

from erasable.core.errors import ErasableError, EvidenceError, LedgerError, WorkspaceError
from erasable.workspace.data.holders import compare_index_with_data
from erasable.workspace.evidence import consistency, log, receipts, suppressions
from erasable.workspace.identity.keys import KEYS
from erasable.workspace.ledger import rows
from erasable.workspace.ledger.address import Address
from erasable.workspace.ledger.engine import Ledger
from erasable.workspace.ledger.schema import PASSING, fragment, metadata, model_version, receipt
from erasable.workspace.models import pending_hooks
from erasable.workspace.site import ARTIFACTS, Site
from erasable.workspace.store.artifacts import ArtifactStore, LocalStore, Stored
from erasable.workspace.store.disk import Disk
from erasable.workspace.store.location import Location
from erasable.workspace.store.objects import ObjectStore
from erasable.workspace.store.own import refuse_own

__all__ = ["Copied", "copy"]


@dataclass(slots=True)
class Copied:
    """What was copied, and found to be equal.

    Attributes
    ----------
    path : str
        The folder of the copy.
    rows : dict
        Of each table, by name.
    n_files : int
        Data and models.
    n_receipts : int
        That hold in the copy.
    log_size : int
    log_root : str
        Hexadecimal; that of the source.
    hooks_due : list of str
        Models whose hooks are due, in both from now on.
    """

    path: str
    rows: dict[str, int] = field(default_factory=dict)
    n_files: int = 0
    n_receipts: int = 0
    log_size: int = 0
    log_root: str = ""
    hooks_due: list[str] = field(default_factory=list)


def copy(
    source: Site,
    root: str | os.PathLike[str],
    address: Address,
    location: Location | None = None,
) -> Copied:
    """Copy a workspace; the source stays as it is.

    Parameters
    ----------
    source : Site
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
    place = _free(source, root)
    ledger = address.check_free()
    objects = None if location is None else ObjectStore(location)
    if objects is not None:
        objects.check_free()
    there_already = place.is_dir()
    beside, disk = Disk(place.parent, private=True), Disk(place, private=True)
    with source.lock(), source.ledger.holding() as reading:
        try:
            beside.make(place.name)
            copied = Copied(str(place), hooks_due=pending_hooks.due(source, reading))
            _copy_keys(source, disk)
            store: ArtifactStore = LocalStore(Disk(place / ARTIFACTS, private=True))
            if location is not None and objects is not None:
                location.write(disk)
                objects.take()
                store = objects
            else:
                disk.make(ARTIFACTS)
            copied.n_files = _copy_files(source, reading, store)
            address.write(disk)
            with ledger.transaction() as writing:
                address.refuse_taken(writing)
                ledger.build(writing)
                copied.rows = _copy_tables(source, reading, writing, address.schema)
                _hold(source, reading, writing, copied)
        except BaseException:
            if objects is not None:
                with suppress(ErasableError):  # what is left of it is no reason to say another
                    objects.leave()
            _take_back(beside, disk, there_already)
            raise
        finally:
            ledger.close()
    return copied


def _free(source: Site, root: str | os.PathLike[str]) -> Path:
    refuse_own(root, source.root)
    place = Path(root).resolve()
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise WorkspaceError(
            f"{os.fspath(root)!r} is in use; expected a folder that is empty or not there; name "
            "another"
        )
    if not place.parent.is_dir():
        raise WorkspaceError(
            f"{os.fspath(root)!r} cannot be made; expected a folder {str(place.parent)!r}; make it "
            "first"
        )
    return place


def _take_back(beside: Disk, disk: Disk, there_already: bool) -> None:
    """Remove what was copied; a folder that was there stays as it was."""
    if not there_already:
        beside.remove_folder(disk.root.name)
        return
    for each in list(disk.root.iterdir()):
        if each.is_dir():
            disk.remove_folder(each.name)
        else:
            disk.remove(each.name)


# -- files -----------------------------------------------------------------------------------------


def _copy_keys(source: Site, disk: Disk) -> None:
    if source.disk.path(KEYS).is_file():
        disk.write(KEYS, source.disk.read(KEYS), 0o600)


def _copy_files(source: Site, reading: Connection, store: ArtifactStore) -> int:
    """Copy data and models; what the ledger does not refer to stays behind."""
    wanted = [
        Stored(key, sha256)
        for table in (fragment, model_version)
        for key, sha256 in reading.execute(select(table.c.key, table.c.sha256))
        if key is not None
    ]
    with source.progress("copying files", len(wanted)) as advance:
        for each in wanted:
            store.write(each.key, source.store.open(each))
            advance()
    return len(wanted)


# -- rows ------------------------------------------------------------------------------------------


def _copy_tables(
    source: Site, reading: Connection, writing: Connection, schema: str
) -> dict[str, int]:
    counts = {}
    tables = [table for table in metadata.sorted_tables if table.name not in PASSING]
    with source.progress("copying tables", len(tables)) as advance:
        for table in tables:
            counts[table.name] = _copy_rows(reading, writing, table, schema)
            advance()
    return counts


def _copy_rows(reading: Connection, writing: Connection, table: Table, schema: str) -> int:
    """Copy a table as its database keeps it, and compare what arrived, row by row."""
    rows.load(writing, table, rows.read(reading, table), schema=schema)
    n_rows = 0
    for was, now in zip_longest(rows.read(reading, table), rows.read(writing, table)):
        if was != now:
            raise LedgerError(
                f"row {n_rows + 1} of table {table.name!r} arrived altered; expected it as it was; "
                "nothing was copied, try again with another database"
            )
        n_rows += 1
    return n_rows


# -- whether it holds ------------------------------------------------------------------------------


class _Within(Ledger):
    """A ledger as it is inside of a transaction that is under way."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        yield self._connection

    looking = reading


def _hold(source: Site, reading: Connection, writing: Connection, copied: Copied) -> None:
    """Verify the log and every receipt of the copy, by the files of the copy.

    Raises
    ------
    EvidenceError
        One of them does not hold, neither here nor in the source.
    """
    was, now = log.tree(reading), log.tree(writing)
    copied.log_size, copied.log_root = len(now), now.root().hex()
    site = Site(copied.path)
    site.ledger.close()
    site.ledger = _Within(writing)
    told = [] if was.root() == now.root() else ["the log has another root than that of the source"]
    told += log.verify_log(site) + consistency.compare_ledger_with_log(site)
    told += suppressions.compare_list_with_log(site) + compare_index_with_data(site)
    if told:
        raise EvidenceError(
            f"the workspace does not hold: {told[0]}; expected one that does; nothing was copied, "
            "run `erasable log verify` on the source, and restore it from a backup"
        )
    for (body,) in writing.execute(select(receipt.c.body)):
        receipts.check(body, source.keys.public_pem)
        copied.n_receipts += 1
