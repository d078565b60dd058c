"""Prepared versions of data sets, and the models that follow them.

Models are prepared on them before the ledger refers to any of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from erasable.workspace.data.catalogue import (
    DataSet,
    FragmentRow,
    fragment_rows,
    get,
    with_types_of,
)
from erasable.workspace.locking import Claim


@dataclass(frozen=True, slots=True)
class Ahead:
    """Data sets as the ledger will have them; others are there already."""

    datasets: Mapping[int, DataSet] = field(default_factory=dict)  # by id: those with a new version
    # by id: fragments that change, of all versions, or at least of the newest
    parts: Mapping[int, Sequence[FragmentRow]] = field(default_factory=dict)

    def get(self, connection: Connection, dataset_id: int, version: int | None = None) -> DataSet:
        """Return a data set with the types of a version, by default the newest."""
        newest = self.datasets.get(dataset_id) or get(connection, dataset_id)
        if version is None or version == newest.version:
            return newest
        return with_types_of(connection, newest, version)

    def parts_of(self, connection: Connection, known: DataSet) -> list[FragmentRow]:
        """Return the fragments of a version of a data set."""
        if known.id not in self.parts:
            return fragment_rows(connection, known.id, known.version)
        return [part for part in self.parts[known.id] if part.belongs_to(known.version)]


class Followers(ABC):
    """Models that follow a data set into its next version."""

    @property
    @abstractmethod
    def treatments(self) -> list[dict[str, Any]]:
        """The treatments, per model; see `erasable.workspace.models.updating`."""

    @abstractmethod
    def choose(self, connection: Connection) -> Claim:
        """Choose the models that follow, and return what they change and read."""

    @abstractmethod
    def prepare(self, known: DataSet, found: Sequence[FragmentRow]) -> None:
        """Prepare for the next version of a data set, of fragments in the store; change nothing."""

    @abstractmethod
    def adopt(self, connection: Connection) -> set[int]:
        """Put the prepared models in place, in the transaction of the new version.

        Return the data sets that they learn from.
        """

    @abstractmethod
    def left_behind(self, connection: Connection, known: DataSet) -> list[str]:
        """Return the names of models of an earlier version that may still follow."""
