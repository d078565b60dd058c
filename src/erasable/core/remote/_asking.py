"""Jobs that run passes over blocks, copy rows, and overwrite rows.

The law kept here: a job carries everything that changes the result. A block that is not as the job
expects it is named in the answer and not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce as fold
from typing import Any

import numpy as np

from erasable.core._grid_kernels import NO_ROWS
from erasable.core._mixed import Mixed
from erasable.core.arrays import Ints
from erasable.core.messages import refuse_not_finite
from erasable.core.passes import Block, Pass
from erasable.core.remote._jobs import BlockCall, HeldBlock, Job, Shelf, give_back
from erasable.core.remote._masking import Masked, masked
from erasable.core.row_arrays import PerRow, Scratch, Written
from erasable.core.threads import in_threads


@dataclass
class Answer:
    """The result of a job."""

    partial: Any = None  # result of a pass or other job in all blocks of the worker
    # For each block, what was written into row arrays, by their names.
    written: dict[int, dict[str, Any]] = field(default_factory=dict)
    # Blocks that are not here; then nothing was done.
    missing: list[int] = field(default_factory=list)
    # Blocks that are not as the job expects; then nothing was done.
    doubtful: list[int] = field(default_factory=list)

    def __repr__(self) -> str:
        """Show no values."""
        return f"Answer(missing={self.missing}, doubtful={self.doubtful})"


@dataclass(frozen=True, repr=False)
class RunPass(Job):
    """Run a pass over blocks."""

    pass_: Pass[Any]
    calls: Mapping[int, BlockCall]
    columns: list[int] | None  # None for all
    alive: frozenset[str]  # names of the row arrays that may be used again; others are dropped
    names: list[str] = field(default_factory=list)  # of all columns, for messages

    def run(self, shelf: Shelf, n_threads: int) -> Answer:
        """See `Job`."""
        answer = Answer()
        arrays = self.pass_.row_arrays()
        needed = {each.key for each in arrays if isinstance(each, PerRow)}
        blocks: dict[int, Block] = {}
        with shelf.lock:
            for number, call in self.calls.items():
                held = shelf.blocks.get(number)
                if held is None:
                    answer.missing.append(number)
                    continue
                for name in held.parts.keys() - self.alive:
                    del held.parts[name]
                if not held.change(call) or not needed <= held.parts.keys():
                    answer.doubtful.append(number)
                    continue
                if not self.pass_.takes_gaps:
                    self._refuse_gaps(held)
                blocks[number] = self._block(held, call, arrays)
        if answer.missing or answer.doubtful:
            return answer

        def of_block(number: int) -> Any:
            block = blocks[number]
            if self.columns is not None:
                some = columns_of(block.matrix, self.columns)
                block = block._replace(matrix=some, columns=tuple(self.columns))
            return self.pass_.of_block(block)

        answer.partial = fold(self.pass_.merge, in_threads(of_block, blocks, n_threads))
        written = [each.key for each in arrays if isinstance(each, Written)]
        for number, block in blocks.items() if written else ():
            assert block.parts is not None
            answer.written[number] = {key: block.parts[key] for key in written}
        return answer

    def _refuse_gaps(self, held: HeldBlock) -> None:
        """Raise InvalidDataError for gaps in the columns of a pass."""
        matrix = held.matrix
        if isinstance(matrix, np.ndarray) and not held.finite:
            held.finite = bool(np.isfinite(matrix.sum()))
        if held.finite:
            return
        chosen = range(matrix.shape[1]) if self.columns is None else self.columns
        values = matrix if self.columns is None else columns_of(matrix, self.columns)
        if isinstance(values, np.ndarray) and not np.isfinite(values.sum()):
            refuse_not_finite(values, [self.names[j] for j in chosen])

    def _block(self, held: HeldBlock, call: BlockCall, arrays: Sequence[Any]) -> Block:
        rows = held.rows if call.rows is None else call.rows
        every = rows is None
        matrix = held.matrix
        size = len(matrix) if rows is None else rows.size
        for each in arrays:
            if isinstance(each, Scratch) and each.key not in held.parts:
                held.parts[each.key] = each.room(len(matrix))
        rooms = {each.key: each.room(size) for each in arrays if isinstance(each, Written)}
        parts = {**held.parts, **call.passing, **rooms}
        own = NO_ROWS if rows is None else rows
        return Block(matrix, own, every, call.first, call.rank, None, parts)


@dataclass(frozen=True, repr=False)
class Fetch(Job):
    """Copy rows of blocks, masked with `pad`."""

    pad: int
    rows: Mapping[int, Ints | None]  # positions in each block; None for all
    columns: list[int] | None = None

    def run(self, shelf: Shelf, n_threads: int) -> Answer:
        """See `Job`."""
        answer = Answer(missing=[number for number in self.rows if number not in shelf.blocks])
        if not answer.missing:
            answer.partial = {
                number: self._of(shelf.blocks[number].matrix, number) for number in self.rows
            }
        return answer

    def _of(self, matrix: Any, number: int) -> Masked:
        values = _copied(matrix, self.rows[number], self.columns)
        return masked(values, self.pad, number)


def _copied(matrix: Any, rows: Ints | None, columns: Sequence[int] | None) -> Any:
    """Copy rows and columns of a block in one step, so that no other copy stays in memory."""
    mixed = isinstance(matrix, Mixed)
    chosen = range(matrix.shape[1]) if columns is None else columns
    at: Any = np.arange(len(matrix)) if rows is None else rows
    if columns is not None:
        at = np.ix_(at, columns)
    numbers = (matrix.numbers if mixed else matrix)[at]
    return matrix.part(numbers, chosen) if mixed else numbers


def columns_of(matrix: Any, columns: Sequence[int]) -> Any:
    """Copy some columns of a block."""
    if isinstance(matrix, Mixed):
        return matrix.chosen(columns)
    return np.ascontiguousarray(matrix[:, columns])


def overwrite(matrix: Any, rows: Ints) -> None:
    """Overwrite rows of a block that no model holds, all of them each time."""
    if isinstance(matrix, Mixed):
        live = np.ones(len(matrix), dtype=np.bool_)
        live[rows] = False
        matrix.overwrite(rows, live)
    else:
        matrix[rows] = 0.0


@dataclass(frozen=True, repr=False)
class Forget(Job):
    """Overwrite rows and drop values derived from them; drop blocks that moved elsewhere."""

    rows: Mapping[int, Ints]
    own: frozenset[int]  # blocks that this worker keeps

    def run(self, shelf: Shelf, n_threads: int) -> Answer:
        """See `Job`."""
        with shelf.lock:
            for number in shelf.blocks.keys() - self.own:
                del shelf.blocks[number]
            for number, rows in self.rows.items():
                held = shelf.blocks.get(number)
                if held is not None:
                    overwrite(held.matrix, rows)
                    held.parts.clear()
        give_back()
        return Answer(missing=[number for number in self.rows if number not in shelf.blocks])
