"""Data sets as they will be when what is prepared is put in place, and who follows them there.

Models are prepared on them before the ledger refers to any of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from erasable.workspace.data.catalogue import DataSet, FragmentRow, as_it_was, get, parts


@dataclass(frozen=True, slots=True)
class Ahead:
    """What the ledger will say of data sets; of others it says it already.

    Attributes
    ----------
    datasets : dict of id to DataSet
        Those of which there is a new version.
    parts : dict of id to sequence of Part
        Fragments of the data sets that change: of all versions, or at least of the newest.

    Examples
    --------
    >>> Ahead().datasets
    {}
    """

    datasets: Mapping[int, DataSet] = field(default_factory=dict)
    parts: Mapping[int, Sequence[FragmentRow]] = field(default_factory=dict)

    def get(self, connection: Connection, dataset_id: int, version: int | None = None) -> DataSet:
        """Return a data set as it is in a version, by default in the newest."""
        newest = self.datasets.get(dataset_id) or get(connection, dataset_id)
        if version is None or version == newest.version:
            return newest
        return as_it_was(connection, newest, version)

    def parts_of(self, connection: Connection, known: DataSet) -> list[FragmentRow]:
        """Return the fragments of a version of a data set."""
        if known.id not in self.parts:
            return parts(connection, known.id, known.version)
        return [part for part in self.parts[known.id] if part.belongs_to(known.version)]


class Followers:
    """What follows a data set into its next version: nothing, unless a subclass says more.

    Examples
    --------
    >>> Followers().treatments
    []
    """

    @property
    def treatments(self) -> list[dict[str, Any]]:
        """What was done, per model; see `erasable.workspace.models.updating`."""
        return []

    def prepare(self, known: DataSet, found: Sequence[FragmentRow]) -> None:
        """Prepare for the next version of a data set; change nothing.

        `found` are its fragments, which are in the store.
        """

    def adopt(self, connection: Connection) -> None:
        """Put in place what was prepared, in the transaction in which the version becomes one."""
