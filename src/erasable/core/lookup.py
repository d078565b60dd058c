"""From ids and groups to rows, and forgetting: nothing here outlives the records it points to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["GroupIndex", "IdIndex"]


class IdIndex:
    """Where each id's row is.

    Parameters
    ----------
    ids : ndarray of shape (n_rows,)
    present : ndarray of shape (n_rows,), bool
        Rows that are not erased.

    Examples
    --------
    >>> import numpy as np
    >>> index = IdIndex(np.array([30, 10, 20]), np.ones(3, dtype=bool))
    >>> index.find([10, 7])
    array([ 1, -1])
    """

    def __init__(self, ids: NDArray[Any], present: NDArray[np.bool_]) -> None:
        self._n_rows = ids.shape[0]
        self._start: int | None = None
        self._rows: dict[int | str, int] = {}
        if present.all() and _counts_up(ids):
            self._start = int(ids[0])
            return
        rows = np.flatnonzero(present)
        self._rows = dict(zip(ids[rows].tolist(), rows.tolist(), strict=True))

    def find(self, ids: list[int | str]) -> NDArray[np.int64]:
        """Return the row of each id, -1 where there is none."""
        if self._start is None:
            get = self._rows.get
            return np.array([get(name, -1) for name in ids], dtype=np.int64)
        start, stop = self._start, self._start + self._n_rows
        return np.array(
            [
                name - start if isinstance(name, int) and start <= name < stop else -1
                for name in ids
            ],
            dtype=np.int64,
        )

    def forget(self, ids: list[int | str]) -> None:
        """Remove ids; those that are found by arithmetic were never stored."""
        if self._start is None:
            for name in ids:
                del self._rows[name]


class GroupIndex:
    """Where each group's rows are.

    Parameters
    ----------
    groups : ndarray of shape (n_rows,)
    present : ndarray of shape (n_rows,), bool
        Rows that are not erased.

    Examples
    --------
    >>> import numpy as np
    >>> index = GroupIndex(np.array([5, 6, 5]), np.ones(3, dtype=bool))
    >>> index.find(5)
    array([0, 2])
    """

    def __init__(self, groups: NDArray[Any], present: NDArray[np.bool_]) -> None:
        rows = np.flatnonzero(present)
        numbers: dict[int | str, int] = {}
        codes = np.array(
            [numbers.setdefault(name, len(numbers)) for name in groups[rows].tolist()],
            dtype=np.int64,
        )
        self._numbers = numbers
        self._order = rows[np.argsort(codes, kind="stable")]
        self._left = np.bincount(codes, minlength=len(numbers))
        self._ends = np.cumsum(self._left)
        self._starts = self._ends - self._left

    def find(self, group: int | str) -> NDArray[np.int64]:
        """Return the rows of a group, erased ones included; none if the group is unknown."""
        number = self._numbers.get(group)
        if number is None:
            return np.empty(0, dtype=np.int64)
        return self._order[self._starts[number] : self._ends[number]]

    def forget(self, groups: list[int | str]) -> None:
        """Count off one erased row for each entry; a group without rows is forgotten."""
        for group in groups:
            number = self._numbers[group]
            self._left[number] -= 1
            if self._left[number] == 0:
                del self._numbers[group]


def _counts_up(ids: NDArray[Any]) -> bool:
    if ids.dtype != np.int64 or ids.size == 0 or int(ids[-1]) - int(ids[0]) != ids.size - 1:
        return False
    return bool(np.all(ids[1:] == ids[:-1] + 1))
