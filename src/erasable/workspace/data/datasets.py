"""Addition of data sets to a workspace, and of records to them.

A version of a data set is a set of fragments. Appending and syncing make a new version; erasing
does not: it takes records out of every version, because no version may keep them.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, insert, select, update

import erasable.workspace.locking as locking
from erasable.core.errors import InvalidIdsError, SourceError, WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.data import fragments
from erasable.workspace.data.catalogue import (
    DataSet,
    FragmentRow,
    all_datasets,
    find,
    fragment_rows,
)
from erasable.workspace.data.column_types import ColumnTypes, cast_table
from erasable.workspace.data.gone_subjects import drop_unused
from erasable.workspace.data.operation import Operation
from erasable.workspace.data.prepared_versions import Followers
from erasable.workspace.data.pulling import Pulled, pulled
from erasable.workspace.data.sources import Source
from erasable.workspace.evidence import entries, ledger_checks, log, seals
from erasable.workspace.identity import subjects as subjects_of
from erasable.workspace.identity.canonical import declared
from erasable.workspace.ledger.bulk import AT_ONCE, insert_missing, update_in
from erasable.workspace.ledger.schema import dataset as dataset_table
from erasable.workspace.ledger.schema import dataset_version, fragment, holding
from erasable.workspace.locking import Claim

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,47}")


@dataclass(frozen=True, slots=True)
class DatasetChange:
    """The result of adding, appending or syncing."""

    name: str
    version: int
    n_records: int  # in the new version
    n_added: int
    n_changed: int
    n_removed: int
    n_suppressed: int  # dropped on the way in: their subjects have been erased
    n_without_subject: int = 0  # of the records that stayed: no subject column names anybody
    warnings: tuple[str, ...] = ()
    # each that followed: model, version, treatment, exactness, n_records, seconds
    models: tuple[dict[str, Any], ...] = ()
    stale: tuple[str, ...] = ()  # models of an earlier version, which may still follow


class AddDataset(Operation[DatasetChange]):
    """Take a data set into the workspace; see `Workspace.add_dataset`.

    Where the type of a subject is None it is "id", unless the values look as if another were meant.
    """

    def __init__(
        self,
        context: Context,
        name: str,
        source: Source,
        *,
        id_column: str,
        subjects: Sequence[tuple[str, str | None]] = (),
        files: Sequence[str] = (),
        types: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(context)
        if not _NAME.fullmatch(name):
            raise WorkspaceError(
                f"{name[:60]!r} cannot be the name of a data set; expected letters, digits, '.', "
                "'_' and '-', up to 48"
            )
        others = {*files, *(column for column, _ in subjects if column != id_column)}
        if taken := sorted(others.intersection(types or ())):
            raise SourceError(
                f"column {taken[0]!r} came with a type, and is a column of subjects or files; "
                "expected types of other columns"
            )
        self._source, self._files = source, files
        self._declared = ColumnTypes.declared(types or {}, id_column)
        self._untyped = [column for column, kind in subjects if kind is None]
        kept, copy = source.to_json(), f"{id_column}.subject"
        if any(column == id_column for column, _ in subjects):
            kept["id_as_subject"] = copy
        typed, regions = [], {}
        for column, given in subjects:
            token_column = copy if column == id_column else column
            kind, region = declared(given or subjects_of.DEFAULT_TYPE)
            typed.append((token_column, kind))
            if region is not None:
                regions[token_column] = region
        self._known = DataSet(
            0, name, kept, id_column, tuple(typed), (), 1, 1, context.now(), regions
        )

    def claim(self, connection: Connection) -> Claim:
        """See `Operation`."""
        return _claim_of(self._known.name)

    def plan(self, connection: Connection) -> None:
        """See `Operation`."""
        name = self._known.name
        if any(each.name == name for each in all_datasets(connection)):
            raise WorkspaceError(
                f"there is a data set {name!r} already; expected a new name; choose another, "
                f"or use `erasable dataset append {name}`"
            )

    def prepare(self) -> None:
        """See `Operation`."""
        context, known = self.context, self._known
        with pulled(
            context, self._source, known, new=True, untyped=self._untyped, files=self._files,
            declared=self._declared,
        ) as found:  # fmt: skip
            self._change = DatasetChange(
                known.name, 1, found.n_records, found.n_records, 0, 0, found.n_suppressed,
                found.n_without_subject, found.remarks or _without_subjects(known),
            )  # fmt: skip
            self._known, self._stored = found.known, put_parts(context, found)

    def commit(self, connection: Connection) -> DatasetChange:
        """See `Operation`."""
        dataset_id = _insert(connection, self._known)
        record_version(self.context, connection, dataset_id, "add", self._change, self._known)
        register_fragments(self.context, connection, dataset_id, 1, self._stored)
        return self._change


class NextVersion(Operation[DatasetChange]):
    """Make the next version of a data set of a source, with the models that follow it."""

    cause: ClassVar[str]

    def __init__(self, context: Context, name: str, source: Source, followers: Followers) -> None:
        super().__init__(context)
        self._name, self._source, self._followers = name, source, followers
        self._stays: list[FragmentRow] = []  # fragments of the version before that stay
        self._ended: list[FragmentRow] = []  # and others
        self._stored: list[dict[str, Any]] = []  # new fragments

    def claim(self, connection: Connection) -> Claim:
        """See `Operation`."""
        return _claim_of(self._name) | self._followers.choose(connection)

    def plan(self, connection: Connection) -> None:
        """See `Operation`."""
        self._known = find(connection, self._name)
        self._present = fragment_rows(connection, self._known.id, self._known.version)

    def prepare(self) -> None:
        """See `Operation`."""
        with pulled(self.context, self._source, self._known) as found:
            check_widened(self.context, self._known, found.known)
            self._known = found.known
            self._change = self.compare(found)
        if self.is_new:
            number = self._change.version
            self._followers.prepare(
                replace(self._known, version=number),
                [*self._stays, *_as_fragment_rows(self._stored, number)],
            )

    @abstractmethod
    def compare(self, found: Pulled) -> DatasetChange:
        """Write the fragments that are new, and say what changes."""

    @property
    def is_new(self) -> bool:
        """Whether there is a change."""
        return self._change.version != self._known.version

    def commit(self, connection: Connection) -> DatasetChange:
        """See `Operation`."""
        context, known, change, followers = (
            self.context, self._known, self._change, self._followers
        )  # fmt: skip
        if self.is_new:
            ledger_checks.check_one(context, connection, "dataset", self._name)
            ended = [part.id for part in self._ended]
            update_in(connection, fragment.c.id, ended, until=change.version)
            record_version(context, connection, known.id, self.cause, change, known)
            register_fragments(context, connection, known.id, change.version, self._stored)
            vacated = followers.adopt(connection)
            if ended:
                drop_unused(context, connection, known.id)
            if ended or vacated:
                self.vacated = {known.id, *vacated}
        return replace(
            change,
            models=tuple(followers.treatments),
            stale=tuple(followers.left_behind(connection, known)),
        )


class Append(NextVersion):
    """Add records to a data set: its next version; models follow, or it is not made."""

    cause = "append"

    def compare(self, found: Pulled) -> DatasetChange:
        """See `NextVersion`."""
        self._stays = self._present
        _refuse_present(self.context, self._present, found)
        n_present = sum(part.n_records for part in self._present)
        self._stored = put_parts(self.context, found)
        return DatasetChange(
            self._name, self._known.version + 1, n_present + found.n_records, found.n_records,
            0, 0, found.n_suppressed, found.n_without_subject, found.remarks,
        )  # fmt: skip


def _claim_of(name: str) -> Claim:
    return Claim.of(locking.datasets([name]), reads=[locking.ADMISSION])


def _as_fragment_rows(stored: Sequence[dict[str, Any]], since: int) -> list[FragmentRow]:
    """Return the rows of the ledger for fragments that were put."""
    names = ("bucket", "key", "sha256", "n_records")
    return [
        FragmentRow(id=0, since=since, until=None, **{name: each[name] for name in names})
        for each in stored
    ]


def check_widened(context: Context, before: DataSet, after: DataSet) -> None:
    """Refuse floats in a column of whole numbers, some of which floats do not hold.

    Those of all versions count: a correction is to reach each.
    """
    known = dict(before.columns)
    widened = [name for name, kind in after.columns if known[name] != kind]
    if not widened:
        return
    with context.ledger.reading() as connection:
        known_parts = fragment_rows(connection, before.id)
    for part in known_parts:
        read = fragments.read(context, part.key, part.sha256, widened)
        cast_table(read, pa.schema([after.schema.field(name) for name in widened]), before.name)


def _refuse_present(context: Context, present: Sequence[FragmentRow], found: Pulled) -> None:
    id_column, again = found.known.id_column, 0
    for part in present:
        ids = fragments.read(context, part.key, part.sha256, [id_column])[id_column]
        again += found.ids.n_of(ids) - found.left_out.n_of(ids)
    if again:
        name = found.known.name
        raise InvalidIdsError(
            f"{again} of {found.n_records} values of {id_column!r} are in {name!r} "
            "already; expected new ones; append only new records, or use "
            f"`erasable dataset sync {name}`"
        )


def record_version(
    context: Context,
    connection: Connection,
    dataset_id: int,
    cause: str,
    change: DatasetChange,
    known: DataSet,
) -> None:
    """Write a version of a data set into the ledger and the log."""
    now = context.now()
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
        "n_added": change.n_added,
        "n_changed": change.n_changed,
        "n_removed": change.n_removed,
        "columns": _as_json(known),
        "created_at": now,
    }
    connection.execute(insert(dataset_version).values(version))
    verb = {"add": "added", "append": "appended", "sync": "synced"}[cause]
    row = connection.execute(select(dataset_table).where(dataset_table.c.id == dataset_id)).one()
    log.append(
        context,
        connection,
        f"dataset-{verb}",
        change.name,
        entries.dataset(context.keys, row._mapping, version),
        now,
    )


def register_fragments(
    context: Context,
    connection: Connection,
    dataset_id: int,
    version: int,
    stored: Sequence[dict[str, Any]],
) -> None:
    """Write new fragments and their people into the ledger."""
    rows = [
        {**each, "dataset_id": dataset_id, "since": version}
        for each in ({k: v for k, v in one.items() if k != "tokens"} for one in stored)
    ]
    if rows:
        connection.execute(insert(fragment), rows)
    for some in _together(stored):
        named: dict[str, str] = {}
        held: dict[str, list[Any]] = {"token": [], "bucket": []}
        for each in some:
            for kind, tokens in each["tokens"]:
                known = tokens.to_pylist()
                named.update(dict.fromkeys(known, kind))
                held["token"] += known
                held["bucket"] += [each["bucket"]] * len(known)
        if named:
            subjects_of.ensure(context, connection, named.items())
            held["dataset_id"] = [dataset_id] * len(held["token"])
            insert_missing(connection, holding, held)
    seals.put(context, connection, "dataset", dataset_id)


def _together(stored: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Cut fragments into runs with as many tokens as are written at once, or one fragment's."""
    some: list[dict[str, Any]] = []
    n_tokens = 0
    for each in stored:
        some.append(each)
        n_tokens += sum(len(tokens) for _, tokens in each["tokens"])
        if n_tokens >= AT_ONCE:
            yield some
            some, n_tokens = [], 0
    yield some


def put_parts(context: Context, found: Pulled) -> list[dict[str, Any]]:
    """Put all records of a source into the store; see `put_part`."""
    stored: list[dict[str, Any]] = []
    n_buckets = found.known.n_buckets
    with context.progress(f"writing {found.known.name}", n_buckets) as advance:
        for number in range(n_buckets):
            records = found.bucket(number)
            if records.num_rows:
                stored.append(put_part(context, found.known, number, records))
            advance()
    return stored


def put_part(context: Context, known: DataSet, bucket: int, part: pa.Table) -> dict[str, Any]:
    """Put one fragment into the store; return the arguments of `register_fragments` for it."""
    kept = fragments.write(context, known.name, part)
    # As Arrow keeps them they take a third of the room: those of all fragments are held.
    tokens = [(kind, pc.unique(part[column]).drop_null()) for column, kind in known.subjects]
    return {
        "bucket": bucket, "key": kept.key, "sha256": kept.sha256,
        "n_records": part.num_rows, "tokens": tokens,
    }  # fmt: skip


def _insert(connection: Connection, known: DataSet) -> int:
    values = insert(dataset_table).values(
        name=known.name,
        source=known.source,
        id_column=known.id_column,
        subjects=[
            {"column": column, "type": kind}
            | ({"region": known.regions[column]} if column in known.regions else {})
            for column, kind in known.subjects
        ],
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
