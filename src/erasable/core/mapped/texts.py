"""A column of text in two arrays of bytes, from which single values are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import of_objects
from erasable.core.row_arrays import buffer_of, padded

__all__ = ["Names", "Texts", "as_array", "as_texts"]


class Names(NamedTuple):
    """Ids or groups, kept as `Texts` in a file at every reference to the array."""

    array: Any


class Texts:
    """Texts that are decoded when read; used like an array of objects.

    `lengths` are in bytes, 0 for an overwritten text; `starts` has one more entry than there are
    texts.
    """

    dtype = np.dtype(object)
    ndim = 1

    def __init__(
        self, starts: NDArray[np.int64], lengths: NDArray[np.int32], data: NDArray[np.uint8]
    ) -> None:
        self.starts, self.lengths, self.data = starts, lengths, data

    @classmethod
    def of(cls, values: Sequence[str]) -> Texts:
        """Encode texts."""
        encoded = [value.encode() for value in values]
        lengths = np.fromiter(map(len, encoded), np.int32, len(encoded))
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
        return cls(starts, lengths, np.frombuffer(bytearray(b"".join(encoded)), np.uint8))

    @property
    def shape(self) -> tuple[int]:
        """As of an array."""
        return (self.lengths.shape[0],)

    @property
    def size(self) -> int:
        """As of an array."""
        return int(self.lengths.shape[0])

    def __len__(self) -> int:
        """Count the texts, including overwritten ones."""
        return self.size

    def __getitem__(self, at: Any) -> Any:
        """Decode one text, or those at some positions."""
        if isinstance(at, int | np.integer):
            return self._decode(int(at))
        places = np.arange(self.size)[at]
        return of_objects([self._decode(place) for place in places.tolist()])

    def __setitem__(self, at: Any, value: str) -> None:
        """Erase texts."""
        assert value == ""
        for place in np.atleast_1d(np.arange(self.size)[at]).tolist():
            start = int(self.starts[place])
            self.data[start : start + int(self.lengths[place])] = 0
            self.lengths[place] = 0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Decode all of them."""
        return of_objects(self.tolist())

    def tolist(self) -> list[str]:
        """Decode all of them."""
        return [self._decode(place) for place in range(self.size)]

    def copy(self) -> Texts:
        """Copy the bytes."""
        return Texts(self.starts.copy(), self.lengths.copy(), self.data.copy())

    __copy__ = copy

    def parts(self) -> list[NDArray[Any]]:
        """Return the arrays that depend on the texts."""
        return [self.lengths, self.data]

    def grown(self, size: int, rows: NDArray[np.int64], values: Sequence[str]) -> Texts:
        """Return `size` texts, with `values` at the positions `rows`.

        They use the same memory if it has room; this object itself is changed and returned if all
        values fit into the places of those at `rows`, which were overwritten before.
        """
        new = Texts.of(values)
        if size == self.size and self._fit(rows, new.lengths):
            for row, start, length in zip(rows, new.starts, new.lengths, strict=False):
                at = self.starts[row]
                self.data[at : at + length] = new.data[start : start + length]
            self.lengths[rows] = new.lengths
            return self
        room = buffer_of(self.data)
        is_full = room is None or room.size < self.data.size + new.data.size
        kept = self._without_gaps() if is_full else self
        end = kept.data.size
        starts = padded(kept.starts, size + 1, keep=True)
        lengths = padded(kept.lengths, size, keep=True)
        data = padded(kept.data, end + new.data.size, keep=True)
        starts[rows], lengths[rows], data[end:] = new.starts[:-1] + end, new.lengths, new.data
        return Texts(starts, lengths, data)

    def _fit(self, rows: NDArray[np.int64], lengths: NDArray[np.int32]) -> bool:
        """Return whether texts fit between the starts of overwritten ones and the next starts."""
        begins = np.sort(self.starts[:-1])
        own = self.starts[:-1][rows]
        behind = np.searchsorted(begins, own, side="right")
        alone = behind - np.searchsorted(begins, own) == 1
        ends = np.append(begins, self.data.size)[behind]
        return bool((alone & (own + lengths <= ends)).all())

    def empty_room(self) -> None:
        """Erase texts that `grown` has added to the memory of these."""
        for each in self.parts():
            room = buffer_of(each)
            if room is not None:
                room[each.size :] = 0

    def _without_gaps(self) -> Texts:
        """Copy the texts, without the bytes of overwritten ones."""
        ends = np.cumsum(self.lengths, dtype=np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), ends])
        moved = np.repeat(self.starts[:-1] - starts[:-1], self.lengths)
        return Texts(starts, self.lengths.copy(), self.data[moved + np.arange(moved.size)])

    def _decode(self, place: int) -> str:
        start = int(self.starts[place])
        return self.data[start : start + int(self.lengths[place])].tobytes().decode()


def as_texts(names: Any) -> Any:
    """Return ids or groups as they are stored: as `Texts` if all of them are texts."""
    if isinstance(names, Texts) or names.dtype != object:
        return names
    values = names.tolist()
    return Texts.of(values) if set(map(type, values)) == {str} else names


def as_array(names: Any) -> Any:
    """Undo `as_texts`."""
    return np.asarray(names) if isinstance(names, Texts) else names
