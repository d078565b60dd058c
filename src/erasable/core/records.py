"""Rows keyed by id, shared by the models trained on them, erased in place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from erasable.core._adding import RecordsChange
from erasable.core._optional import needs
from erasable.core._unused_columns import replaced
from erasable.core.attachment import HeldRecords
from erasable.core.deleted_ids import DeletedIds
from erasable.core.deletion import Addition, Correction, Replacement
from erasable.core.errors import InvalidInputError
from erasable.core.inputs import read_table
from erasable.core.values import cells_of

__all__ = ["Records"]


class Records(HeldRecords):
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
        with needs("parquet", "records in Parquet files"):
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
        with needs("dask", "records on a cluster"):
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
