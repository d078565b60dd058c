"""Persons: the identities that records and links join, over all data sets.

The law kept here: identities of different types in one namespace that a record holds are one
person's. A person is all that can be reached from one identity, through the records of every
version of every data set that is kept, and through links. The result does not depend on which
identity is asked for first. The joins are read from the data and not kept, so that none outlasts
an erasure.

The first of the columns is the owner of a record. An identity that records of several owners hold
is shared, as the address of a household or of a shop is, and so are the others in a record that
holds two identities of one type (a sender and a receiver). An identity that more people share
than the limit is not followed; the request has to say which people are meant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, select

import erasable.workspace.locking as locking
from erasable.core._arrow_files import array_of_texts
from erasable.core.errors import WorkspaceDiskError, WorkspaceError, WorkspaceServerError
from erasable.workspace.context import Context
from erasable.workspace.data import fragments
from erasable.workspace.data.catalogue import DataSet, FragmentRow, all_datasets, fragment_rows
from erasable.workspace.identity.canonical import may_be_one_person
from erasable.workspace.identity.subjects import subjects_of
from erasable.workspace.ledger.bulk import rows_in
from erasable.workspace.ledger.schema import holding, identity

ALONE = 0
"""Follow nothing from an identity, not even a link."""

BY_DEFAULT = 1
"""Follow identities of one person, but no shared ones."""


class Named(NamedTuple):
    """A kind of identity in a data set; a link has neither data set nor column."""

    dataset: str | None
    column: str | None
    type: str

    def __str__(self) -> str:
        where = "a link" if self.dataset is None else f"{self.dataset}.{self.column}"
        return f"{where} ({self.type})"


class Step(NamedTuple):
    """A step from one identity of a record, or of a link, to another."""

    source: Named
    to: Named

    def as_json(self) -> dict[str, Any]:
        """Describe it for the log and for a receipt: types and places, no identity."""
        return {
            "dataset": self.to.dataset, "from": self.source.column, "from_type": self.source.type,
            "to": self.to.column, "to_type": self.to.type,
        }  # fmt: skip


class Shared(NamedTuple):
    """An identity that several people share."""

    named: Named  # beside them
    by: Named  # their kind of identity there
    n: int  # how many people

    def __str__(self) -> str:
        return f"an identity in {self.named} is shared by {self.n} people in {self.by}"


@dataclass(slots=True)
class Person:
    """Identities of one person."""

    identities: dict[str, str]  # token to type
    # of those that were followed: the token that led there, and how
    came_by: dict[str, tuple[str, Step]] = field(default_factory=dict)
    # not followed: the request has to say who is meant
    shared: list[Shared] = field(default_factory=list)
    reach: int = BY_DEFAULT  # how many people may share an identity that is followed

    def steps(self) -> list[dict[str, Any]]:
        """Count the identities followed by each step, for the log and a receipt."""
        counts: dict[Step, int] = {}
        for _, step in self.came_by.values():
            counts[step] = counts.get(step, 0) + 1
        return [step.as_json() | {"identities": counts[step]} for step in sorted(counts, key=str)]

    def paths(self) -> dict[tuple[Step, ...], int]:
        """Count identities by the path that led to them from those that were asked for."""
        counts: dict[tuple[Step, ...], int] = {}
        for token in self.came_by:
            path: list[Step] = []
            while token in self.came_by:
                token, step = self.came_by[token]
                path.insert(0, step)
            counts[tuple(path)] = counts.get(tuple(path), 0) + 1
        return {path: counts[path] for path in sorted(counts, key=lambda p: (len(p), str(p)))}


@dataclass(slots=True)
class Followed:
    """People, and the damage that kept them from being followed."""

    people: list[Person]
    damaged: DataSet | None = None  # could not be read
    error: WorkspaceError | None = None


def persons_of(
    context: Context,
    connection: Connection,
    asked: Sequence[tuple[Iterable[Sequence[str]], int | None]],
    within: Collection[str] | None = None,
) -> Followed:
    """Return the people whom identities belong to.

    `asked` pairs identities, as (type, token), with a reach: the number of people that may share
    one of them. 0 follows nothing, None is `BY_DEFAULT`. `within` are claims, as `locking.datasets`
    names them; only those data sets are read. A data set that cannot be read is not followed.
    """
    people = [
        Person({token: kind for kind, token in own}, reach=BY_DEFAULT if reach is None else reach)
        for own, reach in asked
    ]
    joins = _Joins(context, connection, within)
    open_ = [(each, list(each.identities)) for each in people if each.reach > ALONE]
    while open_:
        joins.look_up({token for _, tokens in open_ for token in tokens})
        open_ = [
            (each, new) for each, tokens in open_ if (new := joins.extend(each, sorted(tokens)))
        ]
    return Followed(people, joins.damaged, joins.error)


@dataclass(slots=True)
class _Beside:
    """The identities joined with one."""

    others: dict[str, tuple[str, Step]] = field(default_factory=dict)  # token: type, step
    owners: dict[Step, set[str]] = field(default_factory=dict)  # owners of its records


class _Joins:
    """Joined identities, read on demand, each fragment once."""

    def __init__(
        self, context: Context, connection: Connection, within: Collection[str] | None
    ) -> None:
        self.damaged: DataSet | None = None
        self.error: WorkspaceError | None = None
        self._context = context
        self._connection = connection
        self._found: dict[str, _Beside] = {}
        self._tables: dict[str, pa.Table] = {}
        self._datasets = [
            (known, fragment_rows(connection, known.id))
            for known in all_datasets(connection)
            if joining(known)
            and (within is None or not set(within).isdisjoint(locking.datasets([known.name])))
        ]

    def look_up(self, tokens: set[str]) -> None:
        """Find the identities joined with some."""
        new = tokens - self._found.keys()
        self._found.update({token: _Beside() for token in new})
        self._look_up_links(new)
        for known, every_part in self._datasets:
            at: dict[int, set[str]] = {}
            query = select(holding.c.token, holding.c.bucket)
            query = query.where(holding.c.dataset_id == known.id)
            for held in rows_in(self._connection, query, holding.c.token, new):
                at.setdefault(held.bucket, set()).add(held.token)
            for part in every_part:
                if part.bucket in at:
                    for row in self._rows(known, part, at[part.bucket]):
                        self._note(row, at[part.bucket])

    def extend(self, person: Person, tokens: Iterable[str]) -> list[str]:
        """Add the identities joined with a person's; return the new ones."""
        new = []
        for token in tokens:
            shared = self._shared(token, person.reach)
            person.shared += shared
            if shared and token in person.came_by:  # whose records are not to be counted, either
                del person.identities[token], person.came_by[token]
            for other, (kind, step) in () if shared else self._found[token].others.items():
                if other not in person.identities:
                    person.identities[other] = kind
                    person.came_by[other] = token, step
                    new.append(other)
        return [] if person.shared else new

    def _look_up_links(self, tokens: set[str]) -> None:
        owners = subjects_of(self._connection, tokens)
        linked: dict[str, list[Any]] = {}
        query = select(identity).order_by(identity.c.token)
        for row in rows_in(self._connection, query, identity.c.subject, set(owners.values())):
            linked.setdefault(row.subject, []).append(row)
        for own in linked.values():
            kinds = {row.token: row.type for row in own}
            for token in kinds.keys() & tokens if len(own) > 1 else ():
                source = Named(None, None, kinds[token])
                self._found[token].others.update(
                    {t: (kind, Step(source, Named(None, None, kind)))
                     for t, kind in kinds.items() if t != token}
                )  # fmt: skip

    def _rows(
        self, known: DataSet, part: FragmentRow, tokens: set[str]
    ) -> Iterator[list[tuple[Named, str]]]:
        """Return the distinct identities of records of a fragment that hold some of these."""
        columns = joining(known)
        if part.key not in self._tables:
            try:
                table = fragments.read(self._context, part.key, part.sha256, list(columns))
            except (WorkspaceDiskError, WorkspaceServerError):
                raise
            except WorkspaceError as error:
                self.damaged, self.error = known, error
                return
            self._tables[part.key] = table.select(list(columns))
        table, wanted = self._tables[part.key], array_of_texts(sorted(tokens))
        found = table.filter(reduce(pc.or_, (pc.is_in(each, wanted) for each in table.columns)))
        named = [Named(known.name, column, kind) for column, kind in columns.items()]
        rows = zip(*(column.to_pylist() for column in found.columns), strict=True)
        for row in dict.fromkeys(rows):
            yield [(name, token) for name, token in zip(named, row, strict=True) if token]

    def _note(self, row: list[tuple[Named, str]], tokens: set[str]) -> None:
        """Note the identities that a record joins with some of its own."""
        for name, token in row:
            if token not in tokens:
                continue
            beside = self._found[token]
            others = [each for each in row if may_be_one_person(name.type, each[0].type)]
            for other, its in others:
                beside.others.setdefault(its, (other.type, Step(name, other)))
            for other, its in _owners_of(name, row, others):
                beside.owners.setdefault(Step(name, other), set()).add(its)

    def _shared(self, token: str, reach: int) -> list[Shared]:
        """Return who shares an identity, if more than allowed; linked people count as one."""
        by_type: dict[str, set[str]] = {}
        where: dict[str, Step] = {}
        for step, owners in self._found[token].owners.items():
            by_type.setdefault(step.to.type, set()).update(owners)
            where.setdefault(step.to.type, step)
        found = []
        for kind, owners in by_type.items():
            if len(owners) > reach:
                known = subjects_of(self._connection, owners)
                n = len({known.get(owner, owner) for owner in owners})
                if n > reach:
                    found.append(Shared(*where[kind], n))
        return found


def _owners_of(
    name: Named, row: list[tuple[Named, str]], others: list[tuple[Named, str]]
) -> list[tuple[Named, str]]:
    """Return the possible owners of a record that holds an identity; one, if certain."""
    space = name.type.rpartition("/")[0]
    same = [each for each in row if each[0].type.rpartition("/")[0] == space]
    tokens: dict[str, set[str]] = {}
    for each, token in same:
        tokens.setdefault(each.type, set()).add(token)
    if any(len(each) > 1 for each in tokens.values()):
        return [each for each in others if len(tokens[each[0].type]) > 1]
    owner = same[0]
    return [owner] if owner in others else []


def joining(known: DataSet) -> Mapping[str, str]:
    """Return the subject columns of a data set that join identities, with their types.

    >>> subjects = (("who", "id"), ("mail", "email"), ("doctor", "staff/id"))
    >>> dict(joining(DataSet(1, "visits", {}, "visit", subjects, (), 1, 1, None)))
    {'who': 'id', 'mail': 'email'}
    >>> subjects = (("sender", "email"), ("receiver", "email"))
    >>> dict(joining(DataSet(1, "letters", {}, "letter", subjects, (), 1, 1, None)))
    {}
    """
    return {
        column: kind
        for column, kind in known.subjects
        if any(may_be_one_person(kind, other) for _, other in known.subjects)
    }
