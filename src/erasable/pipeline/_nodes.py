"""The graph of a composition: tables as functions of the records, and how rows are sent through.

A node says of which tables it is made, and how. Each row of it depends on one row of these alone,
so that a node is evaluated for the records as for rows that somebody asks about. The values of
`Table` nodes are kept for all records, see `erasable.pipeline._engine`.

A step that takes a map learns from what is before the maps of columns in front of it (`split`).
Which these are depends on types and parameters of the steps alone, so that it is the same after any
deletion.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack, issparse

from erasable.core.changes import ANYTHING, NOTHING, Affine, Change, union
from erasable.core.estimator import Erasable
from erasable.core.rows import Rows
from erasable.core.sparse import canonical
from erasable.core.values import Accepts, Values
from erasable.pipeline._reading import as_numbers, as_table, read_output
from erasable.pipeline._selection import Selection

__all__ = [
    "Blocks",
    "Changes",
    "Concat",
    "EndMap",
    "Layout",
    "Learning",
    "Map",
    "MapPart",
    "Nested",
    "Node",
    "Output",
    "Raw",
    "Select",
    "Source",
    "Stateless",
    "StepMap",
    "Table",
    "Transform",
    "Widths",
    "above_tables",
    "compose",
    "evaluate",
    "fuses",
    "fusing",
    "lay_out",
    "split",
]

Flags: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]
Get: TypeAlias = "Callable[[Node], Values]"

_FUSES: ContextVar[bool] = ContextVar("erasable_fuses", default=True)


def fuses() -> bool:
    """Tell whether compositions that are laid out now fuse maps of columns."""
    return _FUSES.get()


@contextmanager
def fusing(on: bool) -> Iterator[None]:
    """Have compositions that are fitted meanwhile fuse maps of columns, or not.

    Without fusing, every step learns from the table that the steps before it make. The two models
    differ by rounding, and in their digests; both keep the law.

    Examples
    --------
    >>> from erasable.cluster import KMeans
    >>> from erasable.pipeline import fusing, make_pipeline
    >>> from erasable.preprocessing import StandardScaler
    >>> X = [[1.0, 20.0], [2.0, 10.0], [1.0, 30.0], [10.0, 10.0], [9.0, 20.0], [10.0, 30.0]]
    >>> with fusing(False):
    ...     plain = make_pipeline(StandardScaler(), KMeans(2, random_state=0)).fit(X)
    >>> fused = make_pipeline(StandardScaler(), KMeans(2, random_state=0)).fit(X)
    >>> plain.predict(X).tolist() == fused.predict(X).tolist(), plain.digest() == fused.digest()
    (True, False)
    """
    token = _FUSES.set(on)
    try:
        yield
    finally:
        _FUSES.reset(token)


class Nested(Erasable):
    """What the graph and its engine ask of a composition, the outermost or one in another."""

    _layout: Layout
    _sign: object
    """Of the fit: the owner of its steps."""

    @property
    @abstractmethod
    def _ends_in_map(self) -> bool:
        """Whether it ends in a map of columns, and does something else before."""

    @property
    @abstractmethod
    def _asks_by_name(self) -> bool:
        """Whether it chooses columns of a frame by name, at any depth."""

    @property
    def _hands_on(self) -> bool:
        """Whether it does nothing: a pipeline without active steps."""
        return False

    def _rows(self) -> Iterable[Layout]:
        """Return the rows of steps that it is made of."""
        return [self._layout]

    @abstractmethod
    def _lay_out(self, source: Node) -> None:
        """Set ``_layout``, for a source whose width and names are known."""

    @abstractmethod
    def _declare(self, numeric: Flags | None) -> None:
        """Learn which columns of the source a frame declares to hold numbers."""

    @abstractmethod
    def _end_learning(self, engine: Any) -> None:
        """Keep what follows of the steps, which have learned."""

    @abstractmethod
    def _start_deletion(self) -> None:
        """Remember what is to be compared."""

    @abstractmethod
    def _end_deletion(self, engine: Any) -> None:
        """Keep what follows of the steps, which have deleted."""


# -- maps of columns -------------------------------------------------------------------------------


class MapPart(ABC):
    """A map of columns between a table and a step that takes it as ``_map``."""

    step: Erasable

    @abstractmethod
    def affine(self) -> Affine:
        """Return the map as it is now."""

    @abstractmethod
    def apply(self, rows: Values) -> Values:
        """Apply it, by the formulas of the steps themselves."""

    @abstractmethod
    def change(self, below: Change, changes: Changes) -> Change:
        """Return the change of what it makes of a table with the change `below`."""


@dataclass(frozen=True, slots=True, eq=False)
class StepMap(MapPart):
    """A step that is a map of columns."""

    step: Erasable

    def affine(self) -> Affine:
        """See `MapPart.affine`."""
        return self.step._affine()

    def apply(self, rows: Values) -> Values:
        """See `MapPart.apply`."""
        return as_table(self.step.transform(Rows(rows)))

    def change(self, below: Change, changes: Changes) -> Change:
        """See `MapPart.change`."""
        return union([below.of_function(), changes.own(self.step)])


@dataclass(frozen=True, slots=True, eq=False)
class EndMap(MapPart):
    """The maps with which a composition ends."""

    step: Nested

    def affine(self) -> Affine:
        """See `MapPart.affine`."""
        return compose(self.step._layout.maps)

    def apply(self, rows: Values) -> Values:
        """See `MapPart.apply`."""
        return as_table(_apply(self.step._layout.maps, rows))

    def change(self, below: Change, changes: Changes) -> Change:
        """See `MapPart.change`: it moves no columns."""
        own = changes.own(self.step)
        rows = union([Change(below.rows), Change(own.rows)]).rows
        return Change(rows, None, below.origin, below.known and own.known)


@dataclass
class Widths:
    """How many columns each part of a column transformer makes, and made before a deletion."""

    now: dict[str, int]
    before: dict[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Blocks(MapPart):
    """Maps of blocks of columns, side by side: those with which a column transformer ends."""

    widths: Widths
    parts: dict[str, tuple[MapPart, ...]]

    def affine(self) -> Affine:
        """See `MapPart.affine`."""
        maps = [
            compose(self.parts[name])
            if self.parts[name]
            else Affine(np.zeros(width), np.ones(width))
            for name, width in self.widths.now.items()
        ]
        shifts, scales = zip(*maps, strict=True)
        return Affine(np.concatenate(shifts), np.concatenate(scales))

    def apply(self, rows: Values) -> Values:
        """See `MapPart.apply`."""
        made, start = {}, 0
        for name, width in self.widths.now.items():
            made[name] = _apply(self.parts[name], as_table(rows[:, start : start + width]))
            start += width
        return _side_by_side(made, rows)

    def change(self, below: Change, changes: Changes) -> Change:
        """See `MapPart.change`; asked of the `EndMap`."""
        raise NotImplementedError


def compose(maps: Iterable[MapPart]) -> Affine:
    """Return a chain of maps as one, in the order in which they are applied."""
    first, *others = (each.affine() for each in maps)
    for other in others:
        first = first.then(other)
    return first


def _apply(maps: Iterable[MapPart], rows: Values) -> Values:
    for each in maps:
        rows = each.apply(rows)
    return rows


# -- nodes -----------------------------------------------------------------------------------------


class Changes(Protocol):
    """What the deletion that is under way has changed."""

    def of(self, node: Node) -> Change:
        """Return the change of a node."""

    def own(self, step: Erasable) -> Change:
        """Return what a step changed in its output, given the same rows."""

    def raw(self, step: Nested) -> Change:
        """Return what a composition changed before the maps with which it ends."""


class Node(ABC):
    """A table, as a function of others."""

    learns: ClassVar[bool] = False
    __slots__ = ()

    @property
    @abstractmethod
    def inputs(self) -> tuple[Node, ...]:
        """The nodes of which it is made."""

    @abstractmethod
    def make(self, get: Get) -> Values:
        """Make rows out of those of the inputs."""

    @abstractmethod
    def change(self, changes: Changes) -> Change:
        """Return what the deletion that is under way has changed in it."""

    def held(self, rows: Ints) -> Values | None:
        """Return the rows of live records from a cache, if there is one."""
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Source(Node):
    """The records."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        """See `Node.inputs`."""
        return ()

    def make(self, get: Get) -> Values:
        """See `Node.make`."""
        raise NotImplementedError

    def change(self, changes: Changes) -> Change:
        """See `Node.change`."""
        return NOTHING


@dataclass(frozen=True, slots=True, eq=False)
class Table(Node):
    """A node of which the values for all records are kept, for a step to learn from.

    Attributes
    ----------
    input : Node
    reader : str
        The step for which it is made, for messages; empty if that takes objects.
    """

    input: Node
    reader: str

    @property
    def inputs(self) -> tuple[Node, ...]:
        """See `Node.inputs`."""
        return (self.input,)

    def make(self, get: Get) -> Values:
        """See `Node.make`."""
        rows = get(self.input)
        return as_numbers(rows, self.reader) if self.reader else rows

    def change(self, changes: Changes) -> Change:
        """See `Node.change`."""
        return changes.of(self.input)


@dataclass(frozen=True, slots=True, eq=False)
class Select(Node):
    """Some columns, for a part of a column transformer."""

    input: Node
    selection: Selection

    @property
    def inputs(self) -> tuple[Node, ...]:
        """See `Node.inputs`."""
        return (self.input,)

    def make(self, get: Get) -> Values:
        """See `Node.make`."""
        return self.selection.take(as_table(get(self.input)))

    def change(self, changes: Changes) -> Change:
        """See `Node.change`."""
        return changes.of(self.input).of_columns(self.selection.columns)


@dataclass(frozen=True, slots=True, eq=False)
class Stateless(Node):
    """What a transformer of scikit-learn makes that learns nothing."""

    input: Node
    name: str
    step: Any

    @property
    def inputs(self) -> tuple[Node, ...]:
        """See `Node.inputs`."""
        return (self.input,)

    def make(self, get: Get) -> Values:
        """See `Node.make`."""
        rows = get(self.input)
        return read_output(self.name, self.step.transform(rows), rows)

    def change(self, changes: Changes) -> Change:
        """See `Node.change`."""
        return changes.of(self.input).of_function()


@dataclass(frozen=True, slots=True, eq=False)
class Map(Node):
    """A table behind maps of columns, which a step takes as one."""

    input: Node
    maps: tuple[MapPart, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        """See `Node.inputs`."""
        return (self.input,)

    def make(self, get: Get) -> Values:
        """See `Node.make`."""
        return _apply(self.maps, get(self.input))

    def change(self, changes: Changes) -> Change:
        """See `Node.change`."""
        change = changes.of(self.input)
        for each in self.maps:
            change = each.change(change, changes)
        return change


@dataclass(frozen=True, slots=True, eq=False)
class Transform(Node):
    """What a step of erasable makes of what it has learned from."""

    learns: ClassVar[bool] = True
    input: Node
    step: Erasable

    @property
    def inputs(self) -> tuple[Node, ...]:
        """See `Node.inputs`."""
        return (self.input,)

    def make(self, get: Get) -> Values:
        """See `Node.make`."""
        return as_table(self.step.transform(Rows(get(self.input))))

    def change(self, changes: Changes) -> Change:
        """See `Node.change`."""
        return union([changes.of(self.input).of_function(), changes.own(self.step)])

    def held(self, rows: Ints) -> Values | None:
        """See `Node.held`."""
        made = self.step._transform_held(rows)
        return None if made is None else as_table(made, fresh=True)


@dataclass(frozen=True, slots=True, eq=False)
class Output(Node):
    """What a composition makes that is a step of another one."""

    input: Node
    step: Nested

    @property
    def inputs(self) -> tuple[Node, ...]:
        """See `Node.inputs`."""
        return (self.step._layout.output,)

    def make(self, get: Get) -> Values:
        """See `Node.make`."""
        return as_table(self.step._layout.make(get))

    def change(self, changes: Changes) -> Change:
        """See `Node.change`."""
        return changes.own(self.step)


@dataclass(frozen=True, slots=True, eq=False)
class Raw(Node):
    """What a composition makes before the maps with which it ends."""

    input: Node
    step: Nested

    @property
    def inputs(self) -> tuple[Node, ...]:
        """See `Node.inputs`."""
        return (self.step._layout.raw,)

    def make(self, get: Get) -> Values:
        """See `Node.make`."""
        return as_table(get(self.step._layout.raw))

    def change(self, changes: Changes) -> Change:
        """See `Node.change`."""
        return changes.raw(self.step)


@dataclass(frozen=True, slots=True, eq=False)
class Concat(Node):
    """The outputs of the parts of a column transformer, side by side."""

    input: Node
    widths: Widths
    parts: dict[str, Node]

    @property
    def inputs(self) -> tuple[Node, ...]:
        """See `Node.inputs`."""
        return (*self.parts.values(),) or (self.input,)

    def make(self, get: Get) -> Values:
        """See `Node.make`."""
        if not self.parts:
            return np.zeros((get(self.input).shape[0], 0))
        return _side_by_side({name: get(node) for name, node in self.parts.items()})

    def change(self, changes: Changes) -> Change:
        """See `Node.change`."""
        parts = {name: changes.of(node) for name, node in self.parts.items()}
        if not all(change.known for change in parts.values()):
            return ANYTHING
        rows = union(Change(change.rows, change.columns) for change in parts.values()).rows
        if all(change.origin is None for change in parts.values()):
            return Change(rows)
        origins, start = [], 0
        for name, change in parts.items():
            width = self.widths.before[name]
            origin = np.arange(width) if change.origin is None else change.origin
            origins.append(np.where(origin < 0, -1, origin + start))
            start += width
        return Change(rows, None, np.concatenate(origins))


def _side_by_side(parts: dict[str, Values], rows: Values | None = None) -> Values:
    """Put what parts have made of rows side by side; sparse where one of them is."""
    if any(issparse(part) for part in parts.values()):
        numbers = [
            as_numbers(part, f"a sparse output beside {name!r}") for name, part in parts.items()
        ]
        return canonical(hstack(numbers, format="csr"))
    return np.hstack(list(parts.values()))


# -- layouts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Learning:
    """A step that learns, and from what.

    Attributes
    ----------
    name : str
    step : Erasable
    reads : Source or Table
    maps : tuple of MapPart
        Maps of columns between that table and the step, which takes them as one.
    tabled : bool
        Whether the table is made for this step; otherwise an earlier one reads it, too.
    """

    name: str
    step: Erasable
    reads: Node
    maps: tuple[MapPart, ...]
    tabled: bool

    @property
    def output(self) -> Node:
        """What the step makes."""
        if isinstance(self.step, Nested):
            return Output(self.reads, self.step)
        return Transform(Map(self.reads, self.maps) if self.maps else self.reads, self.step)

    def changes_all(self) -> bool:
        """Tell whether every deletion changes all rows of the table."""
        return any(isinstance(node, Transform) and node.step._changes_all for node in self.path())

    def path(self) -> Iterator[Node]:
        """Yield the nodes of which the table is made, up to those that are kept."""
        return above_tables(self.reads.input) if isinstance(self.reads, Table) else iter(())


def above_tables(node: Node) -> Iterator[Node]:
    """Yield a node and those of which it is made, up to the tables that are kept."""
    if not isinstance(node, Source | Table):
        yield node
        for each in node.inputs:
            yield from above_tables(each)


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A composition as a part of the graph.

    Attributes
    ----------
    source : Source or Table
        What the composition reads.
    learners : tuple of Learning
        In the order in which they learn.
    output, raw : Node
        What it makes, and that before the maps of columns with which it ends.
    maps : tuple of MapPart
        These.
    steps : tuple of (str, estimator)
        Of a row of steps: all of them. The last one answers.
    asked : Node
        What the last step is given; where it is `behind` maps, what is before these.
    behind : bool
    """

    source: Node
    learners: tuple[Learning, ...]
    output: Node
    raw: Node
    maps: tuple[MapPart, ...]
    steps: tuple[tuple[str, Any], ...]
    asked: Node
    behind: bool

    def given(self, get: Get) -> Any:
        """Return what the last step is to be given of rows."""
        rows = get(self.asked)
        learns = isinstance(self.steps[-1][1], Erasable)
        return Rows(rows, unmapped=self.behind) if learns else rows

    def make(self, get: Get) -> Values:
        """Make rows of the output; the last step is given what it is given by whoever asks it."""
        if self.behind:
            return self.steps[-1][1].transform(self.given(get))
        return get(self.output)


def lay_out(source: Node, node: Node, steps: Iterable[tuple[str, Any]]) -> Layout:
    """Lay out steps in a row.

    Parameters
    ----------
    source : Source or Table
        What the composition reads.
    node : Node
        What the first step is given.
    steps : iterable of (str, estimator)
        Those that do anything.
    """
    learners: list[Learning] = []
    steps = tuple(steps)
    asked, behind = node, False
    for name, step in steps:
        asked, behind = node, False
        if not isinstance(step, Erasable):
            node = Stateless(node, name, step)
            continue
        reads, maps = split(node) if step._takes_map else (node, ())
        tabled = not isinstance(reads, Source | Table)
        if tabled:
            accepts = Accepts.of(step)
            objects = accepts.objects or accepts.documents
            reads = Table(reads, "" if objects else f"step {name!r}")
        learners.append(Learning(name, step, reads, maps, tabled))
        asked, behind, node = reads, bool(maps), learners[-1].output
    raw, maps = split(node)
    return Layout(source, tuple(learners), node, raw, maps, steps, asked, behind)


def split(node: Node) -> tuple[Node, tuple[MapPart, ...]]:
    """Cut a node in two: a table, and the maps of columns that are applied to it at last."""
    if not fuses():
        return node, ()
    if isinstance(node, Map):
        return node.input, node.maps
    if isinstance(node, Transform | Output) and node.step._is_map:
        table, maps = split(node.input)
        return table, (*maps, StepMap(node.step))
    if isinstance(node, Output) and node.step._ends_in_map:
        return Raw(node.input, node.step), (EndMap(node.step),)
    return node, ()


def evaluate(
    node: Node, known: Callable[[Node], Values | None], held: Ints | None = None
) -> Values:
    """Evaluate a node for some rows.

    Parameters
    ----------
    node : Node
    known : callable
        Gives the rows of a source or table, or None of a table that has to be made of others.
    held : ndarray of int64, default=None
        Positions of the rows, where they are records: steps may know what they make of these.
    """
    return _Evaluation(known, held).get(node)


class _Evaluation:
    """Rows on their way through the graph; those of a table that several nodes read are kept."""

    def __init__(self, known: Callable[[Node], Values | None], held: Ints | None) -> None:
        self._known = known
        self._held = held
        self._made: dict[Node, Values] = {}

    def get(self, node: Node) -> Values:
        """Return the rows of a node."""
        if not isinstance(node, Source | Table):
            return self._make(node)
        if node not in self._made:
            rows = self._known(node)
            self._made[node] = self._make(node) if rows is None else rows
        return self._made[node]

    def _make(self, node: Node) -> Values:
        rows = None if self._held is None else node.held(self._held)
        return node.make(self.get) if rows is None else rows
