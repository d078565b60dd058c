"""Engine of a composition: it has the steps learn and delete, and keeps the tables they read.

Only the outermost composition has one. It keeps each table for all records. A deletion or an
addition computes the change of each table, corrects the table, and passes the change to the steps
that read it; a step that cannot follow the change is fitted again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from erasable.core._changing import learn_anew
from erasable.core._derived import Derived
from erasable.core.arrays import Flags, Ints, Values
from erasable.core.attachment import Attachment
from erasable.core.changes import ANYTHING, Delta, TableChange
from erasable.core.deletion import Action, Outcome
from erasable.core.errors import ArtifactError
from erasable.core.estimator import Erasable
from erasable.core.matrices import blank_rows
from erasable.core.messages import refuse_no_columns
from erasable.core.persistent import Persistent
from erasable.core.views import View
from erasable.pipeline._layout import Learning, Nested
from erasable.pipeline._making import derived, refuse_joint, refuse_sparse
from erasable.pipeline._maps import compose
from erasable.pipeline._nodes import (
    GraphNode,
    Output,
    RecordsNode,
    Select,
    Stateless,
    TableNode,
    above_tables,
    evaluate,
)
from erasable.pipeline._tables import Room, as_table, filled, keeps_names, leave, lengthened, spread

_BLOCK = 2**20  # values made at a time


class KeptTables(Persistent):
    """The records of a composition, and the tables that are made of them."""

    def __init__(self, held: Attachment) -> None:
        self.held = held
        self._reads: dict[GraphNode, Attachment] = {}
        self._room: dict[GraphNode, Room] = {}
        self._left: list[tuple[Values, Room]] = []

    def _kept_attributes(self) -> dict[str, Any]:
        """Leave out rooms of objects: after reading, they are not the memory of their table."""
        room = {
            node: room
            for node, room in self._room.items()
            if not any(buffer.dtype == object for buffer in room.values())
        }
        return {**super()._kept_attributes(), "_room": room}

    def _open(self, learning: Learning) -> Attachment:
        """Return the input of a step; make the table if this is its first reader."""
        node = learning.reads
        if not learning.tabled:
            source = self._reads[node]
            return View(self.held, source.records.matrix) if learning.maps else source
        make = partial(self._tabulate, node)
        # A loaded model mostly deletes next: a table that every deletion changes may not be needed.
        late = self.held.vouched and learning.changes_all()
        view = View(self.held, make if late else make())
        view.records.feature_names, view.records.numeric = self._declared(learning)
        view.records.types = self._types(learning.reads)
        self._reads[node] = view
        return view

    def _declared(self, learning: Learning) -> tuple[list[str] | None, Flags | None]:
        """Return the names of a table's columns, and flags of those a frame declares numeric."""
        assert isinstance(learning.reads, TableNode)
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

    def _types(self, table: GraphNode) -> tuple[str, ...] | None:
        """Return the types of columns that a table shares with a frame."""
        node = table.input if isinstance(table, TableNode) else table
        if isinstance(node, Select):
            types = self._reads[node.input].records.types
            return types and tuple(types[place] for place in node.selection.columns)
        if isinstance(node, Output) and node.step._hands_on:
            return self._reads[node.input].records.types
        return None

    def _names_before(self, node: GraphNode) -> list[str] | None:
        """Return the names of the columns of a frame, if stateless steps keep them."""
        while isinstance(node, Stateless) and keeps_names(node.step):
            node = node.input
        if isinstance(node, Select):
            return list(node.selection.names) if node.selection.named else None
        return self._reads[node].records.feature_names if node in self._reads else None

    def _tabulate(self, table: GraphNode) -> Values:
        """Make a table for the live records; the rows of others are blank.

        Raise UnsupportedStepError if a stateless step treats a row differently when it is alone.
        """
        if self.held.records.is_stored:
            source = next(node for node in self._reads if isinstance(node, RecordsNode))
            return derived(self.held, table, source)
        nodes = list(above_tables(table.inputs[0]))
        below = {each for node in nodes for each in node.inputs}.difference(nodes)
        width = sum(self._reads[node].records.n_features for node in below)
        live = self.held.live_rows()
        step = max(1, _BLOCK // max(1, width))
        blocks = [self._rows(table, live[:step], held=True)]
        stateless = [node.name for node in nodes if isinstance(node, Stateless)]
        if stateless:
            refuse_joint(stateless, self._rows(table, live[:1]), blocks[0][:1])
        for start in range(step, live.size, step):
            blocks.append(self._rows(table, live[start : start + step], held=True))
        return spread(blocks, live, self.held.records.n_rows)

    def _rows(self, table: GraphNode, rows: Ints, *, held: bool = False) -> Values:
        """Make rows of a table again, from the tables before it."""

        def known(node: GraphNode) -> Values | None:
            if node is table:
                return None
            matrix = self._reads[node].records.matrix[rows]
            return matrix if matrix.dtype == object else matrix.astype(np.float64, copy=False)

        return evaluate(table, known, rows if held else None)

    def first_row(self, part: Nested, node: GraphNode) -> Values:
        """Make a row of a node of a composition, for the first of the records."""
        source = part._layout.source
        row = as_table(self._reads[source].records.matrix[self.held.live_rows()[:1]])
        return evaluate(node, lambda each: row if each is source else None)

    def _exchange(self, node: GraphNode, matrix: Values) -> None:
        """Replace a table; the new one may have other columns."""
        self._leave(node)
        self._reads[node].records.matrix = matrix

    def _keep_only(self, nodes: set[GraphNode]) -> None:
        """Drop the tables that no step reads any more."""
        for node in self._reads.keys() - nodes:
            self._leave(node)
        self._reads = {node: self._reads[node] for node in nodes}

    def _leave(self, node: GraphNode) -> None:
        """Schedule a table, and the room beside it, for overwriting after all steps."""
        view = self._reads[node]
        if isinstance(view, View) and (matrix := view.records.made) is not None:
            self._left.append((matrix, self._room.pop(node, {})))

    def _overwrite_left(self) -> None:
        """Overwrite the tables that others have replaced."""
        for table, room in self._left:
            leave(table, room)
        self._left = []

    def _show(self, learning: Learning) -> None:
        """Attach the current table to a step that reads it through a map."""
        held = learning.step._attached()
        if learning.maps and not learning.tabled and isinstance(held, View):
            held.show(self._reads[learning.reads].records.matrix)

    def _make_room(self, node: GraphNode) -> None:
        """Extend a table to all rows of the records as they are now."""
        view = self._reads[node]
        if not isinstance(view, View):
            return
        matrix = view.records.matrix
        if isinstance(matrix, Derived):
            view.show(matrix.over(self.held.records.matrix, self.held.live))
        else:
            room = self._room.setdefault(node, {})
            view.show(lengthened(matrix, self.held.records.n_rows, room))


_ACTIONS: tuple[Action, ...] = ("none", "updated", "resumed", "refit")


class Engine(KeptTables):
    """A fitted composition with the records and tables that its steps read.

    Tables are functions of the live records; they are in no pickle or file.
    """

    def __init__(self, held: Attachment) -> None:
        super().__init__(held)
        self._start()

    def _start(self) -> None:
        self._changes: dict[GraphNode, TableChange] = {}
        self._own: dict[Erasable, TableChange] = {}
        # rows that stay, and have other values in a table now, with those before
        self._stay: dict[GraphNode, tuple[Ints, Values]] = {}
        self._left = []

    def _end(self) -> None:
        self._overwrite_left()
        self._start()

    # -- learning ------------------------------------------------------------------------------

    def learn(self, root: Nested) -> None:
        """Fit every step, one after the other, with the seeds that they have drawn."""
        self._learn(root, RecordsNode(), self.held)

    def _learn(self, part: Nested, source: GraphNode, reads: Attachment) -> None:
        part._lay_out(source)
        self._reads[source] = reads
        part._declare(reads.records.numeric)
        for learning in part._layout.learners:
            step, reads = learning.step, self._open(learning)
            if self.held.records.is_stored:
                refuse_sparse(learning, reads)
            if isinstance(step, Nested):
                self._learn_nested(step, learning.reads, reads)
            else:
                step._relearn(reads, compose(learning.maps) if learning.maps else None)
            step._info.owner = part._sign
        part._end_learning(self)

    def _learn_nested(self, part: Nested, source: GraphNode, reads: Attachment) -> None:
        part._begin_again(reads)
        self._learn(part, source, reads)

    def attach(self, root: Nested) -> None:
        """Attach the records to restored steps."""
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
            # An accelerator of an attachment that was interrupted reads the former table.
            if step._accelerator is not None and not isinstance(step, Nested):
                step._restore(step._state())  # what it has learned may be in the accelerator alone
            step._accelerator = None
            if isinstance(step, Nested):
                self._attach(step)
            # A step that is not loaded from an untrusted file is fitted again, before it makes the
            # next table.
            elif step._has_to_fit_again:
                step._reattach()

    def prepare(self, part: Nested) -> None:
        """Rebuild the accelerators that are missing."""
        for learning in part._layout.learners:
            step = learning.step
            if isinstance(step, Nested):
                self.prepare(step)
            elif step._accelerator is None:
                step._reattach()

    # -- following -----------------------------------------------------------------------------

    def follow(self, root: Nested, delta: Delta) -> Outcome:
        """Have every step follow records that leave, which can still be read, and that arrive."""
        self._start()
        made: list[Derived] = []
        try:
            if delta.moved:
                self._take_arrays(root)
            if self.held.records.is_stored:
                tables = [reads.records.matrix for reads in self._reads.values()]
                made = [matrix for matrix in tables if isinstance(matrix, Derived)]
            for matrix in made:
                matrix.prepare(delta.leaving)
            outcome = join_outcomes(list(self._walk(root, delta)))
            learners = list(_learners(root))
            self._keep_only({root._layout.source, *(learning.reads for learning in learners)})
            if delta.leaving.size:
                for node, reads in self._reads.items():
                    if isinstance(node, TableNode):
                        blank_rows(reads.records.matrix, delta.leaving)
            for learning in learners:
                learning.step._info.settle(delta.leaving, None)  # the root knows the set of ids
        finally:
            for matrix in made:
                matrix.drop_copies()
            self._end()
        return outcome

    def _take_arrays(self, root: Nested) -> None:
        """Attach the current records to all steps, and extend all tables to them."""
        self._reads[root._layout.source] = self.held
        for node in self._reads:
            self._make_room(node)
        for learning in _learners(root):
            self._show(learning)
            learning.step._info.keys = None  # those of other records

    def _walk(self, part: Nested, delta: Delta) -> Iterator[tuple[str, Outcome]]:
        part._start_change()
        for learning in part._layout.learners:
            name, step, change = learning.name, learning.step, self.of(learning.reads)
            if learning.tabled:
                self._correct(learning.reads, change, delta.arriving)
            elif change or delta.moved:
                self._show(learning)
            if isinstance(step, Nested) and (not change or change.in_place):
                for inner, outcome in self._walk(step, delta):
                    yield f"{name}.{inner}", outcome
            else:
                followed = self._update(learning, change, delta)
                self._own[step] = ANYTHING if followed is None else step._output_change()
                yield name, self._learn_anew(learning) if followed is None else followed
        part._end_change_of_steps(self)

    def _correct(self, table: GraphNode, change: TableChange, arriving: Ints) -> None:
        """Write rows that arrive, and rows whose values have changed, into a table."""
        records = self._reads[table].records
        if not (change or arriving.size):
            return
        if (change and not change.in_place) or (change and issparse(records.matrix)):
            self._exchange(table, self._tabulate(table))
        elif issparse(records.matrix):
            new = self._rows(table, arriving, held=True)
            records.matrix = filled(records.matrix, arriving, new, self._room.setdefault(table, {}))
        elif isinstance(records.matrix, np.ndarray):
            rows = arriving
            if change:
                assert change.rows is not None
                stay = np.setdiff1d(change.rows, arriving)
                self._stay[table] = stay, records.matrix[stay]
                rows = np.union1d(arriving, stay)
            records.matrix[rows] = self._rows(table, rows, held=bool(arriving.size))
        elif change:  # a table of stored records, which makes its rows when they are read
            self._exchange(table, self._tabulate(table))

    def _update(self, learning: Learning, change: TableChange, delta: Delta) -> Outcome | None:
        """Update a step; None where it has to learn again."""
        step, n_before = learning.step, self.held.n_live + delta.leaving.size - delta.arriving.size
        if learning.maps:
            step._map = compose(learning.maps)
        if change:
            if isinstance(step, Nested) or not self._has_columns(step, change):
                return None
            rows, before = self._stay.get(learning.reads, (change.rows, None))
            delta = delta._replace(table=replace(change, rows=rows), before=before)
        return step._update(delta) if step._follows(delta, n_before) else None

    def _has_columns(self, step: Erasable, change: TableChange) -> bool:
        """Tell whether it is known where the columns of a step's new table were."""
        records, width = step._attached().records, step.n_features_in_
        refuse_no_columns(records.matrix, type(step).__name__)
        if not change.known or (change.origin is None and records.n_features != width):
            return False
        step._take_features(records.n_features, None)
        step._info.constants = None
        return True

    def _learn_anew(self, learning: Learning) -> Outcome:
        step = learning.step
        if not isinstance(step, Nested):
            return learn_anew(step, step._attached(), step._map)
        owner = step._info.owner
        self._learn_nested(step, learning.reads, step._attached())
        step._info.owner = owner
        return Outcome("refit", self.held.n_live, {"refits": 1})

    # -- changes, as nodes ask for them --------------------------------------------------------

    def of(self, node: GraphNode) -> TableChange:
        """See `erasable.pipeline._nodes.Changes`."""
        if node not in self._changes:
            self._changes[node] = node.change(self)
        return self._changes[node]

    def own(self, step: Erasable) -> TableChange:
        """See `erasable.pipeline._nodes.Changes`."""
        if isinstance(step, Nested) and step not in self._own:
            return self.of(step._layout.output)
        return self._own[step]

    def raw(self, step: Nested) -> TableChange:
        """See `erasable.pipeline._nodes.Changes`."""
        return self._own[step] if step in self._own else self.of(step._layout.raw)


def _learners(part: Nested) -> Iterator[Learning]:
    """Yield the steps that learn, at any depth."""
    for learning in part._layout.learners:
        yield learning
        if isinstance(learning.step, Nested):
            yield from _learners(learning.step)


def join_outcomes(outcomes: Sequence[tuple[str, Outcome]]) -> Outcome:
    """Join the outcomes of several steps into one; counts have the steps' names as prefixes.

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
