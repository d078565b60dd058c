"""The distinct values of every column, and the codes that stand for them.

Codes ascend as values do, and trees only compare codes: the model does not depend on which codes
there are. The values of a stretch of codes lie in one bucket, ascending. After `fit` codes are
ranks and buckets are full; when a new value finds no free code, the codes of its column are spread,
with free ones between them. All missing values, the gaps, have one code, which is not spread.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import inlined, kernel
from erasable.core.arrays import Floats, Ints, Ints32, Words
from erasable.tree._layout import ALL_VALUES, GAP

WIDTH = 32
"""Values that a bucket holds, a power of two."""
_FULL = 5  # its logarithm
_FILL = 20  # values in a bucket when codes are spread
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_CODES = ALL_VALUES


class ColumnCodes(NamedTuple):
    """Values and codes of all columns."""

    values: Floats  # (n_buckets, WIDTH); distinct values of live records; 0 where there are none
    # codes, counts: (n_buckets, WIDTH); what stands for each, and how many live records have it
    codes: Ints32
    counts: Ints32
    sizes: Ints32  # (n_buckets,); values in each bucket
    starts: Ints  # (n_features + 1,); where the buckets of each column begin
    shifts: Ints  # (n_features,); code ``c`` of a column is in its bucket ``c >> shift``
    n_codes: Ints  # (n_features,); codes are less than this
    n_gaps: Ints  # (n_features,); how many live records have no value, and the code `GAP`


def codes_of(parts: list[tuple[Floats, Ints]]) -> ColumnCodes:
    """Make codes of the values of every column, which ascend: their ranks. Counts come with them.

    There are no gaps yet.

    >>> codes = codes_of([(np.array([0.5, 7.0]), np.array([3, 1]))])
    >>> codes.codes[0, :2], codes.counts[0, :2], codes.n_codes
    (array([0, 1], dtype=int32), array([3, 1], dtype=int32), array([2]))
    """
    n_buckets = [-(-values.size // WIDTH) for values, _ in parts]
    made = _bare(n_buckets)
    for j, (values, counts) in enumerate(parts):
        own = slice(WIDTH * int(made.starts[j]), WIDTH * int(made.starts[j]) + values.size)
        made.values.reshape(-1)[own] = values
        made.counts.reshape(-1)[own] = counts
        made.codes.reshape(-1)[own] = np.arange(values.size)
        sizes = made.sizes[made.starts[j] : made.starts[j + 1]]
        sizes[:] = WIDTH
        if sizes.size:
            sizes[-1] = values.size - WIDTH * (sizes.size - 1)
        made.n_codes[j] = values.size
    return made


def _bare(n_buckets: list[int]) -> ColumnCodes:
    starts = np.concatenate([[0], np.cumsum(n_buckets, dtype=np.int64)]).astype(np.int64)
    shape = int(starts[-1]), WIDTH
    return ColumnCodes(
        values=np.zeros(shape),
        codes=np.zeros(shape, dtype=np.int32),
        counts=np.zeros(shape, dtype=np.int32),
        sizes=np.zeros(shape[0], dtype=np.int32),
        starts=starts,
        shifts=np.full(len(n_buckets), _FULL, dtype=np.int64),
        n_codes=np.zeros(len(n_buckets), dtype=np.int64),
        n_gaps=np.zeros(len(n_buckets), dtype=np.int64),
    )


def values_of(codes: ColumnCodes, j: int) -> Floats:
    """Return the distinct values of a column, ascending."""
    values: Floats = codes.values[_there(codes, j)]
    return values


def lacks(codes: ColumnCodes, j: int, values: Floats) -> bool:
    """Tell whether a value is not in a column, and no code is free between its neighbours."""
    values, there = values[~np.isnan(values)], _there(codes, j)
    known = codes.values[there]
    ends = np.concatenate([[-1], codes.codes[there], codes.n_codes[j : j + 1]])
    at = np.searchsorted(known, values)
    is_new = np.append(known, np.inf)[at] != values
    return bool((is_new & (ends[at + 1] - ends[at] < 2)).any())


def are_ranks(codes: ColumnCodes) -> NDArray[np.bool_]:
    """Tell of each column whether its codes have not been spread."""
    ranks: NDArray[np.bool_] = codes.shifts == _FULL
    return ranks


def _there(codes: ColumnCodes, j: int) -> tuple[Any, Any]:
    """Return where the values of a column are."""
    first, after = codes.starts[j], codes.starts[j + 1]
    buckets, places = np.nonzero(np.arange(WIDTH) < codes.sizes[first:after, np.newaxis])
    return buckets + first, places


def spread(codes: ColumnCodes, columns: NDArray[np.bool_]) -> tuple[ColumnCodes, Ints32]:
    """Give the values of some columns codes with free ones between them, and places around them.

    All of `codes` but the codes is overwritten. Return the new codes, and for each place of the old
    ones, shape (n_buckets, WIDTH), the new code of its value.
    """
    places = [_there(codes, j) for j in range(columns.size)]
    n_buckets = np.diff(codes.starts)
    for j in np.flatnonzero(columns).tolist():
        used = -(-places[j][0].size // _FILL)
        n_buckets[j] = used + 2 * _margin(used)
    made, other = _bare(n_buckets.tolist()), codes.codes.copy()
    made.n_gaps[:] = codes.n_gaps
    for j in range(columns.size):
        first, after = made.starts[j], made.starts[j + 1]
        if not columns[j]:
            old = slice(codes.starts[j], codes.starts[j + 1])
            made.values[first:after], made.codes[first:after] = codes.values[old], codes.codes[old]
            made.counts[first:after], made.sizes[first:after] = codes.counts[old], codes.sizes[old]
            made.shifts[j], made.n_codes[j] = codes.shifts[j], codes.n_codes[j]
            continue
        ranks = np.arange(places[j][0].size)
        used = -(-ranks.size // _FILL)
        shift = int(_CODES // int(n_buckets[j])).bit_length() - 1
        buckets, within = ranks // _FILL + _margin(used), ranks % _FILL
        found = ((buckets << shift) + within * ((1 << shift) // _FILL)).astype(np.int32)
        target = buckets + first, within
        made.values[target], made.counts[target] = codes.values[places[j]], codes.counts[places[j]]
        made.codes[target] = other[places[j]] = found
        made.sizes[first:after] = np.bincount(buckets, minlength=int(n_buckets[j]))
        made.shifts[j], made.n_codes[j] = shift, int(n_buckets[j]) << shift
    codes.values[:] = 0.0
    return made, other


def _margin(used: int) -> int:
    return used // 8 + 1


@inlined
def place_of(codes: ColumnCodes, f: Any, code: Any) -> tuple[Any, Any]:
    """Return the bucket of a code, and its place there; -1 if no value has it."""
    bucket = codes.starts[f] + (code >> codes.shifts[f])
    place = code & (WIDTH - 1)  # where it is as long as codes are ranks
    if place < codes.sizes[bucket] and codes.codes[bucket, place] == code:
        return bucket, place
    for place in range(codes.sizes[bucket]):
        if codes.codes[bucket, place] == code:
            return bucket, place
    return bucket, -1


@inlined
def _bucket_for(codes: ColumnCodes, f: Any, x: Any) -> Any:
    """Return the last bucket that has a value up to `x`; -1 if none has."""
    low, high = codes.starts[f], codes.starts[f + 1]
    found: Any = -1
    while low < high:
        middle = (low + high) // 2
        some = middle
        while some < high and codes.sizes[some] == 0:
            some += 1
        if some == high:
            high = middle
        elif codes.values[some, 0] <= x:
            found, low = some, some + 1
        else:
            high = middle
    return found


@inlined
def _neighbours(codes: ColumnCodes, f: Any, bucket: Any, place: Any) -> tuple[Any, Any]:
    """Return the codes before and behind a place where a value is to be; limits if none is."""
    lower: Any = -1
    upper: Any = codes.n_codes[f]
    if place > 0:
        lower = np.int64(codes.codes[bucket, place - 1])
    after = bucket
    while after >= 0 and after < codes.starts[f + 1]:
        if after > bucket and codes.sizes[after]:
            return lower, np.int64(codes.codes[after, 0])
        if after == bucket and place < codes.sizes[bucket]:
            return lower, np.int64(codes.codes[bucket, place])
        after += 1
    if bucket < 0:
        after = codes.starts[f]
        while after < codes.starts[f + 1] and codes.sizes[after] == 0:
            after += 1
        if after < codes.starts[f + 1]:
            upper = np.int64(codes.codes[after, 0])
    return lower, upper


@inlined
def _choose(codes: ColumnCodes, f: Any, lower: Any, upper: Any) -> Any:
    """Return a code between two others, -1 if there is none."""
    step = max((1 << codes.shifts[f]) // _FILL, 1)
    if upper == codes.n_codes[f] and lower >= 0:
        return lower + min(step, upper - lower - 1) if upper - lower > 1 else -1
    if lower < 0 and upper < codes.n_codes[f]:
        return upper - min(step, upper) if upper > 0 else -1
    return (lower + upper) // 2 if upper - lower > 1 else -1


@inlined
def _insert(codes: ColumnCodes, f: Any, x: Any) -> Any:
    """Count one more record of a value; return its code, or -1 if there is no room for it."""
    bucket, place = _bucket_for(codes, f, x), 0
    if bucket >= 0:
        while place < codes.sizes[bucket] and codes.values[bucket, place] < x:
            place += 1
        if place < codes.sizes[bucket] and codes.values[bucket, place] == x:
            codes.counts[bucket, place] += 1
            return np.int64(codes.codes[bucket, place])
    lower, upper = _neighbours(codes, f, bucket, place)
    code = _choose(codes, f, lower, upper)
    if code < 0:
        return code
    bucket = codes.starts[f] + (code >> codes.shifts[f])
    n = codes.sizes[bucket]
    if n == WIDTH:
        return np.int64(-1)
    place = n
    while place > 0 and codes.codes[bucket, place - 1] > code:
        codes.values[bucket, place] = codes.values[bucket, place - 1]
        codes.codes[bucket, place] = codes.codes[bucket, place - 1]
        codes.counts[bucket, place] = codes.counts[bucket, place - 1]
        place -= 1
    codes.values[bucket, place], codes.codes[bucket, place] = x, code
    codes.counts[bucket, place] = 1
    codes.sizes[bucket] = n + 1
    return code


@kernel
def take_in(
    codes: ColumnCodes, packed: Words, rows: Ints, values: Floats, hashes: Words, start: int
) -> int:
    """Write hashes and codes of new rows, from cell `start` on.

    Cells are numbered row by row. Return the one for which there was no room; the number of cells
    if there was for all.
    """
    d = codes.shifts.size
    for cell in range(start, rows.size * d):
        i, f = cell // d, cell % d
        if np.isnan(values[i, f]):
            codes.n_gaps[f] += 1
            packed[rows[i], f] = np.uint64(GAP)
            continue
        code = _insert(codes, f, values[i, f])
        if code < 0:
            return cell
        packed[rows[i], f] = (hashes[i, f] >> _32 << _32) | np.uint64(code)
    return rows.size * d


@kernel
def leave(codes: ColumnCodes, packed: Words, rows: Ints) -> None:
    """Overwrite rows, and the values that no record has any more."""
    for i in range(rows.size):
        for f in range(codes.shifts.size):
            code = np.int64(packed[rows[i], f] & _LOW)
            packed[rows[i], f] = 0
            if code == GAP:
                codes.n_gaps[f] -= 1
                continue
            bucket, place = place_of(codes, f, code)
            codes.counts[bucket, place] -= 1
            if codes.counts[bucket, place]:
                continue
            last = codes.sizes[bucket] - 1
            for k in range(place, last):
                codes.values[bucket, k] = codes.values[bucket, k + 1]
                codes.codes[bucket, k] = codes.codes[bucket, k + 1]
                codes.counts[bucket, k] = codes.counts[bucket, k + 1]
            codes.values[bucket, last], codes.codes[bucket, last] = 0.0, 0
            codes.counts[bucket, last] = 0
            codes.sizes[bucket] = last


@kernel
def recode_rows(
    codes: ColumnCodes, other: Ints32, columns: NDArray[np.bool_], packed: Words, rows: Ints
) -> None:
    """Write the codes that values have now into some rows."""
    for i in range(rows.size):
        for f in range(columns.size):
            word = packed[rows[i], f]
            if columns[f] and np.int64(word & _LOW) != GAP:
                bucket, place = place_of(codes, f, np.int64(word & _LOW))
                packed[rows[i], f] = (word >> _32 << _32) | np.uint64(other[bucket, place])
