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
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import issparse

from erasable.core._grid_kernels import NO_ROWS
from erasable.core._grid_passes import RemoteColumns
from erasable.core._sparse_kernels import column_values
from erasable.core.arrays import Flags, Floats, Ints, Ints32, Matrix
from erasable.core.attachment import Attachment
from erasable.core.classes import Classes
from erasable.core.errors import DetachedError, InvalidDataError
from erasable.core.messages import refuse_not_finite
from erasable.core.passes import Block, Made, Partial, Pass, Stored, run, storage
from erasable.core.row_arrays import PerLiveRow, PerRow
from erasable.core.threads import in_threads, several

__all__ = ["Adder", "RecordRows", "Table"]

_VALUES = 2**20
"""Values that are copied at once."""

Adder: TypeAlias = Callable[..., None]
"""Adds rows to sums; arguments: matrix, positions, codes, units, parameters, sums.

For sparse rows the matrix is (data, indices, indptr).
"""


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

    @classmethod
    def over(cls, rows: Any) -> Table:
        """Return the table of a matrix, or of rows of records."""
        return rows.table() if isinstance(rows, RecordRows) else cls(rows)

    def live_rows(self) -> Ints:
        """Return the positions of the rows that count, ascending."""
        return np.arange(self.matrix.shape[0]) if self._live_rows is None else self._live_rows()

    @property
    def n_features(self) -> int:
        """Number of columns."""
        width: int = self.matrix.shape[1]
        return width

    @property
    def is_remote(self) -> bool:
        """Whether rows are in other processes, which run whole passes."""
        return storage(self.matrix).is_remote

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

    def without(self, rows: Ints) -> Self:
        """Return the same table, of which some rows that count do not."""
        if rows.size == 0:
            return self
        return self.some(lambda: np.setdiff1d(self.live_rows(), rows, assume_unique=True))

    def run(
        self, pass_: Pass[Partial], rows: Ints | None = None, columns: Sequence[int] | None = None
    ) -> Partial:
        """Run a pass over rows, by default over those that count, and perhaps some columns."""
        if rows is None and self._live_rows is not None:
            rows = self._live_rows()
        return run(pass_, self.matrix, rows, n_jobs=self.n_jobs, columns=columns)

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
        if self.is_remote:
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
        return self.matrix.in_memory(rows) if self.is_stored else (self.matrix, rows)

    def reader(self, marker: float | None = None) -> Callable[[int], Floats] | RemoteColumns:
        """Return how `Quantiles` read a column of the rows that count, without gaps.

        Gaps are NaN and what equals `marker`; without a marker, there are none.
        """
        if self.is_remote:
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
            blocks = storage(self.matrix).blocks(rows, [j], gaps=gaps)
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
        self, adder: Adder, rows: Ints, sums: NDArray[Any], *params: Any,
        sparse: Adder | None = None, few: bool = False,
    ) -> None:  # fmt: skip
        """Add rows to exact sums: all of them in a pass, or a `few` of them.

        `adder` is a function of a module; `sparse` is the one for sparse rows.
        """
        units = self.units(rows)
        if self.is_sparse and sparse is not None:
            m = self.matrix
            sparse(m.data, m.indices, m.indptr, rows, self.codes, units, *params, sums)
        elif few and self.is_stored:
            near, places = self.in_memory(rows)
            adder(near, places, self.codes[rows], units, *params, sums)
        elif few or not (self.is_stored or several(rows.size, self.n_jobs)):
            adder(self.matrix, rows, self.codes, units, *params, sums)
        else:
            sums += self.run(_Adding(adder, self.codes, units, sums, params), rows)


class RecordRows:
    """Rows of `Records` of numbers, wherever they lie; nothing of them is copied or held.

    `rows` are the ascending positions of the rows that count. They are refused once a record has
    been deleted or added, as positions would then be those of other records. `dtype` is that of
    copies, float64 or float32.

    Examples
    --------
    >>> from erasable import Records
    >>> RecordRows(Records([[1.0], [2.0], [3.0]]), np.array([0, 2]))[[1]]
    array([[3.]])
    """

    ndim = 2

    def __init__(self, records: Any, rows: Ints) -> None:
        self._records = records
        self._n_then = len(records), records.n_rows
        self.rows = rows
        self.shape = rows.size, records.n_features
        self.dtype = records.matrix.dtype

    @classmethod
    def of(cls, records: Any, because: str) -> Self:
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
        if not records.is_stored and not np.isfinite(matrix.sum()):
            names = records.feature_names or [f"{j}" for j in range(matrix.shape[1])]
            refuse_not_finite(matrix[rows], names)
        return cls(records, rows)

    @property
    def records(self) -> Any:
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

    def table(self, n_jobs: int | None = None) -> Table:
        """Return the table of the rows, which is not to be kept."""
        return Table(self.records.matrix, lambda: self.rows, n_jobs=n_jobs)

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

    def __len__(self) -> int:
        return int(self.rows.size)

    def __getitem__(self, places: Any) -> Matrix:
        """Copy rows at positions among these, in this order; those in files are read."""
        matrix, chosen = self.records.matrix, self.rows[places]
        if chosen.size == 0:
            return np.empty((0, self.shape[1]), self.dtype)
        found: Matrix = np.ascontiguousarray(matrix[chosen], self.dtype)
        storage(matrix).drop_copies()
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the records."""
        return {**self.__dict__, "_records": None}


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
        self._adder(block.matrix, block.positions, codes, units, *self._params, sums)
        return sums

    def merge(self, one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        one += other
        return one
