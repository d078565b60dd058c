"""Graph of a composition: tables as functions of the records, evaluated for given rows.

A node has the tables it is made of, and a function of them. Each of its rows depends on one row of
these alone, so that a node is evaluated in the same way for the records and for new rows. The
values of a `TableNode` are kept for all records, see `erasable.pipeline._engine`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from erasable.core.arrays import Flags, Ints, Values
from erasable.core.changes import ANYTHING, NOTHING, TableChange, union
from erasable.core.errors import InvalidDataError
from erasable.core.estimator import Erasable
from erasable.core.ids import name_some
from erasable.core.matrices import to_dense
from erasable.core.messages import refuse_no_texts
from erasable.core.rows import Rows
from erasable.core.values import Accepts
from erasable.pipeline._maps import MapPart, Widths, apply, side_by_side
from erasable.pipeline._stateless import transformed
from erasable.pipeline._tables import as_numbers, as_table

if TYPE_CHECKING:
    from erasable.pipeline._layout import Nested


@dataclass
class ColumnSelection:
    """Some columns of a table."""

    columns: list[int]  # positions
    names: list[str]  # for messages
    accepts: Accepts  # input types of the part; if these exclude text, columns have to be numbers
    named: bool  # `names` are those of a frame, by which the part may select columns in turn
    n_features: int  # of the whole table
    # Columns that a frame declares to hold numbers, where others hold text.
    numeric: Flags | None = None

    def __post_init__(self) -> None:
        self._text = self.accepts.objects or self.accepts.documents

    def declare(self, numeric: Flags | None) -> None:
        """Set the columns of the whole table that a frame declares numeric."""
        own = None if numeric is None else numeric[self.columns]
        self._text &= own is None or not bool(own.all())
        self.numeric = own if self._text else None

    def take(self, X: Values) -> Values:
        """Copy the columns; objects become numbers if the part takes no text."""
        if X.shape[1] != self.n_features:
            raise InvalidDataError(
                f"ColumnTransformer is given {X.shape[1]} columns by the steps before; expected "
                f"{self.n_features}"
            )
        part = X[:, self.columns]
        if self.accepts.documents:
            refuse_no_texts(part.ravel().tolist(), f" in {self.names[0]!r}")
        if issparse(part) or (part.dtype == object and self._text):
            return as_table(part)
        part = as_numbers(part, "the transformer", self.names)
        missing = self.accepts.missing
        gaps = np.zeros(0, dtype=bool) if missing else np.isnan(part).any(axis=0)
        if gaps.any():
            told = [self.names[place] for place in np.flatnonzero(gaps).tolist()]
            raise InvalidDataError(
                f"X contains NaN in {len(told)} columns: {name_some(told)}; expected finite "
                "numbers for the transformer they are given to; fill them in with SimpleImputer"
            )
        return as_table(part)

    def names_out(self, names: NDArray[Any]) -> NDArray[Any]:
        """Return the names of the columns, out of those of the whole table."""
        return np.asarray(names, dtype=object)[self.columns]


Get: TypeAlias = "Callable[[GraphNode], Values]"


class GraphNode(ABC):
    """A table, as a function of others."""

    __slots__ = ()

    @property
    @abstractmethod
    def inputs(self) -> tuple[GraphNode, ...]:
        """The nodes it is made of."""

    @abstractmethod
    def make(self, get: Get) -> Values:
        """Make rows from rows of the inputs."""

    @abstractmethod
    def change(self, changes: Changes) -> TableChange:
        """Return its change in the running deletion."""

    def held(self, rows: Ints) -> Values | None:
        """Return rows of live records from a cache, if there is one."""
        return None


class Changes(Protocol):
    """Changes of the running deletion."""

    def of(self, node: GraphNode) -> TableChange:
        """Return the change of a node."""

    def own(self, step: Erasable) -> TableChange:
        """Return the change of a step's output for the same rows."""

    def raw(self, step: Nested) -> TableChange:
        """Return the change of a composition's output before its final maps."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordsNode(GraphNode):
    """The records."""

    @property
    def inputs(self) -> tuple[GraphNode, ...]:
        return ()

    def make(self, get: Get) -> Values:
        raise AssertionError("the rows of a source are known")

    def change(self, changes: Changes) -> TableChange:
        return NOTHING


@dataclass(frozen=True, slots=True, eq=False)
class _After(GraphNode):
    """A node made of another one."""

    input: GraphNode

    @property
    def inputs(self) -> tuple[GraphNode, ...]:
        """See `GraphNode.inputs`."""
        return (self.input,)


@dataclass(frozen=True, slots=True, eq=False)
class TableNode(_After):
    """A node whose values for all records are kept, for a step to learn from."""

    reader: str  # the step, for messages; empty if it takes objects

    def make(self, get: Get) -> Values:
        rows = get(self.input)
        return as_numbers(rows, self.reader) if self.reader else rows

    def change(self, changes: Changes) -> TableChange:
        return changes.of(self.input)


@dataclass(frozen=True, slots=True, eq=False)
class Select(_After):
    """Some columns, for a part of a column transformer."""

    selection: ColumnSelection

    def make(self, get: Get) -> Values:
        return self.selection.take(as_table(get(self.input)))

    def change(self, changes: Changes) -> TableChange:
        return changes.of(self.input).of_columns(self.selection.columns)


@dataclass(frozen=True, slots=True, eq=False)
class Stateless(_After):
    """Output of a stateless transformer of scikit-learn."""

    name: str
    step: Any

    def make(self, get: Get) -> Values:
        return transformed(self.name, self.step, get(self.input))

    def change(self, changes: Changes) -> TableChange:
        return changes.of(self.input).of_function()


@dataclass(frozen=True, slots=True, eq=False)
class Map(_After):
    """A table behind maps of columns, which a step takes as one map."""

    maps: tuple[MapPart, ...]

    def make(self, get: Get) -> Values:
        return apply(self.maps, get(self.input))

    def change(self, changes: Changes) -> TableChange:
        change = changes.of(self.input)
        for each in self.maps:
            change = each.change(change, changes)
        return change


@dataclass(frozen=True, slots=True, eq=False)
class Transform(_After):
    """Output of a step of erasable for its own input."""

    step: Erasable

    def make(self, get: Get) -> Values:
        return as_table(self.step.transform(Rows(get(self.input))))

    def change(self, changes: Changes) -> TableChange:
        return union([changes.of(self.input).of_function(), changes.own(self.step)])

    def held(self, rows: Ints) -> Values | None:
        made = self.step._transform_held(rows)
        return None if made is None else as_table(made, fresh=True)


@dataclass(frozen=True, slots=True, eq=False)
class Output(_After):
    """Output of a composition that is a step of another one."""

    step: Nested

    @property
    def inputs(self) -> tuple[GraphNode, ...]:
        return (self.step._layout.output,)

    def make(self, get: Get) -> Values:
        return as_table(self.step._layout.make(get))

    def change(self, changes: Changes) -> TableChange:
        return changes.own(self.step)


@dataclass(frozen=True, slots=True, eq=False)
class Raw(_After):
    """Output of a composition before its final maps."""

    step: Nested

    @property
    def inputs(self) -> tuple[GraphNode, ...]:
        return (self.step._layout.raw,)

    def make(self, get: Get) -> Values:
        return as_table(get(self.step._layout.raw))

    def change(self, changes: Changes) -> TableChange:
        return changes.raw(self.step)


@dataclass(frozen=True, slots=True, eq=False)
class Concat(_After):
    """The outputs of the parts of a column transformer, side by side."""

    widths: Widths
    parts: dict[str, GraphNode]
    dense: bool = False

    @property
    def inputs(self) -> tuple[GraphNode, ...]:
        return (*self.parts.values(),) or (self.input,)

    def make(self, get: Get) -> Values:
        if not self.parts:
            return np.zeros((get(self.input).shape[0], 0))
        made = {name: get(node) for name, node in self.parts.items()}
        if self.dense:
            made = {n: to_dense(each) for n, each in made.items()}
        return side_by_side(made)

    def change(self, changes: Changes) -> TableChange:
        parts = {name: changes.of(node) for name, node in self.parts.items()}
        if not all(change.known for change in parts.values()):
            return ANYTHING
        rows = union(TableChange(change.rows, change.columns) for change in parts.values()).rows
        if all(change.origin is None for change in parts.values()):
            return TableChange(rows)
        origins, start = [], 0
        for name, change in parts.items():
            width = self.widths.before[name]
            origin = np.arange(width) if change.origin is None else change.origin
            origins.append(np.where(origin < 0, -1, origin + start))
            start += width
        return TableChange(rows, None, np.concatenate(origins))


def above_tables(node: GraphNode) -> Iterator[GraphNode]:
    """Yield a node and its inputs, up to kept tables."""
    if not isinstance(node, RecordsNode | TableNode):
        yield node
        for each in node.inputs:
            yield from above_tables(each)


def evaluate(
    node: GraphNode, known: Callable[[GraphNode], Values | None], held: Ints | None = None
) -> Values:
    """Evaluate a node for some rows.

    `known` returns the rows of a source or table, or None for a table that is made of others.
    `held` are the positions of rows that are records, for which steps may know the results.
    """
    return _Evaluation(known, held).get(node)


class _Evaluation:
    """Evaluation of the graph for some rows; the rows of kept tables are computed once."""

    def __init__(self, known: Callable[[GraphNode], Values | None], held: Ints | None) -> None:
        self._known = known
        self._held = held
        self._made: dict[GraphNode, Values] = {}

    def get(self, node: GraphNode) -> Values:
        """Return the rows of a node."""
        if not isinstance(node, RecordsNode | TableNode):
            return self._make(node)
        if node not in self._made:
            rows = self._known(node)
            self._made[node] = self._make(node) if rows is None else rows
        return self._made[node]

    def _make(self, node: GraphNode) -> Values:
        rows = None if self._held is None else node.held(self._held)
        return node.make(self.get) if rows is None else rows
