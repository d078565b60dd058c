"""Forms of vectors: the bytes by which stores write their numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

_NUMBERS = 12  # of a vector that are looked for


def piece_of(vector: np.ndarray) -> bytes:
    """Return the length of a vector, and the numbers of it that are looked for."""
    pieces = sliding_window_view(vector, min(_NUMBERS, vector.size))
    n_different = np.count_nonzero(np.diff(np.sort(pieces)), axis=1)
    piece = pieces[np.argmax(n_different)]
    return np.concatenate([[np.linalg.norm(vector)], piece]).astype("<f8").tobytes()


def numbers_of(piece: bytes) -> np.ndarray:
    """Return the numbers of what `piece_of` returned."""
    return np.frombuffer(piece, dtype="<f8")[1:]


def forms_of_vector(piece: bytes) -> Iterator[bytes]:
    """Return the bytes by which a vector is found, of what `piece_of` returned.

    Its numbers as they are, and divided by its length. In single precision, digits of the latter
    differ: `numbers_of` is for a search that allows for it.
    """
    length, *numbers = np.frombuffer(piece, dtype="<f8").tolist()
    plain = np.array(numbers)
    yield from _written(plain)
    yield from _written(plain / length)
    if np.array_equal(plain, np.rint(plain)) and np.abs(plain).max() < 256 and plain.size >= 8:
        yield (plain.astype(np.int64) & 255).astype(np.uint8).tobytes()


def _written(numbers: np.ndarray) -> Iterator[bytes]:
    with np.errstate(over="ignore", under="ignore"):
        singles, halves = numbers.astype("<f4"), numbers.astype("<f2")
    yield from (numbers.astype("<f8").tobytes(), singles.tobytes(), halves.tobytes())
    bits = singles.view("<u4").astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)
    yield from (rounded.astype("<u2").tobytes(), (bits >> np.uint64(16)).astype("<u2").tobytes())
    for kind, size, starts in ((">f8", 8, b"\xfb\xcb"), (">f4", 4, b"\xfa\xca")):
        data = numbers.astype(kind).tobytes()
        yield data
        for start in starts:  # of each number in CBOR and in MessagePack
            parts = (data[at : at + size] for at in range(0, len(data), size))
            yield b"".join(bytes([start]) + part for part in parts)
    for spelled in (numbers.tolist(), [float(str(each)) for each in singles]):
        for comma in (",", ", "):
            yield json.dumps(spelled[:4], separators=(comma, ":"))[1:-1].encode()
