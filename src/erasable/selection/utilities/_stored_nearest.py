"""The nearest neighbour utility over stored records: a pass for each choice.

The choice is a function of the set of records and their order, wherever they are stored and however
they are divided into blocks: distances are whole numbers of units, so sums of them, and gains made
of the sums, are exact.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import erasable.selection.utilities._stored_kernels as kernels
from erasable.core.arrays import Floats, Ints, Ints32
from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.core.extremes import Extremes
from erasable.core.passes import Block, Pass, storage
from erasable.core.records import Records
from erasable.core.row_arrays import PerRow, Scratch
from erasable.core.tables import RecordRows
from erasable.core.tape import Tape
from erasable.selection._functions import Queue, SetFunction
from erasable.selection._memory import check_memory
from erasable.selection._sampled import Samples
from erasable.selection.staying._model import Bound
from erasable.selection.utilities._inputs import read_classes
from erasable.selection.utilities._ranked import ranks_needed
from erasable.selection.utilities._similarities import ClassBlock
from erasable.selection.utilities._stored_kernels import StoredPoints, StoredTargets
from erasable.selection.utilities._utility import Problem

_TILE = 128  # points whose columns stay in a fast cache while rows pass by
_NO_CODES: Ints32 = np.zeros(0, dtype=np.int32)


class Measure(NamedTuple):
    """A distance: its kind, and the units of a distance of 1."""

    kind: int  # Euclidean, squared Euclidean or cosine
    per_unit: float


def as_points(rows: Any, codes: Ints32 | None) -> StoredPoints:
    """Return records as points to which distances are measured."""
    columns = np.ascontiguousarray(np.asarray(rows, dtype=np.float64).T)
    sizes = np.empty(columns.shape[1])
    kernels.norms(columns, sizes)
    return StoredPoints(columns, sizes, _NO_CODES if codes is None else codes)


class _TargetPass(Pass[Floats]):
    """A pass over targets that adds up whole numbers."""

    def __init__(self, measure: Measure, codes: PerRow | None) -> None:
        self._measure, self._codes = measure, codes

    def _targets(self, block: Block) -> StoredTargets:
        codes = _NO_CODES if self._codes is None else self._codes.of(block)
        return StoredTargets(block.matrix, block.positions, codes)

    def merge(self, one: Floats, other: Floats) -> Floats:
        """Add."""
        one += other
        return one


class Distances(_TargetPass):
    """Sums, numbers and maxima of the distances to each of some points; see `add_distances`."""

    def __init__(self, measure: Measure, codes: PerRow | None, points: StoredPoints) -> None:
        super().__init__(measure, codes)
        self._points = points

    def of_block(self, block: Block) -> Floats:
        targets = self._targets(block)
        found = np.zeros((3, self._points.norms.size))
        for part, tile in _tiles(self._points):
            own = np.zeros((3, tile.norms.size))
            kernels.add_distances(targets, tile, *self._measure, own)
            found[:, part] = own
        return found

    def merge(self, one: Floats, other: Floats) -> Floats:
        """Add the sums and the numbers."""
        one[:2] += other[:2]
        np.maximum(one[2], other[2], out=one[2])
        return one


class _ChosenPass(_TargetPass):
    """A pass that updates each row by what was chosen since the last one.

    A row holds the number of chosen records it has seen, so a pass may run twice on it, and starts
    from the beginning where a block was lost.
    """

    def __init__(
        self, measure: Measure, codes: PerRow | None, chosen: StoredPoints, farthest: float,
        nearest: Scratch,
    ) -> None:  # fmt: skip
        super().__init__(measure, codes)
        self._chosen, self._farthest, self._nearest = chosen, farthest, nearest

    def _followed(self, targets: StoredTargets, block: Block) -> Floats:
        nearest: Floats = self._nearest.of(block)
        kernels.update_distances(targets, self._chosen, *self._measure, self._farthest, nearest)
        return nearest


class Gains(_ChosenPass):
    """The gains of some points, by rank: shape (n_points, n_ranks)."""

    def __init__(self, *followed: Any, points: StoredPoints, n_ranks: int) -> None:
        super().__init__(*followed)
        self._points, self._n_ranks = points, n_ranks

    def of_block(self, block: Block) -> Floats:
        targets = self._targets(block)
        nearest = self._followed(targets, block)
        found = np.zeros((self._points.norms.size, self._n_ranks))
        for part, tile in _tiles(self._points):
            own = np.zeros((tile.norms.size, self._n_ranks))
            kernels.add_gains(targets, tile, *self._measure, nearest, own)
            found[part] = own
        return found


class Totals(_ChosenPass):
    """The value of the chosen, by class and rank: shape (n_classes, n_ranks)."""

    def __init__(self, *followed: Any, shape: tuple[int, int]) -> None:
        super().__init__(*followed)
        self._shape = shape

    def of_block(self, block: Block) -> Floats:
        targets = self._targets(block)
        totals = np.zeros(self._shape)
        kernels.add_totals(targets, self._farthest, self._followed(targets, block), totals)
        return totals


def _tiles(points: StoredPoints) -> Iterator[tuple[slice, StoredPoints]]:
    for start in range(0, points.norms.size, _TILE):
        part = slice(start, start + _TILE)
        columns = np.ascontiguousarray(points.columns[:, part])
        yield part, StoredPoints(columns, points.norms[part], points.codes[part])


_KINDS = {
    "euclidean": kernels.EUCLIDEAN,
    "sqeuclidean": kernels.SQEUCLIDEAN,
    "cosine": kernels.COSINE,
}
_MOST_ROWS = 2**27
_WHOLE = 53  # bits of whole numbers that float64 adds exactly
_FINEST = 44  # bits of a distance at most: those that rounding leaves of a sum of squares
_ONE = 2**60  # what a weight of 1 is among whole numbers
_MOST_PAIRS = 2.0**45  # multiplications: about two hours of one core
_MOST_READ = 2.0**43  # bytes that are read from files: about three hours of a fast disk
_A_SECOND = 5e9  # multiplications
_BATCH = 32
"""Bounds that one pass brings up to date."""


class StoredNearest(Problem):
    """Stored records, and candidates among them; see `NearestNeighbor`.

    `held` and `places`, shape (n,), are places among the records that no model has deleted; the `n`
    candidates include those held, and the others are drawn by `seed`. `n_passes` counts the passes.
    """

    places: Ints

    def __init__(
        self,
        records: Records,
        metric: str,
        n_candidates: int | None,
        held: Ints,
        seed: int,
        n_jobs: int | None = None,
    ) -> None:
        rows = RecordRows.of(records, "distances are those of numbers")
        if len(rows) > _MOST_ROWS:
            raise InvalidInputError(
                f"{len(rows):,} records; expected at most {_MOST_ROWS:,}, whose gains float64 adds "
                "exactly; select from a part of them"
            )
        self.rows, self.n_passes, self._n_jobs = rows, 0, n_jobs
        ids = records.ids[rows.rows]
        self.places = _drawn(ids, n_candidates, held, seed)
        self.n = self.places.size
        y = None if records.y is None else read_classes(records.y[rows.rows], len(rows))
        self.classes = None if y is None else y[self.places]
        self.n_classes = 1 if y is None else int(y.max()) + 1
        self._refuse_costly(y)
        self.codes = None if y is None else _per_row(y, rows, records.n_rows)
        self.measure, self.unit = self._units(metric)
        sums, counts, largest = self.run(
            Distances(self.measure, self.codes, self.points(np.arange(self.n)))
        )
        # As with arrays: the similarity of the two that are farthest apart is 0, of all classes.
        self.farthest = self.measure.per_unit if metric == "cosine" else float(largest.max())
        self.first = counts * self.farthest - sums

    @property
    def labels(self) -> Any:
        """The classes of the records that no model has deleted."""
        y = self.rows.records.y
        return None if y is None else y[self.rows.rows]

    @property
    def n_records(self) -> int:
        """The number of records that no model has deleted."""
        return len(self.rows)

    def run(self, pass_: Any) -> Any:
        """Read the records once."""
        self.n_passes += 1
        return self.rows.table(self._n_jobs).run(pass_)

    def points(self, items: Ints) -> Any:
        """Read some candidates from where they are stored; they are not kept."""
        codes = None if self.classes is None else self.classes[items].astype(np.int32)
        return as_points(self.rows[self.places[items]], codes)

    def expected(self, bound: Bound, k: int) -> SetFunction | None:
        return ExpectedStored(self, bound, k)

    def samples(self, n_samples: int, k: int) -> Samples:
        raise InvalidInputError(
            "who stays would be drawn of each record for each of the others, and these are not in "
            "memory; expected staying models of alike owners, and Expected(); pass arrays for "
            "others"
        )

    def value(self, chosen: Ints) -> float:
        function = ExpectedStored(self, Bound(np.ones(self.n), np.full(self.n, -1)), len(chosen))
        function.fill(chosen)
        return function.value

    def check_passes(self, k: int, n_ranks: int) -> None:
        """Refuse a selection that would take too many passes or too much memory."""
        matrix = storage(self.rows.records.matrix)
        n, width = self.rows.shape
        if not matrix.n_calls:  # else the workers keep it
            check_memory(
                8.0 * n * (n_ranks + 1), "the nearest of the chosen", "choose from fewer records"
            )
        read = float(k) * n * width * self.rows.dtype.itemsize
        if self.rows.records.is_stored and not matrix.n_calls and read > _MOST_READ:
            raise InvalidInputError(
                f"k={k:,} reads the files of {n:,} records {k:,} times, {read / 2**40:,.0f} TiB; "
                f"expected {_MOST_READ / 2**40:,.0f} TiB at most; choose fewer, or hold the "
                "records in the memory of workers (Records.from_dask)"
            )
        self._refuse_work(float(k) * _BATCH * n * width, f"{k:,} choices", "choose fewer")

    def _refuse_costly(self, y: Ints | None) -> None:
        """Refuse too many pairs of a record and a candidate before any is compared."""
        n, width = self.rows.shape
        pairs = float(n) * self.n
        if y is not None and self.classes is not None:
            counts = [np.bincount(each, minlength=self.n_classes) for each in (y, self.classes)]
            pairs = float((counts[0].astype(np.float64) * counts[1]).sum())
        check_memory(
            24.0 * self.n * width, f"{self.n:,} candidates", "pass n_candidates to NearestNeighbor"
        )
        most = int(_MOST_PAIRS / max(n * width, 1))
        advice = (
            f"pass n_candidates={max(1, most):,} to NearestNeighbor, which draws so many of them"
        )
        self._refuse_work(
            pairs * width, f"the first gains of {self.n:,} candidates for {n:,} records", advice
        )

    def _refuse_work(self, work: float, what: str, advice: str) -> None:
        if work > _MOST_PAIRS:
            raise InvalidInputError(
                f"{what} take {work:.1g} multiplications, about {work / _A_SECOND / 3600:,.0f} "
                f"hours of one core; expected {_MOST_PAIRS:.1g} at most; {advice}"
            )

    def _units(self, metric: str) -> tuple[Measure, float]:
        """Return the distance and its unit."""
        extremes = Extremes.fit(self.rows.records.matrix, self.rows.rows, n_jobs=self._n_jobs)
        self.n_passes += 1
        low, high = extremes.low, extremes.high
        with np.errstate(over="ignore", invalid="ignore"):
            square = float(((high - low) ** 2).sum()) * (1 + 2.0**-20)
        most = {"euclidean": np.sqrt(square), "sqeuclidean": square, "cosine": 1.0}[metric]
        if not np.isfinite(square):
            raise InvalidDataError(
                "the distances of records are beyond what float64 holds; expected smaller "
                "magnitudes; divide the features by a constant"
            )
        mantissa, exponent = np.frexp(most)
        exponent = int(exponent) - (mantissa == 0.5)  # what is a power of two needs no more
        bits = min(_FINEST, _WHOLE - max(int(self.n_records - 1).bit_length(), 1))
        unit = float(np.ldexp(1.0, int(exponent) - bits))
        return Measure(_KINDS[metric], 1.0 / unit), unit


class ExpectedStored(SetFunction):
    """The expected utility of the chosen, computed in passes, for at most `k` records.

    `bound` is over the candidates.
    """

    def __init__(self, problem: StoredNearest, bound: Bound, k: int) -> None:
        self.n, self._problem = problem.n, problem
        self._code = (
            np.zeros(self.n, dtype=np.int64) if problem.classes is None else problem.classes
        )
        self._weights, factor = _weights(problem, bound, self._code, k)
        n_ranks = max(len(each) for each in self._weights)
        for each in self._weights:
            each += [0] * (n_ranks - len(each))
        problem.check_passes(k, n_ranks)
        self._factor = [round(each * _ONE) for each in factor.tolist()]
        self._shape = problem.n_classes, n_ranks
        self._points = problem.points(np.arange(self.n))
        self._nearest = Scratch(problem.rows.records.n_rows, np.inf, n_ranks + 1)
        self._chosen: list[int] = []

    def gains(self, items: Ints) -> Floats:
        self.n_evaluations += len(items)
        if not self._chosen:
            found = np.zeros((len(items), self._shape[1]))
            found[:, 0] = self._problem.first[items]
        else:
            points = self._some(items)
            pass_ = Gains(*self._followed(), points=points, n_ranks=self._shape[1])
            found = self._problem.run(pass_)
        return np.array(
            [
                self._worth(self._code[j], row, self._factor[j])
                for j, row in zip(items.tolist(), found.tolist(), strict=True)
            ]
        )

    def fill(self, items: Ints) -> None:
        """Choose several records that are held already."""
        for j in items.tolist():
            self._add(j)
        if not self._chosen:
            return
        found = self._problem.run(Totals(*self._followed(), shape=self._shape))
        rows = zip(self._weights, found.tolist(), self._factors, strict=True)
        total = sum(
            sum(w * int(x) for w, x in zip(weights, row, strict=True)) * factor
            for weights, row, factor in rows
        )
        self.value = total / _ONE**2 * self._problem.unit

    def _add(self, j: int) -> None:
        if self._factor[j]:  # ranks are for those who may stay
            self._chosen.append(j)

    def queue(self, items: Ints, weights: Floats | None = None) -> Queue:
        return _Batches(self, items, weights)

    @property
    def _factors(self) -> list[int]:
        """Factors of the gains of the candidates of each class."""
        made = [_ONE] * self._shape[0]
        for code, factor in zip(self._code.tolist(), self._factor, strict=True):
            if factor:
                made[code] = factor
        return made

    def _worth(self, code: Any, by_rank: list[float], factor: int) -> float:
        """Return a gain; numbers are whole until the end, so that rounding changes no order."""
        pairs = zip(self._weights[code], by_rank, strict=True)
        whole: int = sum(w * int(x) for w, x in pairs) * factor
        return whole / _ONE**2 * self._problem.unit

    def _followed(self) -> tuple[Any, ...]:
        problem, chosen = self._problem, self._some(np.array(self._chosen, dtype=np.int64))
        return problem.measure, problem.codes, chosen, problem.farthest, self._nearest

    def _some(self, items: Ints) -> Any:
        columns, sizes, codes = self._points
        own = codes[items] if codes.size else codes
        return type(self._points)(np.ascontiguousarray(columns[:, items]), sizes[items], own)


class _Batches(Queue):
    """Records by upper bounds of their gains, many of which a pass brings up to date.

    If none of these has the largest gain then, the next pass takes as many more; the next round
    begins with as many as had bounds above the largest gain. The choice is that of one bound at a
    time.
    """

    size = _BATCH

    def pop(self) -> tuple[int, float]:
        seen: list[float] = []
        while self.heap[0][2] != self.round:
            most = max(self.size, len(seen))
            stale: list[int] = []
            while self.heap and self.heap[0][2] != self.round and len(stale) < most:
                bound, j, _ = heapq.heappop(self.heap)
                stale.append(j)
                seen.append(bound)
            items = np.sort(np.array(stale, dtype=np.int64))
            gains = self.function.gains(items) * self.weights[items]
            for gain, j in zip(gains.tolist(), items.tolist(), strict=True):
                heapq.heappush(self.heap, (-gain, j, self.round))
        if seen:
            self.size = max(_BATCH, sum(bound <= self.heap[0][0] for bound in seen))
        return super().pop()


def _drawn(ids: Any, n_candidates: int | None, held: Ints, seed: int) -> Ints:
    """Return ascending places of candidates: those of the least keys of ids, and those held."""
    if n_candidates is None or n_candidates >= len(ids):
        return np.arange(len(ids), dtype=np.int64)
    keys = Tape(seed).child("candidates").record_keys(ids)
    return np.union1d(np.argpartition(keys, n_candidates - 1)[:n_candidates], held)


def _per_row(y: Ints, rows: RecordRows, n_rows: int) -> PerRow:
    codes = np.full(n_rows, -1, dtype=np.int32)
    codes[rows.rows] = y
    return PerRow(codes)


def _weights(
    problem: StoredNearest, bound: Bound, code: Ints, k: int
) -> tuple[list[list[int]], Floats]:
    """Return the weight of each rank in each class, in whole numbers, and factors of candidates."""
    made: list[list[int]] = []
    factor = np.zeros(problem.n)
    for label in range(problem.n_classes):
        records = np.flatnonzero(code == label)
        if not bound.probability[records].any():
            made.append([0])
            continue
        block = ClassBlock.of_dense(records, np.zeros((records.size, 0)))
        weights = None
        if bound.unit is None and len(np.unique(bound.block[records])) == 1:
            _, weights, factor[records] = ranks_needed(bound, block, k)
        if weights is None:
            raise InvalidInputError(
                "owners stay with different probabilities in a class, or decide for several "
                "records; expected owners that are alike, because the chosen of each record are "
                "kept by rank alone where records stay where they are; pass one probability, or "
                "arrays"
            )
        made.append([round(each * _ONE) for each in weights[:-1].tolist()])
    return made, factor
