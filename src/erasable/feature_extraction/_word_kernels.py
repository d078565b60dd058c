r"""Kernels that cut ASCII text into words and number them, without making a string of any.

A word is what scikit-learn's default pattern ``\b\w\w+\b`` finds in ASCII: two letters, digits
or underscores, or more, as many as there are in a row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._copying import copy
from erasable.core._jit import kernel

__all__ = ["number_words"]

Bytes = NDArray[np.uint8]
Counts = NDArray[np.int32]
Slots = NDArray[np.int32]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_BASIS, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # FNV-1a, 64 bits
_FOLD = np.uint64(32)
_FIRST = 2**12


_IN_WORDS = np.array([chr(byte).isalnum() or byte == 95 for byte in range(128)] + [False] * 128)


@kernel
def _same(text: Bytes, one: int, other: int, length: int) -> bool:
    for i in range(length):  # noqa: SIM110 - all() of a generator is not for numba
        if text[one + i] != text[other + i]:
            return False
    return True


@kernel
def _refill(table: Slots, hashes: Words, n_slots: int) -> None:
    table[:] = -1
    mask = np.uint64(table.size - 1)
    for slot in range(n_slots):
        place = hashes[slot] & mask
        while table[place] >= 0:
            place = (place + np.uint64(1)) & mask
        table[place] = slot


@kernel
def number_words(
    text: Bytes, ends: Ints, starts: Ints, lengths: Counts, counts: Counts, slots: Slots, rows: Ints
) -> int:
    """Give numbers to the words of documents, in the order they come up, and count them.

    Parameters
    ----------
    text : ndarray of shape (n_bytes,), uint8
        All documents, one after the other.
    ends : ndarray of shape (n_documents,), int64
        Where each ends in `text`.
    starts, lengths : ndarray of shape (n_words,), int64 and int32
        Filled with where each word was found first.
    counts, slots : ndarray of shape (n_words,), int32
        Filled with the counts of each document: how often which number, in the order they come up.
    rows : ndarray of shape (n_documents + 1,), int64
        Filled with where the counts of each document begin.

    Returns
    -------
    int
        How many different words there are. `n_words` must be room for ``(n_bytes +
        n_documents) // 3`` words, which is as many as there can be.
    """
    table = np.full(_FIRST, -1, dtype=np.int32)
    hashes = np.empty(_FIRST // 2, dtype=np.uint64)
    latest = np.empty(_FIRST // 2, dtype=np.int64)  # where the word was counted last
    mask = np.uint64(_FIRST - 1)
    n_slots = n_entries = at = 0
    rows[0] = 0
    for document in range(ends.size):
        first = n_entries
        end = ends[document]
        while at < end:
            start, value = at, _BASIS
            while at < end and _IN_WORDS[text[at]]:
                value = (value ^ np.uint64(text[at])) * _PRIME
                at += 1
            length = at - start
            at += 1  # past what is in no word
            if length < 2:
                continue
            value ^= value >> _FOLD
            place = value & mask
            slot = table[place]
            while slot >= 0 and not (
                hashes[slot] == value
                and lengths[slot] == length
                and _same(text, starts[slot], start, length)
            ):
                place = (place + np.uint64(1)) & mask
                slot = table[place]
            if slot < 0:
                if n_slots == hashes.size:  # the table is half full
                    wider = np.empty(2 * hashes.size, dtype=np.uint64)
                    copy(hashes, wider)
                    hashes = wider
                    later = np.empty(2 * latest.size, dtype=np.int64)
                    copy(latest, later)
                    latest = later
                    table = np.empty(4 * n_slots, dtype=np.int32)
                    _refill(table, hashes, n_slots)
                    mask = np.uint64(table.size - 1)
                    place = value & mask
                    while table[place] >= 0:
                        place = (place + np.uint64(1)) & mask
                slot = n_slots
                table[place] = slot
                hashes[slot], latest[slot] = value, -1
                starts[slot], lengths[slot] = start, length
                n_slots += 1
            if latest[slot] >= first:
                counts[latest[slot]] += 1
            else:
                slots[n_entries], counts[n_entries] = slot, 1
                latest[slot] = n_entries
                n_entries += 1
        at = end
        rows[document + 1] = n_entries
    return n_slots
