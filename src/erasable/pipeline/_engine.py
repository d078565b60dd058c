"""The engine of a composition: it has the steps learn and delete, and keeps the tables they read.

There is one, of the outermost composition. Of every table it knows the values for all records. A
deletion finds out what has changed in each table, corrects it, and tells the steps that read it;
a step that does not follow learns again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from erasable.core._deleting import forget_rows, learn_anew
from erasable.core.arrays import Flags, Ints
from erasable.core.attachment import Attachment
from erasable.core.changes import ANYTHING, Change
from erasable.core.deletion import Action, Outcome
from erasable.core.errors import ArtifactError, UnsupportedStepError
from erasable.core.estimator import Erasable
from erasable.core.messages import refuse_no_columns
from erasable.core.sparse import blank_rows
from erasable.core.values import Values
from erasable.core.views import View
from erasable.pipeline._layout import Learning
from erasable.pipeline._maps import compose
from erasable.pipeline._nested import Nested
from erasable.pipeline._nodes import (
    Node,
    Output,
    Select,
    Source,
    Stateless,
    Table,
    above_tables,
    evaluate,
)
from erasable.pipeline._reading import as_table, keeps_names
from erasable.preprocessing import SimpleImputer

_ACTIONS: tuple[Action, ...] = ("none", "updated", "resumed", "refit")
_AS_OBJECTS = "it read columns of numbers as objects, because other columns hold text"
_BLOCK = 2**20  # values that are made at once


class Engine:
    """A fitted composition with the records and tables that its steps read.

    Tables are functions of the live records; nothing of them is kept in a pickle or a file.

    Parameters
    ----------
    held : Attachment
        The records of the outermost composition.
    """

    def __init__(self, held: Attachment) -> None:
        self.held = held
        self._reads: dict[Node, Attachment] = {}
        self._start()

    def _start(self) -> None:
        self._changes: dict[Node, Change] = {}
        self._own: dict[Erasable, Change] = {}
        self._before: dict[Node, Values] = {}

    # -- learning ------------------------------------------------------------------------------

    def learn(self, root: Nested) -> None:
        """Have every step learn, one after the other, from the seeds that they have drawn."""
        self._learn(root, Source(), self.held)

    def _learn(self, part: Nested, source: Node, reads: Attachment) -> None:
        part._lay_out(source)
        self._reads[source] = reads
        part._declare(reads.records.numeric)
        for learning in part._layout.learners:
            step, reads = learning.step, self._open(learning)
            if isinstance(step, Nested):
                self._learn_nested(step, learning.reads, reads)
            else:
                step._relearn(reads, compose(learning.maps) if learning.maps else None)
            step._info.owner = part._sign
        part._end_learning(self)

    def _learn_nested(self, part: Nested, source: Node, reads: Attachment) -> None:
        part._begin_again(reads)
        self._learn(part, source, reads)

    def attach(self, root: Nested) -> None:
        """Show the records to steps that have been restored."""
        self._reads = {root._layout.source: self.held}
        self._attach(root)

    def _attach(self, part: Nested) -> None:
        part._declare(self._reads[part._layout.source].records.numeric)
        for learning in part._layout.learners:
            step, reads = learning.step, self._open(learning)
            widths = {compose(learning.maps).shift.size} if learning.maps else set()
            if not self.held.vouched:  # where a table is not made yet
                widths.add(reads.records.n_features)
            if widths - {step.n_features_in_}:
                raise ArtifactError(
                    f"the steps before {learning.name!r} make {max(widths)} columns; expected "
                    f"{step.n_features_in_}; take the file from a backup, or fit and save again"
                )
            step._held = reads
            if isinstance(step, Nested):
                self._attach(step)
            # What is not taken from a stranger's file is fitted again, before the next table is
            # made with it.
            elif step._has_to_fit_again:
                step._reattach()

    def prepare(self, part: Nested) -> None:
        """Rebuild the accelerators that are missing, or find out what is wrong with a part."""
        if not part._fault and self._learned_objects(part):
            part._fault = _AS_OBJECTS
        for learning in part._layout.learners:
            if part._fault:  # the steps do not fit the records
                return
            step = learning.step
            if isinstance(step, Nested):
                self.prepare(step)
                part._fault = step._fault
            elif step._accelerator is None:
                step._reattach()

    def _learned_objects(self, part: Nested) -> bool:
        """Tell whether a step learned from objects, as in old files, and is given numbers."""
        if self._reads[part._layout.source].records.numeric is None:
            return False
        for learning in part._layout.learners:
            parts = (learning.step, *learning.step.get_params().values()) if learning.tabled else ()
            imputers = [part for part in parts if isinstance(part, SimpleImputer)]
            if any(imputer.statistics_.dtype == object for imputer in imputers):
                return bool(self._reads[learning.reads].records.matrix.dtype != object)
        return False

    # -- tables --------------------------------------------------------------------------------

    def _open(self, learning: Learning) -> Attachment:
        """Return what a step is to learn from; make the table if it is the first to read it."""
        node = learning.reads
        if not learning.tabled:
            source = self._reads[node]
            return View(self.held, source.records.matrix) if learning.maps else source
        make = partial(self._tabulate, node)
        # What is loaded is mostly about to lose records: a table that no deletion leaves as it is
        # may never be asked for.
        late = self.held.vouched and learning.changes_all()
        view = View(self.held, make if late else make())
        view.records.feature_names, view.records.numeric = self._declared(learning)
        self._reads[node] = view
        return view

    def _declared(self, learning: Learning) -> tuple[list[str] | None, Flags | None]:
        """Return the names of the columns of a table, and which a frame declares to be numbers."""
        assert isinstance(learning.reads, Table)
        node, step = learning.reads.input, learning.step
        asks = isinstance(step, Nested) and step._asks_by_name
        if isinstance(node, Select):
            names = list(node.selection.names) if asks and node.selection.named else None
            return names, node.selection.numeric
        if asks and isinstance(node, Stateless):
            return self._names_before(node), None
        if isinstance(node, Output) and node.step._hands_on:
            records = self._reads[node.input].records
            return records.feature_names, records.numeric
        return None, None

    def _names_before(self, node: Node) -> list[str] | None:
        """Return the names of the columns of a frame, where stateless steps hand them on."""
        while isinstance(node, Stateless) and keeps_names(node.step):
            node = node.input
        if isinstance(node, Select):
            return list(node.selection.names) if node.selection.named else None
        return self._reads[node].records.feature_names if node in self._reads else None

    def _tabulate(self, table: Node) -> Values:
        """Make a table for the live records; the rows of others are blank.

        Raises
        ------
        UnsupportedStepError
            A stateless step treats a row differently when it is alone.
        """
        nodes = list(above_tables(table.inputs[0]))
        below = {each for node in nodes for each in node.inputs}.difference(nodes)
        width = sum(self._reads[node].records.n_features for node in below)
        live = self.held.live_rows()
        step = max(1, _BLOCK // max(1, width))
        blocks = [self._rows(table, live[:step], held=True)]
        stateless = [node.name for node in nodes if isinstance(node, Stateless)]
        if stateless and not _equal(self._rows(table, live[:1]), blocks[0][:1]):
            names = ", ".join(map(repr, reversed(stateless)))
            raise UnsupportedStepError(
                f"step {names} gives a row other values when it is alone, so it learns from the "
                "others or multiplies them as a whole; expected a function of each row; use an "
                "estimator of erasable, or transform the data before the pipeline"
            )
        for start in range(step, live.size, step):
            blocks.append(self._rows(table, live[start : start + step], held=True))
        return _spread(blocks, live, self.held.records.n_rows)

    def _rows(self, table: Node, rows: Ints, *, held: bool = False) -> Values:
        """Make rows of a table anew, out of the tables before it."""

        def known(node: Node) -> Values | None:
            if node is table:
                return None
            matrix = self._reads[node].records.matrix[rows]
            return matrix if matrix.dtype == object else matrix.astype(np.float64, copy=False)

        return evaluate(table, known, rows if held else None)

    def first_row(self, part: Nested, node: Node) -> Values:
        """Make a row of a node of a composition, for the first of the records."""
        source = part._layout.source
        row = as_table(self._reads[source].records.matrix[self.held.live_rows()[:1]])
        return evaluate(node, lambda each: row if each is source else None)

    # -- deleting ------------------------------------------------------------------------------

    def remove(self, root: Nested, rows: Ints) -> Outcome:
        """Delete rows, at positions that are not live any more but can be read, from every step."""
        self._start()
        try:
            outcome = join_outcomes(list(self._remove(root, rows)))
            learners = list(_learners(root))
            kept = {root._layout.source, *(learning.reads for learning in learners)}
            self._reads = {node: self._reads[node] for node in kept}
            for node, reads in self._reads.items():
                if isinstance(node, Table):
                    blank_rows(reads.records.matrix, rows)
            for learning in learners:
                learning.step._info.settle(rows, None)  # the root knows the set of ids
        finally:
            self._start()
        return outcome

    def _remove(self, part: Nested, rows: Ints) -> Iterator[tuple[str, Outcome]]:
        part._start_deletion()
        for learning in part._layout.learners:
            name, step, change = learning.name, learning.step, self.of(learning.reads)
            if change:
                self._correct(learning, change)
            if isinstance(step, Nested) and (not change or change.in_place):
                for inner, outcome in self._remove(step, rows):
                    yield f"{name}.{inner}", outcome
            else:
                yield name, self._delete(learning, rows, change)
        part._end_deletion(self)

    def _delete(self, learning: Learning, rows: Ints, change: Change) -> Outcome:
        step = learning.step
        if learning.maps:
            step._map = compose(learning.maps)
        if not change:
            again = step._learns_sooner(rows.size)
            outcome = forget_rows(step, rows)
            self._own[step] = ANYTHING if again else step._output_change()
            return outcome
        followed = self._follow(learning, rows, change)
        self._own[step] = ANYTHING if followed is None else step._output_change()
        if followed is not None:
            return followed
        if not isinstance(step, Nested):
            return learn_anew(step, step._attached(), step._map)
        owner = step._info.owner
        self._learn_nested(step, learning.reads, step._attached())
        step._info.owner = owner
        return Outcome("refit", self.held.n_live, {"refits": 1})

    def _follow(self, learning: Learning, rows: Ints, change: Change) -> Outcome | None:
        """Have a step follow a change of its table, if it can."""
        step, records = learning.step, learning.step._attached().records
        before = self._before.get(learning.reads)
        if before is not None and change.rows is not None:
            outcome = step._update_rows(rows, change.rows, before)
            if outcome is not None:
                return outcome
        refuse_no_columns(records.matrix, type(step).__name__)
        width = step.n_features_in_
        if not change.known or (change.origin is None and records.n_features != width):
            return None
        step._take_features(records.n_features, None)
        step._info.constants = None
        return step._resume(rows, np.arange(width) if change.origin is None else change.origin)

    def _correct(self, learning: Learning, change: Change) -> None:
        """Bring what a step reads to what it is without the records."""
        records = self._reads[learning.reads].records
        if not learning.tabled:
            learning.step._attached().records.matrix = records.matrix
        elif change.in_place and not issparse(records.matrix):
            self._before[learning.reads] = records.matrix[change.rows]
            assert change.rows is not None
            records.matrix[change.rows] = self._rows(learning.reads, change.rows)
        else:
            # A new table and not new values in the old one: it may have other columns.
            records.matrix = self._tabulate(learning.reads)

    # -- changes, as nodes ask for them --------------------------------------------------------

    def of(self, node: Node) -> Change:
        """See `erasable.pipeline._nodes.Changes`."""
        if node not in self._changes:
            self._changes[node] = node.change(self)
        return self._changes[node]

    def own(self, step: Erasable) -> Change:
        """See `erasable.pipeline._nodes.Changes`."""
        if isinstance(step, Nested) and step not in self._own:
            return self.of(step._layout.output)
        return self._own[step]

    def raw(self, step: Nested) -> Change:
        """See `erasable.pipeline._nodes.Changes`."""
        return self._own[step] if step in self._own else self.of(step._layout.raw)


def _learners(part: Nested) -> Iterator[Learning]:
    """Yield the steps that learn, at any depth."""
    for learning in part._layout.learners:
        yield learning
        if isinstance(learning.step, Nested):
            yield from _learners(learning.step)


def join_outcomes(outcomes: Sequence[tuple[str, Outcome]]) -> Outcome:
    """Make one outcome of those of several steps, whose counts get their names.

    Examples
    --------
    >>> parts = [("scaler", Outcome("updated")), ("model", Outcome("refit", 7, {"refits": 1}))]
    >>> join_outcomes(parts)
    Outcome(action='refit', rows_touched=7, counts={'model.refits': 1})
    """
    action = max([1, *(_ACTIONS.index(outcome.action) for _, outcome in outcomes)])
    touched = sum(outcome.rows_touched for _, outcome in outcomes)
    counts = {
        f"{name}.{what}": count
        for name, outcome in outcomes
        for what, count in outcome.counts.items()
    }
    return Outcome(_ACTIONS[action], touched, counts)


def _equal(alone: Values, among: Values) -> bool:
    """Tell whether two tables are the same, gaps included."""
    first, second = (rows.toarray() if issparse(rows) else rows for rows in (alone, among))
    if first.shape != second.shape:
        return False
    return bool(((first == second) | ((first != first) & (second != second))).all())


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
