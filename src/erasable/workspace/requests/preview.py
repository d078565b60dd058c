"""Previews of what requests would do, and of what is kept of a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

import erasable.workspace.locking as locking
from erasable.workspace.context import Context
from erasable.workspace.data.catalogue import all_datasets
from erasable.workspace.data.persons import Step
from erasable.workspace.evidence import ledger_checks
from erasable.workspace.identity import subjects, suppression
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.ledger.states import OPEN
from erasable.workspace.ledger.treatments import REWRITTEN
from erasable.workspace.models import deleting, estimates
from erasable.workspace.requests import searching
from erasable.workspace.requests.batches import (
    affected_models,
    asked_about,
    find_records,
    gather_batch,
)
from erasable.workspace.requests.intake import asked
from erasable.workspace.requests.owed import Foreseen
from erasable.workspace.targets import catalogue

_DONE = {"delete": "deleted", "null": "emptied", "mask": "masked"}


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of requests on one data set or model."""

    target: str  # "dataset", "model" or "target"
    name: str
    n_records: int  # that would leave
    treatment: str
    exactness: str
    seconds: float | None  # estimated from earlier measurements; None without any
    n_others: int = 0  # of a target: rows of others that refer to them, and leave with them


@dataclass(frozen=True, slots=True)
class Preview:
    """The effects of requests."""

    effects: tuple[Effect, ...]
    n_unmatched: int = 0  # requests that meet no record
    types: tuple[str, ...] = ()  # that identities are looked for under
    searched: tuple[dict[str, str], ...] = ()  # dataset, column and type of each
    # "path", steps from the identity that was given (see `persons.Step`), and "identities",
    # how many
    followed: tuple[dict[str, Any], ...] = ()
    # targets that could not be looked at, and why, a line each
    unseen: tuple[str, ...] = ()
    # why requests would wait on hold, a line each: people share an identity
    shared: tuple[str, ...] = ()
    # tokens of all people who ask
    identities: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def n_records(self) -> int:
        """Records that would leave data sets."""
        return sum(each.n_records for each in self.effects if each.target == "dataset")

    @property
    def n_identities(self) -> int:
        """Identities of all people who ask."""
        return len(self.identities)

    @property
    def seconds(self) -> float:
        """Estimated time, of what has an estimate."""
        return sum((each.seconds or 0.0 for each in self.effects), 0.0)


def preview(
    context: Context,
    wanted: Sequence[tuple[list[tuple[str, str]] | None, dict[str, Any] | None]],
    types: Sequence[str] = (),
    reach: int | None = None,
) -> Preview:
    """Say what requests would do; nothing is changed.

    `wanted` has tokens and condition of each request, as `intake.asked` returns them. Raise
    WorkspaceBusyError if another process is changing the data.
    """
    rows = [_Row(f"dry-run-{i}", tokens, where, reach) for i, (tokens, where) in enumerate(wanted)]
    effects = []
    # Without the lock, files may go while they are looked through; and for as long as a state of
    # the ledger is looked at, no process could purge it.
    with context.ledger.reading() as connection:
        names = [each.name for each in all_datasets(connection)]
    with context.lock(reads=locking.datasets(names)), context.ledger.reading() as connection:
        ledger_checks.check(context, connection)
        batch = gather_batch(context, connection, rows)
        if (setback := find_records(context, connection, batch)) is not None:
            setback.reraise("")
        searched = searching.columns_searched(connection, {*types, *batch.types.values()})
        matched: set[str] = set()
        for erasure in batch.erasures:
            seconds = estimates.seconds_of_dataset(
                connection, erasure.dataset.id, erasure.n_records
            )
            n = len(set(erasure.every_id()))
            matched.update(request for request, met in erasure.n_by_request().items() if met)
            name, how = erasure.dataset.name, REWRITTEN
            effects.append(Effect("dataset", name, n, how.name, how.exactness, seconds))
        for row, version, ids in affected_models(connection, batch):
            n = sum(map(len, ids.values()))
            treatment, exactness = deleting.foresee(context, row, version, n)
            seconds = estimates.seconds_of_model(connection, row.id, n)
            effects.append(Effect("model", row.name, n, treatment, exactness, seconds))
    unseen = []
    for foreseen in _foreseen_in_targets(context, batch.tokens):
        if foreseen.error is not None:
            unseen.append(f"{foreseen.name}: {foreseen.error}")
            continue
        n, n_others, done = foreseen.n_records, foreseen.n_others, _DONE[foreseen.action]
        effects.append(Effect("target", foreseen.name, n, done, "see receipt", None, n_others))
        matched |= foreseen.found.keys()
    people = batch.people.values()
    paths: Counter[tuple[Step, ...]] = Counter()
    for each in people:
        paths.update(each.paths())
    return Preview(
        tuple(effects), len(rows) - len(matched), tuple(types), tuple(searched),
        tuple(
            {"path": [step.as_json() for step in path], "identities": n}
            for path, n in paths.items()
        ),
        tuple(unseen),
        tuple(asked_about(each) for each in people if each.shared),
        frozenset(batch.tokens),
    )  # fmt: skip


def _foreseen_in_targets(
    context: Context, tokens: Mapping[str, Sequence[str]]
) -> Sequence[Foreseen]:
    with context.ledger.reading() as connection:
        if not tokens or not catalogue.in_use(connection):
            return ()
    from erasable.workspace.requests import reaching  # late: it takes numpy

    return reaching.foresee(context, tokens)


@dataclass(frozen=True, slots=True)
class _Row:
    id: str
    tokens: list[tuple[str, str]] | None
    condition: dict[str, Any] | None
    reach: int | None
    corrects: None = None


def describe_person(context: Context, value: Any, type: str | None = None) -> dict[str, Any]:
    """Say what is kept of a person; see `Workspace.subject`. The identity is not repeated."""
    with context.ledger.reading() as connection:
        wanted = asked(context, connection, [value], type, None, None)
        types = subjects.types_tried(connection, type)
    looked = preview(context, wanted, types)
    tokens = looked.identities
    with context.ledger.reading() as connection:
        kept_out = suppression.entries_of(connection, tokens)
        open_ones = connection.execute(
            select(request_table.c.id, request_table.c.tokens)
            .where(request_table.c.state.in_(OPEN))
            .order_by(request_table.c.received_at)
        )
        waiting = [row.id for row in open_ones if tokens & {token for _, token in row.tokens or ()}]
    effects = looked.effects
    found = {
        kind: {each.name: each.n_records for each in effects if each.target == kind}
        for kind in ("dataset", "model", "target")
    }
    return {
        "known": bool(found["dataset"]) or any(found["target"].values()),
        "types": types,
        "searched": list(looked.searched),
        "n_identities": looked.n_identities,
        "followed": list(looked.followed),
        "shared": list(looked.shared),
        "datasets": found["dataset"],
        "models": found["model"],
        "targets": found["target"],
        "unseen": list(looked.unseen),
        "requests": waiting,
        "suppressed": kept_out,
    }
