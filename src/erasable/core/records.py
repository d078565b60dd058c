"""Rows keyed by id, shared by the models trained on them, erased in place.

The law kept here: a row can be read as long as one model still holds it; when the last model that
held it has deleted it, its bytes are overwritten. A deletion through any model withdraws the
record: models fitted later on the same records do not see it.

Everything a deletion does here costs time in the records deleted and in the models that share
them, not in the records kept. All of it may be done again where it was interrupted: what is to be
erased follows from what is withdrawn and what is held, and is not counted up and down.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from erasable.core._unread import replaced
from erasable.core.attachment import Attachment
from erasable.core.deleted_ids import DeletedIds
from erasable.core.errors import InvalidIdsError
from erasable.core.growing_records import GrowingRecords
from erasable.core.inputs import Table, read_table
from erasable.core.lookup import GroupIndex, HashIndex, IdIndex, counts_up
from erasable.core.mapped.texts import Names, as_array
from erasable.core.passes import Remote, Some, Stored
from erasable.core.reading_records import ReadingRecords
from erasable.core.row_arrays import begins, buffer_of
from erasable.core.sparse import blank_of, blank_rows, take_rows, writeable
from erasable.core.values import cells_of

__all__ = ["Records"]

_Index = TypeVar("_Index")
_ROOMY = ("matrix", "ids", "y", "weights")
"""Arrays that are kept with the room they have for more rows."""


class Records(ReadingRecords, GrowingRecords):
    """Records that several models share, so that they are kept once and erased once.

    Pass them to `fit` in the place of arrays. A model that is fitted on arrays makes its own.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n_records, n_features), or list of str
        Copied. float32 stays float32, other numbers become float64. NaN, text and documents are
        taken, and refused by an estimator that cannot learn from them.
    y : array-like of shape (n_records,) or (n_records, n_outputs), default=None
        Targets, numbers, booleans or strings, of one type or one that is declared; copied.
    sample_weight : array-like of shape (n_records,) or float, default=None
        How much each record counts; copied.
    ids : array-like of int or str, or the name of a column, default=None
        Which record each row is. By default a pandas frame's index, or 0..n-1.
    groups : array-like of int or str, or the name of a column, default=None
        Which records leave together: the visits of one person.

    Attributes
    ----------
    matrix : ndarray of shape (n_rows, n_features), float64, float32 or object; csr_array; Stored
        Erased rows are 0, or "" among objects; of a matrix that is stored elsewhere, not read.
    y : ndarray of shape (n_rows,) or (n_rows, n_outputs), or None
    weights : ndarray of shape (n_rows,), float64, or None
    ids : ndarray of shape (n_rows,), int64, uint64 or object
        Erased rows are 0 or "".
    groups : ndarray of shape (n_rows,), int64, uint64 or object, or None
    feature_names : list of str, or None
    numeric, unsettled, unread, types : see `erasable.core.inputs.Table`
    source : weak reference to Records whose values these were made with (see `twin`), or None

    Raises
    ------
    InvalidDataError, InvalidIdsError
        See `erasable.core.inputs.read_table`.

    Notes
    -----
    Ids that count up by one (the default) are found by arithmetic. Any others are found through a
    dictionary of about 100 bytes a record, made at the first deletion.

    Examples
    --------
    >>> records = Records([[1.0], [2.0], [3.0]], ids=["a", "b", "c"])
    >>> records
    Records(n_records=3, n_features=1)
    """

    _cells: NDArray[Any] | None
    """Those of objects that were read as numbers, until a model comes."""

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
    ) -> None:
        self._read(X, y, sample_weight=sample_weight, ids=ids, groups=groups)

    def _read(self, X: Any, y: Any = None, *, unread: Any = None, **named: Any) -> None:
        table = read_table(X, y, unread=unread, **named)
        self._adopt(table)
        self._cells = cells_of(replaced(X, None, table.unread)[0], self.matrix)

    @classmethod
    def _read_for(cls, model: Any, **named: Any) -> Self:
        """Make records without what a model does not look at; see `erasable.core._unread`."""
        records = cls.__new__(cls)
        records._read(**named, unread=model)
        return records

    def in_memory(self, rows: NDArray[np.int64] | None = None) -> Records:
        """Copy the records that no model has deleted, with their features in memory.

        Parameters
        ----------
        rows : ndarray of int64, default=None
            Positions of those to copy.

        Examples
        --------
        >>> Records([[1.0], [2.0]]).in_memory().matrix.shape
        (2, 1)
        """
        rows = np.flatnonzero(~self._withdrawn) if rows is None else rows
        if not isinstance(self.matrix, Stored):
            return self.take(rows)
        made = self._with(Some(self.matrix, rows).whole(), rows)
        made.ids, made.groups = as_array(made.ids), as_array(made.groups)
        return made

    @classmethod
    def from_table(cls, table: Table) -> Self:
        """Make records of a table that is not shared with anybody."""
        records = cls.__new__(cls)
        records._adopt(table)
        return records

    def _adopt(self, table: Table) -> None:
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
        self.source: weakref.ref[Records] | None = None
        self._deleted_ids: DeletedIds | None = None
        self._spare: dict[str, NDArray[Any]] = {}  # larger buffers that arrays are the begin of
        self._cells = None

    @property
    def n_rows(self) -> int:
        """Number of rows, erased ones included."""
        return int(self.matrix.shape[0])

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

    def _grown(self) -> Records:
        return self

    def attach(self) -> Attachment:
        """Hold every record that no model has deleted."""
        self._cells = None
        return Attachment(self)

    def read_as_objects(self) -> None:
        """Show the cells as they were given, to a model that was fitted on a table of objects."""
        if self._cells is not None:
            self.matrix, self._cells = self._cells, None
        if self.matrix.dtype == object and not any(holder() for holder in self._holders):
            self.unsettled -= {"X"}  # the model says what the table is

    def take(self, rows: NDArray[np.int64]) -> Records:
        """Copy some rows into records of their own, which no model holds yet."""
        return self._with(take_rows(self.matrix, rows), rows)

    def _with(self, matrix: Any, rows: NDArray[np.int64]) -> Records:
        return Records.from_table(self._table().take(rows, matrix))

    def _table(self) -> Table:
        """Return the arrays of all rows, erased ones included; not copied."""
        return Table(**{each.name: getattr(self, each.name) for each in fields(Table)})

    def twin(self, values: Records, y: NDArray[Any] | None) -> Records:
        """Copy the names of these records, none of them deleted, and the values of others.

        Values on a cluster are not copied: `values` gets the names, and is returned.
        """
        self._rows_of_ids([])  # makes the index
        is_copied = not isinstance(values.matrix, Remote)
        made = values.take(np.arange(self.n_rows)) if is_copied else values
        made.y, made.ids, made.groups = y, self.ids.copy(), copy.copy(self.groups)
        made._id_index, made._id_set = copy.copy(self._id_index), self.attach().id_set()
        made.source = weakref.ref(values) if is_copied else None
        return made

    def _rows_of_ids(self, ids: list[int | str]) -> NDArray[np.int64]:
        if self._id_index is None:
            sparing = isinstance(self.matrix, Stored) and not counts_up(self.ids)
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
        """One model has deleted these rows; erase those that no other model holds."""
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
        """Erase what was deleted before, and remember what is deleted from now on."""
        self._withdrawn[deleted.among(self.ids)] = True
        self._id_set, self._deleted_ids = None, deleted
        self._sweep()

    def _detach(self) -> None:
        """One model is gone; erase what only it still held of what others have deleted."""
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
        # What an array is the begin of was kept with it.
        found = {name: buffer_of(getattr(self, name)) for name in _ROOMY if name in self._spare}
        self._spare = {name: buffer for name, buffer in found.items() if buffer is not None}

    def __getstate__(self) -> dict[str, Any]:
        """Keep only the records that no model has deleted, so that a pickle holds no others."""
        kept = self if not self._withdrawn.any() else self.take(np.flatnonzero(~self._withdrawn))
        state = {each.name: getattr(kept, each.name) for each in fields(Table)}
        return {**state, "ids": as_array(kept.ids), "groups": as_array(kept.groups)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Hold arrays that can be erased, even where joblib mapped them read-only."""
        self._adopt(Table(**{name: writeable(value) for name, value in state.items()}))


def _unheld(rows: NDArray[np.int64], holders: list[Attachment | None]) -> NDArray[np.int64]:
    for holder in holders:
        if holder is not None and rows.size:
            rows = rows[~holder._unreleased[rows]]
    return rows
