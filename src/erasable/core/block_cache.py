"""Rows of a stored matrix that were read last."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from erasable.core.arrays import Ints, Matrix


class LastRead(NamedTuple):
    """Rows that were read last: a deletion reads them several times, or some of them."""

    rows: Ints  # ascending
    values: Matrix

    def of(self, rows: Ints) -> Matrix | None:
        """Return the values of rows; None if others are among them, or they are in no order."""
        if np.array_equal(self.rows, rows):
            return self.values
        places = np.searchsorted(self.rows, rows)
        if rows.size == 0 or places.max() >= self.rows.size:
            return None
        return self.values[places] if np.array_equal(self.rows[places], rows) else None
