"""Files in which Chroma keeps an index of vectors, by the format of hnswlib with a header apart."""

from __future__ import annotations

import os
import pickletools
import shutil
import struct
from collections import deque
from pathlib import Path
from typing import NamedTuple

import numpy as np

from erasable.workspace.targets.marks import Marks

VECTORS = "data_level0.bin"
_HEADER, _LENGTHS = "header.bin", "length.bin"
_LABELS = "index_metadata.pickle"  # which vector each record has
_KEPT, _BEGUN = f"{_LABELS}.kept", f"{_LABELS}.begun"
_FORMAT = struct.Struct("<i6Q")  # version, offset, room, elements, size of one, label, vector
_VERSION = 1
_N_COMPARED = 12  # numbers of a vector that marks have
_AT_ONCE = 100_000  # vectors that are compared at a time
_NEAR = 1e-10  # 1 minus the cosine of what differs by rounding alone; that is 1e-14


def clear_unused(folder: Path, *, has_lengths: bool) -> None:
    """Overwrite the unused parts of index files with zeros.

    These are the room for more vectors and for their lengths. Chroma fills it with memory that it
    has not cleared, which may have texts and vectors of deleted records.
    Lengths of vectors are used by the cosine alone.
    """
    shape = _shape(folder)
    if shape is None:
        return
    _clear(folder / VECTORS, shape.n * shape.size)
    _clear(folder / _LENGTHS, 4 * shape.n if has_lengths else 0)


def _clear(path: Path, begin: int) -> None:
    n = path.stat().st_size - begin
    if n > 0:
        with path.open("r+b") as file:
            file.seek(begin)
            file.write(bytes(n))
            file.flush()
            os.fsync(file.fileno())


def keep_labels(folder: Path) -> None:
    """Keep a copy of which vector each record has: Chroma empties the file before it writes it.

    The copy is empty while there is no such file.
    """
    labels, kept = folder / _LABELS, folder / _KEPT
    if not folder.is_dir() or (kept.exists() and _time(kept) == _time(labels)):
        return
    if labels.exists():
        shutil.copy2(labels, folder / _BEGUN)
        os.replace(folder / _BEGUN, kept)
    else:
        kept.touch()


def mend_labels(folder: Path) -> None:
    """Have the file as it was kept if a kill has cut it off; remove the copy.

    The log has what changed since: Chroma shortens it after it has written that file.
    """
    labels, kept = folder / _LABELS, folder / _KEPT
    if kept.exists() and not _is_whole(labels):
        os.replace(kept, labels)
        if not labels.stat().st_size:
            labels.unlink()
    for each in (kept, folder / _BEGUN):
        each.unlink(missing_ok=True)


def _time(path: Path) -> int | None:
    return path.stat().st_mtime_ns if path.exists() else None


def _is_whole(path: Path) -> bool:
    """Tell whether a file has all of a pickle, which is not loaded."""
    try:
        with path.open("rb") as file:
            deque(pickletools.genops(file), maxlen=0)
    except (OSError, ValueError):
        return False
    return True


def count_directions(folder: Path, marks: Marks) -> int | None:
    """Count marks of which an index has a vector of any length; None if it cannot be read.

    Bytes of other marks are no direction that a vector has.
    """
    vectors = _vectors(folder)
    if vectors is None:
        return None
    width = vectors.shape[1]
    wanted = [np.frombuffer(form, "<f4") for form in marks.every() if len(form) == 4 * width]
    if not wanted or not len(vectors):
        return 0
    directions = _unit(np.array(wanted))
    found = np.zeros(len(wanted), dtype=bool)
    for at in range(0, len(vectors), _AT_ONCE):
        near = directions @ _unit(vectors[at : at + _AT_ONCE]).T
        found |= near.max(axis=1) > 1 - _NEAR
    return int(found.sum())


class _Shape(NamedTuple):
    n: int  # vectors
    size: int  # bytes of an element: links, vector, label
    start: int  # of its vector
    stop: int


def _shape(folder: Path) -> _Shape | None:
    """Return how the file of vectors is laid out; None if that is not known."""
    header = (folder / _HEADER).read_bytes()
    if len(header) < _FORMAT.size:
        return None
    version, _, _, n, size, label, start = _FORMAT.unpack_from(header)
    if version != _VERSION or not start < label <= size:
        return None
    if (folder / VECTORS).stat().st_size < n * size:
        return None
    return _Shape(n, size, start, label)


def _vectors(folder: Path) -> np.ndarray | None:
    """Return the first numbers of all vectors, also of those that are marked as deleted."""
    if not (folder / _HEADER).exists():  # it has never been written
        return np.zeros((0, _N_COMPARED), dtype=np.float32)
    shape = _shape(folder)
    if shape is None:
        return None
    data = np.fromfile(folder / VECTORS, dtype=np.uint8, count=shape.n * shape.size)
    stop = min(shape.stop, shape.start + 4 * _N_COMPARED)
    first: np.ndarray = data.reshape(shape.n, shape.size)[:, shape.start : stop].copy()
    return first.view("<f4")


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors with the length 1, in double precision; those that are no numbers are 0."""
    wide = np.where(np.isfinite(vectors), vectors, 0).astype(np.float64)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    np.divide(wide, length, out=wide, where=length > 0)
    return wide
