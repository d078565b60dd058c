"""Maps of columns between a table and a step that takes them as one map."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import hstack, issparse

from erasable.core.arrays import Values
from erasable.core.changes import Affine, TableChange, union
from erasable.core.estimator import Erasable
from erasable.core.rows import Rows
from erasable.core.sparse import canonical
from erasable.pipeline._tables import as_numbers, as_table

if TYPE_CHECKING:
    from erasable.pipeline._layout import Nested
    from erasable.pipeline._nodes import Changes


@dataclass
class Widths:
    """Widths of the parts of a column transformer, now and before a deletion."""

    now: dict[str, int]
    before: dict[str, int]


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
    def change(self, below: TableChange, changes: Changes) -> TableChange:
        """Return the change of the mapped table, given the change `below` of the table."""


@dataclass(frozen=True, slots=True, eq=False)
class StepMap(MapPart):
    """A step that is a map of columns."""

    step: Erasable

    def affine(self) -> Affine:
        return self.step._affine()

    def apply(self, rows: Values) -> Values:
        return as_table(self.step.transform(Rows(rows)))

    def change(self, below: TableChange, changes: Changes) -> TableChange:
        return union([below.of_function(), changes.own(self.step)])


@dataclass(frozen=True, slots=True, eq=False)
class EndMap(MapPart):
    """The maps with which a composition ends."""

    step: Nested

    def affine(self) -> Affine:
        return compose(self.step._layout.maps)

    def apply(self, rows: Values) -> Values:
        return as_table(apply(self.step._layout.maps, rows))

    def change(self, below: TableChange, changes: Changes) -> TableChange:
        own = changes.own(self.step)
        rows = union([TableChange(below.rows), TableChange(own.rows)]).rows
        return TableChange(rows, None, below.origin, below.known and own.known)


@dataclass(frozen=True, slots=True, eq=False)
class Blocks(MapPart):
    """Maps of blocks of columns, side by side: those with which a column transformer ends."""

    widths: Widths
    parts: dict[str, tuple[MapPart, ...]]

    def affine(self) -> Affine:
        maps = [
            compose(self.parts[name])
            if self.parts[name]
            else Affine(np.zeros(width), np.ones(width))
            for name, width in self.widths.now.items()
        ]
        shifts, scales = zip(*maps, strict=True)
        return Affine(np.concatenate(shifts), np.concatenate(scales))

    def apply(self, rows: Values) -> Values:
        made, start = {}, 0
        for name, width in self.widths.now.items():
            made[name] = apply(self.parts[name], as_table(rows[:, start : start + width]))
            start += width
        return side_by_side(made)

    def change(self, below: TableChange, changes: Changes) -> TableChange:
        raise AssertionError("the change is that of the column transformer, see EndMap")


def compose(maps: Iterable[MapPart]) -> Affine:
    """Return a chain of maps as one, in the order in which they are applied."""
    first, *others = (each.affine() for each in maps)
    for other in others:
        first = first.then(other)
    return first


def apply(maps: Iterable[MapPart], rows: Values) -> Values:
    """Apply maps, one after the other."""
    for each in maps:
        rows = each.apply(rows)
    return rows


def side_by_side(parts: dict[str, Values]) -> Values:
    """Join the outputs of parts side by side; sparse if one of them is."""
    if any(issparse(part) for part in parts.values()):
        numbers = [
            as_numbers(part, f"a sparse output beside {name!r}") for name, part in parts.items()
        ]
        return canonical(hstack(numbers, format="csr"))
    return np.hstack(list(parts.values()))
