"""Batches: requests that are carried out together, and what they erase or correct.

The law kept here: a request that was started and cannot be carried out is pending again, so that it
can still be denied, cancelled or held.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, delete, select, update

import erasable.workspace.locking as locking
from erasable.core.errors import LedgerError, TamperedError, WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.data import erasing, holders, persons, waiting_corrections
from erasable.workspace.data.catalogue import (
    DataSet,
    all_datasets,
    find,
    fragment_rows,
    get,
    record_type,
    with_types_of,
)
from erasable.workspace.data.conditions import Condition
from erasable.workspace.data.persons import Person
from erasable.workspace.data.prepared_versions import Ahead
from erasable.workspace.evidence import entries, ledger_checks, log
from erasable.workspace.identity import subjects
from erasable.workspace.ledger.bulk import rows_in, update_in
from erasable.workspace.ledger.schema import holding, identity, step
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.ledger.states import WAITING
from erasable.workspace.ledger.treatments import CORRECTED, DELETED
from erasable.workspace.models import catalogue, deleting
from erasable.workspace.models.catalogue import NOT_THE_MODELS, Model, Version
from erasable.workspace.models.following import Arriving
from erasable.workspace.models.reading import Reader
from erasable.workspace.requests import failures
from erasable.workspace.requests.failures import BatchFailure

_DOUBT = "it fits two people: cancel it, and ask again with the type of the identity"
_HELD = "{id} was not carried out, and is on hold: {why}"


Models = list[tuple[Model, Version | None, dict[int, list[Any]]]]
"""Models, their versions in use, and which ids of which data sets are to leave them."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The requests to carry out, of those that are pending."""

    only: Sequence[str] | None = None  # ids; None for all
    but: Set[str] = frozenset()  # ids that are left out


@dataclass(slots=True)
class Batch:
    """Requests that are carried out together, and what was prepared for them."""

    requests: dict[str, Any]
    tokens: dict[str, list[str]]  # token: requests
    types: dict[str, str]  # token: type
    conditions: dict[int, list[tuple[str, Condition]]]  # data set: [(request, condition)]
    people: dict[str, Person] = field(default_factory=dict)  # request: whom it is about
    damaged: BatchFailure | None = None  # a data set in which nobody could be followed
    corrections: dict[int, list[Any]] = field(default_factory=dict)  # data set: rows of requests
    erasures: list[erasing.Erasure] = field(default_factory=list)
    prepared: list[tuple[Model, deleting.Prepared, dict[str, int]]] = field(default_factory=list)
    models: Models = field(default_factory=list)
    name: str = ""
    narrowed: list[waiting_corrections.Narrowed] = field(default_factory=list)

    def held(self) -> dict[str, pa.Table]:
        """Return the fragments that were read to find the records, by their keys."""
        return {key: table for erasure in self.erasures for key, table in erasure.held().items()}

    def corrects(self, request: str) -> bool:
        """Tell whether a request asks for a correction."""
        return self.requests[request].corrects is not None

    def ahead(self, connection: Connection) -> Ahead:
        """Return the data sets as they will be when their fragments are written."""
        return Ahead(
            parts={
                each.dataset.id: each.parts_after(fragment_rows(connection, each.dataset.id))
                for each in self.erasures
            }
        )

    def arriving(
        self, connection: Connection, model: Model, version: Version | None, reader: Reader
    ) -> Arriving | None:
        """Return what a model is to learn of corrections; None if they do not concern it."""
        if version is None:
            return None
        used = dict(zip(model.datasets, version.dataset_versions, strict=True))
        concerned = [each for each in self.erasures if each.dataset.id in used]
        if not any(each.n_corrected_at(used[each.dataset.id]) for each in concerned):
            return None
        design = deleting.design_of(model)
        corrected = {
            each.dataset.id: each.corrected_at(
                with_types_of(connection, each.dataset, used[each.dataset.id]),
                None if design is None else design.columns(each.dataset),
            )
            for each in concerned
        }
        leave = any(each.ids_at(used[each.dataset.id]) for each in concerned)
        return Arriving(
            reader, version.dataset_versions, corrected=corrected,
            treatment=DELETED if leave else CORRECTED,
        )  # fmt: skip

    def n_per_request(self, model: Model, version: Version | None) -> dict[str, int]:
        """Count the records of each request that a version of a model was trained on."""
        if version is None:
            return dict.fromkeys(self.requests, 0)
        at = dict(zip(model.datasets, version.dataset_versions, strict=True))
        counts = dict.fromkeys(self.requests, 0)
        for erasure in self.erasures:
            if erasure.dataset.id in at:
                for request, n in erasure.n_by_request(at[erasure.dataset.id]).items():
                    counts[request] += n
        return counts


def resources_needed(
    context: Context,
    only: Choice,
    *,
    patient: bool = False,
    checked: dict[str, Any] | None = None,
) -> set[str]:
    """Return the resources to lock for the pending requests: data sets and models.

    The rows of the requests, checked against the log, are put into `checked` by their ids.
    """
    with context.ledger.reading() as connection:
        rows = _waiting(connection, only, context.now() if patient else None)
        ledger_checks.check(context, connection, [row.id for row in rows])
        if rows:
            log.check_unbroken(context, connection)  # or all would be done, and nothing be signed
        if checked is not None:
            checked.update({row.id: row for row in rows})
        _check_scopes(rows)
        if not rows:
            return set()
        named = {row.corrects["dataset"] for row in waiting_corrections.waiting(connection)}
        batch = gather_batch(context, connection, rows, within=())
        return {*_concerned(connection, batch), *locking.datasets(named)}


def new_name() -> str:
    """Return a new, unique name of a batch."""
    return f"B-{secrets.token_hex(8)}"


def plan(
    context: Context,
    name: str,
    only: Choice,
    *,
    patient: bool = False,
    claimed: Collection[str] | None = None,
    checked: Mapping[str, Any] | None = None,
    told: list[str] | None = None,
) -> Batch | BatchFailure | None:
    """Start the requests that are pending and not on hold; None if there are none.

    Rows in `checked` that have not changed are not checked again. A line for each request that was
    put on hold is appended to `told`. If the requests concern more than `claimed`, nothing is
    started, and a BatchFailure is returned.
    """
    now = context.now()
    with context.ledger.reading() as connection:
        rows = _waiting(connection, only, now if patient else None)
        _check_scopes(rows)
        batch = gather_batch(context, connection, rows, claimed)
        concerns = _concerned(connection, batch)
    if claimed is not None and not concerns <= set(claimed):
        return BatchFailure(concerns=concerns)
    with context.ledger.transaction() as connection:
        connection.execute(delete(step))  # of a batch whose process has died
        rows = _waiting(connection, only, now if patient else None)
        rows = [row for row in rows if batch.requests.get(row.id) == row]  # later ones wait
        before = checked or {}
        ledger_checks.check(
            context, connection, [row.id for row in rows if before.get(row.id) != row]
        )
        held = _hold_doubtful(context, connection, rows, batch.people)
        if told is not None:
            told += [_HELD.format(id=id, why=why) for id, why in held.items()]
        rows = [row for row in rows if row.id not in held]
        if not rows:
            return None
        batch = _batch(connection, rows, batch.people, batch.damaged)
        batch.name = name
        started = {"state": "in_progress", "batch": name, "changed_at": now}
        update_in(connection, request_table.c.id, batch.requests, **started)
        log.append_many(
            context, connection, [("request-started", row.id, {"batch": name}, now) for row in rows]
        )
        return batch


def check_claimed(
    connection: Connection, batch: Batch, claimed: Collection[str]
) -> BatchFailure | None:
    """Check for new records and identities of people, in the transaction of the swap.

    Records may have come into a data set that was not claimed, and identities by a link. Data sets
    that were claimed are unchanged.
    """
    concerns = _concerned(connection, batch)
    people = [each for each in batch.people.values() if each.reach > persons.ALONE]
    linked = subjects.expand_many(connection, [_pairs(each) for each in people])
    same = all(len(now) == len(each.identities) for now, each in zip(linked, people, strict=True))
    return None if same and concerns <= set(claimed) else BatchFailure(concerns=concerns)


def _pairs(person: Person) -> list[tuple[str, str]]:
    return [(kind, token) for token, kind in person.identities.items()]


def _waiting(connection: Connection, chosen: Choice, now: datetime | None) -> list[Any]:
    """Return the rows of requests to carry out, also those that a dead process had started.

    With `now`, without those that have failed and are not to be tried again yet.
    """
    query = select(request_table).where(
        request_table.c.state.in_(WAITING), request_table.c.hold.is_(None)
    )
    if chosen.only is not None:
        query = query.where(request_table.c.id.in_(list(chosen.only)))
    if chosen.but:
        query = query.where(request_table.c.id.not_in(sorted(chosen.but)))
    if now is not None:
        query = query.where(request_table.c.id.not_in(failures.waiting_requests(now)))
    return list(connection.execute(query.order_by(request_table.c.received_at)))


def _concerned(connection: Connection, batch: Batch) -> set[str]:
    found: set[int] = set()
    types = set(batch.types.values())
    known = all_datasets(connection)
    found |= {each.id for each in known if record_type(each.name) in types}
    found |= set(batch.conditions) | set(batch.corrections)
    query = select(holding.c.dataset_id).distinct()
    found |= {row.dataset_id for row in rows_in(connection, query, holding.c.token, batch.tokens)}
    names = [each.name for each in known if each.id in found]
    models = catalogue.models_of(connection, list(found))
    return {
        *locking.datasets(names),
        *locking.models(each.name for each in models if each.state != "retired"),
    }


def put_back(context: Context, name: str) -> str | None:
    """Make the requests of a batch pending again, unless they are in place.

    Return the state of the batch: "pending", a later one if they are in place, None if none was
    started.
    """
    now = context.now()
    r = request_table.c
    with context.ledger.transaction() as connection:
        query = select(r.id, r.state).where(r.batch == name)
        states = {row.id: row.state for row in connection.execute(query)}
        waiting = [id for id, state in states.items() if state == "in_progress"]
        if not waiting:
            return next(iter(states.values()), None)
        update_in(connection, r.id, waiting, state="pending", changed_at=now)
        log.append_many(
            context, connection, [("request-postponed", each, {}, now) for each in waiting]
        )
        return "pending"


def _check_scopes(rows: Sequence[Any]) -> None:
    for row in rows:
        if row.tokens is None and row.condition is None and row.values_key is None:
            raise LedgerError(
                f"request {row.id} says neither whose records nor which are to be erased, nor what "
                "is to be corrected; expected one of these: the ledger was damaged, or tampered "
                "with; restore it from a backup"
            )


def _hold_doubtful(
    context: Context, connection: Connection, rows: list[Any], people: Mapping[str, Person]
) -> dict[str, str]:
    """Put doubtful requests on hold; return the reasons by id.

    They fit two people, because their type was not given, or others share an identity.
    """
    held = {}
    for row in rows:
        if row.tokens is None:
            continue
        why = None
        if people[row.id].shared:
            why = asked_about(people[row.id])
        elif len(row.tokens) > 1 and _is_doubtful(connection, row):
            why = _DOUBT
        if why is not None and hold_back(context, connection, row.id, why):
            held[row.id] = why
    return held


def asked_about(person: Person) -> str:
    """Say why it is to be asked whom a request means, and how to say it."""
    first = max(person.shared, key=lambda each: each.n)
    return (
        f"{first}: link those that are one person, and lift the hold; or cancel it, and ask again "
        f"for the identity alone (--only), or for all of them (--reach {first.n})"
    )


def hold_back(context: Context, connection: Connection, request: str, why: str) -> bool:
    """Put a request on hold, in the caller's transaction.

    Return False, and change nothing, if it was answered meanwhile or is on hold already.
    """
    now = context.now()
    at = request_table.c.id == request
    waits = request_table.c.state.in_(WAITING) & request_table.c.hold.is_(None)
    changes = {"hold": why, "state": "pending", "changed_at": now}
    if not connection.execute(update(request_table).where(at, waits).values(**changes)).rowcount:
        return False
    changed = connection.execute(select(request_table).where(at)).one()
    body = entries.of_request(context.keys, "request-held", changed._mapping)
    log.append(context, connection, "request-held", request, body, now)
    return True


def _is_doubtful(connection: Connection, row: Any) -> bool:
    tokens = [token for _, token in row.tokens]
    found = rows_in(connection, select(identity), identity.c.token, tokens)
    return subjects.fit_two_people(found)


def gather_batch(
    context: Context,
    connection: Connection,
    rows: Sequence[Any],
    within: Collection[str] | None = None,
) -> Batch:
    """Make a batch of requests: all identities of each person, conditions and corrections.

    People are followed through the data sets whose locks are in `within`, by default all.
    """
    of_persons = [row for row in rows if row.tokens is not None]
    found = persons.persons_of(
        context, connection, [(row.tokens, row.reach) for row in of_persons], within
    )
    people = {row.id: each for row, each in zip(of_persons, found.people, strict=True)}
    damaged = None
    if found.damaged is not None:
        damaged = _damaged(found.damaged, found.error)
    return _batch(connection, rows, people, damaged)


def _batch(
    connection: Connection,
    rows: Sequence[Any],
    people: Mapping[str, Person],
    damaged: BatchFailure | None,
) -> Batch:
    batch = Batch({row.id: row for row in rows}, {}, {}, {}, damaged=damaged)
    for row in rows:
        if row.condition is not None:
            known = get(connection, row.condition["dataset"])
            condition = Condition.parse(row.condition["where"], known.schema, known.subject_columns)
            batch.conditions.setdefault(known.id, []).append((row.id, condition))
        if row.corrects is not None:
            known = find(connection, row.corrects["dataset"])
            batch.corrections.setdefault(known.id, []).append(row)
        if row.tokens is not None:
            batch.people[row.id] = people[row.id]
            for token, kind in sorted(people[row.id].identities.items()):
                batch.types[token] = kind
                batch.tokens.setdefault(token, []).append(row.id)
    return batch


def _damaged(known: DataSet, error: WorkspaceError | None) -> BatchFailure:
    return BatchFailure("dataset", known.id, known.name, " ".join(str(error).split()), error)


def find_records(context: Context, connection: Connection, batch: Batch) -> BatchFailure | None:
    """Find the records of a batch in every data set; return a BatchFailure if one is damaged."""
    if batch.damaged is not None:
        return batch.damaged
    for known in all_datasets(connection):
        kind = record_type(known.name)
        records = {t: asked for t, asked in batch.tokens.items() if batch.types[t] == kind}
        try:
            given = [
                (row.id, waiting_corrections.read(context, row))
                for row in batch.corrections.get(known.id, ())
            ]
            wanted = erasing.Wanted(
                batch.tokens, batch.conditions.get(known.id, []), records, given
            )
            erasure = erasing.find_records(context, connection, known.id, wanted)
        except NOT_THE_MODELS:
            raise
        except WorkspaceError as error:
            return _damaged(known, error)
        if erasure.found:
            batch.erasures.append(erasure)
    check_missed(context, connection, batch)
    return None


def check_missed(context: Context, connection: Connection, batch: Batch) -> None:
    """Raise TamperedError if the data hold people whom the index lacks in some data set."""
    counts = dict.fromkeys(batch.requests, 0)
    for erasure in batch.erasures:
        for request, n in erasure.n_by_request().items():
            counts[request] += n
    matched = {
        token for token, asked in batch.tokens.items() if all(counts[request] for request in asked)
    }
    if holders.missing_in_index(context, connection, batch.types, matched):
        raise TamperedError(
            "the ledger was tampered with: its index lacks a person whose records are in the data; "
            "expected the index as erasable wrote it; nothing was executed or signed, run "
            "`erasable log verify`, and restore the ledger from a backup"
        )


def affected_models(connection: Connection, batch: Batch) -> Models:
    """Return the models that hold records of a batch, and which ids of which data sets."""
    erasures = {erasure.dataset.id: erasure for erasure in batch.erasures}
    found = []
    for row in catalogue.models_of(connection, list(erasures)):
        if row.state == "retired":
            continue
        version = catalogue.current(connection, row)
        ids = {}
        if version is not None:
            ids = {
                dataset_id: erasures[dataset_id].ids_at(number)
                for dataset_id, number in zip(row.datasets, version.dataset_versions, strict=True)
                if dataset_id in erasures
            }
        used = (
            {}
            if version is None
            else dict(zip(row.datasets, version.dataset_versions, strict=True))
        )
        corrected = any(
            each.n_corrected_at(used[id]) for id, each in erasures.items() if id in used
        )
        if version is None or corrected or any(ids.values()):
            found.append((row, version, ids))
    return found


def asking(connection: Connection, batch: Batch, failed: BatchFailure) -> set[str]:
    """Return the requests of a batch that may have records in a model or data set."""
    if failed.target == "model":
        of, version = next((row, v) for row, v, _ in batch.models if row.id == failed.target_id)
        counts = batch.n_per_request(of, version)
        return {request for request, n in counts.items() if n or version is None}
    dataset_id = failed.target_id
    found = {request for request, _ in batch.conditions.get(dataset_id, [])}
    found |= {row.id for row in batch.corrections.get(dataset_id, [])}
    own = record_type(get(connection, dataset_id).name)
    tokens = {token for token, kind in batch.types.items() if kind == own}
    query = select(holding.c.token).where(holding.c.dataset_id == dataset_id)
    tokens |= {row.token for row in rows_in(connection, query, holding.c.token, batch.tokens)}
    return found | {request for token in tokens for request in batch.tokens[token]}
