"""Test of bytes for a uniform distribution, as compressed or encrypted ones have.

Vectors of floating-point numbers do not: the bytes that hold an exponent have few values; nor do
codes of scalar quantisation, which have a middle. Codes of product and binary quantisation may look
random, and are not searched for either. A frame of Zstandard or bzip2 may look less random; it is
known by how it begins.
"""

from __future__ import annotations

import numpy as np

from erasable.core._byte_kernels import add_counts

BLOCK = 1 << 16
_FEWEST = 4_096  # bytes, of which it can be told


def looks_random(data: bytes) -> bool:
    """Tell whether a block looks compressed or encrypted."""
    if len(data) < _FEWEST:
        return False
    counts = np.zeros((4, 256), dtype=np.int64)
    add_counts(np.frombuffer(data, dtype=np.uint8), counts)
    expected = len(data) / 256
    excess = float(((counts.sum(axis=0) - expected) ** 2).sum() / expected) - 255
    return excess < 100 + 0.02 * len(data)


def n_random(data: bytes, known: list[tuple[int, int]] = []) -> int:  # noqa: B006
    """Return how many blocks of some bytes look random, without those that were decoded."""
    n = 0
    for at in range(0, len(data), BLOCK):
        end = min(at + BLOCK, len(data))
        decoded = sum(max(0, min(b, end) - max(a, at)) for a, b in known)
        n += 2 * decoded < end - at and looks_random(data[at:end])
    return n
