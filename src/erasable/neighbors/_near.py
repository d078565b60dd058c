"""Lists of the records that are near each record, which a deletion leaves without a trace.

They are an accelerator: which rows a list has is a function of the records, and their order in it
is not.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import erasable.neighbors._near_kernels as kernels
from erasable.core.arrays import Floats, Ints, Ints32
from erasable.core.errors import MagnitudeError

MOST_NEAR = 2**29
"""Most neighbours of all records together: 2 GiB of them."""

Lists = tuple[Ints, Ints]
"""Numbers of neighbours of some rows, and the neighbours, one row after another."""


class Near:
    """The rows within a distance of every live row, itself among them.

    `limit` is the square of the distance, and `inverse` what differences are multiplied by. Those
    of row i are ``rows[starts[i] : starts[i] + counts[i]]``; a row that is not live has none.
    """

    def __init__(self, n_rows: int, limit: float, inverse: Floats | None) -> None:
        self.limit, self.inverse = limit, inverse
        self.starts, self.counts = np.zeros((2, n_rows), dtype=np.int64)
        self.rows: Ints32 = np.empty(0, dtype=np.int32)

    def is_of(self, limit: float, inverse: Floats | None) -> bool:
        """Tell whether it is of this distance."""
        if inverse is None or self.inverse is None:
            return limit == self.limit and inverse is self.inverse
        return limit == self.limit and np.array_equal(inverse, self.inverse)

    def add(self, own: Ints, found: Iterable[Lists], n_rows: int) -> None:
        """Take in new rows, ascending, with their neighbours among all live rows."""
        counts, rows = self._read(own, found)
        before = np.zeros(n_rows, dtype=np.int64)
        before[: self.counts.size] = self.counts
        is_new = np.zeros(n_rows, dtype=np.bool_)
        is_new[own] = True
        joined = np.flatnonzero(~is_new[rows])  # entries that name others, whose lists get longer
        after = before + np.bincount(rows[joined], minlength=n_rows)
        after[own] = counts
        starts = np.cumsum(after) - after
        if counts.sum() == after.sum():  # there are no others
            self.starts, self.counts, self.rows = starts, after, rows
            return
        held = np.empty(int(after.sum()), dtype=np.int32)
        kernels.copy_lists(self.starts, self.counts, self.rows, starts, held)
        held[_places(starts[own], counts)] = rows
        order = joined[np.argsort(rows[joined], kind="stable")]
        more = np.where(is_new, 0, after - before)
        held[_places(starts + before, more)] = np.repeat(own, counts)[order]
        self.starts, self.counts, self.rows = starts, after, held

    def _read(self, own: Ints, found: Iterable[Lists]) -> tuple[Ints, Ints32]:
        total, numbers, lists = int(self.counts.sum()), [], []
        for counts, rows in found:
            total += rows.size
            if total > MOST_NEAR:
                raise MagnitudeError(
                    f"the records have more than {MOST_NEAR} neighbours in all, which would need "
                    f"more than {MOST_NEAR * 4 / 2**30:g} GiB; expected fewer; choose a smaller eps"
                )
            numbers.append(counts)
            lists.append(rows.astype(np.int32))
        empty = np.empty(0, dtype=np.int32)
        return np.concatenate([own[:0], *numbers]), np.concatenate([empty, *lists])

    def remove(self, rows: Ints) -> None:
        """Forget rows, and overwrite where they were in lists."""
        kernels.leave_lists(rows, self.starts, self.counts, self.rows)

    def moved(self, rows: Ints) -> Near:
        """Return the lists of the same records where they lie in another place, in this order."""
        place = np.zeros(self.counts.size, dtype=np.int32)
        place[rows] = np.arange(rows.size)
        made = Near(rows.size, self.limit, self.inverse)
        made.counts = self.counts[rows]
        made.starts = np.cumsum(made.counts) - made.counts
        made.rows = place[self.rows[_places(self.starts[rows], made.counts)]]
        return made


def _places(starts: Ints, counts: Ints) -> Ints:
    """Return the places of several lists, one after the other."""
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(int(counts.sum()))
