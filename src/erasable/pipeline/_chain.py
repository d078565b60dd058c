"""The chain of a fitted pipeline: what each step reads, and how a deletion passes along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from erasable.core._whole import forget_rows, learn_anew
from erasable.core.complaints import refuse_no_columns
from erasable.core.deletion import Action, Outcome
from erasable.core.errors import ArtifactError, UnsupportedStepError
from erasable.core.records import Attachment
from erasable.core.sparse import blank_rows
from erasable.core.steps import View
from erasable.core.values import Values
from erasable.pipeline._changes import ANYTHING, NOTHING, Change, output_change, union
from erasable.pipeline._stages import Link, Stage, as_table, carry, compose, hands_on, lead, split
from erasable.preprocessing import SimpleImputer

__all__ = ["Chain", "join_outcomes"]

Ints: TypeAlias = NDArray[np.int64]

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
        self._start(held)
        for stage in self.learners:
            reads = self._open(stage, held)
            stage.step._relearn(reads, compose(stage.maps) if stage.mapped else None)
            stage.step._book.owner = owner

    def attach(self, held: Attachment) -> None:
        """Show the records to steps that have been restored."""
        self._start(held)
        for stage in self.learners:
            reads, width = self._open(stage, held), stage.step.n_features_in_
            widths = {part.size for part in compose(stage.maps)} if stage.mapped else set()
            if not held.vouched:  # where a table is not made yet
                widths.add(reads.records.n_features)
            if widths - {width}:
                raise ArtifactError(
                    f"the steps before {stage.name!r} make {max(widths)} columns; expected "
                    f"{width}; take the file from a backup, or fit and save again"
                )
            stage.step._held = reads
            # Whether a nested composition hands on numbers depends on what it is given, and the
            # next step may read what it hands on.
            for chain in getattr(stage.step, "_chains", {}).values():
                chain.attach(reads)
            # What is not taken from a stranger's file is fitted again, before the next table is
            # made with it.
            if stage.step._has_to_fit_again:
                stage.step._reattach()

    def prepare(self) -> None:
        """Rebuild the accelerators that are missing, before anything changes."""
        for stage in self.learners:
            if stage.step._accelerator is None:
                stage.step._reattach()

    def learned_objects(self) -> bool:
        """Tell whether a part learned from objects, as in old files, and is given numbers."""
        assert self.held is not None
        if self.held.records.numeric is None:
            return False
        for stage in self.learners:
            parts = (stage.step, *stage.step.get_params().values()) if stage.tabled else ()
            imputers = [part for part in parts if isinstance(part, SimpleImputer)]
            if any(imputer.statistics_.dtype == object for imputer in imputers):
                return bool(self._reads[stage.name].records.matrix.dtype != object)
        return False

    def refuse(self, rows: Ints) -> None:
        """Let every step refuse a deletion that it could not follow."""
        for stage in self.learners:
            stage.step._refuse_deletion(rows)

    def _start(self, held: Attachment) -> None:
        self.held = held
        self._reads = {}
        self._tables = []
        first: Any = self.stages[0].step if self.stages else None
        if getattr(first, "_is_selection", False):
            first.declare(held.records.numeric)

    def _open(self, stage: Stage, held: Attachment) -> Attachment:
        source = self._tables[-1] if self._tables else held
        reads: Attachment = source
        if stage.tabled:
            if all(hands_on(link.step) for link in stage.table):
                names, numeric = source.records.feature_names, source.records.numeric
            else:
                names, numeric = stage.declared()
            make = partial(tabulate, stage, source)
            # What is loaded is mostly about to lose records: a table that no deletion leaves as
            # it is may never be asked for.
            late = held.vouched and any(link.changes_all() for link in stage.table)
            reads = View(held, make if late else make())
            reads.records.feature_names, reads.records.numeric = names, numeric
            self._tables.append(reads)
        elif stage.mapped:
            reads = View(held, source.records.matrix)
        self._reads[stage.name] = reads
        return reads

    # -- forgetting ----------------------------------------------------------------------------

    def remove(self, rows: Ints, below: Change = NOTHING) -> Outcome:
        """Delete rows from every step.

        Parameters
        ----------
        rows : ndarray of int64
            Positions of records that are not live any more, but can be read.
        below : Change
            What else has changed in the records.
        """
        assert self.held is not None
        outcomes: list[tuple[str, Outcome]] = []
        self._changes: dict[str, Change] = {}
        self._raw_changes: dict[str, Change] = {}
        source: Attachment = self.held
        for stage in self.learners:
            if stage.mapped:
                stage.step._map = compose(stage.maps)
            change = self._along(stage.table, below) if stage.tabled else below
            if not change:
                again = stage.step._learns_sooner(rows.size)
                outcome = forget_rows(stage.step, rows)
                self._changes[stage.name] = ANYTHING if again else output_change(stage.step)
                if stage.step._ends_in_map:
                    self._raw_changes[stage.name] = output_change(stage.step, raw=True)
            else:
                outcome = self._follow(stage, source, rows, change)
            if stage.tabled:
                source, below = self._reads[stage.name], change
            outcomes.append((stage.name, outcome))
        self._below = below
        self._wipe(rows)
        return join_outcomes(outcomes)

    def output_change(self, *, raw: bool = False) -> Change:
        """Say what the last deletion changed in the output, or in that before its last maps."""
        if not self.stages:
            return self._below
        after = self.stages[-1].after
        return self._along(split(after)[0] if raw else after, self._below)

    def _along(self, path: Sequence[Link], below: Change) -> Change:
        change = below
        for link in path:
            if link.part == "map":  # of a table whose change is known: it moves no columns
                whole = self._changes[link.name]
                rows = union([Change(change.rows), Change(whole.rows)]).rows
                change = Change(rows, change.origin, change.known and whole.known)
            elif link.learns:
                own = (self._raw_changes if link.part == "raw" else self._changes)[link.name]
                change = union([change.after([]), own])
            else:
                change = change.after([])
        return change

    def _follow(self, stage: Stage, source: Attachment, rows: Ints, change: Change) -> Outcome:
        """Delete from a step whose input has changed, besides."""
        step, reads = stage.step, self._reads[stage.name]
        width = step.n_features_in_
        before = None
        if not stage.tabled:
            reads.records.matrix = source.records.matrix
        elif change.in_place and not issparse(reads.records.matrix):
            matrix = reads.records.matrix
            before = matrix[change.rows]
            matrix[change.rows] = stage.read(_read(source, change.rows))
        else:
            # A new table and not new values in the old one: it may have other columns.
            reads.records.matrix = tabulate(stage, source)
        if before is not None and hasattr(step, "_update_rows"):
            outcome: Outcome = step._update_rows(rows, change.rows, before)
            self._changes[stage.name] = output_change(step)
            return outcome
        refuse_no_columns(reads.records.matrix, type(step).__name__)
        if hasattr(step, "_resume") and change.known:
            same = change.origin is None and reads.records.n_features == width
            if same or change.origin is not None:
                step._take_features(reads.records.n_features, None)
                step._book.constants = None
                outcome = step._resume(rows, np.arange(width) if same else change.origin)
                self._changes[stage.name] = output_change(step)
                return outcome
        self._changes[stage.name] = self._raw_changes[stage.name] = ANYTHING
        return learn_anew(step, reads, step._map if stage.mapped else None)

    def _wipe(self, rows: Ints) -> None:
        for table in self._tables:
            blank_rows(table.records.matrix, rows)
        for stage in self.learners:
            stage.step._book.settle(rows, None)  # the pipeline knows the set of ids

    # -- transforming --------------------------------------------------------------------------

    def transform(self, rows: Values, *, raw: bool = False) -> Values:
        """Send rows through all steps, or through all but the maps of columns at the end."""
        for stage in self.stages:
            if stage.tabled:
                rows = stage.read(rows)
        if not self.stages:
            return rows
        after = self.stages[-1].after
        return carry(rows, split(after)[0] if raw else after)

    def apply_last_maps(self, rows: Values) -> Values:
        """Apply the maps of columns with which the chain ends to what it makes before them."""
        return carry(rows, self.last_maps())

    def last_maps(self) -> tuple[Link, ...]:
        """Return the maps of columns with which the chain ends."""
        return split(self.stages[-1].after)[1] if self.stages else ()

    def ask(self, method: str, rows: Values, *args: Any) -> Any:
        """Call a method of the last step on what the others make of rows."""
        return getattr(self.stages[-1].step, method)(lead(rows, self.stages), *args)


def join_outcomes(outcomes: Sequence[tuple[str, Outcome]]) -> Outcome:
    """Make one outcome of those of several parts, whose counts get their names if they have any.

    Examples
    --------
    >>> parts = [("scaler", Outcome("updated")), ("model", Outcome("refit", 7, {"refits": 1}))]
    >>> join_outcomes(parts)
    Outcome(action='refit', rows_touched=7, counts={'model.refits': 1})
    """
    action, touched = 1, 0
    counts: dict[str, int] = {}
    for name, outcome in outcomes:
        action = max(action, _ACTIONS.index(outcome.action))
        touched += outcome.rows_touched
        for what, count in outcome.counts.items():
            counts[f"{name}.{what}" if name else what] = count
    return Outcome(_ACTIONS[action], touched, counts)


def _read(source: Attachment, rows: Any) -> Values:
    matrix = source.records.matrix[rows]
    return matrix if matrix.dtype == object else matrix.astype(np.float64, copy=False)


def tabulate(stage: Stage, source: Attachment) -> Values:
    """Make the table that a step learns from, out of the live rows; the others are blank.

    Raises
    ------
    UnsupportedStepError
        A stateless step treats a row differently when it is alone.
    """
    n_rows, width = source.records.matrix.shape
    live = source.live_rows()
    path, first = stage.table, stage.table[0]
    if first.learns and first.part == "whole" and hasattr(first.step, "_transform_held"):
        made = as_table(first.step._transform_held(live), fresh=True)
        return _spread([replace(stage, table=path[1:]).read(made)], live, n_rows)
    step = max(1, _BLOCK // max(1, width))
    blocks = [stage.read(_read(source, live[:step]))]
    if not all(link.learns or link.selects() for link in path):
        _refuse_dependent(stage, _read(source, live[:1]), blocks[0][:1])
    for start in range(step, live.size, step):
        blocks.append(stage.read(_read(source, live[start : start + step])))
    return _spread(blocks, live, n_rows)


def _spread(blocks: list[Values], live: Ints, n_rows: int) -> Values:
    """Put rows where their records are."""
    if issparse(blocks[0]):
        stacked = blocks[0] if len(blocks) == 1 else vstack(blocks, format="csr")
        starts = np.zeros(n_rows + 1, dtype=stacked.indptr.dtype)
        starts[live + 1] = np.diff(stacked.indptr)
        starts = np.cumsum(starts, dtype=stacked.indptr.dtype)
        return csr_array((stacked.data, stacked.indices, starts), shape=(n_rows, stacked.shape[1]))
    kind = blocks[0].dtype
    table = np.full((n_rows, blocks[0].shape[1]), "" if kind.hasobject else 0, dtype=kind)
    start = 0
    for block in blocks:
        table[live[start : start + len(block)]] = block
        start += len(block)
    return table


def _refuse_dependent(stage: Stage, row: Values, expected: Values) -> None:
    if not np.array_equal(stage.read(row), expected):
        names = ", ".join(repr(link.name) for link in stage.table if not link.learns)
        raise UnsupportedStepError(
            f"step {names} gives a row other values when it is alone, so it learns from the others "
            "or multiplies them as a whole; expected a function of each row; use an estimator of "
            "erasable, or transform the data before the pipeline"
        )
