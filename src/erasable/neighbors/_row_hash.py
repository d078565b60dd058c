"""Hash of a set of records, from which that of one can be subtracted.

Each record is hashed to 2048 bits, and the hashes are added, so that the sum depends neither on
order nor on history, and a deletion costs one hash. Bellare and Micciancio, "A new paradigm for
collision-free hashing: incrementality at reduced cost", EUROCRYPT 1997 (AdHash, here in the group
of 32 words). There are so many bits because a generalised birthday attack on a sum of b bits takes
about ``2**(2 sqrt(b))`` steps (Wagner, CRYPTO 2002): ``2**90``.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256, shake_128
from typing import Any

import numpy as np
from numpy.typing import NDArray

RowHash = NDArray[np.uint64]

_WORDS = 32
_DOMAIN = b"erasable record 1"
_ROWS = 4096  # hashed before they are added up


def sum_of_hashes(values: NDArray[Any], targets: list[bytes], ids: NDArray[Any]) -> RowHash:
    """Hash a set of records: 32 sums modulo ``2**64``, of the words of their SHAKE-128 values.

    `values` are C-contiguous; the bytes in `targets` all have one length, which depends on no
    record.
    """
    total = np.zeros(_WORDS, dtype=np.uint64)
    for start in range(0, ids.size, _ROWS):
        part = slice(start, min(start + _ROWS, ids.size))
        messages = _messages(values[part], targets[part], ids[part])
        digests = [shake_128(message).digest(8 * _WORDS) for message in messages]
        total += np.frombuffer(b"".join(digests), "<u8").reshape(-1, _WORDS).sum(axis=0)
    return total


def _messages(values: NDArray[Any], targets: list[bytes], ids: NDArray[Any]) -> Iterable[bytes]:
    """Write each record as bytes: the domain, its values, its targets, and its id."""
    if ids.dtype == object:
        rows = [row.tobytes() for row in values]
        parts = zip(rows, targets, id_bytes(ids), strict=True)
        return (b"".join((_DOMAIN, row, target, name)) for row, target, name in parts)
    # All have the same width, so that they are columns of one table of bytes.
    n = ids.size
    columns = (
        np.broadcast_to(np.frombuffer(_DOMAIN, np.uint8), (n, len(_DOMAIN))),
        values.view(np.uint8).reshape(n, -1),
        np.frombuffer(b"".join(targets), np.uint8).reshape(n, -1),
        np.full((n, 1), ord("i"), dtype=np.uint8),
        ids.astype(ids.dtype.newbyteorder("<")).view(np.uint8).reshape(n, 8),
        np.where(ids < 0, 255, 0).astype(np.uint8)[:, np.newaxis],
    )
    table = np.hstack(columns)
    data, width = table.tobytes(), table.shape[1]
    return (data[i : i + width] for i in range(0, n * width, width))


def id_bytes(ids: NDArray[Any]) -> list[bytes]:
    """Write ids as bytes: equal ones alike in every type of array, others differently."""
    return [
        b"s" + name.encode("utf-8", "surrogatepass")
        if isinstance(name, str)
        else b"i" + name.to_bytes(9, "little", signed=True)
        for name in ids.tolist()
    ]


def label_bytes(label: Any) -> bytes:
    """Write a label as 32 bytes, by its type and its value."""
    return sha256(f"{type(label).__name__} {label!r}".encode()).digest()
