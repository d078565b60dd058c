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
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from erasable.core.digest import id_set_hash
from erasable.core.errors import InvalidIdsError, UnknownIdError
from erasable.core.ids import as_request
from erasable.core.inputs import Table, read_table
from erasable.core.lookup import GroupIndex, HashIndex, IdIndex, not_there
from erasable.core.mapped.texts import Names, as_array
from erasable.core.sparse import blank_of, blank_rows, take_rows, writeable

__all__ = ["Attachment", "Records"]

_Index = TypeVar("_Index", IdIndex, GroupIndex)


class Records:
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
    matrix : ndarray of shape (n_rows, n_features), float64, float32 or object; or csr_array
        Erased rows are 0, or "" among objects.
    y : ndarray of shape (n_rows,) or (n_rows, n_outputs), or None
    weights : ndarray of shape (n_rows,), float64, or None
    ids : ndarray of shape (n_rows,), int64, uint64 or object
        Erased rows are 0 or "".
    groups : ndarray of shape (n_rows,), int64, uint64 or object, or None
    feature_names : list of str, or None
    numeric, unsettled : see `erasable.core.inputs.Table`
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

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
    ) -> None:
        self._adopt(read_table(X, y, sample_weight=sample_weight, ids=ids, groups=groups))

    @classmethod
    def from_table(cls, table: Table) -> Records:
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
        self.unsettled = table.unsettled
        self._withdrawn, self._erased = np.zeros((2, self.n_rows), dtype=np.bool_)
        self._holders: list[weakref.ref[Attachment]] = []
        self._id_index: IdIndex | HashIndex | None = None
        self._id_set: NDArray[np.uint64] | None = None  # of all rows, while none is withdrawn
        self._group_index: GroupIndex | None = None
        self.source: weakref.ref[Records] | None = None

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

    def attach(self) -> Attachment:
        """Hold every record that no model has deleted."""
        return Attachment(self)

    def take(self, rows: NDArray[np.int64]) -> Records:
        """Copy some rows into records of their own, which no model holds yet."""
        return Records.from_table(
            Table(
                matrix=take_rows(self.matrix, rows),
                y=None if self.y is None else self.y[rows],
                weights=None if self.weights is None else self.weights[rows],
                ids=self.ids[rows],
                groups=None if self.groups is None else self.groups[rows],
                feature_names=self.feature_names,
                numeric=self.numeric,
                unsettled=self.unsettled,
            )
        )

    def twin(self, values: Records, y: NDArray[Any] | None) -> Records:
        """Copy the names of these records, none of them deleted, and the values of others."""
        self._rows_of_ids([])  # makes the index
        made = values.take(np.arange(self.n_rows))
        made.y, made.ids, made.groups = y, self.ids.copy(), copy.copy(self.groups)
        made._id_index, made._id_set = copy.copy(self._id_index), self.attach().id_set()
        made.source = weakref.ref(values)
        return made

    def _rows_of_ids(self, ids: list[int | str]) -> NDArray[np.int64]:
        if self._id_index is None:
            self._id_index = self._indexed(IdIndex, self.ids)
        return self._id_index.find(ids)

    def _rows_of_groups(self, groups: list[int | str]) -> list[NDArray[np.int64]]:
        if self.groups is None:
            raise InvalidIdsError(
                "groups were asked for, but the records came without groups; "
                "expected ids; pass ids=, or fit again with groups="
            )
        if self._group_index is None:
            self._group_index = self._indexed(GroupIndex, self.groups)
        return [self._group_index.find(group) for group in groups]

    def _indexed(self, index: type[_Index], names: NDArray[Any]) -> _Index:
        while True:
            self._sweep()  # an erasure that was interrupted has left blank names
            present = ~self._erased
            made = index(names, present)
            if not (present & self._erased).any():  # by a model that was collected meanwhile
                return made

    def _let_go(self, rows: NDArray[np.int64]) -> None:
        """One model has deleted these rows; erase those that no other model holds."""
        self._withdrawn[rows] = True
        self._id_set = None
        holders = [holder() for holder in self._holders]
        if None in holders:  # a model is gone, and its finalizer was interrupted
            self._sweep()
        else:
            self._erase(_unheld(rows, holders))

    def _detach(self) -> None:
        """One model is gone; erase what only it still held of what others have deleted."""
        try:
            self._sweep()
        except BaseException:
            self._sweep()  # no second call comes: Python drops what a finalizer raises
            raise

    def _sweep(self) -> None:
        """Erase the withdrawn rows that no model holds."""
        rows = np.flatnonzero(self._withdrawn & ~self._erased)
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
        blank_rows(self.matrix, rows)
        for array in (self.ids, self.y, self.weights, self.groups):
            if array is not None:
                array[rows] = blank_of(array)
        self._erased[rows] = True

    def _kept_attributes(self) -> dict[str, Any]:
        """Return what a file of a model's accelerator keeps; see `erasable.core.mapped`."""
        index = self._id_index
        if not isinstance(index, HashIndex):
            index = HashIndex.of(self.ids, ~self._erased)
        own = ("matrix", "y", "weights", "feature_names", "numeric", "unsettled", "_id_set")
        return {
            **{name: getattr(self, name) for name in own},
            "ids": Names(self.ids),
            "groups": None if self.groups is None else Names(self.groups),
            "_withdrawn": self._withdrawn,
            "_erased": self._erased,
            "_id_index": index,
        }

    def _after_reading(self) -> None:
        self._holders, self._group_index, self.source = [], None, None

    def __getstate__(self) -> dict[str, Any]:
        """Keep only the records that no model has deleted, so that a pickle holds no others."""
        kept = self if not self._withdrawn.any() else self.take(np.flatnonzero(~self._withdrawn))
        state = {each.name: getattr(kept, each.name) for each in fields(Table)}
        return {**state, "ids": as_array(kept.ids), "groups": as_array(kept.groups)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Hold arrays that can be erased, even where joblib mapped them read-only."""
        self._adopt(Table(**{name: writeable(value) for name, value in state.items()}))


class Attachment:
    """One model's hold on records: which of them it has not deleted.

    Attributes
    ----------
    records : Records
    live : ndarray of shape (n_rows,), bool
        Rows of `records` that the model has learned from and not deleted.
    n_live : int
    vouched : bool
        Whether the caller answers for the values, see `Erasable.load`.

    Notes
    -----
    When the model is garbage collected its hold ends. A pickle has only what it has not deleted.

    Examples
    --------
    >>> records = Records([[1.5], [2.5]], ids=["a", "b"])
    >>> held = records.attach()
    >>> rows = held.select(["b"])
    >>> held.exclude(rows)
    >>> held.release(rows)
    >>> records.matrix.tolist(), records.ids.tolist()
    ([[1.5], [0.0]], ['a', ''])
    """

    def __init__(self, records: Records) -> None:
        self.records = records
        self.vouched = False
        self.live: NDArray[np.bool_] = ~records._withdrawn
        self.n_live = int(np.count_nonzero(self.live))
        # Apart from `live`: what is excluded can be read, and come back, until it is released.
        self._unreleased = self.live.copy()
        self._after_reading()

    def _after_reading(self) -> None:
        """Be known to the records; also where a file has brought both back."""
        weakref.finalize(self, Records._detach, self.records).atexit = False
        self.records._holders.append(weakref.ref(self))

    @property
    def ids(self) -> NDArray[Any]:
        """Ids of the live rows, in row order; a copy."""
        return self.records.ids[self.live]

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
        """Take rows out of `live`; they can still be read until `release`."""
        self.live[rows] = False
        self.n_live -= int(rows.size)

    def readmit(self, rows: NDArray[np.int64]) -> None:
        """Undo `exclude`, even where that was interrupted."""
        self.live[rows] = True
        self.n_live = int(np.count_nonzero(self.live))

    def release(self, rows: NDArray[np.int64]) -> None:
        """Let go of excluded rows; those that no other model holds are overwritten."""
        self._unreleased[rows] = False
        self.records._let_go(rows)

    def detach(self) -> None:
        """Let go of everything without deleting anything."""
        self.live[:] = self._unreleased[:] = False
        self.n_live = 0
        self.records._sweep()

    def copy_records(self) -> Records:
        """Copy what is live into records of its own."""
        return self.records.take(self.live_rows())

    def __deepcopy__(self, memo: dict[int, Any]) -> Attachment:
        """Copy the records too: a deletion in one model is not one in its copy."""
        return self.copy_records().attach()

    def __reduce__(self) -> tuple[Any, tuple[Records]]:
        """Pickle what is live; models pickled together share records where they hold the same."""
        shared = np.array_equal(self.live, ~self.records._withdrawn)
        return Records.attach, (self.records if shared else self.copy_records(),)


def _unheld(rows: NDArray[np.int64], holders: list[Attachment | None]) -> NDArray[np.int64]:
    for holder in holders:
        if holder is not None and rows.size:
            rows = rows[~holder._unreleased[rows]]
    return rows
