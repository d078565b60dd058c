"""The protocol of targets: places outside of the workspace that people are erased from.

`Target` is what the workspace asks of a place, `RecordTarget` the part of it that places have in
common which list records and delete them by their keys.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from erasable.core.errors import SourceError
from erasable.workspace.targets import residue
from erasable.workspace.targets.marks import Marks, forms_of
from erasable.workspace.targets.records import Records as Records
from erasable.workspace.targets.records import as_identity, field_of, is_any
from erasable.workspace.targets.residue import Found
from erasable.workspace.targets.settings import People as People
from erasable.workspace.targets.settings import Settings as Settings
from erasable.workspace.targets.settings import Subject as Subject

N_LIVING = 20
"""Values of each kind, of records that stay, by which a search shows that it finds any."""
_FIELDS_SHOWN = 8  # names of fields in a message


@dataclass(slots=True)
class Plan:
    """Records of people, as they were found."""

    keys: dict[str, list[Any]] = field(default_factory=dict)  # by table, collection or file
    n_records: dict[str, int] = field(default_factory=dict)  # by the person's name
    n_seen: int = 0  # records of all people
    marks: Marks = field(default_factory=Marks)  # what these records leave in files
    living: Marks = field(default_factory=Marks)  # some of what others have there
    changed: dict[str, int] = field(default_factory=dict)  # rows that leave or change, by table
    detached: dict[str, int] = field(default_factory=dict)  # rows that lose a reference, by column
    triggers: list[str] = field(default_factory=list)  # which may change other rows
    reasons: list[str] = field(default_factory=list)  # why they may be elsewhere, once they left
    n_rounds: int = 0  # how often records have left

    def __bool__(self) -> bool:
        """Tell whether anybody was found."""
        return any(self.keys.values())

    def add(self, other: Plan, *, again: bool = False) -> None:
        """Add what was found later; with `again`, it may be the same records once more.

        Who stayed at first may leave later: then their values are not those of others any more.
        """
        again = again and not self.n_records.keys().isdisjoint(other.n_records)
        for table, keys in other.keys.items():
            self.keys.setdefault(table, []).extend(keys)
        for mine, theirs in (
            (self.n_records, other.n_records), (self.changed, other.changed),
            (self.detached, other.detached),
        ):  # fmt: skip
            for name, n in theirs.items():
                before = mine.get(name, 0)
                mine[name] = max(before, n) if again else before + n
        self.triggers = sorted({*self.triggers, *other.triggers})
        self.reasons = sorted({*self.reasons, *other.reasons})
        self.marks.add_all(other.marks)
        self.living.add_all(other.living)
        self.living.leave_out(self.marks)

    def n_rows(self) -> tuple[int, int]:
        """Return how many records there are, and how many rows of others leave with them."""
        n = sum(self.n_records.values())
        return n, max(0, sum(self.changed.values()) - n)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON, without the keys: they are found again."""
        return {
            "n_records": self.n_records, "changed": self.changed, "detached": self.detached,
            "triggers": self.triggers, "marks": self.marks.to_json(),
            "living": self.living.to_json(), "reasons": self.reasons,
        }  # fmt: skip

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Plan:
        """Return what `to_json` returned."""
        marks, living = (Marks.from_json(kept[name]) for name in ("marks", "living"))
        return cls(**(kept | {"marks": marks, "living": living}))


class Target(AbstractContextManager["Target"]):
    """A place that people are erased from.

    `place` is a URL or path as the user gave it, with credentials; `shown` has none. Every method
    raises SourceError with one line where the place cannot be reached, read or changed.

    A target is asked in this order, and may be killed at any point: what is left of a plan is
    found again, and erased, by the next attempt.
    """

    shown: str
    settings: Settings

    def __enter__(self) -> Target:
        """Return the target; leaving the block closes it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close connections and files."""
        self.close()

    def close(self) -> None:
        """Close connections and files."""

    @abstractmethod
    def find(self, people: People) -> Plan:
        """Find the records of people; nothing is changed, also where the erasure would fail.

        It is the dry run: `erase` changes what the plan says, and nothing else.
        """

    @abstractmethod
    def erase(self, plan: Plan) -> None:
        """Erase the records of a plan; those that are gone already are no error."""

    @abstractmethod
    def compact(self) -> list[str]:
        """Have the place free the room of deleted records; return why that is not all, if so."""

    @abstractmethod
    def scan(self, marks: Marks, living: Marks) -> Found:
        """Look for values in all files of the place, decoded where they are compressed."""


class RecordTarget(Target):
    """Base of targets that list their records, and delete them by their keys.

    A subclass has `batches`, `delete`, `compact` and `files`; `name` is that of the collection.
    """

    name: str
    read_back: frozenset[str] = frozenset()
    """Fields that files hold nowhere but where `batches` reads them: they need no search."""

    @abstractmethod
    def batches(self) -> Iterator[Records]:
        """Return all records, some at a time, with all fields that hold something of a person."""

    @abstractmethod
    def delete(self, keys: Sequence[Any]) -> None:
        """Delete records; keys that are not there are no error."""

    @abstractmethod
    def files(self) -> Iterable[Path] | None:
        """Return all files that the place keeps, also logs; None where they cannot be seen."""

    def unreached(self) -> list[str]:
        """Return where values may be besides the files, a reason for each."""
        return []

    def find(self, people: People) -> Plan:
        """Find the records of people, and what only they have.

        Values that are too short to be looked for count where they are identities.
        """
        plan = Plan()
        keys: set[Any] = set()
        subjects = {subject.field for subject in self.settings.subjects}
        named: set[str] = set()
        for batch in self.batches():
            plan.n_seen += len(batch.keys)
            for at, names in self._owners(batch, people, named).items():
                keys.add(batch.keys[at])
                for name in names:
                    plan.n_records[name] = plan.n_records.get(name, 0) + 1
                for field_, values in batch.fields.items():
                    is_of_person = not {field_, field_of(field_)}.isdisjoint(subjects)
                    is_found = is_of_person or any(forms_of(values[at]))
                    if is_found and field_ not in self.read_back:
                        near = field_of(field_) if is_of_person else None
                        plan.marks.add(values[at], field=near)
        if keys:
            forms = frozenset(plan.marks.every())
            for batch in self.batches():
                stay = [at for at, key in enumerate(batch.keys) if key not in keys]
                for field_, values in batch.fields.items():
                    own = [values[at] for at in stay]
                    plan.marks.drop(own)
                    texts = "\0".join(value for value in own if isinstance(value, str))
                    there = residue.marks_among([texts.encode(errors="replace")], forms)
                    plan.marks.drop_found(there)
                    if field_ not in self.read_back:
                        near = None if subjects.isdisjoint({field_, field_of(field_)}) else field_
                        plan.living.add_some(own, N_LIVING, near)
            for name in named:
                plan.marks.add(name)  # also where a record of others mentions it
            plan.keys[self.name] = sorted(keys, key=repr)
            plan.changed[self.name] = len(keys)
        return plan

    def _refuse_unknown(self) -> None:
        """Close the target, and raise SourceError, if it has records and none has a subject."""
        if self.settings.may_lack_subject:
            return
        wanted = {subject.field for subject in self.settings.subjects}
        known: set[str] = set()
        try:
            for batch in self.batches():
                known.update(batch.fields)
                if any(is_any(field_, wanted) for field_ in batch.fields):
                    return
            if known:
                have = ", ".join(map(repr, sorted(set(map(field_of, known)))[:_FIELDS_SHOWN]))
                raise SourceError(
                    f"{self.shown!r}: no record of {self.name!r} has the field "
                    f"{', '.join(map(repr, sorted(wanted)))}; expected a field that says whose a "
                    f"record is; there are {have}"
                )
        except SourceError:
            self.close()
            raise

    def erase(self, plan: Plan) -> None:
        """Delete the records of a plan."""
        self.delete(plan.keys.get(self.name, []))

    def scan(self, marks: Marks, living: Marks) -> Found:
        """Look for values in all files."""
        files = self.files()
        if files is None:
            return Found(reasons=["its files cannot be seen from here", *self.unreached()])
        found = residue.search(files, marks, living)
        found.reasons += self.unreached()
        return found

    def _owners(self, batch: Records, people: People, named: set[str]) -> dict[int, set[str]]:
        """Return which records are of people, and of whom; add long identities to `named`."""
        found: dict[int, set[str]] = {}
        for subject in self.settings.subjects:
            for field_, values in batch.fields.items():
                if not is_any(field_, {subject.field}):
                    continue
                given = self._identities(field_, values)
                asked = people.among(set(given.values()), subject)
                among = {each: asked[value] for each, value in given.items() if value in asked}
                if field_ not in self.read_back:
                    named |= {
                        each for each in asked if isinstance(each, str) and any(forms_of(each))
                    }
                for at, value in enumerate(values):
                    if value is not None and value in among:
                        found.setdefault(at, set()).add(among[value])
        return found

    def _identities(self, field_: str, values: Sequence[Any]) -> dict[Any, Any]:
        """Return the values of a field with the identities that they are; refuse other ones."""
        given = [value for value in values if value is not None]
        if any(isinstance(value, Mapping | list | np.ndarray) for value in given):
            raise SourceError(
                f"the field {field_!r} of a record of {self.shown!r} is a list of numbers or an "
                "object; expected a text, a whole number or a list of texts; nothing was changed"
            )
        found = {value: as_identity(value) for value in given}
        if any(found[value] is None for value in found if isinstance(value, bytes)):
            raise SourceError(
                f"the field {field_!r} of a record of {self.shown!r} has bytes that are neither a "
                "text nor the 16 of a UUID; expected an identity; nothing was changed"
            )
        return {value: identity for value, identity in found.items() if identity is not None}
