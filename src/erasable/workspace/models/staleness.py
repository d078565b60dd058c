"""Staleness of models: how far they are behind their data sets."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from erasable.workspace.data.catalogue import get
from erasable.workspace.ledger.schema import dataset_version
from erasable.workspace.models import catalogue
from erasable.workspace.models.catalogue import Model


@dataclass(frozen=True, slots=True)
class Staleness:
    """What has happened to the data sets of a model since the versions that it learned from.

    Erasures and corrections are not counted: a model has followed these.

    Attributes
    ----------
    model : str
    n_versions : int
        That it is behind.
    n_added, n_changed, n_removed : int or None
        Records, one by one, version by version; None where an earlier erasable did not count.

    Examples
    --------
    >>> Staleness("risk", 2, 10, 0, 1).words
    '10 added, 1 removed'
    >>> Staleness("risk", 1, None, None, None).words
    '1 version behind'
    """

    model: str
    n_versions: int
    n_added: int | None
    n_changed: int | None
    n_removed: int | None

    @property
    def words(self) -> str:
        """The counts in words."""
        if self.n_added is None:
            return f"{self.n_versions} version{'' if self.n_versions == 1 else 's'} behind"
        told = [
            f"{n:,} {verb}"
            for n, verb in (
                (self.n_added, "added"),
                (self.n_changed, "changed"),
                (self.n_removed, "removed"),
            )
            if n
        ]
        return ", ".join(told) or "no record differs"


def of(connection: Connection, model: Model) -> Staleness | None:
    """Tell how far a model is behind; None where it is not, or cannot be."""
    version = catalogue.current(connection, model) if model.is_live else None
    if version is None:
        return None
    v = dataset_version.c
    behind, counts = 0, [0, 0, 0]
    known = True
    for id, used in zip(model.datasets, version.dataset_versions, strict=True):
        newest = get(connection, id).version
        if newest == used:
            continue
        behind += newest - used
        later = (v.dataset_id == id) & (v.number > used) & (v.number <= newest)
        columns = (v.n_added, v.n_changed, v.n_removed)
        told = connection.execute(
            select(func.count(v.n_added), *(func.sum(each) for each in columns)).where(later)
        ).one()
        known &= told[0] == newest - used
        counts = [a + int(b or 0) for a, b in zip(counts, told[1:], strict=True)]
    if not behind:
        return None
    return Staleness(model.name, behind, *(counts if known else (None, None, None)))


def is_stale(connection: Connection, model: Model) -> bool:
    """Tell whether a model learned from an earlier version of a data set."""
    return of(connection, model) is not None


def every(connection: Connection) -> list[Staleness]:
    """Return how far each model is behind that is, by name."""
    found = (of(connection, each) for each in catalogue.every(connection))
    return [each for each in found if each is not None]
