"""Tables: rows of values, wherever they lie, with what belongs to the rows of a model.

The law kept here: sums over rows are whole numbers, and merge in any order. So it does not show
where the rows lie, how they are cut into blocks, or how many threads read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce as fold
from itertools import chain
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from erasable.core._grid_kernels import NO_ROWS
from erasable.core._grid_passes import RemoteColumns
from erasable.core._sparse_kernels import column_values
from erasable.core.arrays import Floats, Ints, Ints32, Matrix
from erasable.core.attachment import Attachment
from erasable.core.classes import Classes
from erasable.core.passes import Block, Made, Partial, Pass, Remote, Stored, each_block, run
from erasable.core.row_arrays import PerLiveRow, PerRow
from erasable.core.threads import in_threads, several

__all__ = ["Adder", "Table"]

_VALUES = 2**20
"""Values that are copied at once."""

Adder: TypeAlias = Callable[..., None]
"""Adds rows to sums; arguments: matrix, positions, codes, units, sums, parameters."""


class Table:
    """Rows of a matrix in memory, in files or on workers, with classes and weights.

    Parameters
    ----------
    matrix : ndarray, csr_array or Stored, of shape (n_rows, n_features)
    live_rows : callable, optional
        Returns the positions of the rows that count, ascending; all rows by default.
    classes : Classes, optional
        The classes of the rows.
    weights : erasable.core._weighted_moments.WeightUnits, optional
        The weights of the rows, in quanta.
    targets : ndarray of shape (n_rows, n_targets), float64, optional
        More columns, which follow those of the matrix.
    names : sequence of str, optional
        Names of the columns, for messages.
    n_jobs : int, optional
        Threads of a pass over all rows.

    Examples
    --------
    >>> classes = Classes.fit(np.array([5, 6, 5]), np.arange(3))
    >>> table = Table(np.zeros((3, 1)), classes=classes)
    >>> table.live_rows(), table.codes, table.units(np.array([2]))
    (array([0, 1, 2]), array([0, 1, 0], dtype=int32), array([1]))
    """

    __slots__ = ("_live_rows", "classes", "is_sparse", "is_stored", "matrix", "n_jobs", "names",
                 "targets", "weights")  # fmt: skip

    def __init__(
        self,
        matrix: Any,
        live_rows: Callable[[], Ints] | None = None,
        *,
        classes: Classes | None = None,
        weights: Any = None,
        targets: Floats | None = None,
        names: Sequence[str] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.matrix = matrix
        self._live_rows = live_rows
        self.classes: Any = classes
        self.weights, self.targets = weights, targets
        self.names, self.n_jobs = names, n_jobs
        plain = type(matrix) is np.ndarray  # asked first: a deletion makes a table or two
        self.is_stored: bool = not plain and isinstance(matrix, Stored)
        self.is_sparse: bool = not (plain or self.is_stored) and issparse(matrix)

    @classmethod
    def of(
        cls,
        held: Attachment,
        classes: Classes | None = None,
        weights: Any = None,
        n_jobs: int | None = None,
    ) -> Self:
        """Return the rows of the records that a model holds."""
        records = held.records
        return cls(
            records.matrix, held.live_rows, classes=classes, weights=weights,
            names=records.feature_names, n_jobs=n_jobs,
        )  # fmt: skip

    def live_rows(self) -> Ints:
        """Return the positions of the rows that count, ascending."""
        return np.arange(self.matrix.shape[0]) if self._live_rows is None else self._live_rows()

    @property
    def n_features(self) -> int:
        """Number of columns."""
        width: int = self.matrix.shape[1]
        return width

    @property
    def codes(self) -> Ints32:
        """The codes of the rows' classes."""
        codes: Ints32 = self.classes.codes
        return codes

    def units(self, rows: Ints) -> Ints:
        """Return the weights of rows in quanta; 1 for each row if there are no weights."""
        if self.weights is None:
            return np.ones(rows.size, dtype=np.int64)
        units: Ints = self.weights.units(rows)
        return units

    def some(self, live_rows: Callable[[], Ints]) -> Self:
        """Return the same table, of which other rows count."""
        return type(self)(
            self.matrix, live_rows, classes=self.classes, weights=self.weights,
            targets=self.targets, names=self.names, n_jobs=self.n_jobs,
        )  # fmt: skip

    def run(
        self, pass_: Pass[Partial], rows: Ints | None = None, columns: Sequence[int] | None = None
    ) -> Partial:
        """Run a pass over rows, by default over those that count, and perhaps some columns."""
        chosen = self.live_rows() if rows is None else rows
        return run(pass_, self.matrix, chosen, n_jobs=self.n_jobs, columns=columns)

    def run_dense(
        self, pass_: Pass[Partial], rows: Ints | None = None, columns: Sequence[int] | None = None
    ) -> Partial:
        """Run a pass whose blocks are dense, and have only the chosen columns, in their order."""
        chosen = self.live_rows() if rows is None else rows
        if self.is_stored or not (self.is_sparse or columns):
            return self.run(pass_, chosen, columns)
        blocks = (Block(each, NO_ROWS, True) for each in self._copies(chosen, columns))
        return fold(pass_.merge, map(pass_.of_block, blocks))

    def dense_blocks(self, rows: Ints) -> Iterator[tuple[Matrix, Ints]]:
        """Yield dense matrices in memory that have some rows, with their positions in these."""
        if not self.is_sparse:
            yield self.in_memory(rows)
            return
        for each in self._copies(rows, None):
            yield each, np.arange(each.shape[0])

    def call(self, groups: Iterable[Iterable[Callable[[], Made]]]) -> Iterator[Made]:
        """Call functions on the workers, or in threads, and yield their results, in their order.

        They are pure, and bring along what they need, which is in memory for one group at a time.
        """
        if isinstance(self.matrix, Remote):
            yield from self.matrix.call(chain.from_iterable(groups))
            return
        for group in groups:
            yield from in_threads(_call, group, self.n_jobs)

    def _copies(self, rows: Ints, columns: Sequence[int] | None) -> Iterator[Matrix]:
        """Yield rows in memory, or some of their columns, as dense matrices; one at least."""
        width = self.n_features if columns is None else len(columns)
        step = max(1, _VALUES // max(width, 1))
        for start in range(0, max(rows.size, 1), step):
            some = rows[start : start + step]
            if columns is None:
                yield self.matrix[some].toarray()
                continue
            table = np.zeros((some.size, width), None if self.is_sparse else self.matrix.dtype)
            for place, j in enumerate(columns):
                if self.is_sparse:
                    own = np.zeros(some.size)
                    m = self.matrix
                    column_values(m.data, m.indices, m.indptr, some, j, own)
                    table[:, place] = own
                else:
                    table[:, place] = self.matrix[some, j]
            yield table

    def in_memory(self, rows: Ints) -> tuple[Any, Ints]:
        """Return a matrix in memory that has some rows, and their positions in it."""
        if self.is_stored:
            return self.matrix[rows], np.arange(rows.size)
        return self.matrix, rows

    def reader(self, marker: float | None = None) -> Callable[[int], Floats] | RemoteColumns:
        """Return how `Quantiles` read a column of the rows that count, without gaps.

        Gaps are NaN and what equals `marker`; without a marker, there are none.
        """
        if isinstance(self.matrix, Remote):
            return RemoteColumns(self.matrix, self.live_rows, np.nan if marker is None else marker)
        by_column: list[Any] = []  # of sparse rows; made when the first column is read

        def read(j: int) -> Floats:
            values = self._column(j, by_column, gaps=marker is not None)
            return values if marker is None else values[(values == values) & (values != marker)]

        return read

    def _column(self, j: int, by_column: list[Any], *, gaps: bool) -> Floats:
        """Copy a column of the rows that count."""
        rows = self.live_rows()
        if self.is_stored:
            blocks = each_block(self.matrix, rows, [j], gaps=gaps)
            found = np.concatenate([block.matrix[block.positions, 0] for block in blocks])
            return found.astype(np.float64, copy=False)
        if not self.is_sparse:
            values: Floats = (
                self.matrix[:, j] if rows.size == len(self.matrix) else (self.matrix[rows, j])
            )
            return values.astype(np.float64)
        if not by_column:
            by_column.append(self.matrix[rows].tocsc())
        own = by_column[0]
        column, span = np.zeros(own.shape[0]), slice(*own.indptr[j : j + 2].tolist())
        column[own.indices[span]] = own.data[span]
        return column

    def add(
        self, adder: Adder, rows: Ints, sums: NDArray[Any], *params: Any, few: bool = False
    ) -> None:
        """Add rows to exact sums: all of them in a pass, or a `few` of them.

        `adder` is a function of a module.
        """
        units = self.units(rows)
        if few and self.is_stored:
            near, places = self.in_memory(rows)
            adder(near, places, self.codes[rows], units, sums, *params)
        elif few or self.is_sparse or not (self.is_stored or several(rows.size, self.n_jobs)):
            adder(self.matrix, rows, self.codes, units, sums, *params)
        else:
            sums += self.run(_Adding(adder, self.codes, units, sums, params), rows)


def _call(function: Callable[[], Made]) -> Made:
    return function()


class _Adding(Pass[NDArray[Any]]):
    """Add rows to sums, from zero."""

    def __init__(
        self, adder: Adder, codes: Ints32, units: Ints, sums: NDArray[Any], params: tuple[Any, ...]
    ) -> None:
        self._adder, self._params = adder, params
        self._codes, self._units = PerRow(codes), PerLiveRow(units)
        self._shape, self._dtype = sums.shape, sums.dtype

    def of_block(self, block: Block) -> NDArray[Any]:
        sums = np.zeros(self._shape, self._dtype)
        codes, units = self._codes.of(block), self._units.of(block)
        self._adder(block.matrix, block.positions, codes, units, sums, *self._params)
        return sums

    def merge(self, one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        one += other
        return one
