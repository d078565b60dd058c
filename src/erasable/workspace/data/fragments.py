"""Fragments: Parquet files, each with the records of one bucket, a hash of their subject.

A person's records are in few fragments, so that erasing them rewrites few. Subject columns hold
tokens (keyed hashes), never the values that came. Records are in the order of their ids, so that
a fragment does not depend on the order in which they came.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from erasable.core import _arrow_files as arrow_files
from erasable.core.errors import WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.store.artifacts import ArtifactStore, StoredArtifact

PARTS = 256
"""The largest number of buckets of a data set."""

_RECORDS_EACH = 2000
_DIGITS = arrow_files.array_of_texts([f"{part:02x}" for part in range(PARTS)])


def buckets_for(n_records: int) -> int:
    """Choose how many buckets a data set has: a power of two, of some 2,000 records each."""
    wanted = min(PARTS, max(1, n_records // _RECORDS_EACH))
    return 1 << (wanted.bit_length() - 1)


def bucket_of(token: str, n_buckets: int) -> int:
    """Return the bucket of a token, which is uniformly distributed already."""
    return int(token[:8], 16) % n_buckets


def parts_of(table: pa.Table, id_column: str, subjects: Sequence[str]) -> pa.Array:
    """Return the part of each record, of `PARTS`, that its bucket is made of.

    It depends on the first subject, or on the id if there is none. However many buckets a data set
    has, bucket b is made of the parts b, b + n_buckets, b + 2 n_buckets, ... The parts are int32,
    from 0 to `PARTS` - 1; the columns `subjects` hold tokens.

    >>> table = pa.table({"id": [3, 1, 2], "who": ["00000001", "00000002", "000000ff"]})
    >>> parts_of(table, "id", ["who"]).to_pylist()
    [1, 2, 255]
    """
    owner = pa.chunked_array([pa.nulls(table.num_rows, pa.string())])
    for subject in subjects:
        owner = pc.coalesce(owner, table[subject])
    digits = pc.utf8_slice_codeunits(owner, 6, 8)  # the last two of the eight in `bucket_of`
    gaps = np.flatnonzero(pc.is_null(owner).to_numpy())
    parts = pc.fill_null(pc.index_in(digits, _DIGITS), 0).to_numpy().astype(np.int32)
    if len(gaps):
        ids = table[id_column].take(pa.array(gaps)).to_pylist()
        parts[gaps] = [bucket_of(_hash_of(value), PARTS) for value in ids]
    return pa.array(parts)


def write(context: Context, dataset: str, table: pa.Table) -> StoredArtifact:
    """Put a fragment into the store.

    It has neither compression nor a dictionary: a search for erased values must find them by their
    bytes, and a batch writes many fragments.
    """
    data = arrow_files.parquet_bytes(table.combine_chunks(), use_dictionary=False)
    return context.store.put(f"data/{dataset}", data)


def read(context: Context, key: str, sha256: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a fragment; refuse a file that is missing, or has other bytes than were put."""
    return read_from(context.store, StoredArtifact(key, sha256), columns)


def read_from(
    store: ArtifactStore, stored: StoredArtifact, columns: Sequence[str] | None = None
) -> pa.Table:
    """Read a fragment of a store; see `read`."""
    data = store.open(stored)
    try:
        return arrow_files.parquet_table(data, columns)
    except (pa.ArrowException, OSError, ValueError):
        raise WorkspaceError(
            f"the file {stored.key!r} is no fragment of a data set; expected Parquet; "
            "restore it from a backup, or add the data again"
        ) from None


def _hash_of(value: Any) -> str:
    return hashlib.sha256(str(value).encode()).hexdigest()[:32]
