"""The allotment of records to members of an ensemble: a hash of the group, or of the id.

It depends on nothing else, so that other records stay where they are when one leaves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Flags, Floats, Ints, Ints32, Words
from erasable.core.digest import id_set_hash
from erasable.core.tape import Stream, Tape

_NOBODY = -1
_NO_ROWS: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Share:
    """Records of one member."""

    rows: Ints  # (n,); their positions: by slice, and in a slice by record key
    slices: Ints | None = None  # (n,); the slice of each; None where there are no slices
    # (n,); how often each is in the bag, once or more; None where each is there once
    times: Ints | None = None

    def size(self, weights: Floats | None) -> float:
        """Count the records, or add up their weights, in no particular order."""
        return float(self.rows.size) if weights is None else math.fsum(weights[self.rows].tolist())

    def record_set(self, ids: NDArray[Any]) -> Words:
        """Hash the set of the records' ids; see `erasable.core.digest.id_set_hash`."""
        return id_set_hash(ids[self.rows])


class Allotment(Protocol):
    """The records of every member; an accelerator."""

    def members(self) -> Sequence[int]:
        """Return the members that may have records."""

    def members_of(self, rows: Ints) -> list[int]:
        """Return the members that have any of these rows."""

    def share(self, member: int) -> Share:
        """Return the records of a member."""

    def among(self, rows: Ints, member: int) -> Ints:
        """Return those of some rows that a member has."""

    def slices(self, rows: Ints) -> Ints:
        """Return the slice of each row; 0 where there are none."""

    def without(self, rows: Ints) -> Self:
        """Return what is left without some rows."""


def shards_of(tape: Tape, owners: Words, n_shards: int, step: int = 0) -> Ints:
    """Assign owners to shards, or, in another step, to slices.

    >>> tape = Tape(3)
    >>> shards = shards_of(tape, tape.record_keys(np.arange(8000)), 4)
    >>> bool(np.abs(np.bincount(shards) - 2000).max() < 150)
    True
    """
    return (tape.uniform(owners, Stream.LEAF, step) * n_shards).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Shards:
    """Every record is in one shard, and in one slice of it."""

    rows: dict[int, Ints]  # of each shard that has any: by slice, and in a slice in key order
    # shard, slice: (n_rows,); -1 for rows that are in none
    shard: Ints32
    slice: Ints | None  # None where there are no slices

    @classmethod
    def of(
        cls, tape: Tape, rows: Ints, owners: Words, n_rows: int, n_shards: int, n_slices: int
    ) -> Self:
        """Share out rows, which are in the order of their keys, by the keys of their owners."""
        shard, slice_ = np.full(n_rows, _NOBODY, dtype=np.int32), None
        shard[rows] = parts = shards_of(tape, owners, n_shards)
        if n_slices > 1:
            slice_ = np.full(n_rows, _NOBODY, dtype=np.int64)
            slice_[rows] = slices = shards_of(tape, owners, n_slices, step=1)
            parts = parts * n_slices + slices
        # Numbers of 16 bits, which shards and slices seldom need more than, are sorted in one pass.
        small = np.min_scalar_type(n_shards * n_slices)
        order = rows[np.argsort(parts.astype(small), kind="stable")]
        numbers, begins = np.unique(shard[order], return_index=True)
        own = dict(zip(numbers.tolist(), np.split(order, begins[1:]), strict=True))
        return cls(own, shard, slice_)

    def members(self) -> list[int]:
        """Return the shards that have records."""
        return list(self.rows)

    def members_of(self, rows: Ints) -> list[int]:
        """Return the shards of rows."""
        found = np.unique(self.shard[rows]).tolist()
        return [shard for shard in found if shard != _NOBODY]

    def share(self, member: int) -> Share:
        """Return the records of a shard."""
        rows = self.rows.get(member, _NO_ROWS)
        return Share(rows, None if self.slice is None else self.slice[rows])

    def among(self, rows: Ints, member: int) -> Ints:
        """Return those of some rows that a shard has."""
        found: Ints = rows[self.shard[rows] == member]
        return found

    def slices(self, rows: Ints) -> Ints:
        """Return the slice of each row."""
        return np.zeros(rows.size, dtype=np.int64) if self.slice is None else self.slice[rows]

    def without(self, rows: Ints) -> Self:
        """Return what is left without some rows."""
        own = dict(self.rows)
        for member in self.members_of(rows):
            own[member] = own[member][~np.isin(own[member], rows)]
            if not own[member].size:
                del own[member]
        slice_ = None if self.slice is None else _blanked(self.slice, rows, _NOBODY)
        return replace(self, rows=own, shard=_blanked(self.shard, rows, _NOBODY), slice=slice_)


@dataclass(frozen=True, eq=False)
class Bags:
    """Every record is in each bag as often as its owner's draw for that bag says, or not at all."""

    tape: Tape
    n_bags: int
    # (n,); what a uniform draw must reach for a record to be in a bag once, twice, ...
    thresholds: Floats
    bootstrap: bool
    rows: Ints  # in the order of their keys
    # owners, teaches: (n_rows,); keys of the rows' owners, and whether they are in `rows`
    owners: Words
    teaches: Flags

    @classmethod
    def of(
        cls, tape: Tape, rows: Ints, owners: Words, n_rows: int, n_bags: int, share: float,
        bootstrap: bool,
    ) -> Self:  # fmt: skip
        """Share out rows by the keys of their owners.

        `share` is the mean of times in a bag, or without `bootstrap` the probability of being in
        it.
        """
        every, teaches = np.zeros(n_rows, dtype=np.uint64), np.zeros(n_rows, dtype=np.bool_)
        every[rows], teaches[rows] = owners, True
        thresholds = poisson_thresholds(share) if bootstrap else np.array([1.0 - share])
        return cls(tape, n_bags, thresholds, bootstrap, rows, every, teaches)

    def _times(self, member: int, rows: Ints) -> Ints:
        chance = self.tape.uniform(self.owners[rows], Stream.LEAF, member)
        return np.searchsorted(self.thresholds, chance, side="right").astype(np.int64)

    def members(self) -> Sequence[int]:
        """Return all bags, empty ones included."""
        return range(self.n_bags)

    def members_of(self, rows: Ints) -> list[int]:
        """Return the bags in which any of the rows is."""
        return [bag for bag in self.members() if self.among(rows, bag).size]

    def share(self, member: int) -> Share:
        """Return the records of a bag."""
        times = self._times(member, self.rows)
        inside = times > 0
        return Share(self.rows[inside], times=times[inside] if self.bootstrap else None)

    def among(self, rows: Ints, member: int) -> Ints:
        """Return those of some rows that a bag has."""
        rows = rows[self.teaches[rows]]
        return rows[self._times(member, rows) > 0]

    def slices(self, rows: Ints) -> Ints:
        """Return 0 for each row: a bag has no slices."""
        return np.zeros(rows.size, dtype=np.int64)

    def without(self, rows: Ints) -> Self:
        """Return what is left without some rows."""
        teaches = _blanked(self.teaches, rows, False)
        owners, left = _blanked(self.owners, rows, 0), self.rows[teaches[self.rows]]
        return replace(self, rows=left, owners=owners, teaches=teaches)


def _blanked(values: NDArray[Any], rows: Ints, by: Any) -> NDArray[Any]:
    """Return a copy with another value in some rows."""
    copy = values.copy()
    copy[rows] = by
    return copy


def poisson_thresholds(mean: float) -> Floats:
    """Return the numbers, ascending, that a uniform draw must reach for one, two, ... events.

    They are computed in decimals and rounded once, so that they are the same on every machine.

    More events have a probability below ``2**-53``.

    >>> poisson_thresholds(1.0)[:3].round(4)
    array([0.3679, 0.7358, 0.9197])
    """
    context, least = Context(prec=40), Decimal(2.0**-53)
    rate, one = Decimal(mean), Decimal(1)
    term = total = context.exp(context.minus(rate))
    found: list[float] = []
    while context.subtract(one, total) > least:
        found.append(float(total))
        term = context.divide(context.multiply(term, rate), Decimal(len(found)))
        total = context.add(total, term)
    return np.array(found)


def chosen_columns(tape: Tape, names: list[str], n_chosen: int, member: int) -> Ints:
    """Choose columns for a member by a race among their names; return them in ascending order.

    >>> chosen_columns(Tape(3), ["age", "bmi", "height"], 2, member=0).size
    2
    """
    keys = np.array([tape.key_of(name) for name in names], dtype=np.uint64)
    order = np.lexsort((keys, tape.uniform(keys, Stream.RACE, member)))
    return np.sort(order[:n_chosen]).astype(np.int64)
