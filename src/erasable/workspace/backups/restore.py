"""Restore of a backup, which erases first all people who were erased since it was made.

The law kept here: a restore makes a workspace without the people on the exported list, with models
that equal refits on the remaining data, and a log of what happened; or it makes nothing. Until it
is done, the workspace cannot be opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from sqlalchemy import Connection, select

from erasable.core.errors import EvidenceError, WorkspaceVersionError
from erasable.workspace.backups import tables
from erasable.workspace.backups.archive import Archive, Manifest, damaged_backup, read_manifest
from erasable.workspace.backups.backup import files_of, troubles
from erasable.workspace.backups.place import Ground, marked
from erasable.workspace.context import Context, Progress
from erasable.workspace.data.holders import tokens_held
from erasable.workspace.data.operation import carry_out
from erasable.workspace.evidence import log, receipts
from erasable.workspace.evidence.envelope import read_kept
from erasable.workspace.identity import external_files, subjects, suppression
from erasable.workspace.identity.external_files import Listed
from erasable.workspace.identity.keys import ELSEWHERE, KEYS, Keys
from erasable.workspace.ledger.address import Address
from erasable.workspace.ledger.engine import REVISION
from erasable.workspace.ledger.schema import receipt
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.ledger.states import OPEN
from erasable.workspace.models import fitting, verifying
from erasable.workspace.models.verifying import Verdict
from erasable.workspace.requests import answering, corrections, process, restoring
from erasable.workspace.store.location import Location
from erasable.workspace.targets import catalogue


@dataclass(slots=True)
class Restored:
    """The result of a restore."""

    path: str  # the folder of the workspace
    made_at: str = ""  # the moment that the backup shows, RFC 3339
    log_size: int = 0  # entries of the log in the backup
    # entries of the log at the signature of the head that was taken in
    head_size: int | None = None
    n_listed: int = 0  # identities on the list
    requests: list[str] = field(default_factory=list)  # carried out, to erase again
    n_records: int = 0  # erased again
    # of every model, by a refit on the remaining data
    verdicts: list[Verdict] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # what could not be checked or done

    @property
    def holds(self) -> bool:
        """Whether every model with a refit equals it."""
        return all(each.holds for each in self.verdicts)


@dataclass(frozen=True, slots=True)
class _Given:
    """The checked arguments of a restore."""

    archive: Archive
    said: Manifest
    keys: Keys
    keeps_keys: bool
    listed: Listed | None
    head: dict[str, Any] | None


def restore(
    backup: str | os.PathLike[str],
    root: str | os.PathLike[str],
    *,
    suppressions: Mapping[str, Any] | None,
    head: Mapping[str, Any] | None = None,
    keys: str | os.PathLike[str] | None = None,
    address: Address | None = None,
    location: Location | None = None,
    retire: Sequence[str] = (),
    progress: Progress | None = None,
) -> Restored:
    """Make a workspace of a backup, without those who were erased since.

    Parameters
    ----------
    backup : path-like
    root : path-like
        A folder that is empty or not there; or one where a restore was cut off.
    suppressions : mapping or None
        The newest list that was exported: `outside.export`. None brings back who was erased since.
    head : mapping, default=None
        The newest signed head of the log: `log.head`.
    keys : path-like, default=None
        The key file; by default what ERASABLE_KEYS names, or the one in the backup.
    address : Address, default=None
        Where the ledger is to be; by default it is a file in the folder.
    location : Location, default=None
        Where data and models are to be, in an object store; by default they are in the folder.
    retire : sequence of str, default=()
        Models to give up, because they cannot be trained here.
    progress : callable, default=None

    Returns
    -------
    Restored

    Raises
    ------
    EvidenceError
        The backup, the keys, the list or the head do not hold, or are of another workspace, or
        the head is not of this log; nothing is there then.
    WorkspaceError
        The folder, the schema or the place is in use; a model cannot be trained without the erased.
    """
    ground = Ground(Path(root).resolve(), address, location)
    ground.check()
    given = _check(Archive(os.fspath(backup)), suppressions, head, keys)
    done = Restored(str(ground.root), given.said.made_at, given.said.log_size)
    with marked(ground):
        context = _build(ground, given)
        try:
            if progress is not None:
                context.progress = progress
            if messages := troubles(context):
                raise damaged_backup(given.archive.path, messages[0])
            check_receipts(context, context.keys.public_pem)
            for name in retire:
                carry_out(fitting.Retire(context, name))
            if given.listed is not None:
                _erase_again(context, given.listed, done)
                done.warnings += corrections.lost_corrections(context, given.listed.corrections)
            else:
                process.process(context, (), delivers=False)
            done.head_size = None if given.head is None else given.head["size"]
            done.warnings += _doubts(given) + _real_targets(context)
            done.verdicts = verifying.verify(context)
        finally:
            context.ledger.close()
    return done


# -- the arguments ---------------------------------------------------------------------------------


def _check(
    archive: Archive,
    suppressions: Mapping[str, Any] | None,
    head: Mapping[str, Any] | None,
    keys: str | os.PathLike[str] | None,
) -> _Given:
    own, keeps = _keys(archive, keys)
    said = read_manifest(archive, own)
    if said.revision > REVISION:
        raise WorkspaceVersionError(
            f"the ledger in the backup has revision {said.revision}; expected {REVISION} or older; "
            "install the version of erasable that made it, or a newer one"
        )
    listed = None
    if suppressions is not None:
        with _named("suppressions"):
            listed = external_files.check_list(suppressions, own, said.workspace)
    with _named("head"):
        signed = None if head is None else read_kept(head, own.public_pem)
    if signed is not None and signed["workspace"] != said.workspace:
        raise EvidenceError(
            "the log head is of another workspace; expected one of the workspace in the backup; "
            "pass the newest one that was kept"
        )
    return _Given(archive, said, own, keeps, listed, signed)


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Name the argument that does not hold."""
    try:
        yield
    except EvidenceError as error:
        raise EvidenceError(f"{what}: {error}") from error


def _keys(archive: Archive, path: str | os.PathLike[str] | None) -> tuple[Keys, bool]:
    """Return the keys, and whether they are to be kept in the folder."""
    elsewhere = os.environ.get(ELSEWHERE)
    if path is not None:
        found = Keys.read(path)
        if elsewhere and Keys.read(elsewhere).to_json() != found.to_json():
            raise EvidenceError(
                f"the keys in {ELSEWHERE} are not those that --keys names; expected the same"
            )
        return found, not elsewhere
    if elsewhere:
        return Keys.read(elsewhere), False
    if KEYS in archive:
        return Keys.parse(archive.read(KEYS), f"{archive.path}:{KEYS}"), True
    raise EvidenceError(
        f"the backup {str(archive.path)!r} holds no keys, and none were named; expected the key "
        f"file of its workspace; name it with --keys or in {ELSEWHERE}"
    )


def _real_targets(context: Context) -> list[str]:
    """Say that requests reach the same places as those of the workspace in the backup."""
    with context.ledger.reading() as connection:
        names = [each.name for each in catalogue.in_use(connection)]
    if not names:
        return []
    return [
        f"requests erase people from the same targets as before, {', '.join(names)}; where this is "
        "a copy to try out, remove them first: `erasable target remove NAME`"
    ]


def _doubts(given: _Given) -> list[str]:
    """Describe what the list and the head leave open."""
    if given.listed is None:
        return [
            "no list of the erased was taken in: whoever was erased after "
            f"{given.said.made_at} is back, in the data and in every model"
        ]
    if given.head is None:
        return [
            "no head of the log was taken in: whether the list is the newest one, nobody can tell"
        ]
    found = []
    size, of_list = given.head["size"], given.listed.log_size
    if of_list is not None and of_list < size:
        found.append(
            f"the list was exported when the log had {of_list} entries, the head was signed when "
            f"it had {size}: whoever was erased in between is back; take in a newer list, if there "
            "is one (`erasable suppress import`)"
        )
    if size > given.said.log_size:
        found.append(
            f"the head covers {size} entries of the log, the backup holds {given.said.log_size}: "
            f"the {size - given.said.log_size} that are lost cannot be shown to follow on these"
        )
    return found


# -- how it is made --------------------------------------------------------------------------------


def _build(ground: Ground, given: _Given) -> Context:
    """Write keys, files, ledger, and the entry of the log."""
    context = ground.begin(given.keys.to_json() if given.keeps_keys else None)
    try:
        _fill(context, ground, given)
    except BaseException:
        context.ledger.close()
        raise
    return context


def _fill(context: Context, ground: Ground, given: _Given) -> None:
    schema = None if ground.address is None else ground.address.schema
    with context.ledger.transaction() as connection:
        if ground.address is not None:
            ground.address.refuse_taken(connection)
        context.ledger.build(connection, given.said.revision)
        for each in given.said.tables:
            tables.load(connection, given.archive, each, schema)
        context.ledger.build(connection)
        _check_log(connection, given)
        _tell(context, connection, ground, given)
        wanted = files_of(connection)
    for stored in wanted:
        _refuse_stray(given, stored.key)
        data = given.archive.read(f"artifacts/{stored.sha256}")
        context.store.write(stored.key, data)


def _check_log(connection: Connection, given: _Given) -> None:
    leaves = log.tree(connection)
    if (len(leaves), leaves.root().hex()) != (given.said.log_size, given.said.log_root):
        raise damaged_backup(given.archive.path, "its log is not the one that its manifest names")
    if given.head is None or given.head["size"] > len(leaves):
        return
    if leaves.root(given.head["size"]).hex() != given.head["root"]:
        raise EvidenceError(
            f"the first {given.head['size']} entries of the log in the backup are not those of the "
            "head; expected a head of this log; the backup or the head is of another branch, as "
            "after an earlier restore: pass those that belong together"
        )


def _tell(context: Context, connection: Connection, ground: Ground, given: _Given) -> None:
    """Log that the workspace was restored, from what, and what was taken in."""
    now = context.now()
    head = given.head or {"size": None, "root": None}
    said = {
        "made_at": given.said.made_at,
        "log_size": given.said.log_size,
        "head_size": head["size"],
        "head_root": head["root"],
        "list": None if given.listed is None else given.listed.sha256,
    }
    key_id = str(context.ledger.get(connection, "key_id"))
    position = log.append(context, connection, "workspace-restored", key_id, said, now)
    kept = {**said, "id": ground.id, "position": position, "at": now.isoformat()}
    context.ledger.set(connection, "restored", kept)


def _refuse_stray(given: _Given, key: str) -> None:
    place = PurePosixPath(key)
    if place.is_absolute() or ".." in place.parts or not place.parts:
        raise damaged_backup(
            given.archive.path, "a file of it has a place outside of the workspace"
        )


def check_receipts(context: Context, public_key: bytes) -> int:
    """Check every receipt of a workspace; return how many there are, or raise EvidenceError."""
    with context.ledger.reading() as connection:
        bodies = list(connection.execute(select(receipt.c.body)).scalars())
    for body in bodies:
        receipts.check(body, public_key)
    return len(bodies)


# -- who was erased since --------------------------------------------------------------------------


def _erase_again(context: Context, listed: Listed, done: Restored) -> None:
    """Carry out requests for the people on the list, and check that they are gone."""
    taken = restoring.take_in(context, listed.entries)
    _process(context, [each.id for each in taken.requests] + _asked_already(context), done)
    if _back(
        context
    ):  # an open request that has to wait, as it fits two people, asks for them, too
        taken = restoring.take_in(context, listed.entries, anew=True)
        _process(context, [each.id for each in taken.requests], done)
    if back := _back(context):
        raise EvidenceError(
            f"{len(back)} identities that are kept out are in the data still; expected none; "
            "nothing was restored, report it"
        )
    done.n_listed = len(listed.entries)


def _process(context: Context, requests: Sequence[str], done: Restored) -> None:
    advice = "or restore without the model: --retire {model}"
    found = process.process(context, requests, delivers=False, advice=advice)
    done.requests += [*found.requests, *found.waiting]  # of targets the next batch erases them
    done.n_records += found.n_records
    done.warnings += found.warnings


def _back(context: Context) -> set[str]:
    """Return the people who are kept out and in the data nevertheless."""
    with context.ledger.reading() as connection:
        kept = {each["token"]: each["type"] for each in suppression.listing(connection)}
        return tokens_held(context, connection, kept)


def _asked_already(context: Context) -> list[str]:
    """Return open requests for people who are kept out; they need not wait any longer."""
    r = request_table.c
    with context.ledger.reading() as connection:
        kept = {each["token"] for each in suppression.listing(connection)}
        rows = list(connection.execute(select(r.id, r.hold, r.tokens).where(r.state.in_(OPEN))))
        expanded = subjects.expand_many(connection, [row.tokens or () for row in rows])
    found = []
    for row, own in zip(rows, expanded, strict=True):
        if not kept & {token for _, token in own}:
            continue
        if row.hold is not None:
            answering.resume(context, row.id)
        found.append(row.id)
    return found
