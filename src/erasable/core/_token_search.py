"""Search for words and numbers in texts, whole, and numbers however they are written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

import numpy as np

from erasable.core._byte_kernels import (
    AS_POWER,
    HASH_BEGIN,
    HASH_FACTOR,
    ZERO,
    find_tokens,
    number_key,
)
from erasable.core._byte_search import index_of

BETWEEN_TOKENS = re.compile(rb"[^0-9A-Za-z_.+\-\x80-\xff]+")
_AT_ONCE = 1 << 14  # tokens
_LEAST, _MOST = 10**14, 10**15  # fifteen digits


class TokenSearch:
    """Words and numbers that are looked for in texts; other signs are between them.

    >>> search = TokenSearch([b"ann"], [17])
    >>> data = b"ann, anna: 17, 17.0, 1.7e1, 170"
    >>> [data[begin:end] for begin, end in search.among(data)]
    [b'ann', b'17', b'17.0', b'1.7e1']
    """

    def __init__(self, words: Iterable[bytes], numbers: Iterable[float]) -> None:
        self._words = index_of(np.array([_hash(word) for word in words], dtype=np.uint64))
        keys = {key for number in numbers for key in _keys_of(number)}
        self._numbers = index_of(np.array(sorted(keys), dtype=np.uint64))
        self._is_inner = np.array([not BETWEEN_TOKENS.match(bytes([at])) for at in range(256)])

    def among(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Return where tokens begin and end that may be among them; few others are."""
        array, at = np.frombuffer(data, dtype=np.uint8), 0
        places = np.empty((min(_AT_ONCE, len(data) // 2 + 1), 2), dtype=np.int64)
        while at < len(data):
            n, at = find_tokens(array, at, self._is_inner, self._words, self._numbers, places)
            yield from map(tuple, places[:n].tolist())


def _hash(word: bytes) -> int:
    found = int(HASH_BEGIN)
    for byte in word:
        found = (found ^ byte) * int(HASH_FACTOR) & 0xFFFFFFFFFFFFFFFF
    return found


def _keys_of(number: float) -> Iterator[int]:
    """Return the keys of all decimal notations that are read as a number."""
    yield int(AS_POWER)
    exact = Decimal(number)
    if not exact:
        yield int(ZERO)
    if not exact or not exact.is_finite():
        return
    first = int("".join(map(str, exact.as_tuple().digits)).ljust(15, "0")[:15])
    places = exact.adjusted() + 1
    for digits in (first - 1, first, first + 1):  # which read as the same, rounded
        if digits < _LEAST:
            yield number_key(_MOST - 1, places - 1)
        elif digits == _MOST:
            yield number_key(_LEAST, places + 1)
        else:
            yield number_key(digits, places)
