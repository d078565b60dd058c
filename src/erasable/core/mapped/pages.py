"""A file of arrays, mapped into memory copy-on-write: a change writes the pages that it changed.

The law kept here: what a file holds belongs to a label, the model it was made with. A change is
written down whole beside it (`MappedFile.prepare`) and carried out when its label has become the
current one (`settle`); a process that dies in between leaves enough to do it again. Whatever is
damaged, half-written or of another label is removed: all of it can be made again.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.errors import ArtifactError
from erasable.core.kept import UnkeptError
from erasable.core.mapped.description import (
    ARRAYS,
    BLOCK,
    CHANGE,
    GROUP,
    HASH,
    NOW,
    Change,
    Description,
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
from erasable.core.mapped.layout import PAGE, gaps, in_a_row, laid_out, pieces_of, rounded
from erasable.core.mapped.objects import put_together, take_apart

__all__ = ["Labels", "MappedFile", "StaleError", "settle"]

_OWN = np.array([False, False, True, True, True, False, True, True])
"""Of the bits of a page, there (4), swapped (2), the file's (1): whether it is a copy of ours."""
_UNUSABLE = (OSError, ValueError, TypeError, KeyError, StaleError)


class MappedFile:
    """Arrays of an object in a file, which are read from there as they are used.

    Attributes
    ----------
    label : str

    Examples
    --------
    >>> import tempfile
    >>> from erasable.core.mapped.disk import Folder
    >>> with tempfile.TemporaryDirectory() as place:
    ...     MappedFile.make(Folder(place), "sums", "one", {"sums": np.zeros(1000)})
    ...     file, kept = MappedFile.open(Folder(place), "sums", "one")
    ...     kept["sums"][7] = 1.0
    ...     file.prepare(kept, "two")
    ...     settled = settle(Folder(place), "sums", "two")
    ...     _, kept = MappedFile.open(Folder(place), "sums", "two")
    >>> kept["sums"][6:9]
    array([0., 1., 0.])
    """

    def __init__(self, files: Files, key: str, description: Description, secret: bytes) -> None:
        self.label = description.label
        self._files, self._key, self._now, self._secret = files, key, description, secret
        held: Any = None
        if description.size:
            with open(files.path(f"{key}/{ARRAYS}"), "rb") as file:
                held = mmap.mmap(file.fileno(), description.size, access=mmap.ACCESS_COPY)
        self._memory: NDArray[np.uint8] = np.ndarray(description.size, np.uint8, held)
        self._arrays = [
            np.ndarray(size, np.uint8, held, offset) for offset, size in description.slots
        ]

    @classmethod
    def make(cls, files: Files, key: str, label: str, root: Any, secret: bytes = b"") -> None:
        """Write a new file, in the place of one that is there.

        Parameters
        ----------
        files : Files
        key : str
            Of the folder of the file.
        label : str
            What the file belongs to.
        root : object
            See `erasable.core.mapped.objects.take_apart`.
        secret : bytes, default=b""
            Without which nobody can write a file that is taken for this one.

        Raises
        ------
        UnkeptError
            The object cannot be kept; nothing was written.
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
        """Map a file.

        Returns
        -------
        MappedFile
        root : object
            What was kept. Changes to it stay in memory until `prepare` and `settle`.

        Raises
        ------
        StaleError
            There is none of this label, or it is damaged.
        ArtifactError
            What was kept refuses to come from a file that is not trusted.
        """
        try:
            now = Description.of_bytes(files.path(f"{key}/{NOW}").read_bytes(), secret)
        except (OSError, ValueError, TypeError, KeyError):
            raise StaleError("it is missing or damaged") from None
        if now.label != label:
            raise StaleError("it belongs to another version")
        if now.signature != signature_of(files, key):
            check_blocks(files, key, now, secret)
        try:
            file = cls(files, key, now, secret)
            return file, put_together(now.tree, file._arrays)
        except ArtifactError:  # it is whole, and names what a stranger's file must not
            raise
        except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError):
            raise StaleError("it is damaged") from None
        except UnkeptError as error:
            raise StaleError(f"it is of another version: {error}") from None

    def prepare(self, root: Any, label: str) -> None:
        """Write down what is to become of the file when `label` is the current one.

        Parameters
        ----------
        root : object
            What `open` returned, changed or not.
        label : str

        Raises
        ------
        UnkeptError
            The object cannot be kept any more; nothing was written.
        """
        tree, arrays = take_apart(root)
        slots, size, tail = self._place(arrays)
        pages, end = self._changed_pages(), self._now.size
        whole = _Joined(self._memory, tail)
        blocks = {page * PAGE // BLOCK for page in pages}
        blocks.update(range(end // BLOCK, -(-size // BLOCK)) if tail.size else ())
        changed = {
            block: hash_of(whole.read(block * BLOCK, min(size, (block + 1) * BLOCK)))
            for block in blocks
        }
        runs: list[tuple[int, memoryview]] = [
            (first * PAGE, self._memory[first * PAGE : (last + 1) * PAGE].data)
            for first, last in in_a_row(pages)
        ]
        if tail.size:
            runs.append((end, tail.data))
        path = self._files.path(f"{self._key}/{ARRAYS}")
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
        told = blake2b(digest_size=HASH)
        for part in parts:
            told.update(part)
        change = b"".join([*parts, told.digest()])
        with self._files.writing(f"{self._key}/{CHANGE}") as append:
            append(change)

    def _place(
        self, arrays: Sequence[NDArray[np.uint8]]
    ) -> tuple[list[list[int]], int, NDArray[np.uint8]]:
        """Find a place for each array: where it was, where another was, or at the end.

        What lies in places that are not used any more is overwritten.
        """
        begin = self._memory.__array_interface__["data"][0] if self._memory.size else 0
        slots: list[list[int] | None] = []
        for array in arrays:
            at = array.__array_interface__["data"][0] - begin
            inside = self._memory.size and 0 <= at < self._memory.size
            slots.append([at, array.size] if inside else None)
        used = {tuple(slot) for slot in slots if slot is not None}
        for offset, size in self._now.slots:
            if (offset, size) not in used:
                self._memory[offset : offset + size] = 0
        free = gaps([rounded(slot) for slot in used], self._now.size)
        tail: list[NDArray[np.uint8]] = []
        end = self._now.size
        for number, array in enumerate(arrays):
            if slots[number] is not None:
                continue
            fitting = next((each for each in free if each[1] >= array.size), None)
            if fitting is not None:
                self._memory[fitting[0] : fitting[0] + array.size] = array
                slots[number] = [fitting[0], array.size]
                room = rounded([fitting[0], array.size])[1]
                fitting[0], fitting[1] = fitting[0] + room, fitting[1] - room
                continue
            slots[number] = [end, array.size]
            padded = np.zeros(rounded([end, array.size])[1], np.uint8)
            padded[: array.size] = array
            tail.append(padded)
            end += padded.size
        joined = np.concatenate(tail) if tail else np.empty(0, np.uint8)
        return [slot for slot in slots if slot is not None], end, joined

    def _changed_pages(self) -> list[int]:
        """Return the pages that hold other bytes than the file."""
        if not self._now.size:
            return []
        before = np.asarray(np.memmap(self._files.path(f"{self._key}/{ARRAYS}"), np.uint8, "r"))
        written = self._written_pages()
        return [
            page
            for first, last in in_a_row(written)
            for page in _differing(before, self._memory, first, last)
        ]

    def _written_pages(self) -> list[int]:
        """Return the pages of which the system has made copies of our own; all, if it is silent."""
        n = self._now.size // PAGE
        first = self._memory.__array_interface__["data"][0] // PAGE
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
    before: NDArray[np.uint8], after: NDArray[np.uint8], first: int, last: int
) -> list[int]:
    """Return which of some pages in a row differ."""
    part = slice(first * PAGE, (last + 1) * PAGE)
    differ = (before[part] != after[part]).reshape(-1, PAGE).any(axis=1)
    found: list[int] = (first + np.flatnonzero(differ)).tolist()
    return found


@dataclass(frozen=True, slots=True)
class Labels:
    """What a file belongs to.

    Attributes
    ----------
    now : str or None
        The label; None of a file that cannot be used.
    change : Change or None
        What was prepared.
    """

    now: str | None = None
    change: Change | None = None

    @property
    def to(self) -> str | None:
        """The label of what was prepared."""
        return None if self.change is None else self.change.to

    @classmethod
    def read(cls, files: Files, key: str, secret: bytes = b"") -> Labels:
        """Read what a file belongs to."""
        now = None
        try:
            now = opened(files.path(f"{key}/{NOW}").read_bytes(), secret)[0]["label"]
            return cls(now, Change.read(files, key))
        except _UNUSABLE:
            return cls(now)


def settle(
    files: Files,
    key: str,
    label: str,
    secret: bytes = b"",
    known: Labels | None = None,
    *,
    removes: bool = True,
) -> bool:
    """Bring a file to what belongs to `label`; return False where there is none, or none any more.

    What was prepared for it is carried out; what was prepared for another, or belongs to another,
    is removed, unless `removes` says that it stays. It may be done again where it was interrupted.
    `known` is what `Labels.read` has read of it.
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
    except _UNUSABLE:
        pass
    if removes:
        files.remove_folder(key)
    return False


class _Joined:
    """The memory of a file, and what comes after it."""

    def __init__(self, memory: NDArray[np.uint8], tail: NDArray[np.uint8]) -> None:
        self._memory, self._tail = memory, tail

    def read(self, begin: int, end: int) -> memoryview:
        size = self._memory.size
        if end <= size:
            return self._memory[begin:end].data
        rest = self._tail[max(0, begin - size) : end - size]
        return np.concatenate([self._memory[begin:], rest]).data
