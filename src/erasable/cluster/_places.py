"""Positions of the records in a run, and room for those that come."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Flags, Ints, Words
from erasable.core.kept import Kept

from ._distances import Points
from ._filed_levels import renumber_files
from ._layout import Files, Levels
from ._seeding import Seeding

_SPARE = 8  # one position in so many is free, where room is made
_LEAST_SPARE = 16


class Placed(Kept):
    """The half of `LloydRun` that knows at which position each record is.

    Positions of a new run are in the order of their rows. A record that comes later takes the next
    free position at the end; where there is none, those of deleted records are given up, and all
    are in the order of their rows again.

    Attributes
    ----------
    points : Points
        The records.
    alive : ndarray of bool
        Which positions hold a record.
    n_alive : int
    levels : Levels
    seeding : Seeding
    """

    points: Points
    alive: Flags
    n_alive: int
    levels: Levels
    seeding: Seeding
    _files: Files
    _filed: bool
    _built: int
    _picks: Ints
    _n_placed: int
    _n_sorted: int

    def live(self) -> Ints:
        """Positions that are left."""
        return np.flatnonzero(self.alive)

    def positions(self, rows: Ints) -> Ints:
        """Return the positions of rows that are left."""
        initial = self.points.rows[: self._n_sorted]
        if initial.size == self.points.X.shape[0]:
            found = rows.copy()
        else:
            found = np.minimum(np.searchsorted(initial, rows), max(initial.size - 1, 0))
        if self._n_placed == self._n_sorted:
            return found
        later = ~self.alive[found] | (self.points.rows[found] != rows)
        if later.any():
            others = self._n_sorted + np.flatnonzero(self.alive[self._n_sorted : self._n_placed])
            order = others[np.argsort(self.points.rows[others])]
            found[later] = order[np.searchsorted(self.points.rows[order], rows[later])]
        return found

    def show(self, X: NDArray[Any], keys: Words) -> None:
        """Know where the rows are now, and others beside them."""
        self.points = self.points._replace(X=X, keys=keys)

    def _take_places(self, rows: Ints) -> Ints:
        """Return positions for rows that come, which are alive from now on; there is room."""
        come = np.arange(self._n_placed, self._n_placed + rows.size)
        self.points.rows[come] = rows
        self.alive[come] = True
        self.n_alive += rows.size
        self._n_placed += rows.size
        return come

    def _make_room(self, n_new: int) -> None:
        """Have free positions at the end, for which those of deleted records may be given up."""
        if self._n_placed + n_new <= self.alive.size:
            return
        live = self.live()
        rows = self.points.rows[live]
        order = np.argsort(rows)
        live, rows = live[order], rows[order]
        n = live.size
        size = n + n_new + max(_LEAST_SPARE, (n + n_new) // _SPARE)
        places = np.zeros(self.alive.size, np.int64)
        places[live] = np.arange(n)
        before = self.levels
        per_record = {
            name: np.zeros((array.shape[0], size), array.dtype)
            for name, array in before._asdict().items()
            if name in ("labels", "bounds", "links")
        }
        for name, array in per_record.items():
            array[:, :n] = getattr(before, name)[:, live]
        self.levels = before._replace(**per_record)
        if self._filed:
            renumber_files(places, self.alive, self._built, before, self.levels, self._files)
        self.seeding.renumber(places)
        self.points = self.points._replace(rows=np.zeros(size, np.int64))
        self.points.rows[:n] = rows
        self.alive = np.arange(size) < n
        self._picks = np.zeros(size if self._picks.size else 0, np.int64)
        self._n_placed = self._n_sorted = n
