"""The columns of the records as trees see them: distinct values, their ranks and their hashes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel
from erasable.core._tape_kernels import siphash24_integers
from erasable.core.arrays import Floats, Ints, Ints32, Words
from erasable.core.row_arrays import padded
from erasable.core.tape import Tape
from erasable.core.threads import in_threads, over_rows
from erasable.tree._codes import (
    ColumnCodes,
    are_ranks,
    codes_of,
    lacks,
    leave,
    recode_rows,
    spread,
    take_in,
    values_of,
)
from erasable.tree._layout import ALL_VALUES, ANY_VALUE, GAP, HISTOGRAM
from erasable.tree._rank_kernels import rank

# Second half of SipHash's key, and the first byte of what is hashed; see `erasable.core.tape`.
FOR_VALUES = np.uint64(int.from_bytes(b"values\0\0", "little"))
TAG = np.uint64(ord("f"))
_32 = np.uint64(32)
_AT_ONCE = 64
_TOGETHER = 8
"""Columns that are ranked before they are written beside each other: a line of the cache."""


@dataclass(eq=False, slots=True)
class TreeColumns:
    """Distinct values of every column; an accelerator, of which nothing is in the state.

    >>> columns = TreeColumns.fit(np.array([[0.5], [7.0], [0.5]]), np.arange(3), Tape(0))
    >>> columns.codes.values[0, :2], columns.codes.counts[0, :2]
    (array([0.5, 7. ]), array([2, 1], dtype=int32))
    >>> columns.packed[:, 0] & np.uint64(255)
    array([0, 1, 0], dtype=uint64)
    """

    codes: ColumnCodes  # which values there are, and the codes that stand for them
    # (n_places, n_features + 1); of every value a hash, in the upper 32 bits, and its code. 0 for
    # rows that are not live, and where there are no rows yet. The last column is for the targets.
    packed: Words
    tape: Tape  # from which hashes of values come

    @classmethod
    def fit(cls, matrix: NDArray[Any], live: Ints, tape: Tape, n_jobs: int | None = None) -> Self:
        """Find the values of the live rows of a matrix."""
        n_rows, d = matrix.shape
        packed = np.zeros((n_rows, d + 1), dtype=np.uint64)
        parts: list[tuple[Floats, Ints, int]] = []
        every = live.size == n_rows
        seed = np.uint64(tape.seed)

        def coded(column: Words) -> tuple[Floats, Ints, int]:
            """Write hashes and codes in the place of values.

            Return the values, how many records have each, and how many have none.
            """
            own = column.view(np.float64)
            values, counts, codes, n_gaps = _ranked(own if every else own[live])
            hashes = np.empty(values.size, dtype=np.uint64)
            siphash24_integers(seed, FOR_VALUES, TAG, values.view(np.uint64), hashes)
            words = (hashes >> _32 << _32) | np.arange(values.size, dtype=np.uint64)
            if n_gaps:
                words = np.append(words, np.uint64(GAP))
            if every:
                words.take(codes, out=column, mode="clip")  # no code is out of range
            else:
                column[:] = 0
                column[live] = words[codes]
            return values, counts, n_gaps

        for start in range(0, d, _TOGETHER):
            some = slice(start, min(start + _TOGETHER, d))
            columns = np.empty((some.stop - start, n_rows), dtype=np.uint64)
            turn(matrix[:, some], columns.view(np.float64), n_jobs)
            parts.extend(in_threads(coded, columns, n_jobs))
            turn(columns.T, packed[:, some].T, n_jobs)
        codes = codes_of([(values, counts) for values, counts, _ in parts])
        codes.n_gaps[:] = [n_gaps for _, _, n_gaps in parts]
        return cls(codes, packed, tape)

    def codes_below(self, features: NDArray[np.int32], thresholds: Floats) -> NDArray[np.int32]:
        """Find the codes of the largest values up to thresholds, of which each has a feature.

        -1 where there are none; `ALL_VALUES` for `ANY_VALUE`. Since `fit` no record may have come
        or gone.
        """
        codes = np.empty(thresholds.size, dtype=np.int32)
        for j in np.unique(features).tolist():
            own, values = features == j, values_of(self.codes, j)
            codes[own] = np.searchsorted(values, thresholds[own], side="right") - 1
        codes[thresholds == ANY_VALUE] = ALL_VALUES
        return codes

    def forget(self, rows: Ints) -> None:
        """Overwrite the values of rows."""
        leave(self.codes, self.packed, rows)

    def make_room(self, n_rows: int) -> None:
        """Have places for so many rows; what lay elsewhere is overwritten."""
        self.packed = padded(self.packed, n_rows)

    def take(
        self, matrix: NDArray[Any], rows: Ints, live_rows: Callable[[], Ints]
    ) -> Iterator[tuple[ColumnCodes, Ints32, NDArray[np.bool_]]]:
        """Take new rows of a matrix in, for which there are places.

        `live_rows` returns the rows there are, with the new ones.

        Whenever values get other codes, yield the codes that were, the other ones, and which
        columns have them; see `erasable.tree._codes.spread`.
        """
        d = self.packed.shape[1] - 1
        values = np.ascontiguousarray(matrix[rows], dtype=np.float64)
        hashes = np.empty((rows.size, d), dtype=np.uint64)
        siphash24_integers(
            np.uint64(self.tape.seed), FOR_VALUES, TAG, values.view(np.uint64).reshape(-1),
            hashes.reshape(-1),
        )  # fmt: skip
        done, n_cells = 0, rows.size * d
        while (done := take_in(self.codes, self.packed, rows, values, hashes, done)) < n_cells:
            columns = np.zeros(d, dtype=np.bool_)
            columns[done % d] = True
            columns |= self._are_soon_in_need(values[done // d :])
            before = self.codes
            self.codes, other = spread(before, columns)
            there = np.setdiff1d(live_rows(), rows[done // d :], assume_unique=True)
            own = columns & (np.arange(d) < done % d)
            recode_rows(before, other, columns, self.packed, there)
            recode_rows(before, other, own, self.packed, rows[done // d : done // d + 1])
            yield before, other, columns

    def _are_soon_in_need(self, values: Floats) -> NDArray[np.bool_]:
        """Tell of each long column whether it was never spread, and has no code for some value."""
        found = are_ranks(self.codes) & (self.codes.n_codes > HISTOGRAM)
        for j in np.flatnonzero(found).tolist():
            found[j] = lacks(self.codes, j, values[:, j])
        return found


def _ranked(column: Floats) -> tuple[Floats, Ints, NDArray[np.int32], int]:
    """Rank values as `rank` does; gaps have the rank behind all values. Return how many they are.

    >>> _ranked(np.array([np.nan, 7.0, 0.5]))
    (array([0.5, 7. ]), array([1, 1]), array([2, 1, 0], dtype=int32), 1)
    """
    values, counts, codes = rank(column)
    if not np.isnan(values[[0, -1]]).any():  # gaps are sorted by their bits, to either end
        return values, counts, codes, 0
    there = ~np.isnan(column)
    values, counts, told = rank(column[there])
    codes = np.full(column.size, values.size, dtype=np.int32)
    codes[there] = told
    return values, counts, codes, int(column.size - told.size)


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
