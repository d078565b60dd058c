"""Records for the tests of targets, and a search of files that does not use the library's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

N, WIDTH = 2_000, 32
VECTORS = np.random.default_rng(0).normal(size=(N, WIDTH)).astype("<f4")

ONE, SOME, MANY = [7], list(range(3, N, 20)), [at for at in range(N) if at % 20 in (0, 7, 9)]
"""0.05 %, 5 % and 15 % of the records."""


def email(at: int) -> str:
    """Return the identity of a person."""
    return f"person{at:05d}@example.org"


def text(at: int) -> str:
    """Return a text that only this person's record has, and that is no repetition."""
    return " ".join(f"{word:08x}" for word in VECTORS[at].view("<u4")[:12])


def data_of(paths: Iterable[Path]) -> list[bytes]:
    """Return the bytes of all files of folders, without long runs of zeros and spaces."""
    return [
        each.read_bytes().replace(bytes(64), b"").replace(b" " * 64, b"")
        for path in paths
        for each in ([path] if path.is_file() else sorted(path.rglob("*")))
        if each.is_file()
    ]


def there(parts: Iterable[bytes], marks: Iterable[bytes]) -> int:
    """Return how many marks any part has."""
    every = list(parts)
    return sum(any(mark in part for part in every) for mark in marks)


def leaving(share: float) -> list[int]:
    """Return a share of the records, drawn."""
    n = max(1, round(N * share))
    return sorted(np.random.default_rng(3).choice(N, n, replace=False).tolist())
