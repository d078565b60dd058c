"""Indexes from ids and groups to rows, from which rows can be removed.

Rows may be removed again where that was interrupted: what is removed stays so.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import of_objects
from erasable.core.ids import name_some
from erasable.core.mapped.texts import Names
from erasable.core.persistent import Persistent
from erasable.core.tape import Tape

_MANY = 32  # more are looked up as an array
_LATER = 1 / 8  # share of rows that came later, above which parts are merged
_HASHES = Tape(0x510E527FADE682D1)  # fixed and public: of the square root of 11


class IdIndex:
    """The row of each id that is present, in a dict, or by arithmetic where ids count up."""

    def __init__(self, ids: NDArray[Any], present: NDArray[np.bool_]) -> None:
        self._n_rows = ids.shape[0]
        self._start: int | None = None
        self._rows: dict[int | str, int] = {}
        if present.all() and counts_up(ids):
            self._start = int(ids[0])
            return
        rows = np.flatnonzero(present)
        self._rows = dict(zip(ids[rows].tolist(), rows.tolist(), strict=True))

    def find(self, ids: list[int | str]) -> NDArray[np.int64]:
        """Return the row of each id, -1 where there is none."""
        if self._start is None:
            get = self._rows.get
            return np.array([get(name, -1) for name in ids], dtype=np.int64)
        start, stop = self._start, self._start + self._n_rows
        if len(ids) > _MANY:
            numbers: list[Any] = ids
            if set(map(type, ids)) == {int} and start <= min(numbers) <= max(numbers) < stop:
                return np.array(numbers, dtype=np.int64) - start
        return np.array(
            [
                name - start if isinstance(name, int) and start <= name < stop else -1
                for name in ids
            ],
            dtype=np.int64,
        )

    def add(
        self,
        rows: NDArray[np.int64],
        names: list[int | str],
        ids: NDArray[Any],
        erased: NDArray[np.bool_],
    ) -> None:
        """Add new rows; `ids` are those of all rows before, of which some are `erased`."""
        n, start = self._n_rows, self._start
        if start is not None:
            if names == list(range(start + n, start + n + len(names))) and rows.min() >= n:
                self._n_rows = n + len(names)
                return
            present = ~erased
            self._rows = dict(
                zip(ids[present].tolist(), np.flatnonzero(present).tolist(), strict=True)
            )
            self._start = None
        self._rows.update(zip(names, rows.tolist(), strict=True))

    def __copy__(self) -> Self:
        """Copy what changes when ids are removed."""
        made = self.__class__.__new__(self.__class__)
        made.__dict__ = {**self.__dict__, "_rows": self._rows.copy()}
        return made

    def forget(self, rows: NDArray[np.int64], ids: list[int | str]) -> None:
        """Remove the ids of rows; those that are found by arithmetic were never stored."""
        if self._start is None:
            # The row is compared because the second time its id is blank, which is another's id.
            for row, name in zip(rows.tolist(), ids, strict=True):
                if self._rows.get(name) == row:
                    self._rows.pop(name, None)


class HashIndex(Persistent):
    """The row of each id, in two arrays that can lie in a file."""

    later: HashIndex | None = None  # of files that were written without

    # `keys` are hashes of the ids, ascending, and `rows` are theirs. Where an id was removed, its
    # row is -1, and the key before is there once more. `later` has the rows that came since.
    def __init__(
        self,
        ids: Any,
        keys: NDArray[np.uint64],
        rows: NDArray[np.int64],
        later: HashIndex | None = None,
    ) -> None:
        self.ids, self.keys, self.rows, self.later = ids, keys, rows, later

    @classmethod
    def of(cls, ids: Any, present: NDArray[np.bool_]) -> Self:
        """Make an index of the ids of rows that are not erased."""
        rows = np.flatnonzero(present)
        return cls(ids, *_by_key(_HASHES.record_keys(ids[rows]), rows))

    def _kept_attributes(self) -> dict[str, Any]:
        """Return what a file of a model's accelerator keeps; see `erasable.core.mapped`."""
        return {"ids": Names(self.ids), "keys": self.keys, "rows": self.rows, "later": self.later}

    def find(self, ids: list[int | str]) -> NDArray[np.int64]:
        """Return the row of each id, -1 where there is none."""
        keys = _keys(ids)
        found = np.full(len(ids), -1, dtype=np.int64)
        for part in self._parts():
            if part.keys.size == 0:
                continue
            at = np.searchsorted(part.keys, keys)
            there = np.flatnonzero(part.keys[np.minimum(at, part.keys.size - 1)] == keys)
            for number in there[found[there] < 0].tolist():
                found[number] = part._row(ids[number], keys[number], int(at[number]))
        return found

    def __copy__(self) -> Self:
        """Copy what changes when ids are removed."""
        return type(self)(self.ids, self.keys.copy(), self.rows.copy(), copy(self.later))

    def grown(self, ids: Any, rows: NDArray[np.int64], names: NDArray[Any]) -> Self:
        """Return an index that has some more rows; `ids` are those of all rows."""
        parts = [(part.keys, part.rows) for part in self._parts()]
        parts.append((_HASHES.record_keys(names), rows))
        n_later = sum(keys.size for keys, _ in parts[1:])
        if n_later > _LATER * self.keys.size:
            return type(self)(ids, *_joined(parts))
        return type(self)(ids, self.keys, self.rows, type(self)(ids, *_joined(parts[1:])))

    def forget(self, rows: NDArray[np.int64], ids: list[int | str]) -> None:
        """Remove the ids of rows, if they are there."""
        keys = _keys(ids)
        for part in self._parts():
            part._forget(rows, keys)

    def _parts(self) -> list[HashIndex]:
        return [self] if self.later is None else [self, self.later]

    def _forget(self, rows: NDArray[np.int64], keys: NDArray[np.uint64]) -> None:
        for row, key in zip(rows.tolist(), keys, strict=True):
            # By its row, not its id: another row may have the id by now.
            first = at = int(np.searchsorted(self.keys, key))
            while at < self.keys.size and self.keys[at] == key and self.rows[at] != row:
                at += 1
            if at < self.keys.size and self.keys[at] == key:
                self.rows[at] = -1
            # From the first one on: a call that was interrupted here has marked the row.
            before = self.keys[first - 1] if first else np.uint64(0)
            while first < self.keys.size and self.keys[first] == key and self.rows[first] < 0:
                self.keys[first] = before
                first += 1

    def _row(self, name: int | str, key: np.uint64, at: int) -> int:
        """Return the row of an id, whose hash is at a place or is not there."""
        while at < self.keys.size and self.keys[at] == key:
            row = int(self.rows[at])
            if row >= 0 and type(known := _plain(self.ids[row])) is type(name) and known == name:
                return row
            at += 1
        return -1


class GroupIndex:
    """The rows of each group that are present."""

    def __init__(self, groups: NDArray[Any], present: NDArray[np.bool_]) -> None:
        rows = np.flatnonzero(present)
        numbers: dict[int | str, int] = {}
        codes = np.array(
            [numbers.setdefault(name, len(numbers)) for name in groups[rows].tolist()],
            dtype=np.int64,
        )
        self._numbers = numbers
        self._gone = ~present
        self._order = rows[np.argsort(codes, kind="stable")]
        sizes = np.bincount(codes, minlength=len(numbers))
        self._ends = np.cumsum(sizes)
        self._starts = self._ends - sizes

    def find(self, group: int | str) -> NDArray[np.int64]:
        """Return the rows of a group, some erased ones included; none if the group is unknown."""
        number = self._numbers.get(group)
        if number is None:
            return np.empty(0, dtype=np.int64)
        return self._order[self._starts[number] : self._ends[number]]

    def forget(self, rows: NDArray[np.int64], groups: list[int | str]) -> None:
        """Remove rows of some groups; a group without rows is removed."""
        self._gone[rows] = True
        for group in set(groups):
            number = self._numbers.get(group)
            if number is None:
                continue
            # Each row is passed over once in the life of the index, however large its group is.
            start, end = int(self._starts[number]), int(self._ends[number])
            while start < end and self._gone[self._order[start]]:
                start += 1
            self._starts[number] = start
            if start == end:
                self._numbers.pop(group, None)


def _by_key(
    keys: NDArray[np.uint64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    order = np.argsort(keys, kind="stable")
    return keys[order], rows[order]


def _joined(
    parts: list[tuple[NDArray[np.uint64], NDArray[np.int64]]],
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Merge parts of an index, without removed ids."""
    keys, rows = (np.concatenate(each) for each in zip(*parts, strict=True))
    return _by_key(keys[rows >= 0], rows[rows >= 0])


def _keys(ids: list[int | str]) -> NDArray[np.uint64]:
    return _HASHES.record_keys(of_objects(list(ids)))


def _plain(value: Any) -> int | str:
    found: int | str = value.item() if isinstance(value, np.generic) else value
    return found


def not_there(
    values: list[int | str], name: str, known: NDArray[Any] | None, mistaken: list[int | str]
) -> str:
    """Return the message that the model has no records of some ids or groups, with a reason."""
    hint = "check them: each can be deleted once"
    if mistaken:
        other = "groups" if name == "ids" else "ids"
        is_one = f"is {'a group' if other == 'groups' else 'an id'}"
        are = is_one if len(mistaken) == 1 else f"are {other}"
        hint = f"did you mean {other}=? {name_some(mistaken)} {are} of the model"
    elif known is not None:
        text = known.dtype == object
        if not text and isinstance(values[0], str):
            hint = f"pass integers: these are strings, and the {name} of the model are integers"
        elif text and isinstance(values[0], int) and all(isinstance(x, str) for x in known):
            hint = f"pass strings: these are integers, and the {name} of the model are strings"
    return (
        f"{len(values)} of the {name} {'is' if len(values) == 1 else 'are'} not in the model: "
        f"{name_some(values)}; expected {name} it was fitted on and has not deleted; {hint}"
    )


def counts_up(ids: NDArray[Any]) -> bool:
    """Tell whether ids follow each other, so that they are found by arithmetic.

    >>> counts_up(np.array([7, 8, 9])), counts_up(np.array([7, 9]))
    (True, False)
    """
    if ids.dtype != np.int64 or ids.size == 0 or int(ids[-1]) - int(ids[0]) != ids.size - 1:
        return False
    return bool(np.all(ids[1:] == ids[:-1] + 1))
