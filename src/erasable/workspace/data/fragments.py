"""Fragments: Parquet files, each with the records of one bucket, a hash of their subject.

A person's records are in few fragments, so that erasing them rewrites few. Subject columns hold
tokens (keyed hashes), never the values that came. Records are in the order of their ids, so that
what a fragment holds does not depend on the order in which they came.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from erasable.core.errors import WorkspaceError
from erasable.workspace.site import Site
from erasable.workspace.store.artifacts import Stored

__all__ = ["bucket_of", "buckets_for", "partition", "read", "write"]

_RECORDS_EACH, _MOST = 2000, 256


def buckets_for(n_records: int) -> int:
    """Choose how many buckets a data set has: a power of two, of some 2,000 records each.

    Examples
    --------
    >>> buckets_for(10), buckets_for(200_000), buckets_for(10**7)
    (1, 64, 256)
    """
    wanted = min(_MOST, max(1, n_records // _RECORDS_EACH))
    return 1 << (wanted.bit_length() - 1)


def bucket_of(token: str, n_buckets: int) -> int:
    """Return the bucket of a token, which is uniformly distributed already.

    Examples
    --------
    >>> bucket_of("0000000a" + "f" * 24, 8)
    2
    """
    return int(token[:8], 16) % n_buckets


def partition(
    table: pa.Table, id_column: str, subjects: Sequence[str], n_buckets: int
) -> Iterator[tuple[int, pa.Table]]:
    """Split records by the bucket of their first subject, or of their id where they have none.

    Parameters
    ----------
    table : pyarrow.Table
        With tokens in the columns `subjects`.
    id_column : str
    subjects : sequence of str
    n_buckets : int

    Yields
    ------
    bucket : int
    records : pyarrow.Table
        Not empty, in the order of their ids.

    Examples
    --------
    >>> table = pa.table({"id": [3, 1, 2], "who": ["00000001", "00000002", "00000001"]})
    >>> [(bucket, part["id"].to_pylist()) for bucket, part in partition(table, "id", ["who"], 2)]
    [(0, [1]), (1, [2, 3])]
    """
    owner = pa.nulls(table.num_rows, pa.string())
    for subject in subjects:
        owner = pc.coalesce(owner, table[subject])
    if owner.null_count:
        hashed = [_hash_of(value) for value in table[id_column].to_pylist()]
        owner = pc.coalesce(owner, pa.array(hashed, pa.string()))
    if isinstance(owner, pa.ChunkedArray):
        owner = owner.combine_chunks()
    coded = owner.dictionary_encode()
    of_token = [bucket_of(token, n_buckets) for token in coded.dictionary.to_pylist()]
    buckets = pa.array(of_token, pa.int32()).take(coded.indices)
    order = pc.sort_indices(
        pa.table({"bucket": buckets, "id": table[id_column]}),
        sort_keys=[("bucket", "ascending"), ("id", "ascending")],
    )
    table, buckets = table.take(order), buckets.take(order)
    start = 0
    for run in pc.run_end_encode(buckets).run_ends.to_pylist() if len(buckets) else []:
        yield buckets[start].as_py(), table.slice(start, run - start)
        start = run


def write(site: Site, dataset: str, table: pa.Table) -> Stored:
    """Put a fragment into the store.

    It is plain, neither compressed nor by a dictionary: whoever looks for what should be gone must
    find it by its bytes, and a batch writes many of them.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(
        table.combine_chunks(), sink, compression="none", use_dictionary=False,
        write_statistics=False,
    )  # fmt: skip
    return site.store.put(f"data/{dataset}", memoryview(sink.getvalue()))


def read(site: Site, key: str, sha256: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a fragment.

    Raises
    ------
    WorkspaceError
        The file is not there, or is not what was put.
    """
    data = site.store.open(Stored(key, sha256))
    try:
        wanted = None if columns is None else list(columns)
        return pq.read_table(pa.BufferReader(data), columns=wanted)
    except (pa.ArrowException, OSError, ValueError):
        raise WorkspaceError(
            f"the file {key!r} is no fragment of a data set; expected Parquet; "
            "restore it from a backup, or add the data again"
        ) from None


def _hash_of(value: Any) -> str:
    return hashlib.sha256(str(value).encode()).hexdigest()[:32]
