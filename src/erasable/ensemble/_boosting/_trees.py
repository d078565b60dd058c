"""Trees of boosting end to end, so that a kernel can go through all of them in one call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Ints
from erasable.core.kept import Kept, attributes_of
from erasable.ensemble._boosting._flat import Flat
from erasable.ensemble._boosting._layout import N_FIELDS, Tree


class Grown(NamedTuple):
    """A tree for deletions, and for everything else."""

    tree: Tree
    flat: Flat


def room_for(n_nodes: int, n_candidates: int) -> Tree:
    """Return arrays for so many nodes and candidates.

    >>> room_for(3, 5).lefts.shape
    (5, 2)
    """
    return Tree(
        nodes=np.zeros((n_nodes, N_FIELDS), dtype=np.int32),
        keys=np.zeros(n_nodes, dtype=np.uint64),
        sums=np.zeros((n_nodes, 2), dtype=np.int64),
        scores=np.zeros(n_nodes),
        values=np.zeros(n_nodes, dtype=np.int32),
        tried=np.zeros((n_candidates, 2), dtype=np.int32),
        lefts=np.zeros((n_candidates, 2), dtype=np.int64),
        factors=np.zeros(n_candidates),
    )


def part_of(tree: Tree, start: Sequence[int], end: Sequence[int]) -> Tree:
    """Return views of what is between some numbers of nodes and of candidates."""
    own, tries = slice(start[0], end[0]), slice(start[1], end[1])
    return Tree(
        nodes=tree.nodes[own],
        keys=tree.keys[own],
        sums=tree.sums[own],
        scores=tree.scores[own],
        values=tree.values[own],
        tried=tree.tried[tries],
        lefts=tree.lefts[tries],
        factors=tree.factors[tries],
    )


def _copy(tree: Tree, to: Tree) -> None:
    arrays: Iterable[tuple[NDArray[Any], NDArray[Any]]] = zip(tree, to, strict=True)
    for each, other in arrays:
        other[:] = each


@dataclass(eq=False, slots=True)
class Trees(Kept):
    """Trees in order; of all but the last ones, which are cut off, everything stays where it is.

    Attributes
    ----------
    flats : list of Flat
    """

    flats: list[Flat] = field(default_factory=list)
    _all: Tree = field(default_factory=lambda: room_for(0, 0))
    _ends: Ints = field(default_factory=lambda: np.zeros((1, 2), dtype=np.int64))
    _high: tuple[int, int] = (0, 0)

    def __len__(self) -> int:
        """Return the number of trees."""
        return len(self.flats)

    @property
    def end_to_end(self) -> tuple[Tree, Ints]:
        """Arrays of all trees, and where each ends: numbers of nodes and of candidates before."""
        return self._all, self._ends[: len(self) + 1]

    def tree(self, i: int) -> Tree:
        """Return one of the trees, of which each array is a view."""
        return part_of(self._all, *self._ends[i : i + 2].tolist())

    def copy(self, i: int) -> Grown:
        """Return a copy of one of the trees."""
        tree = self.tree(i)
        copied = room_for(tree.keys.size, tree.factors.size)
        _copy(tree, copied)
        return Grown(copied, self.flats[i])

    def append(self, grown: Grown) -> None:
        """Copy a tree behind the others."""
        n = len(self)
        self._make_room(grown.tree)
        sizes = grown.tree.keys.size, grown.tree.factors.size
        self._ends[n + 1] = self._ends[n] + sizes
        self.flats.append(grown.flat)
        _copy(grown.tree, self.tree(n))

    def cut(self, n: int) -> None:
        """Drop all trees but the first n."""
        self._high = self._highest()
        del self.flats[n:]

    def overwrite(self) -> None:
        """Overwrite what is left of trees that were dropped, and have no other in their place."""
        (a, c), (b, d) = self._ends[len(self)].tolist(), self._highest()
        for each in part_of(self._all, (a, c), (b, d)):
            each[...] = 0
        self._high = a, c

    def _highest(self) -> tuple[int, int]:
        nodes, tries = self._ends[len(self)].tolist()
        return max(nodes, self._high[0]), max(tries, self._high[1])

    def _make_room(self, tree: Tree) -> None:
        n = len(self)
        nodes, tries = self._ends[n].tolist()
        if n + 1 == len(self._ends):
            self._ends = np.concatenate([self._ends, np.zeros_like(self._ends)])
        wanted = nodes + tree.keys.size, tries + tree.factors.size
        if wanted[0] > self._all.keys.size or wanted[1] > self._all.factors.size:
            self._move(room_for(*(2 * most for most in wanted)))

    def _move(self, to: Tree) -> None:
        ends = self._ends[len(self)].tolist()
        _copy(part_of(self._all, (0, 0), ends), part_of(to, (0, 0), ends))
        self._all, self._high = to, (0, 0)

    def _kept_attributes(self) -> dict[str, Any]:
        nodes, tries = self._ends[len(self)].tolist()
        if (nodes, tries) != (self._all.keys.size, self._all.factors.size):
            self._move(room_for(nodes, tries))
        return attributes_of(self)
