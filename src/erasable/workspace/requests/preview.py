"""Preview of what a request would do, and what is kept of a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from erasable.workspace import locking
from erasable.workspace.context import Context
from erasable.workspace.data.catalogue import all_datasets
from erasable.workspace.data.persons import Step
from erasable.workspace.evidence import ledger_checks
from erasable.workspace.identity import subjects, suppression
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.models import deleting, estimates
from erasable.workspace.requests import searching
from erasable.workspace.requests.batches import affected, asked_about, gather, look
from erasable.workspace.requests.intake import OPEN, asked


@dataclass(frozen=True, slots=True)
class Effect:
    """What would happen to one data set or model.

    Attributes
    ----------
    target : {"dataset", "model"}
    name : str
    n_records : int
        That would leave it.
    treatment, exactness : str
    seconds : float or None
        Estimated from what was measured before; None where nothing was.

    Examples
    --------
    >>> Effect("model", "risk", 3, "deleted", "bitwise", 0.1).treatment
    'deleted'
    """

    target: str
    name: str
    n_records: int
    treatment: str
    exactness: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Preview:
    """What requests would do.

    Attributes
    ----------
    effects : tuple of Effect
    n_unmatched : int
        Requests that meet no record.
    types : tuple of str
        Under which identities are looked for.
    searched : tuple of dict
        In which columns: dataset, column and type of each.
    followed : tuple of dict
        How other identities of people were found: by which steps, from the identity that was
        asked for ("path", each as `erasable.workspace.data.persons.Step` has it), and how many
        ("identities").
    shared : tuple of str
        Why requests would wait on hold, a line each: people share an identity.
    identities : frozenset of str
        Tokens of all people who ask.

    Examples
    --------
    >>> Preview(()).seconds
    0.0
    """

    effects: tuple[Effect, ...]
    n_unmatched: int = 0
    types: tuple[str, ...] = ()
    searched: tuple[dict[str, str], ...] = ()
    followed: tuple[dict[str, Any], ...] = ()
    shared: tuple[str, ...] = ()
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

    `wanted` has tokens and condition of each request, as the ledger keeps them (see
    `intake.asked`); for `reach` see `intake.acknowledge`. Raise WorkspaceBusyError if another
    process is at work: the data are about to change.
    """
    rows = [_Row(f"dry-run-{i}", tokens, where, reach) for i, (tokens, where) in enumerate(wanted)]
    effects = []
    # Without the lock, files may go while they are looked through; and for as long as a state of
    # the ledger is looked at, no process could purge it.
    with context.ledger.reading() as connection:
        names = [each.name for each in all_datasets(connection)]
    with context.lock(reads=locking.datasets(names)), context.ledger.reading() as connection:
        ledger_checks.check(context, connection)
        batch = gather(context, connection, rows)
        if (setback := look(context, connection, batch)) is not None:
            setback.reraise("")
        searched = searching.columns_searched(connection, {*types, *batch.types.values()})
        matched: set[str] = set()
        for erasure in batch.erasures:
            seconds = estimates.of_dataset(connection, erasure.dataset.id, erasure.n_records)
            n = len(set(erasure.every_id()))
            matched.update(request for request, met in erasure.n_by_request().items() if met)
            effects.append(
                Effect("dataset", erasure.dataset.name, n, "rewritten", "bitwise", seconds)
            )
        for row, version, ids in affected(connection, batch):
            n = sum(map(len, ids.values()))
            treatment, exactness = deleting.foresee(context, row, version, n)
            seconds = estimates.of_model(connection, row.id, n)
            effects.append(Effect("model", row.name, n, treatment, exactness, seconds))
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
        tuple(asked_about(each) for each in people if each.shared),
        frozenset(batch.tokens),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Row:
    id: str
    tokens: list[tuple[str, str]] | None
    condition: dict[str, Any] | None
    reach: int | None
    corrects: None = None


def describe_person(context: Context, value: Any, type: str | None = None) -> dict[str, Any]:
    """Say what is kept of a person, without repeating who it is.

    The result has known, types (under which it was looked for), searched (dataset, column and type
    of each column), n_identities, followed and shared (see `Preview`), datasets and models (name:
    records), requests (ids of open ones) and suppressed (type, request_id and since of each entry
    on the list of whom to keep out). By default every type that is in use is tried.
    """
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
        for kind in ("dataset", "model")
    }
    return {
        "known": bool(found["dataset"]),
        "types": types,
        "searched": list(looked.searched),
        "n_identities": looked.n_identities,
        "followed": list(looked.followed),
        "shared": list(looked.shared),
        "datasets": found["dataset"],
        "models": found["model"],
        "requests": waiting,
        "suppressed": kept_out,
    }
