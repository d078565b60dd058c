"""Backup of a workspace: its ledger and all files it refers to, as of one moment, in one file.

The law kept here: the file is complete under its name, or not there. The ledger is read as of one
moment while others may be at work; nobody who was erased before the file was complete is in it.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, select

from erasable.core.errors import EvidenceError, NotInWorkspaceError, WorkspaceError
from erasable.workspace.backups import tables
from erasable.workspace.backups.archive import Manifest, Writer
from erasable.workspace.context import Context
from erasable.workspace.data.holders import compare_index_with_data
from erasable.workspace.evidence import consistency, log, suppressions
from erasable.workspace.evidence.entries import KINDS
from erasable.workspace.evidence.formats import stamp
from erasable.workspace.evidence.statements import software
from erasable.workspace.identity.keys import KEYS
from erasable.workspace.ledger.engine import REVISION
from erasable.workspace.ledger.schema import (
    fragment,
    log_entry,
    model_version,
    request,
    target,
)
from erasable.workspace.ledger.states import IN_PLACE
from erasable.workspace.store.artifacts import StoredArtifact
from erasable.workspace.store.disk import Disk

_ATTEMPTS = 4
"""Attempts, each ended by an erasure meanwhile; during the last, erasures wait."""


class _ChangedError(Exception):
    """An erasure ended meanwhile."""


@dataclass(frozen=True, slots=True)
class BackedUp:
    """The result of a backup."""

    path: str
    size: int  # bytes
    made_at: str  # the moment that it shows, RFC 3339
    rows: dict[str, int]  # by table
    n_files: int  # data and models
    log_size: int
    log_root: str  # hexadecimal
    with_keys: bool


def back_up(context: Context, path: str | os.PathLike[str], *, with_keys: bool = False) -> BackedUp:
    """Write all of a workspace into a file.

    Parameters
    ----------
    context : Context
    path : path-like
        A file that is not there yet, or a folder, in which it gets a name of workspace and time.
    with_keys : bool, default=False
        Whether the keys are in it, too. Anyone who finds it can then tell who is in it, and sign.

    Returns
    -------
    BackedUp

    Raises
    ------
    WorkspaceError
        There is something at the path, or it is in the workspace's folder; the workspace does not
        hold.
    WorkspaceDiskError
        It cannot be written.
    """
    place = _place(context, path)
    if messages := troubles(context):
        raise EvidenceError(
            f"the workspace does not hold: {messages[0]}; expected one that does; nothing was "
            "backed up, run `erasable log verify`, and restore it from an older backup"
        )
    for attempt in range(_ATTEMPTS):
        with context.lock() if attempt == _ATTEMPTS - 1 else nullcontext():
            try:
                return _write(context, place, with_keys)
            except _ChangedError:
                continue
    raise AssertionError("under the lock no erasure ends")


def troubles(context: Context) -> list[str]:
    """Return the faults of a workspace for which no backup of it could be restored."""
    messages = log.verify_log(context) + consistency.compare_ledger_with_log(context)
    return messages + suppressions.compare_list_with_log(context) + compare_index_with_data(context)


def files_of(connection: Connection) -> list[StoredArtifact]:
    """Return the artifacts that a ledger refers to."""
    return [
        StoredArtifact(key, sha256)
        for key_column, hash_column in (
            (fragment.c.key, fragment.c.sha256),
            (model_version.c.key, model_version.c.sha256),
            (request.c.values_key, request.c.values_sha256),
            (target.c.plan_key, target.c.plan_sha256),
        )
        for key, sha256 in connection.execute(select(key_column, hash_column).order_by(key_column))
        if key is not None
    ]


def _write(context: Context, place: Path, with_keys: bool) -> BackedUp:
    with Disk(place.parent, private=True).writing(place.name) as write:
        writer = Writer(write)
        if with_keys:
            writer.add(KEYS, context.keys.to_json())
        with context.ledger.reading() as connection:
            made_at = stamp(context.now())
            known = tables.dump(connection, writer)
            stored = {each.sha256: each for each in files_of(connection)}
            tree = log.tree(connection)
            workspace = str(context.ledger.get(connection, "workspace"))
        with context.progress("backing up files", len(stored)) as advance:
            for sha256, each in stored.items():
                writer.add(f"artifacts/{sha256}", _opened(context, each))
                advance()
        if _erased_since(context, len(tree)):
            raise _ChangedError
        manifest = Manifest(
            workspace, made_at, software().get("erasable", ""), REVISION, context.keys.key_id,
            context.keys.fingerprint, len(tree), tree.root().hex(), known,
            [each._asdict() for each in writer.members],
        )  # fmt: skip
        writer.end(manifest.sealed(context.keys))
    return BackedUp(
        str(place), place.stat().st_size, made_at, {each["name"]: each["n_rows"] for each in known},
        len(stored), len(tree), tree.root().hex(), with_keys,
    )  # fmt: skip


def _opened(context: Context, stored: StoredArtifact) -> bytes:
    try:
        return context.store.open(stored)
    except NotInWorkspaceError:
        with context.ledger.reading() as connection:
            if stored in files_of(connection):
                raise
        raise _ChangedError from None  # an erasure, or another fit, replaced it


def _erased_since(context: Context, log_size: int) -> bool:
    said = select(func.count()).where(
        log_entry.c.position >= log_size,
        log_entry.c.kind.in_([each.name for each in KINDS.values() if each.states == IN_PLACE]),
    )
    with context.ledger.reading() as connection:
        n: Any = connection.execute(said).scalar()
    return bool(n)


def _place(context: Context, path: str | os.PathLike[str]) -> Path:
    named, place = os.fspath(path), Path(os.path.abspath(path))
    is_folder = place.is_dir() or named.endswith(("/", os.sep))
    if is_folder:
        with context.ledger.reading() as connection:
            workspace = str(context.ledger.get(connection, "workspace"))
        place /= f"erasable-{workspace[:8]}-{context.now():%Y%m%dT%H%M%SZ}.tar"
    if place.resolve().is_relative_to(context.root):
        raise WorkspaceError(
            f"{named!r} is in the folder of the workspace, where no erasure would reach it; "
            "expected a place elsewhere"
        )
    if place.exists() or place.is_symlink():
        raise WorkspaceError(
            f"{str(place)!r} is there already; expected a new file, or a folder to put it in"
        )
    folder = place.parent
    if is_folder and folder.parent.is_dir() and not folder.exists():
        folder.mkdir(mode=0o700)
    if not folder.is_dir():
        raise WorkspaceError(
            f"{named!r} cannot be written; expected a folder {str(folder)!r}; make it first"
        )
    return place
