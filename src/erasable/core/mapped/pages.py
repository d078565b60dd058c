"""A file of arrays, mapped into memory copy-on-write; a change writes only the changed pages.

The law kept here: the contents of a file belong to a label, the model it was made with. A change is
written in full beside it (`MappedFile.prepare`) and carried out when its label has become the
current one (`recover`); a process that dies in between leaves enough to do it again. A file that is
damaged, incomplete or of another label is removed: it can be made again.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.errors import ArtifactError
from erasable.core.mapped.description import (
    ARRAYS,
    CHANGE,
    GROUP,
    HASH,
    NOW,
    Description,
    PreparedChange,
    StaleError,
    changed_hashes,
    check_blocks,
    hash_of,
    hashes_of,
    opened,
    signature_of,
    write,
)
from erasable.core.mapped.disk import Files
from erasable.core.mapped.memory import (
    BLOCK,
    PAGE,
    Memory,
    Overlaid,
    gaps,
    in_a_row,
    laid_out,
    lock,
    pieces_of,
    rounded,
)
from erasable.core.mapped.objects import address_of, put_together, take_apart
from erasable.core.persistent import UnsavableError
from erasable.core.row_arrays import Slot

__all__ = ["Labels", "MappedFile", "StaleError", "recover"]

_OWN = np.array([False, False, True, True, True, False, True, True])
"""By the bits of a page, present (4), swapped (2), of the file (1): it is a copy of our own."""
_UNUSABLE = (OSError, ValueError, TypeError, KeyError, StaleError)


class MappedFile:
    """Arrays of an object in a file, read from there when they are used."""

    def __init__(self, files: Files, key: str, description: Description, secret: bytes) -> None:
        self.label = description.label
        self._files, self._key, self._now, self._secret = files, key, description, secret
        self._signature = signature_of(files, key)
        self._memory = np.empty(0, np.uint8)

    @classmethod
    def make(cls, files: Files, key: str, label: str, root: Any, secret: bytes = b"") -> None:
        """Write a new file of `root` (see `take_apart`), replacing the former one.

        Without `secret`, nobody can write a file that is taken for this one. If UnsavableError is
        raised, nothing was written.
        """
        tree, arrays = take_apart(root)
        files.remove_folder(key)
        slots, size = laid_out(arrays, 0)
        hashes = bytearray()
        with files.writing(f"{key}/{ARRAYS}") as append:
            for piece in pieces_of(arrays, slots, size):
                append(piece)
                hashes += hashes_of(piece)
            append(bytes(hashes))
        now = Description(label, tree, slots, size, hashes_of(hashes, HASH * GROUP))
        now.signature = signature_of(files, key)
        write(files, f"{key}/{NOW}", now.as_bytes(secret))

    @classmethod
    def open(
        cls, files: Files, key: str, label: str, secret: bytes = b""
    ) -> tuple[MappedFile, Any]:
        """Map a file; return it and its object.

        Changes of the object stay in memory until `prepare` and `recover`. Raise StaleError if
        there is no such file of this label, or it is damaged; ArtifactError if the object may not
        come from a file that is not trusted.
        """
        with contextlib.ExitStack() as stack:
            try:
                handle = lock(files.path(f"{key}/{ARRAYS}"))
                stack.callback(os.close, handle)
                now = Description.of_bytes(files.path(f"{key}/{NOW}").read_bytes(), secret)
            except (OSError, ValueError, TypeError, KeyError):
                raise StaleError("it is missing or damaged") from None
            if now.label != label:
                raise StaleError("it belongs to another version")
            if now.signature != signature_of(files, key):
                check_blocks(files, key, now, secret)
            file, arrays = cls(files, key, now, secret), list[Slot]()
            try:
                if now.size:
                    memory = Memory.of(handle, now.size)
                    stack.pop_all()  # the memory closes it
                    arrays = memory.arrays(now.slots)
                    file._memory = np.ndarray(now.size, np.uint8, memory)
                return file, put_together(now.tree, arrays)
            except ArtifactError:  # it refers to classes that an untrusted file must not name
                raise
            except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError):
                raise StaleError("it is damaged") from None
            except UnsavableError as error:
                raise StaleError(f"it is of another version: {error}") from None

    def is_current(self) -> bool:
        """Return whether the file is the one that `open` mapped, unchanged."""
        return self._signature == signature_of(self._files, self._key)

    def prepare(self, root: Any, label: str) -> None:
        """Write down the changes of the object that `open` returned; `label` is the next label.

        If UnsavableError is raised, nothing was written.
        """
        tree, arrays = take_apart(root)
        slots, size, new = self._place(arrays)
        path = self._files.path(f"{self._key}/{ARRAYS}")
        end, before = self._now.size, np.empty(0, np.uint8)
        if end:
            before = np.asarray(np.memmap(path, np.uint8, "r", shape=end))
        runs = self._changed(before, slots, new)
        after = Overlaid(before, runs)
        blocks = {
            block
            for offset, data in runs
            for block in range(offset // BLOCK, -(-(offset + len(data)) // BLOCK))
        }
        if size > end:
            blocks.add(end // BLOCK)
        changed = {
            block: hash_of(after.read(block * BLOCK, min(size, (block + 1) * BLOCK)))
            for block in blocks
        }
        more, hashes = changed_hashes(self._now, path, changed, size)
        runs += more
        now = Description(label, tree, slots, size, hashes)
        described = now.as_bytes(self._secret)
        head = json.dumps(
            {
                "from": self.label, "to": label, "now": len(described),
                "runs": [[offset, len(data)] for offset, data in runs],
            }
        ).encode()  # fmt: skip
        parts: list[Any] = [
            len(head).to_bytes(8, "little"),
            head,
            described,
            *(data for _, data in runs),
        ]
        told = blake2b(digest_size=HASH, key=self._secret)
        for part in parts:
            told.update(part)
        change = b"".join([*parts, told.digest()])
        with self._files.writing(f"{self._key}/{CHANGE}") as append:
            append(change)

    def _place(
        self, arrays: Sequence[NDArray[np.uint8]]
    ) -> tuple[list[list[int]], int, dict[int, NDArray[np.uint8]]]:
        """Keep arrays in place, or put them in gaps or at the end; return slots, size, new arrays.

        The new arrays, by offset, are to be written to the file. The memory mapped there is not
        written to: it belongs to arrays that may still be read.
        """
        begin = address_of(self._memory) if self._memory.size else 0
        slots: list[list[int] | None] = []
        for array in arrays:
            at = address_of(array) - begin
            inside = self._memory.size and 0 <= at < self._memory.size
            slots.append([at, array.size] if inside else None)
        used = {tuple(slot) for slot in slots if slot is not None}
        free = gaps([rounded(slot) for slot in used], self._now.size)
        new: dict[int, NDArray[np.uint8]] = {}
        end = self._now.size
        for number, array in enumerate(arrays):
            if slots[number] is not None:
                continue
            room = rounded([0, array.size])[1]
            fitting = next((each for each in free if each[1] >= room), [end, 0])
            slots[number] = [fitting[0], array.size]
            new[fitting[0]] = array
            if fitting[0] == end:
                end += room
            else:
                fitting[:] = fitting[0] + room, fitting[1] - room
        return [slot for slot in slots if slot is not None], end, new

    def _changed(
        self,
        before: NDArray[np.uint8],
        slots: Sequence[Sequence[int]],
        new: Mapping[int, NDArray[np.uint8]],
    ) -> list[tuple[int, memoryview]]:
        """Return the pages to be written: zeros where there is no array any more."""
        own = np.zeros(self._now.size // PAGE, np.bool_)
        gone = own.copy()
        for flags, some in ((gone, self._now.slots), (own, slots)):
            for offset, size in some:
                flags[offset // PAGE : -(-(offset + size) // PAGE)] = True
        gone &= ~own
        for offset, array in new.items():
            own[offset // PAGE : -(-(offset + array.size) // PAGE)] = False
        written = np.zeros_like(own)
        written[self._written_pages()] = True
        parts = [
            (first * PAGE, self._memory[first * PAGE : (last + 1) * PAGE])
            for first, last in in_a_row(np.flatnonzero(own & written).tolist())
        ]
        parts += [
            (first * PAGE, np.zeros((last + 1 - first) * PAGE, np.uint8))
            for first, last in in_a_row(np.flatnonzero(gone).tolist())
        ]
        for offset, array in new.items():
            padded = np.zeros(rounded([0, array.size])[1], np.uint8)
            padded[: array.size] = array
            parts.append((offset, padded))
        return sorted(
            ((offset, data.data) for part in parts for offset, data in _differing(before, *part)),
            key=lambda run: run[0],
        )

    def _written_pages(self) -> list[int]:
        """Return the pages that the system has copied for this process; all, if it does not say."""
        n = self._now.size // PAGE
        first = address_of(self._memory) // PAGE
        try:
            with open("/proc/self/pagemap", "rb", buffering=0) as file:
                told = np.frombuffer(os.pread(file.fileno(), 8 * n, 8 * first), np.uint64)
        except OSError:
            told = np.empty(0, np.uint64)
        if told.size != n or mmap.PAGESIZE != PAGE:
            return list(range(n))
        found: list[int] = np.flatnonzero(_OWN[(told >> np.uint64(61)).astype(np.uint8)]).tolist()
        return found


def _differing(
    before: NDArray[np.uint8], offset: int, data: NDArray[np.uint8]
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield the pages of some data that differ from those of a file, and new ones."""
    if offset >= before.size:
        yield offset, data
        return
    differ = (before[offset : offset + data.size] != data).reshape(-1, PAGE).any(axis=1)
    for first, last in in_a_row(np.flatnonzero(differ).tolist()):
        yield offset + first * PAGE, data[first * PAGE : (last + 1) * PAGE]


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of a file, and of a prepared change of it."""

    now: str | None = None  # None if the file cannot be used
    change: PreparedChange | None = None

    @property
    def to(self) -> str | None:
        """The label of the prepared change."""
        return None if self.change is None else self.change.to

    @classmethod
    def read(cls, files: Files, key: str, secret: bytes = b"") -> Labels:
        """Read the labels of a file."""
        now = None
        try:
            now = opened(files.path(f"{key}/{NOW}").read_bytes(), secret)[0]["label"]
            return cls(now, PreparedChange.read(files, key, secret))
        except _UNUSABLE:
            return cls(now)


def recover(
    files: Files,
    key: str,
    label: str,
    secret: bytes = b"",
    known: Labels | None = None,
    *,
    removes: bool = True,
) -> bool:
    """Bring a file to `label`; return False if there is no such file.

    A change prepared for `label` is carried out; one for another label, or a file of another, is
    removed, unless `removes` is False. It may be repeated after an interruption: after an OSError
    the change is still there. `known` is the result of `Labels.read`.
    """
    if not files.path(key).exists():
        return False
    known = known or Labels.read(files, key, secret)
    now, change = known.now, known.change
    try:
        if change is not None and change.to == label and now in (change.begin, label):
            change.carry_out(files, key, secret)
            return True
        if now == label:
            files.remove(f"{key}/{CHANGE}")
            return True
    except (FileNotFoundError, ValueError, TypeError, KeyError, StaleError):
        pass
    if removes:
        files.remove_folder(key)
    return False
