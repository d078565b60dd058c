"""The ids of many records in little memory: which repeat, and which are there already.

A whole number is kept as it is, in 8 bytes; of a text, a hash of 16 bytes, which two texts do not
share by chance: 2**128 is larger than the square of any number of records.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_BYTES = 16


class Ids:
    """A collection of ids, in no order; those that come twice are in it twice.

    Examples
    --------
    >>> ids = Ids()
    >>> ids.add(pa.array(["a", "b", None]))
    >>> ids.add(pa.array(["b", "c"]))
    >>> len(ids), ids.n_gaps, ids.n_repeated()
    (4, 1, 1)
    >>> ids.n_of(pa.array(["c", "d"]))
    1
    """

    def __init__(self) -> None:
        self.n_gaps = 0
        self._parts: list[NDArray[Any]] = []

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def add(self, column: pa.Array | pa.ChunkedArray) -> None:
        """Add ids, integers or text; gaps are counted."""
        self.n_gaps += column.null_count
        if len(column) > column.null_count:
            self._parts.append(_keys(column))

    def n_repeated(self) -> int:
        """Count those that have come before."""
        keys = self._sorted()
        return int(np.count_nonzero(keys[1:] == keys[:-1]))

    def n_of(self, column: pa.Array | pa.ChunkedArray) -> int:
        """Count the values of a column that are among the ids."""
        return self._n_found(_keys(column)) if len(column) > column.null_count else 0

    def n_shared(self, other: Ids) -> int:
        """Count the ids of another collection that are in this one, too."""
        return sum(map(self._n_found, other._parts))

    def _n_found(self, keys: NDArray[Any]) -> int:
        own = self._sorted()
        if not len(own) or keys.dtype != own.dtype:
            return 0
        at = np.searchsorted(own, keys)
        at[at == len(own)] = 0
        return int(np.count_nonzero(own[at] == keys))

    def _sorted(self) -> NDArray[Any]:
        """Bring all into one array, in order; that is done once."""
        if len(self._parts) != 1:
            parts, self._parts = self._parts, []
            joined = np.concatenate(parts) if parts else np.empty(0, np.int64)
            del parts
            self._parts = [joined]
        keys = self._parts[0]
        if len(keys) > 1 and not bool(np.all(keys[1:] >= keys[:-1])):
            keys.sort()
        return keys


def _keys(column: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    column = column.drop_null()
    if pa.types.is_integer(column.type):
        kind = np.uint64 if column.type == pa.uint64() else np.int64
        return column.to_numpy(zero_copy_only=False).astype(kind).view(np.int64)  # type: ignore[no-any-return]
    hashes = [blake2b(value.encode(), digest_size=_BYTES).digest() for value in column.to_pylist()]
    return np.frombuffer(b"".join(hashes), f"S{_BYTES}").copy()
