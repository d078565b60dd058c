"""Rows keyed by id, shared by the models trained on them, erased in place.

A row can be read as long as one model still holds it; when the last model that held it has deleted
it, its bytes are overwritten. A deletion through any model withdraws the record: models fitted
later on the same records do not see it.

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

from erasable.core._adding import RecordsChange
from erasable.core._unused_columns import replaced
from erasable.core.attachment import Attachment
from erasable.core.deleted_ids import DeletedIds
from erasable.core.deletion import Addition, Correction, Replacement
from erasable.core.errors import InvalidIdsError, InvalidInputError
from erasable.core.inputs import RecordArrays, read_table
from erasable.core.lookup import GroupIndex, HashIndex, IdIndex, counts_up
from erasable.core.mapped.texts import Names, as_array
from erasable.core.matrices import blank_of, blank_rows, take_rows, writeable
from erasable.core.passes import Some, Stored, storage
from erasable.core.persistent import Persistent
from erasable.core.row_arrays import begins, buffer_of
from erasable.core.values import cells_of

__all__ = ["Records"]


_Index = TypeVar("_Index")
_ROOMY = ("matrix", "ids", "y", "weights")
"""Arrays that are kept with the room they have for more rows."""


class Records(Persistent):
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
    numeric, unsettled, unread, types : see `erasable.core.inputs.RecordArrays`
    source : weak reference to Records whose values these were made with (see `twin`), or None

    Raises
    ------
    InvalidDataError, InvalidIdsError
        Values that are not as above; ids or groups that repeat, or do not match the rows.

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
        """Make records without the columns that a model does not read."""
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
        self.source: weakref.ref[Records] | None = None
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

    def take(self, rows: NDArray[np.int64]) -> Records:
        """Copy some rows into records of their own, which no model holds yet."""
        return self._with(take_rows(self.matrix, rows), rows)

    def _with(self, matrix: Any, rows: NDArray[np.int64]) -> Records:
        return Records.from_table(self._table().take(rows, matrix))

    def _table(self) -> RecordArrays:
        """Return the arrays of all rows, erased ones included; not copied."""
        return RecordArrays(
            self.matrix, self.y, self.ids, self.groups, self.feature_names, self.weights,
            self.numeric, self.unsettled, self.unread, self.types,
        )  # fmt: skip

    def twin(self, values: Records, y: NDArray[Any] | None) -> Records:
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

    def add(
        self,
        X: Any,
        y: Any = None,
        *,
        ids: str | Iterable[Any],
        groups: str | Iterable[Any] | None = None,
        sample_weight: Any = None,
        digest: bool = True,
    ) -> list[Addition]:
        """Add records, which all models that hold these learn from: all, or none of them.

        Parameters and errors are those of `Erasable.add`.

        Returns
        -------
        list of Addition
            One for each model, in the order in which they were fitted.

        Examples
        --------
        >>> from erasable.preprocessing import MaxAbsScaler, MinMaxScaler
        >>> from erasable import Records
        >>> records = Records([[1.0], [2.0]], ids=["a", "b"])
        >>> models = [scaler.fit(records) for scaler in (MinMaxScaler(), MaxAbsScaler())]
        >>> reports = records.add([[4.0]], ids=["c"])
        >>> len(reports), [model.transform([[2.0]]).item() for model in models]
        (2, [0.3333333333333333, 0.5])
        """
        return RecordsChange(self, None, digest=digest).add(X, y, sample_weight, ids, groups)

    def correct(
        self,
        ids: Iterable[Any],
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        digest: bool = True,
    ) -> list[Correction]:
        """Correct records in all models that hold them; see `add` and `Erasable.correct`.

        Examples
        --------
        >>> from erasable import Records
        >>> records = Records([[1.0], [2.0]], ids=["a", "b"])
        >>> records.correct(["a"], [[5.0]])
        []
        >>> records.attach().ids, records.take(records.attach().rows(["a"])).matrix
        (array(['b', 'a'], dtype=object), array([[5.]]))
        """
        return RecordsChange(self, None, digest=digest).correct(ids, X, y, sample_weight)

    def replace(
        self,
        delete: Iterable[Any],
        X: Any,
        y: Any = None,
        *,
        ids: str | Iterable[Any],
        groups: str | Iterable[Any] | None = None,
        sample_weight: Any = None,
        digest: bool = True,
    ) -> list[Replacement]:
        """Delete records and add others in all models; see `add` and `Erasable.replace`.

        Examples
        --------
        >>> from erasable import Records
        >>> records = Records([[1.0], [2.0]], ids=["a", "b"])
        >>> records.replace(["a"], [[5.0]], ids=["c"])
        []
        >>> records.attach().ids
        array(['b', 'c'], dtype=object)
        """
        change = RecordsChange(self, None, digest=digest)
        return change.replace(delete, X, y, sample_weight, ids, groups)

    # -- records that are not in memory ----------------------------------------------------------

    @classmethod
    def from_parquet(
        cls,
        path: Any,
        *,
        ids: str | None = None,
        target: str | None = None,
        groups: str | None = None,
        sample_weight: str | None = None,
        features: Iterable[str] | None = None,
        memory: int | None = None,
    ) -> Self:
        """Make records whose features stay in Parquet files, and are read block by block.

        A block is a row group. Ids, targets, groups and weights are in memory: 8 bytes a record
        each, if numbers, and some 20 more. What models delete has to be removed from files, too.

        Parameters
        ----------
        path : path-like, or a list of them
            Files, or folders with files, of the same columns; sorted by path.
        ids : str, default=None
            Column that names the records; by default they are 0 to n - 1, in the order of rows.
        target : str, default=None
            Column of the targets.
        groups : str, default=None
            Column that says which records leave together.
        sample_weight : str, default=None
            Column that says how much each record counts.
        features : list of str, default=None
            Columns to learn from, of numbers or text, which may have gaps; by default all other
            columns of numbers.
        memory : int, default=None
            Bytes that a block may take while it is read.

        Raises
        ------
        InvalidInputError
            No such file or column.
        InvalidDataError, InvalidIdsError
            Files of other columns than the first, columns of neither numbers nor text, blocks that
            take more than `memory`; ids that repeat. Gaps are refused when a model is fitted that
            takes none.

        Notes
        -----
        They are for k-means, neighbours, trees, forests, boosting, encoders, imputers, estimators
        whose deletions need no more of what is left than sums, and pipelines of these; others ask
        for records `in_memory`. Files must not change while models hold the records: one that has
        changed is refused. Threads (`n_jobs`) read blocks of their own.

        Examples
        --------
        >>> import tempfile
        >>> from erasable import Records
        >>> import pyarrow as pa
        >>> import pyarrow.parquet as pq
        >>> table = pa.table({"visit": ["a", "b", "c"], "age": [40, 50, 61], "ill": [0, 1, 1]})
        >>> from erasable.naive_bayes import GaussianNB
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pq.write_table(table, f"{folder}/visits.parquet", row_group_size=2)
        ...     records = Records.from_parquet(folder, ids="visit", target="ill")
        ...     model = GaussianNB().fit(records)
        ...     model.delete(["c"]).action, model.theta_.tolist(), records
        ('updated', [[40.0], [50.0]], Records(n_records=2, n_features=1))
        """
        from erasable.core.parquet import table_of  # which imports pyarrow

        uses = ids, target, groups, sample_weight, features
        return cls.from_table(table_of(path, *uses, memory=memory))

    @classmethod
    def from_dask(
        cls,
        frame: Any,
        *,
        client: Any = None,
        ids: str | None = None,
        target: str | None = None,
        groups: str | None = None,
        sample_weight: str | None = None,
        features: Iterable[str] | None = None,
        deleted: Any = None,
    ) -> Self:
        """Make records whose features are in the memory of the workers of a Dask cluster.

        A block is a partition, which one worker reads and keeps, and passes run where blocks are.
        The rest is here, as with `from_parquet`. Nothing can be pickled or copied: see `in_memory`.

        Parameters
        ----------
        frame : dask.dataframe.DataFrame
            Lazy. Its index is not read, and its files are never written.
        client : distributed.Client, default=None
            The cluster; by default the client that was made last.
        ids, target, groups, sample_weight, features
            See `from_parquet`.
        deleted : path-like, default=None
            A file of keys of the ids that models delete, made with the first deletion. Records
            that are made with it again, from a frame that still has these ids, are without them.

        Raises
        ------
        InvalidInputError, InvalidDataError, InvalidIdsError
            As `from_parquet`; later, partitions that have changed and are read again.
        ClusterError
            Workers with other versions of erasable, NumPy or scikit-learn, without memory, or none.

        Examples
        --------
        >>> import pandas as pd
        >>> from erasable import Records
        >>> import dask.dataframe as dd
        >>> from distributed import Client
        >>> from erasable.naive_bayes import GaussianNB
        >>> visits = pd.DataFrame({"visit": ["a", "b", "c"], "age": [40, 50, 61], "ill": [0, 1, 1]})
        >>> frame = dd.from_pandas(visits, npartitions=2)
        >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
        ...     records = Records.from_dask(frame, client=client, ids="visit", target="ill")
        ...     GaussianNB().fit(records).delete(["c"]).action
        'updated'
        """
        from erasable.core.remote._dask import table_of  # which imports dask

        known = None if deleted is None else DeletedIds(deleted)
        if known is not None and ids is None:
            raise InvalidInputError(
                "deleted ids were given without the column of ids; expected both, as rows may be "
                "in other places when the frame is read again"
            )
        records = cls.from_table(
            table_of(frame, client, ids, target, groups, sample_weight, features)
        )
        if known is not None:
            records._keep_out(known)
        return records


def _unheld(rows: NDArray[np.int64], holders: list[Attachment | None]) -> NDArray[np.int64]:
    for holder in holders:
        if holder is not None and rows.size:
            rows = rows[~holder._unreleased[rows]]
    return rows
