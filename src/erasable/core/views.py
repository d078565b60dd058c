"""Attachments to records that show other values for them: a table that a pipeline has made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from erasable.core.arrays import Values
from erasable.core.attachment import Attachment, HeldRecords
from erasable.core.inputs import RecordArrays
from erasable.core.records import Records


class _Table(Records):
    """Other values for the same records, with the same ids and attachments."""

    def __init__(self, records: HeldRecords, matrix: Values | Callable[[], Values]) -> None:
        self.__dict__.update(records.__dict__)
        self.__dict__.pop("matrix", None)
        self._matrix = matrix
        self.feature_names = self.numeric = self.types = None
        self._id_index = self._group_index = self._id_set = None  # kept by the records alone

    @classmethod
    def from_table(cls, table: RecordArrays) -> Any:
        """Make records of their own."""
        return Records.from_table(table)

    def _kept_index(self) -> None:
        """Keep no index in files."""

    @property
    def matrix(self) -> Values:
        """The values, made when they are first read."""
        if callable(self._matrix):
            self._matrix = self._matrix()
        return self._matrix

    @matrix.setter
    def matrix(self, matrix: Values) -> None:
        self._matrix = matrix

    @property
    def made(self) -> Values | None:
        """The values, where they were made and are not read from elsewhere."""
        matrix = self._matrix
        return matrix if isinstance(matrix, np.ndarray | csr_array) else None


class View(Attachment):
    """An attachment to records that shows a table made of them, row by row.

    The pipeline's attachment alone excludes and releases rows, and overwrites those of the table.
    """

    records: _Table

    def __init__(self, held: Attachment, matrix: Values | Callable[[], Values]) -> None:
        # One row of the matrix for each of the records, blank where not live; perhaps made later.
        self.held = held
        self.vouched = held.vouched
        self.show(matrix)

    def show(self, matrix: Values | Callable[[], Values]) -> None:
        """Show a table of the records as they are now, which may have other arrays than before."""
        before = self.__dict__.get("records")
        self.records, self.live = _Table(self.held.records, matrix), self.held.live
        if before is not None:
            self.records.feature_names, self.records.numeric = before.feature_names, before.numeric
            self.records.types = before.types

    def _after_reading(self) -> None:
        """Register no finalizer, which would keep a table that is not shown any more."""
        self.records._holders = self.held.records._holders

    @property
    def column_names(self) -> list[str] | None:
        """See `Attachment`; those of the records, where these are shown behind a map."""
        own = self.held.records
        shown = not own.is_stored and self.records.made is own.matrix
        return self.held.column_names if shown else self.records.feature_names

    def id_set(self) -> NDArray[np.uint64]:
        """See `Attachment`."""
        return self.held.id_set()

    @property
    def n_live(self) -> int:  # type: ignore[override]
        """Number of live rows."""
        return self.held.n_live
