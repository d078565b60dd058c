"""Exact second moments of pairs of columns, of features and of targets.

The law kept here: the sums are functions of the set of rows alone. They are exact integers, so
adding and removing rows commute and undo each other, and any BLAS may compute them. Solutions are
computed from them in double-double, in a fixed order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas

from erasable.core import _centring_kernels as centring
from erasable.core import _gram_kernels as kernels
from erasable.core._grid_kernels import NO_ROWS
from erasable.core.arrays import Floats, Ints, Ints32
from erasable.core.errors import InvalidDataError
from erasable.core.grid import Grid
from erasable.core.passes import Block, Pass, run
from erasable.core.row_arrays import PerLiveRow, PerRow, RowArray
from erasable.core.sparse import parts
from erasable.core.sparse_grid import SparseGrid
from erasable.core.summaries import Mergeable
from erasable.core.tables import Table
from erasable.core.threads import in_threads

__all__ = ["MAX_FEATURES", "Gram"]

MAX_FEATURES = 4096


def _few_rows(table: Table, rows: Ints) -> tuple[Any, Floats, Ints]:
    """Return the result of `Table.in_memory`, and the targets of the same rows."""
    (own, places), targets = table.in_memory(rows), _targets_of(table)
    return own, targets[rows] if table.is_stored else targets, places


def _check_widths(table: Table) -> None:
    _check_width(table.n_features, "features", "select or project features first")
    _check_width(_targets_of(table).shape[1], "targets", "learn them in several models")


def _check_width(count: int, what: str, advice: str) -> None:
    """Refuse more columns than exact sums of products have room for."""
    if count > MAX_FEATURES:
        raise InvalidDataError(
            f"{count} {what} were given; expected at most {MAX_FEATURES}, because exact sums of "
            f"products take memory in their square; {advice}"
        )


def _targets_of(table: Table) -> Floats:
    return np.zeros((table.matrix.shape[0], 0)) if table.targets is None else table.targets


def _routine(name: str, n_arguments: int) -> Any:
    """Return a routine of the BLAS that SciPy offers to compiled code; it takes pointers."""
    capsule = cython_blas.__pyx_capi__[name]
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)
    address_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    signature = name_of(("PyCapsule_GetName", ctypes.pythonapi))(capsule)
    address = address_of(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, signature)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)


_dsyrk = _routine("dsyrk", 10)
_UPPER, _AS_IT_IS = ctypes.c_char(b"U"), ctypes.c_char(b"N")
_ONE = ctypes.c_double(1.0)


def _add_square(rows: Floats, square: Floats) -> None:
    """Add ``rows.T @ rows`` to the upper triangle of `square`, which is in Fortran's order.

    `rows` are C-contiguous.
    """
    if not (rows.flags.c_contiguous and square.flags.f_contiguous):
        raise ValueError("expected rows in C's order, and a square in Fortran's")
    n, p = ctypes.c_int(rows.shape[0]), ctypes.c_int(rows.shape[1])
    by = ctypes.byref
    _dsyrk(
        by(_UPPER), by(_AS_IT_IS), by(p), by(n), by(_ONE), rows.ctypes.data, by(p), by(_ONE),
        square.ctypes.data, by(p),
    )  # fmt: skip


_BLOCK = 2**15  # values of a block: with its halves and their products, it stays in cache


class _Multiply(Pass[tuple[Floats, Floats]]):
    """Multiply blocks of rows by BLAS: the h and l of their columns, side by side, by themselves.

    It finds the upper triangle of the products, of shape (2 p, 2 p), and the sums of the columns.
    """

    def __init__(self, columns: Floats, targets: Floats) -> None:
        self._columns, self._targets = columns, PerRow(targets)

    def of_block(self, block: Block) -> tuple[Floats, Floats]:
        p = self._columns.shape[1]
        square, sums = np.zeros((2 * p, 2 * p), order="F"), np.zeros(p)
        for part in self._halves(block, sums):
            _add_square(part, square)
        return square, sums

    def merge(
        self, one: tuple[Floats, Floats], other: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        for left, right in zip(one, other, strict=True):
            left += right
        return one

    def _halves(self, block: Block, sums: Floats) -> Iterator[Floats]:
        """Yield h and l, side by side, of some rows at a time, in one array; add up `sums`."""
        p, n, rows = sums.size, block.size, block.rows
        # Consecutive rows need no look-up.
        through = block.every or bool(np.all(rows[1:] - rows[:-1] == 1))
        begin = int(rows[0]) if rows.size else 0
        targets = self._targets.of(block)
        size = min(max(_BLOCK // max(p, 1), 64), n)
        halves = np.zeros((size, 2 * p))
        for start in range(0, n, max(size, 1)):
            part = halves[: min(size, n - start)]
            chosen = NO_ROWS if through else rows[start : start + size]
            kernels.cut_block(
                block.matrix, targets, chosen, begin + start, self._columns, sums, part
            )
            yield part


class _MultiplyEach(Pass[list[tuple[Floats, Floats]]]):
    """Multiply the rows of each part by `_Multiply`; `labels` are the parts of live rows."""

    def __init__(self, columns: Floats, targets: Floats, labels: Ints32, n_parts: int) -> None:
        self._multiply = _Multiply(columns, targets)
        self._labels, self._n_parts = PerLiveRow(labels), n_parts

    def row_arrays(self) -> list[RowArray]:
        return [*self._multiply.row_arrays(), self._labels]

    def of_block(self, block: Block) -> list[tuple[Floats, Floats]]:
        positions, labels = block.positions, self._labels.of(block)
        own = (positions[labels == part] for part in range(self._n_parts))
        return [self._multiply.of_block(block._replace(rows=rows, every=False)) for rows in own]

    def merge(
        self, one: list[tuple[Floats, Floats]], other: list[tuple[Floats, Floats]]
    ) -> list[tuple[Floats, Floats]]:
        return [self._multiply.merge(*pair) for pair in zip(one, other, strict=True)]


class _MultiplyColumns(_Multiply):
    """Multiply some columns by all: products of shape (3, n_columns, p), and all sums."""

    def __init__(self, columns: Floats, targets: Floats, chosen: Ints) -> None:
        super().__init__(columns, targets)
        self._chosen = chosen

    def of_block(self, block: Block) -> tuple[Floats, Floats]:
        chosen, p = self._chosen, self._columns.shape[1]
        sums, found = np.zeros(p), np.zeros((3, chosen.size, p))
        for part in self._halves(block, sums):
            h, lower = part[:, :p], part[:, p:]
            h_chosen, l_chosen = h[:, chosen].T, lower[:, chosen].T
            found[0] += h_chosen @ h
            found[1] += h_chosen @ lower
            found[1] += l_chosen @ h
            found[2] += l_chosen @ lower
        return found, sums


_FEW = 64  # rows that are cheaper added one by one than multiplied as a block


@dataclass(eq=False, slots=True)
class Gram(Mergeable):
    """Sums of products of all pairs of gridded columns, to which rows are added or taken out.

    The columns are those of a matrix, dense or sparse, and after them those of dense targets.

    Attributes
    ----------
    grid : Grid or SparseGrid
        The grid on which the matrix is read; shared, not copied.
    target_grid : Grid
        That of the targets.
    n_rows : int
        How many rows are summed.
    top : ndarray of shape (p,), int64
        Exponents of the p columns, see `Grid`.
    columns : ndarray of shape (3, p), float64
        Origin, magic number and quanta in a unit of each of the p columns.
    totals : ndarray of shape (p + 3 * p * (p + 1) / 2,), float64
        Integers, exact, of which these two are views:
    sums : ndarray of shape (p,)
        The sums of m, where a gridded value is ``m = h 2**13 + l`` quanta.
    products : ndarray of shape (3, p * (p + 1) / 2)
        The sums of ``h h'``, of ``h l' + l h'`` and of ``l l'``, for the pairs of the upper
        triangle row by row. They are never combined: a combined sum may need 79 bits.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.core.gram import Gram
    >>> from erasable.core.grid import Grid
    >>> table = Table(np.array([[1.0, 10.0], [2.0, 10.0], [6.0, 40.0]]))
    >>> gram = Gram.fit(Grid.fit(table.matrix), table)
    >>> quantum = gram.grid.quantum
    >>> gram.centred()[0] * np.outer(quantum, quantum)
    array([[ 14.,  90.],
           [ 90., 600.]])
    >>> gram.subtract(table.some(lambda: np.array([0, 1])), np.array([2]))
    2
    >>> gram.centred()[0] * np.outer(gram.grid.quantum, gram.grid.quantum)
    array([[0.5, 0. ],
           [0. , 0. ]])
    """

    grid: Grid | SparseGrid
    target_grid: Grid
    n_rows: int
    top: Ints
    columns: Floats
    totals: Floats

    @classmethod
    def fit(cls, grid: Grid | SparseGrid, table: Table, target_grid: Grid | None = None) -> Self:
        """Sum the rows of a table that count.

        Parameters
        ----------
        grid : Grid or SparseGrid
            Fitted to the same rows.
        table : Table
            Values before the grid, float64 or float32.
        target_grid : Grid, optional
            Fitted to the targets, if the table has some.

        Returns
        -------
        Gram

        Raises
        ------
        InvalidDataError
            More than 4096 features, or targets: the sums would not fit memory.
        """
        _check_widths(table)
        gram = cls._empty(grid, target_grid)
        gram.accumulate(table, table.live_rows(), 1)
        return gram

    @classmethod
    def fit_each(
        cls, grid: Grid, table: Table, target_grid: Grid, labels: Ints32, n_parts: int
    ) -> list[Self]:
        """Sum rows by their parts, which `labels` has for each row that counts; see `fit`."""
        _check_widths(table)
        grams = [cls._empty(grid, target_grid) for _ in range(n_parts)]
        cls.accumulate_each(grams, table, table.live_rows(), labels, 1)
        return grams

    @classmethod
    def accumulate_each(
        cls, grams: Sequence[Self], table: Table, rows: Ints, labels: Ints32, sign: int
    ) -> Ints:
        """Add rows to the sums of their parts, or subtract them; return the parts concerned."""
        parts = np.unique(labels).astype(np.int64)
        if parts.size == 1:
            grams[parts[0]].accumulate(table, rows, sign)
            return parts
        if 0 < rows.size < _FEW:
            near, targets, rows = _few_rows(table, rows)
            table = Table(near, targets=targets)
        elif rows.size and table.is_stored:  # which is read once
            each = _MultiplyEach(grams[0].columns, _targets_of(table), labels, len(grams))
            counts = np.bincount(labels, minlength=len(grams)).tolist()
            found = table.run(each, rows)
            for gram, part, count in zip(grams, found, counts, strict=True):
                gram.n_rows += sign * count
                gram._take(part, float(sign))
            return parts

        def accumulate(part: int) -> None:
            grams[part].accumulate(table, rows[labels == part], sign)

        for _ in in_threads(accumulate, parts.tolist(), table.n_jobs):
            pass
        return parts

    @classmethod
    def fit_with_grid(
        cls, table: Table, target_grid: Grid | None = None, *, warn: bool = True
    ) -> Self:
        """Fit the grid of the matrix, too, which takes two passes in all.

        See `fit`, and `Grid.fit` for `warn`.
        """
        _check_widths(table)
        rows, targets = table.live_rows(), _targets_of(table)
        if table.is_sparse:
            return cls.fit(SparseGrid.fit(table.matrix, rows), table, target_grid)
        grid, found = Grid.fit_with(
            lambda grid: _Multiply(cls._empty(grid, target_grid).columns, targets),
            table.matrix, rows, names=table.names, warn=warn, n_jobs=table.n_jobs,
        )  # fmt: skip
        gram = cls._empty(grid, target_grid)
        gram.n_rows = grid.n_rows
        gram._take(found, 1.0)
        return gram

    @classmethod
    def _empty(cls, grid: Grid | SparseGrid, target_grid: Grid | None) -> Self:
        if target_grid is None:
            target_grid = Grid.from_state({"top": np.zeros(0), "origin": np.zeros(0)})
        p = grid.top.size + target_grid.top.size
        gram = cls(
            grid=grid,
            target_grid=target_grid,
            n_rows=0,
            top=np.zeros(p, dtype=np.int64),
            columns=np.zeros((3, p)),
            totals=np.zeros(p + 3 * (p * (p + 1) // 2)),
        )
        gram._read_grids()
        return gram

    def copy(self) -> Self:
        """Copy the sums; the copy shares the grids."""
        return type(self)(
            grid=self.grid,
            target_grid=self.target_grid,
            n_rows=self.n_rows,
            top=self.top.copy(),
            columns=self.columns.copy(),
            totals=self.totals.copy(),
        )

    def merge(self, other: Self, sign: int = 1) -> None:
        """See `Mergeable`; subtract the other sums if `sign` is -1."""
        self.n_rows += sign * other.n_rows
        self.totals += sign * other.totals

    def add(self, table: Table, rows: Ints) -> int:
        """Add rows to the sums and the grids; sum again the columns whose grid changed.

        Parameters
        ----------
        table : Table
            May have another matrix than that of `fit`, with the same rows and new ones.
        rows : ndarray of int64
            Distinct positions of the rows, which count in the table; see `Grid.add`.

        Returns
        -------
        int
            Number of columns, targets included, that were read again in all rows.

        Raises
        ------
        MagnitudeError
            See `Grid.fit`. The sums are of no use afterwards.
        """
        changes = [grid.add(part, rows) for grid, part in self._graded(table)]
        moved = any([change.exponents for change in changes])
        if moved:
            self._read_grids()
        self.accumulate(table, rows, 1)
        if not moved:
            return 0
        columns = np.concatenate([change.columns for change in changes])
        self._sum_again(table, columns)
        return int(np.count_nonzero(columns))

    def subtract(self, table: Table, rows: Ints) -> int:
        """Subtract rows from the sums and the grids; sum again the columns whose grid changed.

        Parameters
        ----------
        table : Table
            In which the rows can still be read, and do not count any more.
        rows : ndarray of int64
            Distinct positions of the rows, all of them live until now.

        Returns
        -------
        int
            Number of columns, targets included, that were read again in the rows that are left.
        """
        self.accumulate(table, rows, -1)
        changes = [grid.subtract(part, rows) for grid, part in self._graded(table)]
        if all([change.is_none for change in changes]):
            return 0
        if any([change.exponents for change in changes]):
            self._read_grids()
            self._sum_again(table, np.concatenate([change.columns for change in changes]))
        return sum(int(np.count_nonzero(change.extremes)) for change in changes)

    def _graded(self, table: Table) -> list[tuple[Any, Table]]:
        """Return the grids, each with the table of its columns."""
        graded: list[tuple[Any, Table]] = [(self.grid, table)]
        if table.targets is not None and table.targets.shape[1]:
            graded.append((self.target_grid, Table(table.targets, table.live_rows)))
        return graded

    @property
    def sums(self) -> Floats:
        """Sums of the columns, in quanta."""
        return self.totals[: self.top.size]

    @property
    def products(self) -> Floats:
        """Sums of the products of pairs of columns, in three parts."""
        return self.totals[self.top.size :].reshape(3, -1)

    @property
    def quantum(self) -> Floats:
        """Distance of two neighbours on the grid, a float64 for each of the p columns."""
        quantum: Floats = 1.0 / self.columns[2]
        return quantum

    def centred(self) -> tuple[Floats, Floats]:
        """Return sums of products of deviations from the means, ``sum (m - mean)(m' - mean')``.

        Returns
        -------
        tuple of 2 ndarrays of shape (p, p), float64
            A high and a low part, whose sum is good for about 105 bits; in squared quanta. Both
            are exactly symmetric; 0 in the row of a constant column.
        """
        p = self.sums.size
        high, low = np.zeros((2, p, p))
        if self.n_rows:
            centring.centre(float(self.n_rows), self.sums, self.products, high, low)
        return high, low

    def means(self) -> tuple[Floats, Floats]:
        """Return means in quanta, relative to the origins, as a high and a low part."""
        high, low = np.zeros((2, self.sums.size))
        if self.n_rows:
            centring.means(float(self.n_rows), self.sums, high, low)
        return high, low

    def state(self) -> dict[str, NDArray[Any]]:
        """Return views of the arrays that a model must keep.

        Returns
        -------
        dict
            ``top`` (int64) and ``origin`` of the columns, of the targets alone where the matrix is
            sparse; ``totals``.
        """
        first = self.grid.top.size if isinstance(self.grid, SparseGrid) else 0
        return {
            "top": self.top,
            "origin": self.columns[0, first:],
            "totals": self.totals,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]], n_features: int, n_rows: int) -> Self:
        """Rebuild the sums of `n_rows` rows from `state`; their grids have no rows."""
        top, origin = np.asarray(state["top"]), np.asarray(state["origin"])
        d, sparse = n_features, origin.size < top.size
        kind = SparseGrid if sparse else Grid
        gram = cls._empty(
            kind.from_state({"top": top[:d], "origin": origin[:d]}),
            Grid.from_state({"top": top[d:], "origin": origin if sparse else origin[d:]}),
        )
        gram.n_rows = n_rows
        gram.totals = np.array(state["totals"], dtype=np.float64)
        return gram

    # -- sums ----------------------------------------------------------------------------------

    def _read_grids(self) -> None:
        d = self.grid.top.size
        for first, grid in ((slice(0, d), self.grid), (slice(d, None), self.target_grid)):
            self.top[first] = grid.top
            self.columns[:, first] = grid.origin, grid.magic, 1.0 / grid.quantum

    def accumulate(self, table: Table, rows: Ints, sign: int) -> None:
        """Add rows to the sums, on the grids as they are, or subtract them if `sign` is -1."""
        self.n_rows += sign * rows.size
        matrix, targets = table.matrix, _targets_of(table)
        if table.is_sparse:
            every = np.ones(self.sums.size, dtype=np.bool_)
            self._add_sparse(matrix, targets, rows, float(sign), every)
        elif rows.size < _FEW:
            kernels.update(
                *_few_rows(table, rows), float(sign), self.columns, self.sums,
                self.products, np.zeros((2, self.sums.size)),
            )  # fmt: skip
        else:
            self._take(run(_Multiply(self.columns, targets), matrix, rows), float(sign))

    def _take(self, found: tuple[Floats, Floats], sign: float) -> None:
        """Add the result of `_Multiply`, or subtract it."""
        square, sums = found
        self.sums[:] += sign * sums
        kernels.pack(square, sign, self.products)

    def _add_sparse(
        self, matrix: Any, targets: Floats, rows: Ints, sign: float, wanted: NDArray[np.bool_]
    ) -> None:
        kernels.update_sparse(
            *parts(matrix), matrix.shape[1], targets, rows, sign, wanted,
            self.columns, self.sums, self.products,
        )  # fmt: skip

    def _sum_again(self, table: Table, wanted: NDArray[np.bool_]) -> None:
        """Sum some columns again, because their grid changed."""
        rows, targets = table.live_rows(), _targets_of(table)
        if table.is_sparse:
            kernels.clear_columns(wanted, self.sums, self.products)
            self._add_sparse(table.matrix, targets, rows, 1.0, wanted)
            return
        chosen = np.flatnonzero(wanted)
        found, sums = run(_MultiplyColumns(self.columns, targets, chosen), table.matrix, rows)
        self.sums[chosen] = sums[chosen]
        kernels.put_columns(chosen, found, self.products)
