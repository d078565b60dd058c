"""The columns of the records as trees see them: distinct values, their ranks and their hashes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel
from erasable.core._tape_kernels import siphash24_integers
from erasable.core.arrays import Floats, Ints, Words
from erasable.core.tape import Tape
from erasable.core.threads import in_threads, over_rows
from erasable.tree._rank_kernels import rank

# Second half of SipHash's key, and the first byte of what is hashed; see `erasable.core.tape`.
_FOR_VALUES = np.uint64(int.from_bytes(b"values\0\0", "little"))
_TAG = np.uint64(ord("f"))
_32 = np.uint64(32)
_AT_ONCE = 64
_TOGETHER = 8
"""Columns that are ranked before they are written beside each other: a line of the cache."""


@dataclass(eq=False, slots=True)
class Columns:
    """Distinct values of every column; an accelerator, of which nothing is in the state.

    Ints32 are ranks among the values that there were at `fit`. Ints32 whose last record is deleted
    stay, but not the value that they stood for.

    Attributes
    ----------
    values : ndarray of float64
        Values by code, column after column; NaN where no record has them any more.
    counts : ndarray of int64
        How many live records have each of them.
    offsets : ndarray of shape (n_features + 1,), int64
        Where the values of each column begin.
    packed : ndarray of shape (n_rows, n_features + 1), uint64
        Of every value a hash, in the upper 32 bits, and its code. 0 for rows that are not live.
        The last column is for the targets.

    Examples
    --------
    >>> columns = Columns.fit(np.array([[0.5], [7.0], [0.5]]), np.arange(3), Tape(0))
    >>> columns.values, columns.counts, columns.packed[:, 0] & np.uint64(255)
    (array([0.5, 7. ]), array([2, 1]), array([0, 1, 0], dtype=uint64))
    """

    values: Floats
    counts: Ints
    offsets: Ints
    packed: Words

    @classmethod
    def fit(cls, matrix: NDArray[Any], live: Ints, tape: Tape, n_jobs: int | None = None) -> Self:
        """Find the values of the live rows of a matrix."""
        n_rows, d = matrix.shape
        packed = np.zeros((n_rows, d + 1), dtype=np.uint64)
        parts: list[Floats] = []
        sizes: list[Ints] = []
        offsets = np.zeros(d + 1, dtype=np.int64)
        every = live.size == n_rows
        seed = np.uint64(tape.seed)

        def coded(column: Words) -> tuple[Floats, Ints]:
            """Write hashes and codes in the place of values; return the values, and how many."""
            own = column.view(np.float64)
            values, counts, codes = rank(own if every else own[live])
            hashes = np.empty(values.size, dtype=np.uint64)
            siphash24_integers(seed, _FOR_VALUES, _TAG, values.view(np.uint64), hashes)
            words = (hashes >> _32 << _32) | np.arange(values.size, dtype=np.uint64)
            if every:
                words.take(codes, out=column, mode="clip")  # no code is out of range
            else:
                column[:] = 0
                column[live] = words[codes]
            return values, counts

        for start in range(0, d, _TOGETHER):
            some = slice(start, min(start + _TOGETHER, d))
            columns = np.empty((some.stop - start, n_rows), dtype=np.uint64)
            turn(matrix[:, some], columns.view(np.float64), n_jobs)
            for values, counts in in_threads(coded, columns, n_jobs):
                offsets[len(parts) + 1] = offsets[len(parts)] + values.size
                parts.append(values)
                sizes.append(counts)
            turn(columns.T, packed[:, some].T, n_jobs)
        return cls(np.concatenate(parts), np.concatenate(sizes), offsets, packed)

    @property
    def n_values(self) -> Ints:
        """Number of codes of every column."""
        return np.diff(self.offsets)

    def codes_below(self, features: NDArray[np.int32], thresholds: Floats) -> NDArray[np.int32]:
        """Find the codes of the largest values up to thresholds, of which each has a feature.

        -1 where there are none. No record may have been forgotten.
        """
        codes = np.empty(thresholds.size, dtype=np.int32)
        for j in np.unique(features).tolist():
            own, values = features == j, self.values[self.offsets[j] : self.offsets[j + 1]]
            codes[own] = np.searchsorted(values, thresholds[own], side="right") - 1
        return codes

    def forget(self, rows: Ints) -> None:
        """Overwrite the values of rows."""
        _forget(self.packed, self.offsets, self.counts, self.values, rows)


def turn(table: NDArray[Any], out: NDArray[Any], n_jobs: int | None = None) -> None:
    """Copy a table of shape (n, d) to one of shape (d, n)."""
    for _ in over_rows(lambda rows: _turn(table, out, rows.start, rows.stop), len(table), n_jobs):
        pass


@kernel
def _turn(table: NDArray[Any], out: NDArray[Any], first: int, stop: int) -> None:
    """Copy rows to columns, in blocks that stay in the cache."""
    for start in range(first, stop, _AT_ONCE):
        for j in range(table.shape[1]):
            for i in range(start, min(start + _AT_ONCE, stop)):
                out[j, i] = table[i, j]


@kernel
def _forget(packed: Words, offsets: Ints, counts: Ints, values: Floats, rows: Ints) -> None:
    for i in range(rows.size):
        for j in range(offsets.size - 1):
            place = offsets[j] + np.int64(packed[rows[i], j] & np.uint64(0xFFFFFFFF))
            counts[place] -= 1
            if counts[place] == 0:
                values[place] = np.nan
            packed[rows[i], j] = 0
