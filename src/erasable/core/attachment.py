"""Rows keyed by id and held by models, and a model's attachment to them.

A row can be read as long as one model still holds it; when the last model that held it has deleted
it, its bytes are overwritten. What is excluded can be read, and come back, until it is released. A
deletion through any model withdraws the record: models fitted later on the same records do not see
it.

A deletion costs time in the records deleted and in the models that share them, not in the records
kept. All of it may be done again where it was interrupted: what is to be erased follows from what
is withdrawn and what is held, and is not counted up and down.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from erasable.core.deleted_ids import DeletedIds
from erasable.core.digest import id_set_hash
from erasable.core.errors import InvalidIdsError, InvalidInputError, UnknownIdError
from erasable.core.ids import as_request
from erasable.core.inputs import RecordArrays
from erasable.core.lookup import GroupIndex, HashIndex, IdIndex, counts_up, not_there
from erasable.core.mapped.texts import Names, as_array
from erasable.core.matrices import blank_of, blank_rows, take_rows, writeable
from erasable.core.passes import Some, Stored, storage
from erasable.core.persistent import Persistent
from erasable.core.row_arrays import begins, buffer_of

__all__ = ["Attachment", "HeldRecords"]

_Index = TypeVar("_Index")
_ROOMY = ("matrix", "ids", "y", "weights")
"""Arrays that are kept with the room they have for more rows."""


class HeldRecords(Persistent):
    """Rows keyed by id, with the attachments of the models that hold them.

    Examples
    --------
    >>> from erasable import Records
    >>> records = Records([[1.5], [2.5]], ids=["a", "b"])
    >>> records.n_rows, records.n_features, records.is_stored
    (2, 1, False)
    """

    _cells: NDArray[Any] | None
    """Those of objects that were read as numbers, until a model comes."""

    def in_memory(self, rows: NDArray[np.int64] | None = None) -> Self:
        """Copy the records that no model has deleted, with their features in memory.

        Parameters
        ----------
        rows : ndarray of int64, default=None
            Positions of those to copy.

        Examples
        --------
        >>> from erasable import Records
        >>> Records([[1.0], [2.0]]).in_memory().matrix.shape
        (2, 1)
        """
        rows = np.flatnonzero(~self._withdrawn) if rows is None else rows
        matrix = self.matrix
        copied = Some(matrix, rows).whole() if self.is_stored else take_rows(matrix, rows)
        made = self._with(copied, rows)
        made.ids, made.groups = as_array(made.ids), as_array(made.groups)
        return made

    @classmethod
    def from_table(cls, table: RecordArrays) -> Self:
        """Make records of a table to which nothing else refers."""
        records = cls.__new__(cls)
        records._adopt(table)
        return records

    def _adopt(self, table: RecordArrays) -> None:
        self.matrix, self.y = table.matrix, table.y
        self.weights = table.weights
        self.ids = table.ids
        self.groups = table.groups
        self.feature_names, self.numeric = table.feature_names, table.numeric
        self.unsettled, self.unread, self.types = table.unsettled, table.unread, table.types
        self._withdrawn, self._erased = np.zeros((2, self.n_rows), dtype=np.bool_)
        self._holders: list[weakref.ref[Attachment]] = []
        self._id_index: IdIndex | HashIndex | None = None
        self._id_set: NDArray[np.uint64] | None = None  # of all rows, while none is withdrawn
        self._group_index: GroupIndex | None = None
        self.source: weakref.ref[HeldRecords] | None = None
        self._deleted_ids: DeletedIds | None = None
        self._spare: dict[str, NDArray[Any]] = {}  # larger buffers that arrays are the begin of
        self._cells = None

    @property
    def n_rows(self) -> int:
        """Number of rows, erased ones included."""
        return int(self.matrix.shape[0])

    @property
    def is_stored(self) -> bool:
        """Whether the features are in files or in other processes."""
        return isinstance(self.matrix, Stored)

    def refuse_stored(self) -> None:
        """Raise InvalidInputError if the features are in files or in other processes."""
        if self.is_stored:
            raise InvalidInputError(
                "the features of the records lie in files; expected them in memory; pass "
                "records.in_memory()"
            )

    @property
    def is_remote(self) -> bool:
        """Whether the features are in other processes."""
        return storage(self.matrix).is_remote

    @property
    def n_features(self) -> int:
        """Number of columns of `matrix`."""
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        """Count the records that no model has deleted."""
        return self.n_rows - int(np.count_nonzero(self._withdrawn))

    def __repr__(self) -> str:
        """Show the size, never a value."""
        return f"Records(n_records={len(self)}, n_features={self.n_features})"

    def prepare(self, rows: NDArray[np.int64]) -> None:
        """Read stored rows before they are deleted; see `erasable.core.passes.Stored.prepare`."""
        if self.is_stored:
            self.matrix.prepare(rows)

    def attach(self) -> Attachment:
        """Attach to every record that no model has deleted."""
        self._cells = None
        return Attachment(self)

    def read_as_objects(self) -> None:
        """Restore the cells as they were given, for a model that was fitted on objects."""
        if self._cells is not None:
            self.matrix, self._cells = self._cells, None
        if self.matrix.dtype == object and not any(holder() for holder in self._holders):
            self.unsettled -= {"X"}  # the model says what the table is

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Copy some rows into records of their own, which no model holds yet."""
        return self._with(take_rows(self.matrix, rows), rows)

    def _with(self, matrix: Any, rows: NDArray[np.int64]) -> Self:
        return self.from_table(self._table().take(rows, matrix))

    def _table(self) -> RecordArrays:
        """Return the arrays of all rows, erased ones included; not copied."""
        return RecordArrays(
            self.matrix, self.y, self.ids, self.groups, self.feature_names, self.weights,
            self.numeric, self.unsettled, self.unread, self.types,
        )  # fmt: skip

    def twin(self, values: Self, y: NDArray[Any] | None) -> Self:
        """Copy the names of these records, none of them deleted, and the values of others.

        Values on a cluster are not copied: `values` gets the names, and is returned.
        """
        self._rows_of_ids([])  # makes the index
        is_copied = not values.is_remote
        made = values.take(np.arange(self.n_rows)) if is_copied else values
        made.y, made.ids, made.groups = y, self.ids.copy(), copy.copy(self.groups)
        made._id_index, made._id_set = copy.copy(self._id_index), self.attach().id_set()
        made.source = weakref.ref(values) if is_copied else None
        return made

    def _rows_of_ids(self, ids: list[int | str]) -> NDArray[np.int64]:
        if self._id_index is None:
            sparing = self.is_stored and not counts_up(self.ids)
            index: Any = HashIndex.of if sparing else IdIndex
            self._id_index = self._indexed(index, self.ids)
        found: NDArray[np.int64] = self._id_index.find(ids)
        return found

    def _rows_of_groups(self, groups: list[int | str]) -> list[NDArray[np.int64]]:
        if self.groups is None:
            raise InvalidIdsError(
                "groups were asked for, but the records came without groups; "
                "expected ids; pass ids=, or fit again with groups="
            )
        if self._group_index is None:
            self._group_index = self._indexed(GroupIndex, self.groups)
        return [self._group_index.find(group) for group in groups]

    def _indexed(self, index: Callable[..., _Index], names: NDArray[Any]) -> _Index:
        while True:
            self._sweep()  # an erasure that was interrupted has left blank names
            present = ~self._erased
            made = index(names, present)
            if not (present & self._erased).any():  # by a model that was collected meanwhile
                return made

    def _let_go(self, rows: NDArray[np.int64]) -> None:
        """Withdraw rows that a model has deleted; erase those that no other model holds."""
        if self._deleted_ids is not None:
            self._deleted_ids.add(self.ids[rows[~self._withdrawn[rows]]])
        self._withdrawn[rows] = True
        self._id_set = None
        holders = [holder() for holder in self._holders]
        if None in holders:  # a model is gone, and its finalizer was interrupted
            self._sweep()
        else:
            self._erase(_unheld(rows, holders))

    def _keep_out(self, deleted: DeletedIds) -> None:
        """Erase what was deleted before, and note what is deleted from now on."""
        self._withdrawn[deleted.among(self.ids)] = True
        self._id_set, self._deleted_ids = None, deleted
        self._sweep()

    def _detach(self) -> None:
        """Erase, after a model is gone, what others have deleted and it alone still held."""
        try:
            self._sweep()
        except BaseException:
            self._sweep()  # no second call comes: Python drops what a finalizer raises
            raise

    def _sweep(self) -> None:
        """Erase the withdrawn rows that no model holds."""
        rows = np.flatnonzero(self._withdrawn > self._erased)
        self._erase(_unheld(rows, [holder() for holder in self._holders]))
        self._holders = [holder for holder in self._holders if holder() is not None]

    def _erase(self, rows: NDArray[np.int64]) -> None:
        if rows.size == 0:
            return
        # The indexes come first, while the names are there; `_erased` last, when all is done.
        if self._id_index is not None:
            self._id_index.forget(rows, self.ids[rows].tolist())
        if self._group_index is not None and self.groups is not None:
            self._group_index.forget(rows, self.groups[rows].tolist())
        self._cells = None
        blank_rows(self.matrix, rows)
        for array in (self.ids, self.y, self.weights, self.groups):
            if array is not None:
                array[rows] = blank_of(array)
        self._erased[rows] = True

    def _kept_attributes(self) -> dict[str, Any]:
        """Return what a file of a model's accelerator keeps; see `erasable.core.mapped`."""
        own = (
            "matrix",
            "y",
            "weights",
            "feature_names",
            "numeric",
            "unsettled",
            "unread",
            "types",
            "_id_set",
        )
        return {
            **{name: getattr(self, name) for name in own},
            "ids": Names(self.ids),
            "groups": None if self.groups is None else Names(self.groups),
            "_withdrawn": self._withdrawn,
            "_erased": self._erased,
            "_id_index": self._kept_index(),
            "_spare": [name for name in _ROOMY if self._has_room(name)],
        }

    def _kept_index(self) -> HashIndex | None:
        index = self._id_index
        return index if isinstance(index, HashIndex) else HashIndex.of(self.ids, ~self._erased)

    def _has_room(self, name: str) -> bool:
        array, buffer = getattr(self, name), self._spare.get(name)
        return isinstance(array, np.ndarray) and array.dtype != object and begins(array, buffer)

    def _after_reading(self) -> None:
        self._holders, self._group_index, self.source = [], None, None
        self.__dict__ = {"unread": {}, "types": None, **self.__dict__}  # old files have none
        self._deleted_ids = self._cells = None
        # Files keep the larger buffer with an array that is its begin.
        found = {name: buffer_of(getattr(self, name)) for name in _ROOMY if name in self._spare}
        self._spare = {name: buffer for name, buffer in found.items() if buffer is not None}

    def __getstate__(self) -> dict[str, Any]:
        """Keep only the records that no model has deleted, so that a pickle holds no others."""
        kept = self if not self._withdrawn.any() else self.take(np.flatnonzero(~self._withdrawn))
        state = {each.name: getattr(kept, each.name) for each in fields(RecordArrays)}
        return {**state, "ids": as_array(kept.ids), "groups": as_array(kept.groups)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Hold arrays that can be erased, even where joblib mapped them read-only."""
        self._adopt(RecordArrays(**{name: writeable(value) for name, value in state.items()}))

    # -- records that arrive or change, in all models --------------------------------------------


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

    def __init__(self, records: HeldRecords) -> None:
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
        if np.count_nonzero(known) < known.size:
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

    def copy_records(self) -> HeldRecords:
        """Copy the live rows into records of their own."""
        return self.records.take(self.live_rows())

    def __deepcopy__(self, memo: dict[int, Any]) -> Attachment:
        """Copy the records too: a deletion in one model is none in its copy."""
        return self.copy_records().attach()

    def __reduce__(self) -> tuple[Any, tuple[HeldRecords]]:
        """Pickle the live rows; models pickled together share records where they hold the same.

        The class makes it again, and no function: skops calls nothing else.
        """
        shared = np.array_equal(self.live, ~self.records._withdrawn)
        return type(self), (self.records if shared else self.copy_records(),)


def _unheld(rows: NDArray[np.int64], holders: list[Attachment | None]) -> NDArray[np.int64]:
    for holder in holders:
        if holder is not None and rows.size:
            rows = rows[~holder._unreleased[rows]]
    return rows
