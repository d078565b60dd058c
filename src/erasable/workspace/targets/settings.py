"""Settings of a target: the fields of subjects, and the action on their records."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class Subject(NamedTuple):
    """A field that says whose a record is."""

    field: str  # a column, or a key of the metadata; of a database TABLE.COLUMN
    type: str  # of its identities
    region: str | None = None  # of telephone numbers without a country code


class People(Protocol):
    """People who are to be erased; the workspace knows them by keyed hashes alone."""

    def among(self, values: Collection[Any], subject: Subject) -> Mapping[Any, str]:
        """Return the values that name such a person, each with a name of the person."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How people are erased from a target."""

    subjects: tuple[Subject, ...]
    action: str = "delete"  # "delete", "null" or "mask"
    keep: tuple[str, ...] = ()  # fields that null and mask leave as they are
    cascade: tuple[str, ...] = ()  # tables whose rows go with those that they refer to
    may_empty: bool = False  # whether all records may be of one person
    # whether no record need have a subject field: those that had may have left
    may_lack_subject: bool = False
