"""Samples and copies of records, which depend on what the records are and not on their order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa


def sample(ids: Sequence[Any], rows: Any, n: int, seed: int) -> Any:
    """Draw rows by their ids: the same records, whatever their order and the other rows.

    `ids` are those of all rows; `rows`, int64, are the ones to draw from. Return `n` of them,
    ascending, or all where there are no more.

    >>> sample(["a", "b", "c", "d"], np.array([0, 1, 3]), 2, 0)
    array([1, 3])
    """
    if rows.size <= n:
        return rows
    marks = [hashlib.sha256(f"{seed}/{ids[row]}".encode()).digest() for row in rows]
    return np.sort(rows[sorted(range(len(marks)), key=marks.__getitem__)[:n]])


def alike(tables: Sequence[pa.Table], columns: Sequence[str]) -> list[Any]:
    """Give the records of some tables numbers: the same where they are equal in all columns.

    The numbers are int64, an array for each table.

    >>> import pyarrow as pa
    >>> first, second = pa.table({"a": [1, 2, 1]}), pa.table({"a": [2, 3]})
    >>> one, other = alike([first, second], ["a"])
    >>> one[0] == one[2], other[0] == one[1], np.isin(other, one).tolist()
    (np.True_, np.True_, [True, False])
    """
    whole = pa.concat_tables([each.select(list(columns)) for each in tables])
    numbers = np.zeros(whole.num_rows, dtype=np.int64)
    for name in columns:
        coded = whole[name].combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.unify_dictionaries().combine_chunks()
        codes = coded.indices.to_numpy().astype(np.int64)
        both = numbers * (int(codes.max(initial=0)) + 1) + codes
        numbers = np.unique(both, return_inverse=True)[1].reshape(-1)
    ends = np.cumsum([each.num_rows for each in tables])
    return np.split(numbers, ends[:-1])
