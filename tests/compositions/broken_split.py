"""A fault between steps: what a transformer does before its maps is applied twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from erasable.core.arrays import Values
from erasable.core.changes import ANYTHING, TableChange
from erasable.core.rows import Rows
from erasable.pipeline import _layout, _maps, _nodes
from erasable.pipeline._tables import as_table

__all__ = ["split_twice"]

_SPLIT = _layout.split


class _Whole(_maps.EndMap):
    """The maps with which a composition ends, applied as the whole composition."""

    def apply(self, rows: Values) -> Values:
        return as_table(self.step.transform(Rows(rows)))


@dataclass(frozen=True, eq=False)
class _Again(_nodes.Stateless):
    """What a composition makes before its maps, of what it has made so already."""

    def make(self, get: Any) -> Values:
        layout, rows = self.step._layout, get(self.input)
        return _nodes.evaluate(layout.raw, lambda node: rows if node is layout.source else None)

    def change(self, changes: Any) -> TableChange:
        return ANYTHING


def split_twice(node: _nodes.GraphNode) -> Any:
    """Cut a node in two, and keep the whole transformer among the maps, to be cut again."""
    before, maps = _SPLIT(node)
    if maps and isinstance(maps[0], _Whole):
        return _Again(before, "again", maps[0].step), maps
    kept = [_Whole(each.step) if isinstance(each, _maps.EndMap) else each for each in maps]
    return before, tuple(kept)
