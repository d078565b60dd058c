"""Interfaces between the graph and the compositions in it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from erasable.core.arrays import Flags
from erasable.core.changes import TableChange
from erasable.core.estimator import Erasable

if TYPE_CHECKING:
    from erasable.pipeline._layout import Layout
    from erasable.pipeline._nodes import GraphNode


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


class Changes(Protocol):
    """Changes of the running deletion."""

    def of(self, node: GraphNode) -> TableChange:
        """Return the change of a node."""

    def own(self, step: Erasable) -> TableChange:
        """Return the change of a step's output for the same rows."""

    def raw(self, step: Nested) -> TableChange:
        """Return the change of a composition's output before its final maps."""
