"""A model's attachment to records: which of them it has learned from and not deleted.

What is excluded can be read, and come back, until it is released.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core.digest import id_set_hash
from erasable.core.errors import UnknownIdError
from erasable.core.ids import as_request
from erasable.core.lookup import not_there
from erasable.core.persistent import Persistent

if TYPE_CHECKING:
    from erasable.core.records import Records

__all__ = ["Attachment"]


class Attachment(Persistent):
    """A model's attachment to records: which of them it has not deleted.

    Attributes
    ----------
    records : Records
    live : ndarray of shape (n_rows,), bool
        Rows of `records` that the model has learned from and not deleted.
    n_live : int
    vouched : bool
        Whether the caller answers for the values, see `Erasable.load`.
    model : weak reference to the model, or None
        All models follow when records change.

    Notes
    -----
    It ends when the model is garbage collected. A pickle has only what the model has not deleted.

    Examples
    --------
    >>> from erasable import Records
    >>> records = Records([[1.5], [2.5]], ids=["a", "b"])
    >>> held = records.attach()
    >>> rows = held.select(["b"])
    >>> held.exclude(rows)
    >>> held.release(rows)
    >>> records.matrix.tolist(), records.ids.tolist()
    ([[1.5], [0.0]], ['a', ''])
    """

    model: weakref.ref[Any] | None = None
    _none_in_files = ("model",)  # which sets itself when it is read

    def __init__(self, records: Records) -> None:
        self.records = records
        self.vouched = False
        self.live: NDArray[np.bool_] = ~records._withdrawn
        self.n_live = int(np.count_nonzero(self.live))
        # Apart from `live`: what is excluded can be read, and come back, until it is released.
        self._unreleased = self.live.copy()
        self._after_reading()

    def _after_reading(self) -> None:
        """Register with the records; also where a file has brought both back."""
        weakref.finalize(self, type(self.records)._detach, self.records).atexit = False
        self.records._holders.append(weakref.ref(self))

    def of(self, model: Any) -> Self:
        """Set the model that it belongs to; return itself."""
        self.model = weakref.ref(model)
        return self

    @property
    def ids(self) -> NDArray[Any]:
        """Ids of the live rows, in row order; a copy."""
        return self.records.ids[self.live]

    @property
    def column_names(self) -> list[str] | None:
        """Names of the columns, for messages."""
        return self.records.feature_names

    def id_set(self) -> NDArray[np.uint64]:
        """Hash the set of live ids; see `erasable.core.digest.id_set_hash`."""
        if self.n_live < self.records.n_rows:
            return id_set_hash(self.ids)
        if self.records._id_set is None:
            self.records._id_set = id_set_hash(self.records.ids)
        return self.records._id_set.copy()

    def live_rows(self) -> NDArray[np.int64]:
        """Positions of the live rows, ascending."""
        return np.flatnonzero(self.live)

    def select(
        self, ids: Iterable[Any] | None = None, groups: Iterable[Any] | None = None
    ) -> NDArray[np.int64]:
        """Find the rows of ids, of groups, or of both together.

        Returns
        -------
        ndarray of shape (n_selected,), int64
            Positions in `records`, ascending, each once.

        Raises
        ------
        InvalidIdsError
            Ids or groups that repeat or have a wrong type.
        UnknownIdError
            Ids or groups that are not there, or not any more.
        """
        if groups is None:
            rows = self.rows([] if ids is None else ids)
            return rows if rows.size < 2 else np.sort(rows)
        found = [self.rows_of_groups(groups)]
        if ids is not None:
            found.append(self.rows(ids))
        return np.unique(np.concatenate(found))

    def rows(self, ids: Iterable[Any]) -> NDArray[np.int64]:
        """Find the row of each id; see `select`."""
        wanted = as_request(ids)
        rows = self.records._rows_of_ids(wanted)
        known = self.live[rows] & (rows >= 0)
        if not known.all():
            unknown = [wanted[i] for i in np.flatnonzero(~known).tolist()]
            groups = [] if self.records.groups is None else self.records._rows_of_groups(unknown)
            mistaken = [unknown[i] for i, rows in enumerate(groups) if self.live[rows].any()]
            raise UnknownIdError(not_there(unknown, "ids", self.records.ids, mistaken))
        return rows

    def rows_of_groups(self, groups: Iterable[Any]) -> NDArray[np.int64]:
        """Find the live rows of all the groups together; see `select`."""
        wanted = as_request(groups, name="groups")
        found = self.records._rows_of_groups(wanted)
        found = [rows[self.live[rows]] for rows in found]
        unknown = [group for group, rows in zip(wanted, found, strict=True) if rows.size == 0]
        if unknown:
            rows = self.records._rows_of_ids(unknown)
            mistaken = [unknown[i] for i in np.flatnonzero(self.live[rows] & (rows >= 0)).tolist()]
            raise UnknownIdError(not_there(unknown, "groups", self.records.groups, mistaken))
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)

    def exclude(self, rows: NDArray[np.int64]) -> None:
        """Take rows out of `live`; they can be read until `release`."""
        self.live[rows] = False
        self.n_live -= int(rows.size)

    def admit(self, rows: NDArray[np.int64]) -> None:
        """Add rows to `live` that are not in it."""
        self.live[rows] = True
        self.n_live += int(rows.size)

    def readmit(self, rows: NDArray[np.int64]) -> None:
        """Undo `exclude`, even where that was interrupted."""
        self.live[rows] = True
        self.n_live = int(np.count_nonzero(self.live))

    def release(self, rows: NDArray[np.int64]) -> None:
        """Give up excluded rows; those that no other model holds are overwritten."""
        self._unreleased[rows] = False
        self.records._let_go(rows)

    def detach(self) -> None:
        """Give up everything without deleting anything."""
        self.live[:] = self._unreleased[:] = False
        self.n_live = 0
        self.records._sweep()

    def copy_records(self) -> Records:
        """Copy the live rows into records of their own."""
        return self.records.take(self.live_rows())

    def __deepcopy__(self, memo: dict[int, Any]) -> Attachment:
        """Copy the records too: a deletion in one model is none in its copy."""
        return self.copy_records().attach()

    def __reduce__(self) -> tuple[Any, tuple[Records]]:
        """Pickle the live rows; models pickled together share records where they hold the same."""
        shared = np.array_equal(self.live, ~self.records._withdrawn)
        return type(self.records).attach, (self.records if shared else self.copy_records(),)
