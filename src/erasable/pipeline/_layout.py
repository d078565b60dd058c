"""Compositions as parts of the graph, and the maps of columns that are applied without a table.

A step that takes a map learns from the table before the maps of columns in front of it (`split`).
These depend on types and parameters of the steps alone, so they are the same after any deletion.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from erasable.core.arrays import Flags, Values
from erasable.core.estimator import Erasable
from erasable.core.rows import Rows
from erasable.core.values import Accepts
from erasable.pipeline._maps import EndMap, MapPart, StepMap
from erasable.pipeline._nodes import (
    Get,
    GraphNode,
    Map,
    Output,
    Raw,
    RecordsNode,
    Stateless,
    TableNode,
    Transform,
    above_tables,
)

_FUSES: ContextVar[bool] = ContextVar("erasable_fuses", default=True)


def fuses() -> bool:
    """Return whether compositions that are laid out now fuse maps of columns."""
    return _FUSES.get()


@contextmanager
def fusing(on: bool) -> Iterator[None]:
    """Let compositions that are fitted in the block fuse maps of columns, or not.

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


@dataclass(frozen=True, slots=True, eq=False)
class Learning:
    """A step that learns, and its input."""

    name: str
    step: Erasable
    reads: GraphNode
    maps: tuple[MapPart, ...]  # between `reads` and the step, which takes them as one
    tabled: bool  # the table is made for this step; otherwise an earlier one reads it, too

    @property
    def output(self) -> GraphNode:
        """The output of the step."""
        if isinstance(self.step, Nested):
            return Output(self.reads, self.step)
        return Transform(Map(self.reads, self.maps) if self.maps else self.reads, self.step)

    def changes_all(self) -> bool:
        """Return whether every deletion changes all rows of the table."""
        return any(isinstance(node, Transform) and node.step._changes_all for node in self.path())

    def path(self) -> Iterator[GraphNode]:
        """Yield the nodes of which the table is made, up to kept tables."""
        return above_tables(self.reads.input) if isinstance(self.reads, TableNode) else iter(())


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A composition as a part of the graph."""

    source: GraphNode  # input of the composition
    learners: tuple[Learning, ...]  # in the order in which they learn
    output: GraphNode
    raw: GraphNode  # the output before the maps of columns with which the composition ends
    maps: tuple[MapPart, ...]  # these maps
    steps: tuple[tuple[str, Any], ...]  # all steps in a row; the last one predicts
    asked: GraphNode  # input of the last step; if it is `behind` maps, the input of these
    behind: bool

    def given(self, get: Get) -> Any:
        """Return the input of the last step for some rows."""
        rows = get(self.asked)
        learns = isinstance(self.steps[-1][1], Erasable)
        return Rows(rows, unmapped=self.behind) if learns else rows

    def make(self, get: Get) -> Values:
        """Make rows of the output, as `transform` calls the last step."""
        if self.behind:
            return self.steps[-1][1].transform(self.given(get))
        return get(self.output)


class Nested(Erasable):
    """Interface of a composition, outermost or nested, for the graph and its engine."""

    _layout: Layout
    _sign: object
    """The owner of its steps in a fit."""

    @property
    @abstractmethod
    def _ends_in_map(self) -> bool:
        """Whether it ends in a map of columns after other steps."""

    @property
    @abstractmethod
    def _asks_by_name(self) -> bool:
        """Whether it chooses columns of a frame by name, at any depth."""

    @property
    def _hands_on(self) -> bool:
        """Whether it is a pipeline without active steps."""
        return False

    def _rows(self) -> Iterable[Layout]:
        """Return its chains of steps."""
        return [self._layout]

    @abstractmethod
    def _lay_out(self, source: GraphNode) -> None:
        """Set ``_layout``, for a source whose width and names are known."""

    @abstractmethod
    def _lay_out_again(self, source: GraphNode) -> None:
        """Lay out a composition that has been restored, at any depth, for another source."""

    def _declare(self, numeric: Flags | None) -> None:
        """Set the columns of the source that a frame declares numeric."""

    def _end_learning(self, engine: Any) -> None:
        """Update its attributes after the steps have learned."""

    def _start_change(self) -> None:
        """Save the values to compare after the deletion."""

    def _end_change_of_steps(self, engine: Any) -> None:
        """Update its attributes after the steps have deleted."""


def lay_out(source: GraphNode, node: GraphNode, steps: Iterable[tuple[str, Any]]) -> Layout:
    """Lay out steps in a row, none of which is "passthrough".

    The composition reads `source`; the input of the first step is `node`.
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
        tabled = not isinstance(reads, RecordsNode | TableNode)
        if tabled:
            accepts = Accepts.of(step)
            objects = accepts.objects or accepts.documents
            reads = TableNode(reads, "" if objects else f"step {name!r}")
        learners.append(Learning(name, step, reads, maps, tabled))
        asked, behind, node = reads, bool(maps), learners[-1].output
    raw, maps = split(node)
    return Layout(source, tuple(learners), node, raw, maps, steps, asked, behind)


def split(node: GraphNode) -> tuple[GraphNode, tuple[MapPart, ...]]:
    """Split a node into a table and the maps of columns that follow it."""
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
