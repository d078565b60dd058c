"""Passes over records, block by block: in memory, in threads, or where the records are stored.

The law kept here: the results of a pass are exact integers, extremes and counts. Partial results
merge in any order, so the numbers of blocks and of threads do not show in them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from functools import reduce as fold
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from erasable.core._grid_kernels import NO_ROWS
from erasable.core.arrays import Flags, Floats, Ints, Matrix
from erasable.core.row_arrays import RowArray
from erasable.core.threads import in_threads, n_threads, over_rows

__all__ = [
    "Block",
    "InMemory",
    "InOrder",
    "Pass",
    "Portion",
    "Remote",
    "Some",
    "Stored",
    "Together",
    "run",
    "storage",
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


class Portion(NamedTuple):
    """Rows processed at a time.

    Examples
    --------
    >>> Portion(slice(10, 12), np.array([[1.0], [2.0]]), first=10).at(np.array([11]))
    array([[2.]])
    """

    rows: slice  # positions among all rows
    matrix: Any
    first: int  # position of the first row of `matrix`

    def of(self, part: slice) -> Any:
        """Return some of its rows, by their positions among all rows."""
        return self.matrix[part.start - self.first : part.stop - self.first]

    def at(self, rows: Ints) -> Any:
        """Copy some of its rows, by their positions among all rows."""
        return self.matrix[rows - self.first]


_VALUES = 2**20
"""Values of a block of a matrix in memory: one or two milliseconds of a thread."""

_AT_ONCE = 2**26
"""Bytes of rows read at a time, when they are not read in the order of their files."""

Partial = TypeVar("Partial")
Made = TypeVar("Made")


class InMemory:
    """A matrix in memory, dense or sparse, read by the methods of `Stored`.

    Examples
    --------
    >>> [block.size for block in InMemory(np.zeros((3, 2))).blocks(np.array([0, 2]))]
    [2]
    """

    __slots__ = ("matrix",)
    n_calls = 0
    is_remote = False

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def run(
        self,
        pass_: Pass[Partial],
        live_rows: Ints | None = None,
        columns: Sequence[int] | None = None,
        n_jobs: int | None = None,
    ) -> Partial:
        """See `Stored`."""
        spans = list(_spans(self.matrix, live_rows, n_jobs))
        if len(spans) == 1:
            return pass_.of_block(spans[0])
        return fold(pass_.merge, in_threads(pass_.of_block, spans, n_jobs))

    def blocks(
        self, rows: Ints, columns: Sequence[int] | None = None, *, gaps: bool = False
    ) -> Iterator[Block]:
        """Yield the whole matrix, with the rows that count."""
        yield Block(self.matrix, rows, False)

    def in_memory(self, rows: Ints) -> tuple[Any, Ints]:
        """See `Stored`."""
        return self.matrix, rows

    def whole_in_memory(self, live_rows: Ints, n_jobs: int | None = None) -> Any:
        """Return the matrix itself."""
        return self.matrix

    def drop_copies(self) -> None:
        """Do nothing: there are none."""

    def bounds(self) -> None:
        """Return None: nothing states them."""

    @property
    def starts(self) -> Ints:
        """See `Stored`: all rows are one block."""
        return np.array([0, self.matrix.shape[0]])

    def in_order(self, rows: Ints) -> Any:
        """Copy rows, in this order."""
        return self.matrix[rows]

    def portions(
        self,
        function: Callable[[Portion], Made],
        weights: Floats,
        n_jobs: int | None,
        size: int | None = None,
    ) -> Iterator[Made]:
        """See `Stored`; a portion has `size` rows, see `over_rows`."""
        portion = partial(Portion, matrix=self.matrix, first=0)
        n_rows = self.matrix.shape[0]
        return over_rows(lambda rows: function(portion(rows)), n_rows, n_jobs, size)


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
    is_remote : bool
        Whether its rows are in other processes, which run whole passes.
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
    is_remote = False
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

    def run(
        self,
        pass_: Pass[Partial],
        live_rows: Ints | None = None,
        columns: Sequence[int] | None = None,
        n_jobs: int | None = None,
    ) -> Partial:
        """Run a pass; see `run`."""

        def of_block(number: int) -> Partial:
            return pass_.of_block(self.read_block(number, live_rows, columns, pass_.takes_gaps))

        return fold(pass_.merge, in_threads(of_block, range(len(self.starts) - 1), n_jobs))

    def blocks(
        self, rows: Ints, columns: Sequence[int] | None = None, *, gaps: bool = False
    ) -> Iterator[Block]:
        """Yield all blocks, each with those of the ascending `rows` that are in it."""
        for number in range(len(self.starts) - 1):
            yield self.read_block(number, rows, columns, gaps)

    def in_memory(self, rows: Ints) -> tuple[Any, Ints]:
        """Return a matrix in memory with some rows, and their positions in it."""
        return self[rows], np.arange(rows.size)

    def whole_in_memory(self, live_rows: Ints, n_jobs: int | None = None) -> Any:
        """Return a matrix in memory that has the live rows in their places, and zeros in others."""
        found: Any = np.zeros(self.shape, dtype=self.dtype)
        for rows, values in self.run(_Everything(), live_rows, n_jobs=n_jobs):
            found[rows] = values
        return found

    def portions(
        self,
        function: Callable[[Portion], Made],
        weights: Floats,
        n_jobs: int | None,
        size: int | None = None,
    ) -> Iterator[Made]:
        """Call a function with portions of the rows; yield its results, in their order.

        Sums that are rounded in portions may differ from those in memory: blocks are the portions,
        but for those in which all weights are 0, which are not read. `function` changes nothing
        that another call reads.
        """
        starts: list[int] = self.starts.tolist()

        def of_block(number: int) -> Made:
            first, stop = starts[number : number + 2]
            return function(Portion(slice(first, stop), self.block(number), first))

        numbers = (
            at for at in range(len(starts) - 1) if weights[starts[at] : starts[at + 1]].any()
        )
        return in_threads(of_block, numbers, n_jobs)

    def in_order(self, rows: Ints) -> InOrder:
        """Return rows in an order of their own, read as they are needed."""
        return InOrder(self, rows)

    @property
    def n_calls(self) -> int:
        """Number of functions that other processes call at the same time; 0 without others."""
        return 0

    def call(self, functions: Iterable[Callable[[], Made]]) -> Iterator[Made]:
        """Call functions, in the other processes if there are some; yield their results, in order.

        They are pure, can be pickled, and bring along the records that they learn from.
        """
        return (function() for function in functions)

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

    @property
    def kinds(self) -> str:
        """See `Stored`."""
        return self._whole.kinds

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


class _Everything(Pass[list[tuple[Ints, Matrix]]]):
    """All rows, and their values, in several parts: of few records."""

    takes_gaps = True

    finds_records = True

    def of_block(self, block: Block) -> list[tuple[Ints, Matrix]]:
        return [(block.first + block.positions, block.matrix[block.positions])]

    def merge(
        self, one: list[tuple[Ints, Matrix]], other: list[tuple[Ints, Matrix]]
    ) -> list[tuple[Ints, Matrix]]:
        return one + other


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

    is_remote = True

    @abstractmethod
    def run(
        self,
        pass_: Pass[Partial],
        live_rows: Ints | None = None,
        columns: Sequence[int] | None = None,
        n_jobs: int | None = None,
    ) -> Partial:
        """Run a pass in the other processes; see `run`."""

    @property
    @abstractmethod
    def n_calls(self) -> int:
        """See `Stored`."""


class InOrder:
    """Rows of a stored matrix at the positions `rows`, in this order, of which a part is in memory.

    All blocks are read for each part: this is for rarely needed sums whose order counts.

    Examples
    --------
    >>> class Numbers(Stored):
    ...     shape, dtype = (4, 1), np.dtype(float)
    ...     def __getitem__(self, rows):
    ...         return rows[:, np.newaxis].astype(float)
    >>> InOrder(Numbers(), np.array([3, 1]))[np.array([1])]
    array([[1.]])
    """

    def __init__(self, matrix: Stored, rows: Ints) -> None:
        self._matrix, self._rows = matrix, rows
        self.shape, self.dtype = (rows.size, matrix.shape[1]), matrix.dtype
        self._step = max(1, _AT_ONCE // max(1, self.shape[1] * self.dtype.itemsize))
        self._start = 0
        self._part: Matrix = np.empty((0, self.shape[1]), self.dtype)

    def __getitem__(self, rows: slice | Ints) -> Matrix:
        """Return consecutive rows of the order."""
        if isinstance(rows, slice):
            start, stop = rows.start, rows.stop
        else:
            start, stop = int(rows[0]), int(rows[-1]) + 1
        if not self._start <= start <= stop <= self._start + len(self._part):
            end = min(max(stop, start + self._step), len(self._rows))
            self._part = np.empty((0, self.shape[1]), self.dtype)  # first, to save memory
            self._start, self._part = start, self._matrix[self._rows[start:end]]
            self._matrix.drop_copies()
        own = self._part[start - self._start : stop - self._start]
        return own if isinstance(rows, slice) else own[rows - start]


def storage(matrix: Any) -> Stored | InMemory:
    """Return what reads the rows of a matrix: itself if it is stored.

    Examples
    --------
    >>> matrix = np.zeros((3, 2))
    >>> storage(matrix).in_memory(np.array([2]))[0] is matrix
    True
    """
    return matrix if isinstance(matrix, Stored) else InMemory(matrix)


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
    return storage(matrix).run(pass_, live_rows, columns, n_jobs)


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
