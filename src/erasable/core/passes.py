"""Passes over records, block by block: in memory, in threads, or where the records are stored.

The law kept here: the results of a pass are exact integers, extremes and counts. Partial results
merge in any order, so the numbers of blocks and of threads do not show in them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce as fold
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from erasable.core._grid_kernels import NO_ROWS
from erasable.core.arrays import Flags, Floats, Ints, Matrix
from erasable.core.row_arrays import RowArray
from erasable.core.threads import in_threads, n_threads

__all__ = [
    "Block",
    "Pass",
    "Remote",
    "Some",
    "Stored",
    "Together",
    "each_block",
    "rows_in_memory",
    "run",
]


class Block(NamedTuple):
    """Rows of a pass, in memory.

    Attributes
    ----------
    matrix : ndarray of shape (n_rows, n_features)
        Contiguous, or of shape (n_rows, n_columns) where the pass needs few of stored columns.
    rows : ndarray of int64
        Positions in `matrix` of the rows that count, where not `every` one does.
    every : bool
    first : int
        Position of the first row of `matrix` among all rows.
    rank : int
        How many rows that count are in blocks before this.
    columns : tuple of int, or None
        Which columns `matrix` has; None for all.
    parts : mapping of str to ndarray, or None
        The parts of row arrays, by their names, where nothing else is at hand of them.

    Examples
    --------
    >>> block = Block(np.zeros((3, 2)), np.array([0, 2]), False, first=10)
    >>> block.size, block.positions.tolist()
    (2, [0, 2])
    """

    matrix: Matrix
    rows: Ints
    every: bool
    first: int = 0
    rank: int = 0
    columns: tuple[int, ...] | None = None
    parts: Mapping[str, Any] | None = None

    @property
    def size(self) -> int:
        """Number of rows that count."""
        return int(self.matrix.shape[0] if self.every else self.rows.size)

    @property
    def positions(self) -> Ints:
        """Positions in `matrix` of the rows that count."""
        return np.arange(self.matrix.shape[0]) if self.every else self.rows

    def of(self, column: Any) -> Any:
        """Return the part of an array of all rows that belongs to the rows of `matrix`."""
        return column[self.first : self.first + self.matrix.shape[0]]

    def place(self, column: int) -> int:
        """Return the position of a column in `matrix`."""
        return column if self.columns is None else self.columns.index(column)


_VALUES = 2**20
"""Values of a block of a matrix in memory: one or two milliseconds of a thread."""

Partial = TypeVar("Partial")
Made = TypeVar("Made")


class Stored:
    """A matrix of finite numbers that is not in memory, but can be read in blocks of rows.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    dtype : dtype
        float64 or float32.
    starts : ndarray of shape (n_blocks + 1,), int64
        Where blocks begin, and at last the number of rows.
    lasting : bool
        Whether a model's files may refer to what it reads, in the place of a copy.
    gone : ndarray of shape (n_rows,), bool, or None
        Rows that were forgotten; None while there are none.

    Examples
    --------
    >>> class Halves(Stored):
    ...     shape, dtype, starts = (4, 1), np.dtype(float), np.array([0, 2, 4])
    ...     def block(self, number, columns=None):
    ...         return np.full((2, 1), float(number))
    >>> Halves().take(np.array([1, 3])).block(1)
    array([[1.]])
    """

    ndim = 2
    lasting = False
    gone: Flags | None = None
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    starts: Ints

    def block(
        self, number: int, columns: Sequence[int] | None = None, *, gaps: bool = False
    ) -> Any:
        """Read the rows of a block: all columns, or some of them, in this order.

        Gaps (NaN) are refused, unless they may be there. Of objects, blocks are `_mixed.Mixed`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement block()")

    def read_block(
        self, number: int, live_rows: Ints | None, columns: Sequence[int] | None, gaps: bool
    ) -> Block:
        """Read a block with the rows in it that count.

        Parameters
        ----------
        number : int
        live_rows : ndarray of int64, or None
            Positions of the rows that count, ascending; None for all.
        columns : sequence of int, or None
        gaps : bool
            Whether values may be NaN.
        """
        first, stop = self.starts[number : number + 2].tolist()
        own, rank = NO_ROWS, first
        if live_rows is not None:
            rank, end = np.searchsorted(live_rows, (first, stop)).tolist()
            own = live_rows[rank:end] - first
        every = live_rows is None or own.size == stop - first
        chosen = None if columns is None else tuple(columns)
        if not every and own.size == 0:  # nothing of it counts
            width = self.shape[1] if chosen is None else len(chosen)
            return Block(np.empty((0, width), self.dtype), own, False, first, rank, chosen)
        values = self.block(number, chosen, gaps=True) if gaps else self.block(number, chosen)
        return Block(values, NO_ROWS if every else own, every, first, rank, chosen)

    def __getitem__(self, rows: Any) -> Any:
        """Read rows at some positions, in this order."""
        raise NotImplementedError(f"{type(self).__name__} does not implement __getitem__()")

    def whole(self) -> Any:
        """Read all rows, as an array; those that were forgotten are blank."""
        mixed, numbers = self.dtype == object, np.flatnonzero(np.diff(self.starts)).tolist()
        blocks = [self.block(number, gaps=True) for number in numbers]
        parts = [block.objects() if mixed else block for block in blocks]
        table: Any = np.concatenate([np.empty((0, self.shape[1]), self.dtype), *parts])
        if self.gone is not None:
            table[self.gone] = "" if mixed else 0
        return table

    @property
    def kinds(self) -> str:
        """Kinds of the columns, see `erasable.core.stored_table.kinds_of`; "" if unknown."""
        return ""

    def bounds(self) -> tuple[Floats, Floats] | None:
        """Return the stated lowest and highest values of each column, which may be wrong."""
        return None

    def prepare(self, rows: Ints) -> None:
        """Read rows before they are deleted; raise if these or others cannot be read any more."""

    def forget(self, rows: Ints) -> None:
        """Keep no copy of rows that no model holds any more."""
        if self.gone is None:
            self.gone = np.zeros(self.shape[0], dtype=np.bool_)
        self.gone[rows] = True
        self.drop_copies()

    def drop_copies(self) -> None:
        """Keep no rows that were read."""

    def memory(self) -> list[Any]:
        """Return the arrays of this process that hold rows of it alone."""
        return []

    def take(self, rows: Ints) -> Stored:
        """Return a matrix of some rows, ascending, which stay where they are."""
        return Some(self, rows)


class Some(Stored):
    """Some rows of a matrix, ascending, which stay where they are.

    Examples
    --------
    >>> class Halves(Stored):
    ...     shape, dtype, starts = (4, 1), np.dtype(float), np.array([0, 2, 4])
    >>> Some(Halves(), np.array([1, 3])).shape
    (2, 1)
    """

    def __init__(self, whole: Stored, rows: Ints) -> None:
        self._whole, self._rows, self.dtype = whole, rows, whole.dtype
        self.starts = np.searchsorted(rows, whole.starts)
        self.shape = rows.size, whole.shape[1]
        self.lasting = whole.lasting

    def block(
        self, number: int, columns: Sequence[int] | None = None, *, gaps: bool = False
    ) -> Any:
        """See `Stored`."""
        first, stop = self.starts[number : number + 2].tolist()
        own = self._rows[first:stop] - self._whole.starts[number]
        if own.size == 0:
            width = self.shape[1] if columns is None else len(columns)
            return np.empty((0, width), self.dtype)
        block = self._whole.block
        return (block(number, columns, gaps=True) if gaps else block(number, columns))[own]

    def __getitem__(self, rows: Any) -> Any:
        return self._whole[self._rows[rows]]

    def prepare(self, rows: Ints) -> None:
        """See `Stored`."""
        self._whole.prepare(self._rows[rows])

    def drop_copies(self) -> None:
        """See `Stored`."""
        self._whole.drop_copies()


class Pass(ABC, Generic[Partial]):
    """A function of records that needs one reading of them.

    It is made of what earlier passes have found, and is not changed by running. It can be pickled;
    what it has of each row is a `RowArray`, and an attribute.

    Attributes
    ----------
    takes_gaps : bool
        Whether values may be NaN, and blocks of objects.
    finds_records : bool
        Whether what it finds or writes has records as they are, which are masked on their way.

    Examples
    --------
    >>> class Count(Pass[int]):
    ...     def of_block(self, block):
    ...         return block.size
    ...     def merge(self, one, other):
    ...         return one + other
    >>> run(Count(), np.zeros((5, 2)))
    5
    """

    takes_gaps = False
    finds_records = False

    @abstractmethod
    def of_block(self, block: Block) -> Partial:
        """Compute the result for a block, which may have no rows."""

    @abstractmethod
    def merge(self, one: Partial, other: Partial) -> Partial:
        """Merge the results of two sets of rows; `one` may be changed and returned."""

    def row_arrays(self) -> list[RowArray]:
        """Return the arrays with a value for each row."""
        return [each for each in vars(self).values() if isinstance(each, RowArray)]


class Together(Pass[tuple[Any, ...]]):
    """Several passes in one reading.

    Parameters
    ----------
    *passes : Pass

    Examples
    --------
    >>> class Count(Pass[int]):
    ...     def of_block(self, block):
    ...         return block.size
    ...     def merge(self, one, other):
    ...         return one + other
    >>> run(Together(Count(), Count()), np.zeros((5, 2)))
    (5, 5)
    """

    def __init__(self, *passes: Pass[Any]) -> None:
        self._passes = passes
        self.takes_gaps = all(each.takes_gaps for each in passes)
        self.finds_records = any(each.finds_records for each in passes)

    def of_block(self, block: Block) -> tuple[Any, ...]:
        """Compute the result of each pass for a block, in their order."""
        return tuple([each.of_block(block) for each in self._passes])

    def merge(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        """Merge the results of each pass."""
        parts = zip(self._passes, one, other, strict=True)
        return tuple([each.merge(left, right) for each, left, right in parts])

    def row_arrays(self) -> list[RowArray]:
        """Return the row arrays of the passes."""
        return [array for each in self._passes for array in each.row_arrays()]


class Remote(Stored):
    """A matrix whose blocks are in other processes, which run whole passes.

    Examples
    --------
    >>> issubclass(Remote, Stored)
    True
    """

    @abstractmethod
    def run(
        self, pass_: Pass[Partial], live_rows: Ints | None, columns: Sequence[int] | None
    ) -> Partial:
        """Run a pass; see `erasable.core.passes.run`."""

    @abstractmethod
    def call(self, functions: Iterable[Callable[[], Made]]) -> Iterator[Made]:
        """Call functions in the other processes, and yield their results, in their order.

        Parameters
        ----------
        functions : iterable of callable
            Pure ones that can be pickled, and bring along the records that they learn from.
        """

    @property
    @abstractmethod
    def n_calls(self) -> int:
        """Number of functions called at the same time."""


def run(
    pass_: Pass[Partial],
    matrix: Any,
    live_rows: Ints | None = None,
    *,
    n_jobs: int | None = None,
    columns: Sequence[int] | None = None,
) -> Partial:
    """Run a pass over the live rows of a matrix.

    Parameters
    ----------
    pass_ : Pass
    matrix : ndarray of shape (n_rows, n_features), C-contiguous, or Stored
    live_rows : ndarray of int64, optional
        Distinct positions of the rows that count, ascending; all of them by default.
    n_jobs : int or None
        Threads; see `erasable.core.threads.N_JOBS`.
    columns : sequence of int, optional
        The only columns that are looked at; others of a stored matrix are not read.

    Examples
    --------
    >>> class Largest(Pass[float]):
    ...     def of_block(self, block):
    ...         return float(block.matrix[block.positions].max(initial=0.0))
    ...     def merge(self, one, other):
    ...         return max(one, other)
    >>> run(Largest(), np.array([[3.0], [9.0], [5.0]]), np.array([0, 2]))
    5.0
    """
    if isinstance(matrix, Remote):
        return matrix.run(pass_, live_rows, columns)
    if isinstance(matrix, Stored):
        blocks = range(len(matrix.starts) - 1)

        def of_block(number: int) -> Partial:
            return pass_.of_block(matrix.read_block(number, live_rows, columns, pass_.takes_gaps))

        return fold(pass_.merge, in_threads(of_block, blocks, n_jobs))
    spans = list(_spans(matrix, live_rows, n_jobs))
    if len(spans) == 1:
        return pass_.of_block(spans[0])
    return fold(pass_.merge, in_threads(pass_.of_block, spans, n_jobs))


def each_block(
    matrix: Any, rows: Ints, columns: Sequence[int] | None = None, *, gaps: bool = False
) -> Iterator[Block]:
    """Yield a matrix with the rows that count, or a stored one block by block.

    Parameters
    ----------
    matrix : ndarray or Stored, of shape (n_rows, n_features)
    rows : ndarray of int64
        Their positions, ascending.
    columns : sequence of int, optional
        The only columns that are looked at.
    gaps : bool
        Whether values of a stored matrix may be NaN.

    Examples
    --------
    >>> [block.size for block in each_block(np.zeros((3, 2)), np.array([0, 2]))]
    [2]
    """
    if not isinstance(matrix, Stored):
        yield Block(matrix, rows, False)
        return
    for number in range(len(matrix.starts) - 1):
        yield matrix.read_block(number, rows, columns, gaps)


def _spans(matrix: Matrix, live_rows: Ints | None, n_jobs: int | None) -> Iterator[Block]:
    """Cut a matrix in memory into blocks, or leave it whole for one thread."""
    n, d = matrix.shape
    every = live_rows is None or live_rows.size == n
    size = n if every or live_rows is None else live_rows.size
    step = max(1, _VALUES // max(d, 1))
    if size < 2 * step or n_threads(n_jobs) == 1:
        yield Block(matrix, NO_ROWS if every or live_rows is None else live_rows, every)
        return
    for start in range(0, size, step):
        if every or live_rows is None:
            yield Block(matrix[start : start + step], NO_ROWS, True, start, start)
        else:
            yield Block(matrix, live_rows[start : start + step], False, 0, start)


def rows_in_memory(matrix: Any, rows: Ints) -> tuple[Any, Ints]:
    """Return a matrix in memory with some rows, and their positions in it.

    Examples
    --------
    >>> matrix = np.zeros((3, 2))
    >>> rows_in_memory(matrix, np.array([2]))[0] is matrix
    True
    """
    if not isinstance(matrix, Stored):
        return matrix, rows
    return matrix[rows], np.arange(rows.size)
