"""Add data sets to a workspace, and append to them.

A version of a data set is a set of fragments. Appending and syncing make a new version; erasing
does not: it takes records out of every version, because no version may keep them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, insert, select, update

from erasable.core.errors import InvalidIdsError, WorkspaceError
from erasable.workspace.data import fragments, nobody
from erasable.workspace.data.admission import admit, conform, read_source, tokens_in
from erasable.workspace.data.catalogue import DataSet, every, find, table
from erasable.workspace.data.sources import Source
from erasable.workspace.evidence import entries, log
from erasable.workspace.identity import subjects as subjects_of
from erasable.workspace.ledger.schema import dataset as dataset_table
from erasable.workspace.ledger.schema import dataset_version, fragment, holding
from erasable.workspace.site import Site

__all__ = ["Change", "add", "append", "keep", "put_part", "record_version"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,47}")


@dataclass(frozen=True, slots=True)
class Change:
    """What adding, appending or syncing did.

    Attributes
    ----------
    name : str
    version : int
    n_records : int
        In the new version.
    n_added, n_changed, n_removed, n_suppressed : int
        Suppressed records were dropped on the way in: their subjects have been erased.
    n_without_subject : int
        Records, of those that came in and stayed, in which no subject column names anybody.
    warnings : tuple of str
        What may not be as it was meant, a line each.

    Examples
    --------
    >>> Change("visits", 2, 120, 20, 0, 0, 3).n_suppressed
    3
    """

    name: str
    version: int
    n_records: int
    n_added: int
    n_changed: int
    n_removed: int
    n_suppressed: int
    n_without_subject: int = 0
    warnings: tuple[str, ...] = ()


def add(
    site: Site,
    name: str,
    source: Source,
    *,
    id_column: str,
    subjects: Sequence[tuple[str, str]] = (),
) -> Change:
    """Take a data set into the workspace.

    Parameters
    ----------
    site : Site
    name : str
    source : Source
    id_column : str
        Names each record; integers or text, each once.
    subjects : sequence of (column, type)
        Columns that say whose records they are, and how their values are made canonical; see
        `erasable.workspace.identity.canonical`. Only tokens of them are kept.

    Returns
    -------
    Change

    Raises
    ------
    WorkspaceError
        The name is taken, or cannot be one.
    SourceError
        The source cannot be read, or lacks a column.
    InvalidIdsError
        Ids or subjects are missing, repeat, or are of a wrong type.
    """
    if not _NAME.fullmatch(name):
        raise WorkspaceError(
            f"{name[:60]!r} cannot be the name of a data set; expected letters, digits, '.', '_' "
            "and '-', up to 48; choose another"
        )
    with site.lock():
        site.clean()
        with site.ledger.reading() as connection:
            if any(each.name == name for each in every(connection)):
                raise WorkspaceError(
                    f"there is a data set {name!r} already; expected a new name; choose another, "
                    f"or use `erasable dataset append {name}`"
                )
        raw = read_source(source, id_column, subjects)
        n_buckets = fragments.buckets_for(raw.num_rows)
        known = DataSet(
            0, name, source.to_json(), id_column, tuple(subjects), _columns(raw, subjects),
            n_buckets, 1, site.now(),
        )  # fmt: skip
        records, tokens, n_suppressed = admit(site, known, raw)
        stored = _put(site, known, records)
        change = Change(
            name, 1, records.num_rows, records.num_rows, 0, 0, n_suppressed,
            nobody.count(records, known), nobody.remarks(raw, known) or _without_subjects(known),
        )  # fmt: skip
        with site.ledger.transaction() as connection:
            dataset_id = _insert(connection, known)
            record_version(site, connection, dataset_id, "add", change, known)
            keep(connection, dataset_id, 1, stored, tokens)
    return change


def append(site: Site, name: str, source: Source) -> Change:
    """Add records to a data set: its next version.

    Raises
    ------
    SourceError
        The source has other columns.
    InvalidIdsError
        An id is there already; see also `add`.
    """
    with site.lock():
        site.clean()
        with site.ledger.reading() as connection:
            known = find(connection, name)
            present = table(site, connection, known.id, columns=[known.id_column])
        raw, known = conform(read_source(source, known.id_column, known.subjects), known)
        records, tokens, n_suppressed = admit(site, known, raw)
        again = pc.sum(pc.is_in(records[known.id_column], present[known.id_column])).as_py() or 0
        if again:
            raise InvalidIdsError(
                f"{again} of {records.num_rows} values of {known.id_column!r} are in {name!r} "
                "already; expected new ones; append only new records, or use "
                f"`erasable dataset sync {name}`"
            )
        change = Change(
            name, known.version + 1, present.num_rows + records.num_rows, records.num_rows,
            0, 0, n_suppressed, nobody.count(records, known), nobody.remarks(raw, known),
        )  # fmt: skip
        stored = _put(site, known, records)
        with site.ledger.transaction() as connection:
            record_version(site, connection, known.id, "append", change, known)
            keep(connection, known.id, change.version, stored, tokens)
    return change


def record_version(
    site: Site,
    connection: Connection,
    dataset_id: int,
    cause: str,
    change: Change,
    known: DataSet,
) -> None:
    """Write a version of a data set into the ledger and the log."""
    now = site.now()
    connection.execute(
        update(dataset_table)
        .where(dataset_table.c.id == dataset_id)
        .values(version=change.version, columns=_as_json(known))
    )
    version = {
        "dataset_id": dataset_id,
        "number": change.version,
        "cause": cause,
        "n_records": change.n_records,
        "n_suppressed": change.n_suppressed,
        "columns": _as_json(known),
        "created_at": now,
    }
    connection.execute(insert(dataset_version).values(version))
    verb = {"add": "added", "append": "appended", "sync": "synced"}[cause]
    row = connection.execute(select(dataset_table).where(dataset_table.c.id == dataset_id)).one()
    log.append(
        site,
        connection,
        f"dataset-{verb}",
        change.name,
        entries.dataset(site.keys, row._mapping, version),
        now,
    )


def keep(
    connection: Connection,
    dataset_id: int,
    version: int,
    stored: Iterable[dict[str, Any]],
    tokens: dict[str, str],
) -> None:
    """Write new fragments into the ledger, and who is in them."""
    subjects_of.ensure(connection, tokens.items())
    rows, held = [], set()
    for each in stored:
        held |= {(token, dataset_id, each["bucket"]) for token in each["tokens"]}
        row = {name: value for name, value in each.items() if name != "tokens"}
        rows.append({**row, "dataset_id": dataset_id, "since": version})
    if rows:
        connection.execute(insert(fragment), rows)
    query = select(holding.c.token, holding.c.dataset_id, holding.c.bucket)
    before = connection.execute(query.where(holding.c.dataset_id == dataset_id))
    held -= {(row.token, row.dataset_id, row.bucket) for row in before}
    if held:
        names = ("token", "dataset_id", "bucket")
        connection.execute(
            insert(holding), [dict(zip(names, h, strict=True)) for h in sorted(held)]
        )


def _put(site: Site, known: DataSet, records: pa.Table) -> list[dict[str, Any]]:
    stored = []
    split = list(
        fragments.partition(records, known.id_column, known.subject_columns, known.n_buckets)
    )
    with site.progress(f"writing {known.name}", len(split)) as advance:
        for bucket, part in split:
            stored.append(put_part(site, known, bucket, part))
            advance()
    return stored


def put_part(site: Site, known: DataSet, bucket: int, part: pa.Table) -> dict[str, Any]:
    """Put one fragment into the store; return what `keep` needs to know of it."""
    kept = fragments.write(site, known.name, part)
    tokens = {token for column in known.subject_columns for token in tokens_in(part[column])}
    return {
        "bucket": bucket, "key": kept.key, "sha256": kept.sha256,
        "n_records": part.num_rows, "tokens": tokens,
    }  # fmt: skip


def _insert(connection: Connection, known: DataSet) -> int:
    values = insert(dataset_table).values(
        name=known.name,
        source=known.source,
        id_column=known.id_column,
        subjects=[{"column": column, "type": kind} for column, kind in known.subjects],
        columns=_as_json(known),
        n_buckets=known.n_buckets,
        version=1,
        created_at=known.created_at,
    )
    key: int = connection.execute(values).inserted_primary_key[0]  # type: ignore[index]
    return key


def _without_subjects(known: DataSet) -> tuple[str, ...]:
    if known.subjects:
        return ()
    return (
        f"no column says whose the records of {known.name!r} are: nobody can be taken out of it by "
        "an identity, only records by a condition (--where); name such a column with --subject",
    )


def _as_json(known: DataSet) -> list[dict[str, str]]:
    return [{"name": column, "type": kind} for column, kind in known.columns]


def _columns(raw: pa.Table, subjects: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    tokens = {column for column, _ in subjects}
    return tuple(
        (field.name, "string" if field.name in tokens else str(field.type)) for field in raw.schema
    )
