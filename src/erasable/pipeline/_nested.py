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
    def _lay_out(self, source: GraphNode) -> None:
        """Set ``_layout``, for a source whose width and names are known."""

    @abstractmethod
    def _lay_out_again(self, source: GraphNode) -> None:
        """Lay out a composition that has been restored, at any depth, for another source."""

    def _declare(self, numeric: Flags | None) -> None:
        """Learn which columns of the source a frame declares to hold numbers."""

    def _end_learning(self, engine: Any) -> None:
        """Keep what follows of the steps, which have learned."""

    def _start_deletion(self) -> None:
        """Remember what is to be compared."""

    def _end_deletion(self, engine: Any) -> None:
        """Keep what follows of the steps, which have deleted."""


class Changes(Protocol):
    """What the deletion that is under way has changed."""

    def of(self, node: GraphNode) -> TableChange:
        """Return the change of a node."""

    def own(self, step: Erasable) -> TableChange:
        """Return what a step changed in its output, given the same rows."""

    def raw(self, step: Nested) -> TableChange:
        """Return what a composition changed before the maps with which it ends."""
