"""Search of files for bytes that ought to be gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from erasable.workspace.targets.marks import SHORTEST, Marks, is_vector

_AT_ONCE = 1 << 22  # bytes that are looked through at a time


@dataclass(slots=True)
class Found:
    """The result of a search for marks."""

    n_left: int = 0  # values of people who are gone, still there
    n_living: int = 0  # values of records that stay, which a search has to find
    where: list[str] = field(default_factory=list)  # names of files with values of the former
    # why the search says less than that they are gone: a log elsewhere, a file that was not read
    reasons: list[str] = field(default_factory=list)


def search(files: Iterable[Path], marks: Marks, living: Marks) -> Found:
    """Look for values in files, decoded where they are compressed."""
    found = Found()
    left, alive = set[bytes](), set[bytes]()
    gone, stay = marks.every(), living.every()
    for path in files:
        try:
            there = marks_in(path, gone | stay)
        except FileNotFoundError:  # it was removed meanwhile
            continue
        except OSError as error:
            found.reasons.append(f"{path.name} could not be read ({type(error).__name__})")
            continue
        if there & gone:
            left |= there & gone
            found.where.append(path.name)
        alive |= there & stay
    found.n_left, found.n_living = marks.count(left), living.count(alive)
    return found


def marks_in(path: Path, marks: Collection[bytes]) -> set[bytes]:
    """Return which marks, of `SHORTEST` bytes or more, a file holds, in any case of letters a to z.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "data")
    ...     _ = path.write_bytes(b"one: Ann@x.org, two")
    ...     marks_in(path, [b"ann@x.org", b"bob@x.org"])
    {b'ann@x.org'}
    """
    _refuse_short(marks)
    with path.open("rb") as file:
        return marks_among(iter(partial(file.read, _AT_ONCE), b""), marks)


def marks_among(parts: Iterable[bytes], marks: Collection[bytes]) -> set[bytes]:
    """Return which marks there are in parts of a text, also across the borders of parts."""
    _refuse_short(marks)
    if not marks:
        return set()
    by_start: dict[int, dict[int, set[bytes]]] = {}  # then by length: many may begin alike
    for mark in {mark.lower() for mark in marks}:
        of = by_start.setdefault(int.from_bytes(mark[:SHORTEST], "little"), {})
        of.setdefault(len(mark), set()).add(mark)
    starts = np.array(sorted(by_start), dtype=np.uint64)
    overlap = max(map(len, marks)) - 1
    found: set[bytes] = set()
    kept = b""
    for part in parts:
        block = kept + part.lower()
        for at in _places_of(block, starts):
            start = int.from_bytes(block[at : at + SHORTEST], "little")
            for length, of_length in by_start[start].items():
                if (piece := block[at : at + length]) in of_length:
                    found.add(piece)
        kept = block[-overlap:]
    return {mark for mark in marks if mark.lower() in found}


def bytes_of(value: Any) -> list[bytes]:
    """Return a value that was read as bytes in which `marks_among` finds its marks."""
    if isinstance(value, bytes | bytearray):
        return [bytes(value)]
    if is_vector(value):
        return [np.asarray(value, dtype=form).tobytes() for form in ("<f4", "<f2")]
    return [str(value).encode(errors="replace")]


def _refuse_short(marks: Collection[bytes]) -> None:
    if any(len(mark) < SHORTEST for mark in marks):
        raise ValueError(f"a mark is shorter than {SHORTEST} bytes")


def _places_of(block: bytes, starts: np.ndarray) -> list[int]:
    """Return where the first bytes of a mark are."""
    n = len(block) - SHORTEST + 1
    if n <= 0:
        return []
    bytes_ = np.frombuffer(block, dtype=np.uint8)
    windows = np.zeros(n, dtype=np.uint64)
    for at in range(SHORTEST):
        windows |= bytes_[at : at + n].astype(np.uint64) << np.uint64(8 * at)
    near = np.minimum(np.searchsorted(starts, windows), starts.size - 1)
    places: list[int] = np.flatnonzero(starts[near] == windows).tolist()
    return places
