"""The faults that earlier versions had.

The raw part of a transformer is applied twice, and of a pipeline of maps only the last are taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any

import pytest

from erasable.core import estimator
from erasable.core.changes import ANYTHING, Change
from erasable.core.rows import Rows
from erasable.core.values import Values
from erasable.pipeline import Pipeline, _composition, _layout, _maps, _nodes
from erasable.pipeline._reading import as_table
from erasable.pipeline._selection import Selection

__all__ = ["earlier_version", "split_as_before"]

_SPLIT = _layout.split
_TAKE = Selection.take


class _Whole(_maps.EndMap):
    """The maps with which a composition ends, applied as the whole composition."""

    def apply(self, rows: Values) -> Values:
        return as_table(self.step.transform(Rows(rows)))


def _take_of_any_width(self: Selection, X: Values) -> Values:
    selection = copy(self)
    selection.n_features = X.shape[1]
    return _TAKE(selection, X)


@dataclass(frozen=True, eq=False)
class _Again(_nodes.Stateless):
    """What a composition makes before its maps, of what it has made so already."""

    def make(self, get: Any) -> Values:
        layout, rows = self.step._layout, get(self.input)
        return _nodes.evaluate(layout.raw, lambda node: rows if node is layout.source else None)

    def change(self, changes: Any) -> Change:
        return ANYTHING


def split_as_before(node: _nodes.Node) -> Any:
    """Cut a node in two, and keep the whole transformer among the maps, to be cut again."""
    before, maps = _SPLIT(node)
    if maps and isinstance(maps[0], _Whole):
        return _Again(before, "again", maps[0].step), maps
    kept = [_Whole(each.step) if isinstance(each, _maps.EndMap) else each for each in maps]
    return before, tuple(kept)


def _affine_as_before(self: Pipeline) -> Any:
    return _maps.compose(self._layout.maps)


@contextmanager
def earlier_version() -> Iterator[None]:
    """Plan as before, look at no widths, and write no marks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_layout, "split", split_as_before)
        patch.setattr(Pipeline, "_affine", _affine_as_before)
        patch.setattr(_composition, "learned_wrong", lambda model: False)
        # They did not look at how wide the rows between steps are.
        patch.setattr(estimator, "matrix_of", lambda rows, model: rows.matrix)
        patch.setattr(Selection, "take", _take_of_any_width)
        yield
