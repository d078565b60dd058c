"""Records whose features stay where they are: in files, or on the workers of a cluster."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Self

from erasable.core.deleted_ids import DeletedIds
from erasable.core.errors import InvalidInputError
from erasable.core.inputs import Table

__all__ = ["ReadingRecords"]


class ReadingRecords:
    """Ways to make records of what is not in memory; see `Records`.

    Examples
    --------
    >>> from erasable import Records
    >>> issubclass(Records, ReadingRecords)
    True
    """

    @classmethod
    @abstractmethod
    def from_table(cls, table: Table) -> Self:
        """Make records of a table that is not shared with anybody."""

    @abstractmethod
    def _keep_out(self, deleted: DeletedIds) -> None:
        """Erase what was deleted before, and remember what is deleted from now on."""

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
