"""The chain of a fitted pipeline: what each step reads, and how a deletion passes along."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.core.deletion import Action, Outcome
from erasable.core.errors import UnsupportedStepError
from erasable.core.grid import PrecisionWarning
from erasable.core.records import Attachment
from erasable.core.steps import View
from erasable.pipeline._stages import Stage, carry, compose

__all__ = ["Chain"]

Ints: TypeAlias = NDArray[np.int64]
Change: TypeAlias = Ints | None
"""Positions of the rows that changed; None where any may have."""

_NOTHING: Ints = np.empty(0, dtype=np.int64)
_ACTIONS: tuple[Action, ...] = ("none", "updated", "resumed", "refit")
_BLOCK = 2**20  # values that are sent through a path at once


class Chain:
    """The stages of a pipeline with the records of the steps that learn.

    Every step reads the records themselves, or a `View`: of the records behind a map, or of a
    table that holds what the steps before make of them. A table is a function of the live
    records; nothing of it is kept in a pickle or a file.

    Parameters
    ----------
    stages : sequence of Stage
        From `plan`.
    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages = stages
        self.learners = [stage for stage in stages if stage.learns]
        self.held: Attachment | None = None
        self._reads: dict[str, Attachment] = {}
        self._tables: list[View] = []

    # -- learning ------------------------------------------------------------------------------

    def learn(self, held: Attachment, owner: object) -> None:
        """Let every step learn, one after the other, from the seeds that they have drawn."""
        self.held = held
        self._reads = {}
        self._tables = []
        for stage in self.learners:
            reads = self._open(stage, held)
            stage.step._relearn(reads, compose(stage.path) if stage.mapped else None)
            stage.step._book.owner = owner

    def attach(self, held: Attachment) -> None:
        """Show the records to steps that have been restored."""
        self.held = held
        self._reads = {}
        self._tables = []
        for stage in self.learners:
            stage.step._held = self._open(stage, held)

    def prepare(self) -> None:
        """Rebuild the accelerators that are missing, before anything changes."""
        for stage in self.learners:
            if stage.step._accelerator is None:
                stage.step._reattach()

    def _open(self, stage: Stage, held: Attachment) -> Attachment:
        source = self._tables[-1] if self._tables else held
        reads: Attachment = source
        if stage.tabled:
            reads = View(held, _tabulate(stage.path, source))
            self._tables.append(reads)
        elif stage.mapped:
            reads = View(held, source.records.matrix)
        self._reads[stage.name] = reads
        return reads

    # -- forgetting ----------------------------------------------------------------------------

    def remove(self, rows: Ints) -> tuple[Outcome, Change]:
        """Delete rows from every step; say also which rows of the last one's output changed.

        Parameters
        ----------
        rows : ndarray of int64
            Positions of records that are not live any more, but can be read.
        """
        assert self.held is not None
        action, touched = 1, 0
        counts: dict[str, int] = {}
        changes: dict[str, Change] = {}
        source: Attachment = self.held
        below: Change = _NOTHING  # what changed in the table that was made last
        for stage in self.learners:
            if stage.mapped:
                change = below
                stage.step._map = compose(stage.path)
            else:
                change = _union([below, *(changes[s.name] for s in stage.path if s.learns)])
            if change is not None and change.size == 0:
                outcome = stage.step._delete_rows(rows)
                changes[stage.name] = _output_change(stage.step)
            else:
                outcome, changes[stage.name] = self._follow(stage, source, rows, change)
            if stage.tabled:
                source, below = self._reads[stage.name], change
            action = max(action, _ACTIONS.index(outcome.action))
            touched += outcome.rows_touched
            for name, count in outcome.counts.items():
                counts[f"{stage.name}.{name}"] = count
        self._wipe(rows)
        last = self.stages[-1:]
        after = [changes[stage.name] for stage in (*self._tail(), *last) if stage.learns]
        return Outcome(_ACTIONS[action], touched, counts), _union([below, *after])

    def _tail(self) -> tuple[Stage, ...]:
        return self.stages[-1].path if self.stages else ()

    def _follow(
        self, stage: Stage, source: Attachment, rows: Ints, change: Change
    ) -> tuple[Outcome, Change]:
        """Delete from a step whose input has changed, besides."""
        step, reads = stage.step, self._reads[stage.name]
        if stage.tabled and change is not None:
            matrix = reads.records.matrix
            before = matrix[change]
            matrix[change] = carry(_read(source, change), stage.path)
            if hasattr(step, "_update_rows"):
                return step._update_rows(rows, change, before), _output_change(step)
        elif stage.tabled:
            # A new table and not new values in the old one: it may have other columns.
            reads.records.matrix = _tabulate(stage.path, source)
        else:
            reads.records.matrix = source.records.matrix
        affine = step._map if stage.mapped else None
        owner = step._book.owner
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrecisionWarning)  # it was given at fit
            step._relearn(reads, affine)
        step._book.owner = owner
        return Outcome("refit", reads.n_live, {"refits": 1}), None

    def _wipe(self, rows: Ints) -> None:
        assert self.held is not None
        for table in self._tables:
            table.records.matrix[rows] = 0.0
        ids = self.held.records.ids[rows]
        for stage in self.learners:
            book = stage.step._book
            book.id_set = None  # the pipeline knows it
            book.forget(ids, rows)


def _output_change(step: Any) -> Change:
    columns, rows = step._changed_columns, step._changed_rows
    if columns is not None and not columns.any():
        return _NOTHING
    return None if rows is None else np.asarray(rows, dtype=np.int64)


def _union(changes: Iterable[Change]) -> Change:
    found = _NOTHING
    for change in changes:
        if change is None:
            return None
        if change.size:
            found = np.union1d(found, change)
    return found


def _read(source: Attachment, rows: Ints) -> NDArray[Any]:
    return source.records.matrix[rows].astype(np.float64, copy=False)


def _tabulate(path: Sequence[Stage], source: Attachment) -> NDArray[np.float64]:
    """Make the table of what a path makes of the live rows; the others are 0.

    Raises
    ------
    UnsupportedStepError
        A stateless step treats a row differently when it is alone.
    """
    n_rows, width = source.records.matrix.shape
    live = source.live_rows()
    step = max(1, _BLOCK // max(1, width))
    first = carry(_read(source, live[:step]), path)
    if not all(stage.learns for stage in path):
        _refuse_dependent(path, _read(source, live[:1]), first[:1])
    table = np.zeros((n_rows, first.shape[1]))
    table[live[:step]] = first
    for start in range(step, live.size, step):
        rows = live[start : start + step]
        table[rows] = carry(_read(source, rows), path)
    return table


def _refuse_dependent(path: Sequence[Stage], row: NDArray[Any], expected: NDArray[Any]) -> None:
    if not np.array_equal(carry(row, path), expected):
        names = ", ".join(repr(stage.name) for stage in path if not stage.learns)
        raise UnsupportedStepError(
            f"step {names} gives a row other values when it is alone, so it learns from the others "
            "or multiplies them as a whole; expected a function of each row; use an estimator of "
            "erasable, or transform the data before the pipeline"
        )
