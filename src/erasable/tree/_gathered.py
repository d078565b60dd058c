"""Nodes that are grown from records which are in memory meanwhile: here, or on a worker.

The law kept here: what is below a node is a function of its records, of its path and of the seed.
Who else is grown with it, and where, does not matter.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from erasable.core.arrays import Floats, Ints, Matrix
from erasable.core.passes import Remote, Stored
from erasable.core.tape import Tape
from erasable.core.threads import in_threads
from erasable.tree._columns import Columns
from erasable.tree._flat import Flat
from erasable.tree._forest import Draws, table_of
from erasable.tree._grown import Grown, bag_rows, moved
from erasable.tree._layout import Rules, work_for
from erasable.tree._plants import Bag


class Sprout(NamedTuple):
    """A node whose records are known.

    Attributes
    ----------
    bag : ndarray of uint32
        Its records, by their positions among those that were gathered, and their times in it.
    key : int
        Of its path.
    depth : int
    whole : float
        Weight of all records of its tree, see `Grown.of`.
    """

    bag: Bag
    key: int
    depth: int
    whole: float


@dataclass(frozen=True, eq=False)
class Bed:
    """Records, and the nodes that are grown from them; it can be pickled.

    Attributes
    ----------
    matrix : ndarray of shape (n, n_features)
    y : ndarray of shape (n,), int64
    sprouts : list of Sprout
    tape : Tape
    draws : Draws
    rules : Rules
    class_weight : ndarray of float64
    n_stats : int
    units : ndarray of shape (n,), int64
        Their weights; empty where they have none.
    """

    matrix: Matrix
    y: Ints
    sprouts: list[Sprout]
    tape: Tape
    draws: Draws
    rules: Rules
    class_weight: Floats
    n_stats: int
    units: Ints

    def part(self, places: Sequence[int]) -> Bed:
        """Return some of the nodes, with the records of these and no others."""
        chosen = [self.sprouts[place] for place in places]
        wanted = np.zeros(self.y.size, dtype=np.bool_)
        for sprout in chosen:
            wanted[bag_rows(sprout.bag)] = True
        where = np.cumsum(wanted) - 1
        own = [sprout._replace(bag=moved(sprout.bag, where)) for sprout in chosen]
        return Bed(
            self.matrix[wanted], self.y[wanted], own, self.tape, self.draws, self.rules,
            self.class_weight, self.n_stats, self.units[wanted] if self.units.size else self.units,
        )  # fmt: skip

    def grow(self, n_jobs: int | None = None) -> list[Flat]:
        """Grow all nodes."""
        columns = Columns.fit(self.matrix, np.arange(self.y.size), self.tape, n_jobs)
        several = len(self.sprouts) > 1
        table = table_of(
            columns, self.y, self.draws, self.class_weight, several, n_jobs, self.units
        )
        n_features, rules, rooms = self.matrix.shape[1], self.rules, threading.local()

        def grown(sprout: Sprout) -> Flat:
            rooms.work = work = getattr(rooms, "work", None) or work_for(
                self.y.size, n_features, self.n_stats, rules.sample
            )
            plant = Grown.of(
                sprout.bag, np.uint64(sprout.key), table, rules, work, sprout.depth, sprout.whole
            )
            return plant.flat(columns)

        return list(in_threads(grown, self.sprouts, n_jobs))


def grow_where(matrix: Stored, bed: Bed, n_jobs: int | None) -> Iterator[tuple[int, Flat]]:
    """Grow all nodes, on workers if there are any; yield the place of each, and its tree."""
    if not isinstance(matrix, Remote):
        yield from enumerate(bed.grow(n_jobs))
        return
    shares = dealt([sprout.bag.size for sprout in bed.sprouts], matrix.n_calls)
    beds = (partial(Bed.grow, bed.part(share)) for share in shares)
    for share, flats in zip(shares, matrix.call(beds), strict=True):
        yield from zip(share, flats, strict=True)


def dealt(sizes: Sequence[int], n: int) -> list[list[int]]:
    """Deal items to at most n shares: the largest first, each to the share that has least.

    >>> dealt([5, 1, 4, 3], 2)
    [[0, 1], [2, 3]]
    """
    shares: list[list[int]] = [[] for _ in range(min(n, len(sizes)))]
    loads = [0] * len(shares)
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        least = loads.index(min(loads))
        shares[least].append(place)
        loads[least] += sizes[place]
    return shares
