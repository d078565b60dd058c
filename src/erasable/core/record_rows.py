"""Rows of records that hold numbers, read from where they are stored.

The law kept here: rows are named by their positions among the records at the start, and are refused
once a record has been deleted or added, as the positions would then be those of other records.
Nothing is copied or held: a record that all models have deleted is overwritten.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import issparse

from erasable.core.arrays import Flags, Ints, Matrix
from erasable.core.errors import DetachedError, InvalidDataError
from erasable.core.messages import refuse_not_finite
from erasable.core.passes import Partial, Pass, Stored, run
from erasable.core.records import Records

__all__ = ["RecordRows", "located"]


class RecordRows:
    """Rows of `Records` of numbers, in memory, in files or on workers.

    `rows` are the ascending positions of the rows that count; no model has deleted one. `dtype` is
    that of copies, float64 or float32.
    """

    ndim = 2

    def __init__(self, records: Records, rows: Ints) -> None:
        self._records: Records | None = records
        self._n_then = len(records), records.n_rows
        self.rows = rows
        self.shape = rows.size, records.n_features
        self.dtype = records.matrix.dtype

    @classmethod
    def of(cls, records: Records, because: str) -> Self:
        """Take the rows that no model has deleted.

        Raise InvalidDataError for text, a sparse matrix or, in memory, gaps (passes refuse others);
        `because` says in the message why they have to be numbers.
        """
        matrix = records.matrix
        if matrix.dtype == object or issparse(matrix):
            raise InvalidDataError(
                f"the records hold text, or are sparse; expected a dense table of numbers, because "
                f"{because}"
            )
        rows = records.attach().live_rows()
        if not isinstance(matrix, Stored) and not np.isfinite(matrix.sum()):
            names = records.feature_names or [f"{j}" for j in range(matrix.shape[1])]
            refuse_not_finite(matrix[rows], names)
        return cls(records, rows)

    @property
    def records(self) -> Records:
        """The records; raise DetachedError if some were deleted or added, or after unpickling."""
        if self._records is None:
            raise DetachedError(
                "the records are not at hand, because this was unpickled; expected an object that "
                "was fitted here; fit it again"
            )
        if (len(self._records), self._records.n_rows) != self._n_then:
            raise DetachedError(
                f"there were {self._n_then[0]} records, and there are {len(self._records)}; "
                "expected those of the fit; fit it again"
            )
        return self._records

    @property
    def is_read(self) -> bool:
        """Whether each pass reads files."""
        return isinstance(self.records.matrix, Stored)

    def some(self, chosen: Flags | Ints) -> Self:
        """Return some of the rows, by a mask or ascending positions among these."""
        made = type(self)(self.records, self.rows[chosen])
        made.dtype = self.dtype
        return made

    def astype(self, dtype: DTypeLike, copy: bool = False) -> Self:
        """Return the same rows, copied as another dtype."""
        made = type(self)(self.records, self.rows)
        made.dtype = np.dtype(dtype)
        return made

    def run(self, pass_: Pass[Partial], n_jobs: int | None = None) -> Partial:
        """Run a pass over the rows."""
        return run(pass_, self.records.matrix, self.rows, n_jobs=n_jobs)

    def __len__(self) -> int:
        return int(self.rows.size)

    def __getitem__(self, places: Any) -> Matrix:
        """Copy rows at positions among these, in this order; those in files are read."""
        matrix, chosen = self.records.matrix, self.rows[places]
        if chosen.size == 0:
            return np.empty((0, self.shape[1]), self.dtype)
        found: Matrix = np.ascontiguousarray(matrix[chosen], self.dtype)
        if isinstance(matrix, Stored):
            matrix.drop_copies()
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the records."""
        return {**self.__dict__, "_records": None}


def located(rows: Any) -> tuple[Any, Ints | None]:
    """Return the matrix that rows are read from, and their positions; None for all of it."""
    return (rows.records.matrix, rows.rows) if isinstance(rows, RecordRows) else (rows, None)
