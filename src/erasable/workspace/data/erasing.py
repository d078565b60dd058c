"""Erasure and correction of records of a data set, in every version of it that is kept.

Records are looked up and their new fragments are written first; nothing of the workspace changes
until `swap`, in the caller's transaction.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, delete, insert, select, update

from erasable.core._arrow_files import array_of_texts
from erasable.core.errors import InvalidDataError
from erasable.core.ids import name_some
from erasable.workspace.context import Context
from erasable.workspace.data import fragments
from erasable.workspace.data.arrays import type_of
from erasable.workspace.data.catalogue import DataSet, FragmentRow, fragment_rows, get, record_type
from erasable.workspace.data.conditions import Condition
from erasable.workspace.data.differences import same_rows
from erasable.workspace.evidence import ledger_checks, seals
from erasable.workspace.ledger.bulk import rows_in
from erasable.workspace.ledger.schema import fragment, garbage, holding
from erasable.workspace.store.artifacts import StoredArtifact


@dataclass(frozen=True, slots=True)
class Wanted:
    """The erasures and corrections that requests want of a data set."""

    tokens: Mapping[str, Sequence[str]]  # of people: request ids
    conditions: Sequence[tuple[str, Condition]] = ()  # request id and condition
    # tokens of the type `catalogue.record_type`: request ids
    records: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # request id, and ids and columns with new values; where two differ, the later counts
    corrections: Sequence[tuple[str, pa.Table]] = ()


@dataclass(slots=True)
class _Found:
    part: FragmentRow
    ids: list[Any]
    requests: dict[str, int]
    by_condition: dict[str, list[Any]]
    table: pa.Table  # the whole fragment, which models are about to ask for
    leaves: pa.ChunkedArray
    kept: pa.Table  # the fragment as it is to be
    corrected: list[Any]  # ids of records in it that are to hold something else
    stored: StoredArtifact | None = None


@dataclass(slots=True)
class Erasure:
    """The records that requests erase from one data set, and correct in it."""

    dataset: DataSet
    found: list[_Found] = field(default_factory=list)  # per fragment that changes
    seconds: float = 0.0  # for looking and writing
    # by bucket: tokens without a record left in it; see `workspace.data.gone_subjects`
    vacated: dict[int, set[str]] = field(default_factory=dict)

    @property
    def n_records(self) -> int:
        """Number of records erased from the newest version."""
        return len(self.ids_at(self.dataset.version))

    def ids_at(self, version: int) -> list[Any]:
        """Return the ids erased from one version, in the order of fragments."""
        return [x for each in self.found if each.part.belongs_to(version) for x in each.ids]

    @property
    def n_corrected(self) -> int:
        """Number of corrected records of the newest version."""
        return self.n_corrected_at(self.dataset.version)

    def n_corrected_at(self, version: int) -> int:
        """Count the corrected records of a version."""
        return sum(len(each.corrected) for each in self.found if each.part.belongs_to(version))

    def corrected_at(self, known: DataSet, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the records of a version that corrections change, as they are to be.

        They differ in one of `columns`, by default in any; `known` is as it was in the version.
        Raise InvalidDataError where the version cannot hold the values.
        """
        schema, found = known.schema, []
        compared = schema.names if columns is None else list(dict.fromkeys(columns))
        for each in self.found:
            if each.corrected and each.part.belongs_to(known.version):
                was = each.table.filter(pc.invert(each.leaves)).cast(schema)
                table = cast_to(known, each.kept)
                differ = pc.invert(same_rows(was.select(compared), table.select(compared)))
                found.append(table.filter(differ))
        return pa.concat_tables([schema.empty_table(), *found])

    def parts_after(self, every: Sequence[FragmentRow]) -> list[FragmentRow]:
        """Return the fragments of the data set after the swap, once they are rewritten."""
        found = {each.part.id: each for each in self.found}
        after = []
        for part in every:
            each = found.get(part.id)
            if each is None:
                after.append(part)
            elif each.stored is not None:
                key, sha256 = each.stored.key, each.stored.sha256
                after.append(replace(part, key=key, sha256=sha256, n_records=each.kept.num_rows))
        return after

    def held(self) -> dict[str, pa.Table]:
        """Return the fragments that were read to find the records, by their keys."""
        return {each.part.key: each.table for each in self.found}

    def every_id(self) -> list[Any]:
        """Return the ids erased from any version; one may come twice."""
        return [x for each in self.found for x in each.ids]

    def ids_of_conditions(self) -> dict[str, list[Any]]:
        """Return, for each request that gave a condition, the ids that met it."""
        found: dict[str, list[Any]] = {}
        for each in self.found:
            for request, ids in each.by_condition.items():
                found.setdefault(request, []).extend(ids)
        return {request: list(dict.fromkeys(ids)) for request, ids in found.items()}

    def n_by_request(self, version: int | None = None) -> dict[str, int]:
        """Count the records of each request, in a version, by default in all that are kept."""
        counts: dict[str, int] = {}
        for each in self.found:
            if version is None or each.part.belongs_to(version):
                for request, n in each.requests.items():
                    counts[request] = counts.get(request, 0) + n
        return counts


def find_records(
    context: Context, connection: Connection, dataset_id: int, wanted: Wanted
) -> Erasure:
    """Look up the records to be erased; write and change nothing."""
    began = time.perf_counter()
    known = get(connection, dataset_id)
    every = fragment_rows(connection, dataset_id)
    buckets = _buckets(connection, known, wanted)
    every = [
        part
        for part in every
        if buckets is None or part.bucket in buckets or _names(context, known, part, wanted)
    ]
    erasure = Erasure(known)
    with context.progress(f"looking through {known.name}", len(every)) as advance:
        for part in every:
            found = _look(context, known, part, wanted)
            if found is not None:
                erasure.found.append(found)
            advance()
    erasure.seconds = time.perf_counter() - began
    return erasure


def rewrite_fragments(context: Context, erasure: Erasure) -> None:
    """Put the fragments without the records into the store."""
    began = time.perf_counter()
    with context.progress(f"rewriting {erasure.dataset.name}", len(erasure.found)) as advance:
        for each in erasure.found:
            if each.kept.num_rows:
                each.stored = fragments.write(context, erasure.dataset.name, each.kept)
            advance()
    erasure.seconds += time.perf_counter() - began


def swap(context: Context, connection: Connection, erasure: Erasure) -> None:
    """Replace the old fragments by the new ones."""
    ledger_checks.check_one(context, connection, "dataset", erasure.dataset.name)
    for each in erasure.found:
        at = fragment.c.id == each.part.id
        connection.execute(insert(garbage).values(key=each.part.key))
        if each.stored is None:
            connection.execute(delete(fragment).where(at))
        else:
            connection.execute(
                update(fragment).where(at).values(
                    key=each.stored.key,
                    sha256=each.stored.sha256,
                    n_records=each.kept.num_rows,
                )
            )  # fmt: skip
    seals.put(context, connection, "dataset", erasure.dataset.id)


def _buckets(connection: Connection, known: DataSet, wanted: Wanted) -> set[int] | None:
    """Return the buckets to look through, None for all of them."""
    if wanted.conditions or wanted.records:
        return None
    query = select(holding.c.bucket).where(holding.c.dataset_id == known.id)
    rows = rows_in(connection, query, holding.c.token, wanted.tokens)
    return {row.bucket for row in rows}


def _look(context: Context, known: DataSet, part: FragmentRow, wanted: Wanted) -> _Found | None:
    table = fragments.read(context, part.key, part.sha256)
    named = [(table[column], wanted.tokens) for column in known.subject_columns]
    if wanted.records:
        own = context.keys.tokens(record_type(known.name), table[known.id_column].to_pylist())
        named.append(
            (pa.chunked_array([array_of_texts([token or "" for token in own])]), wanted.records)
        )
    masks = [pc.is_in(column, array_of_texts(sorted(asked))) for column, asked in named]
    met = [(request, condition.mask(table)) for request, condition in wanted.conditions]
    masks += [mask for _, mask in met]
    leaves = pc.is_null(table[known.id_column])  # none: `pyarrow.repeat` would import pandas
    for mask in masks:
        leaves = pc.or_(leaves, mask)
    kept = table.filter(pc.invert(leaves))
    kept, changed, counts = corrected(known, kept, wanted.corrections)
    if not pc.any(leaves).as_py() and not changed:
        return None
    gone = table.filter(leaves)
    requests: dict[str, int] = {}
    by_condition: dict[str, list[Any]] = {}
    asked_by = [
        [asked.get(token, ()) for token in column.filter(leaves).to_pylist()]
        for column, asked in named
    ]
    for row in zip(*asked_by, strict=True):
        for request in {request for each in row for request in each}:
            requests[request] = requests.get(request, 0) + 1
    for request, mask in met:
        by_condition[request] = table[known.id_column].filter(mask).to_pylist()
        requests[request] = requests.get(request, 0) + len(by_condition[request])
    requests |= counts
    ids = gone[known.id_column].to_pylist()
    return _Found(part, ids, requests, by_condition, table, leaves, kept, changed)


def _names(context: Context, known: DataSet, part: FragmentRow, wanted: Wanted) -> bool:
    """Tell whether a correction names a record of a fragment; read no more than its ids."""
    if not wanted.corrections:
        return False
    ids = fragments.read(context, part.key, part.sha256, [known.id_column])[known.id_column]
    return any(pc.any(pc.is_in(ids, t[known.id_column])).as_py() for _, t in wanted.corrections)


def cast_to(known: DataSet, table: pa.Table) -> pa.Table:
    """Return corrected records in the types of a version; refuse those that it cannot hold."""
    try:
        return table.cast(known.schema)
    except pa.ArrowInvalid:
        types = dict(known.columns)
        wrong = [name for name in table.column_names if not _fits(table[name], types[name])]
        raise InvalidDataError(
            f"version {known.version} of {known.name!r} has {types[wrong[0]]} in "
            f"{name_some(wrong)}, and the corrected records another type; expected values that fit"
        ) from None


def _fits(column: pa.ChunkedArray, kind: str) -> bool:
    try:
        column.cast(type_of(kind))
    except pa.ArrowInvalid:
        return False
    return True


def corrected(
    known: DataSet, table: pa.Table, corrections: Sequence[tuple[str, pa.Table]]
) -> tuple[pa.Table, list[Any], dict[str, int]]:
    """Correct records; return them all, the ids of those that differ, and how many by request.

    `corrections` pairs the id of a request with its table; see `Wanted`. Subject columns are not
    corrected: they tell whose a record was.
    """
    name, ids, counts = known.id_column, list[Any](), dict[str, int]()
    for request, given in corrections:
        at = pc.index_in(table[name], given[name])
        there = pc.and_(pc.is_valid(at), have_same_owners(known, given.take(at), table))
        columns = [each for each in given.column_names[1:] if each not in known.subject_columns]
        if not (columns and pc.any(there).as_py()):
            continue
        before = table.select(columns)  # in the types that they have
        for column in columns:
            new, old = given[column].take(at), table[column]
            try:
                new = new.cast(old.type)
            except pa.ArrowInvalid:  # whole numbers, which may be any numbers by now
                old = old.cast(new.type)
            place = table.column_names.index(column)
            table = table.set_column(place, column, pc.if_else(there, new, old))
        after = table.select(columns)
        differ = pc.invert(same_rows(before.cast(after.schema), after))
        changed = table[name].filter(differ).to_pylist()
        if changed:
            counts[request] = len(changed)
            ids += changed
    return table, list(dict.fromkeys(ids)), counts


def have_same_owners(known: DataSet, then: pa.Table, now: pa.Table) -> pa.ChunkedArray:
    """Tell which records have the first subject that they had, or had none.

    `then` and `now` are the same records, row by row. Without subject columns in `then`, all count.
    """
    same = pc.is_valid(now[known.id_column])
    for column in reversed(known.subject_columns):
        if column in then.column_names:
            was = then[column]
            alike = pc.fill_null(pc.equal(was, now[column].cast(was.type)), False)
            same = pc.if_else(pc.is_valid(was), alike, same)
    return same
