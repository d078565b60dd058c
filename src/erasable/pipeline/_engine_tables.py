"""The tables that the engine of a composition keeps for the steps that learn from them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from erasable.core.arrays import Flags, Ints
from erasable.core.attachment import Attachment
from erasable.core.kept import Kept
from erasable.core.passes import Stored
from erasable.core.values import Values
from erasable.core.views import View
from erasable.pipeline._layout import Learning
from erasable.pipeline._making import derived, refuse_joint
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
from erasable.pipeline._tables import Room, leave, lengthened, spread

_BLOCK = 2**20  # values that are made at once


class Tables(Kept):
    """The records of a composition, and the tables that are made of them.

    Parameters
    ----------
    held : Attachment
        The records of the outermost composition.
    """

    def __init__(self, held: Attachment) -> None:
        self.held = held
        self._reads: dict[Node, Attachment] = {}
        self._room: dict[Node, Room] = {}
        self._left: list[tuple[Values, Room]] = []

    def _kept_attributes(self) -> dict[str, Any]:
        """Keep no room of objects: when it is read, it is no more the memory of its table."""
        room = {
            node: room
            for node, room in self._room.items()
            if not any(buffer.dtype == object for buffer in room.values())
        }
        return {**super()._kept_attributes(), "_room": room}

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
        view.records.types = self._types(learning.reads)
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

    def _types(self, table: Node) -> tuple[str, ...] | None:
        """Return the types of columns that a table shares with a frame."""
        node = table.input if isinstance(table, Table) else table
        if isinstance(node, Select):
            types = self._reads[node.input].records.types
            return types and tuple(types[place] for place in node.selection.columns)
        if isinstance(node, Output) and node.step._hands_on:
            return self._reads[node.input].records.types
        return None

    def _names_before(self, node: Node) -> list[str] | None:
        """Return the names of the columns of a frame, where stateless steps hand them on."""
        while isinstance(node, Stateless) and keeps_names(node.step):
            node = node.input
        if isinstance(node, Select):
            return list(node.selection.names) if node.selection.named else None
        return self._reads[node].records.feature_names if node in self._reads else None

    def _tabulate(self, table: Node) -> Values:
        """Make a table for the live records; the rows of others are blank.

        Raise UnsupportedStepError if a stateless step treats a row differently when it is alone.
        """
        if isinstance(self.held.records.matrix, Stored):
            source = next(node for node in self._reads if isinstance(node, Source))
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

    def _exchange(self, node: Node, matrix: Values) -> None:
        """Have a new table in the place of one, which may have other columns."""
        self._leave(node)
        self._reads[node].records.matrix = matrix

    def _keep_only(self, nodes: set[Node]) -> None:
        """Leave the tables that no step reads any more."""
        for node in self._reads.keys() - nodes:
            self._leave(node)
        self._reads = {node: self._reads[node] for node in nodes}

    def _leave(self, node: Node) -> None:
        """Overwrite a table, and the room beside it, once all steps have followed."""
        view = self._reads[node]
        if isinstance(view, View) and (matrix := view.records.made) is not None:
            self._left.append((matrix, self._room.pop(node, {})))

    def _overwrite_left(self) -> None:
        """Overwrite the tables that others have replaced."""
        for table, room in self._left:
            leave(table, room)
        self._left = []

    def _show(self, learning: Learning) -> None:
        """Show a step the table as it is now, if it looks at that through a map."""
        held = learning.step._attached()
        if learning.maps and not learning.tabled and isinstance(held, View):
            held.show(self._reads[learning.reads].records.matrix)

    def _make_room(self, node: Node) -> None:
        """Have a table show the records as they are now, and have room for all rows of them."""
        view = self._reads[node]
        if isinstance(view, View):
            room = self._room.setdefault(node, {})
            view.show(lengthened(view.records.matrix, self.held.records.n_rows, room))
