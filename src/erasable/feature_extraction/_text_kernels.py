r"""Kernels that cut ASCII text into words, and kernels over the counts of terms in documents.

A word is what scikit-learn's default pattern ``\b\w\w+\b`` finds in ASCII. Text is read eight
bytes at a time: the end of a word is computed, since a branch for each letter is predicted wrongly
once a word.

Kernels over counts make one pass each, in the order of the rows.

Counts come as (counts, slots, indptr): row i holds the entries ``indptr[i]`` to
``indptr[i + 1]``, in ascending order of their slots. A count of 0 is that of an erased document.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import inlined, kernel, subroutine
from erasable.core._tape_kernels import log
from erasable.core.arrays import Flags, Floats, Ints

Bytes = NDArray[np.uint8]
Counts = NDArray[np.int32]
Slots = NDArray[np.int32]
Words = NDArray[np.uint64]

SLACK = 16
"""Bytes of 0 behind a text, at least: so many are looked at beyond its end."""

_HIGH = np.uint64(0x8080808080808080)
_ONES = np.uint64(0x0101010101010101)
_SMALL = np.uint64(0x2020202020202020)  # makes letters small, and nothing else a letter
# Added to bytes below 128, the high bit says whether they are at or beyond a character.
_FROM_0, _PAST_9 = _ONES * np.uint64(0x80 - 0x30), _ONES * np.uint64(0x80 - 0x3A)
_FROM_A, _PAST_Z = _ONES * np.uint64(0x80 - 0x61), _ONES * np.uint64(0x80 - 0x7B)
_UNDERSCORES, _ANY = _ONES * np.uint64(0x5F), _ONES * np.uint64(0x7F)
_PLACES = np.uint64(0x0001020304050607)  # times 2 ** (8 k), the top byte is k
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # spreads keys; its top bits are those to use
_FIRST = 12  # bits of the number of places, at first
_ONE, _SEVEN, _TOP, _WIDTH = np.uint64(1), np.uint64(7), np.uint64(56), np.uint64(64)
_MIX, _HALF, _LOWER = np.uint64(29), np.uint64(32), np.uint64(0xFFFFFFFF)


@inlined
def _eight(words: Words, at: int) -> Any:
    """Return the eight bytes at a place, the first of them lowest."""
    shift = np.uint64(8 * (at & 7))
    low, high = words[at >> 3], words[(at >> 3) + 1]
    return (low >> shift) | ((high << _ONE) << (np.uint64(63) - shift))


@inlined
def _ends(eight: Any) -> Any:
    """Return the high bits of the bytes that are in no word."""
    small = eight | _SMALL
    digit = (eight + _FROM_0) & ~(eight + _PAST_9)
    letter = (small + _FROM_A) & ~(small + _PAST_Z)
    underscore = ~((eight ^ _UNDERSCORES) + _ANY)
    return ~(digit | letter | underscore) & _HIGH


@inlined
def _first(ends: Any) -> Any:
    """Return which byte is the first whose high bit is set, of some that are."""
    lowest = ends & (~ends + _ONE)
    return np.int64(((lowest >> _SEVEN) * _PLACES) >> _TOP)


@inlined
def _number(packed: Any) -> Any:
    """Return the number of a word, of what stands in the table."""
    return np.int64(packed & _LOWER) - 1


@subroutine
def _same(words: Words, one: int, other: int, length: int) -> bool:
    """Tell whether there are the same words of eight letters or more at two places."""
    for i in range(0, length - 8, 8):
        if _eight(words, one + i) != _eight(words, other + i):
            return False
    return bool(_eight(words, one + length - 8) == _eight(words, other + length - 8))


@subroutine
def _rebuilt(table: Words) -> Words:
    """Return the same entries at twice as many places."""
    wider = np.zeros((2 * table.shape[0], 3), dtype=np.uint64)
    mask = wider.shape[0] - 1
    bits = 0
    while (1 << bits) < wider.shape[0]:
        bits += 1
    for i in range(table.shape[0]):
        if table[i, 1] == 0:
            continue
        place = np.int64((table[i, 0] * _GOLDEN) >> (_WIDTH - np.uint64(bits)))
        while wider[place, 1] != 0:
            place = (place + 1) & mask
        for j in range(3):
            wider[place, j] = table[i, j]
    return wider


@kernel
def number_words(
    words: Words,
    ends: Ints,
    starts: Ints,
    lengths: Counts,
    counts: Counts,
    slots: Slots,
    rows: Ints,
) -> int:
    """Give numbers to the words of documents, in order of appearance; count them; return how many.

    `words` has the bytes of all documents, the first lowest in the first element; each is followed
    by a byte that is in no word, and all by `SLACK` bytes of 0. `ends` tells where each document
    ends. `starts` and `lengths` receive where each word is found first; `counts` and `slots` how
    often each document has which number; `rows` where the counts of each document begin. There must
    be room for ``n_bytes // 3`` words, which is the most there can be.
    """
    # Of each place: the key of a word, which is its letters where there are up to seven; its length
    # and, in the lower half, its number + 1; where it was counted last + 1.
    table = np.zeros((1 << _FIRST, 3), dtype=np.uint64)
    bits = _FIRST
    n_slots = n_entries = at = 0
    rows[0] = 0
    for document in range(ends.size):
        first = n_entries
        end = ends[document]
        while at < end:
            start, key = at, np.uint64(0)
            eight = _eight(words, at)
            found = _ends(eight)
            while found == 0:
                key = (key ^ (key >> _MIX)) * _GOLDEN + eight
                at += 8
                eight = _eight(words, at)
                found = _ends(eight)
            length = _first(found)
            eight &= (_ONE << np.uint64(8 * length)) - _ONE
            key = (key ^ (key >> _MIX)) * _GOLDEN + eight
            at += length + 1
            length = at - start - 1
            if length < 2:
                continue
            place = np.int64((key * _GOLDEN) >> (_WIDTH - np.uint64(bits)))
            while table[place, 1] != 0 and not (
                table[place, 0] == key
                and table[place, 1] >> _HALF == np.uint64(length)
                and (length < 8 or _same(words, starts[_number(table[place, 1])], start, length))
            ):
                place = (place + 1) & (table.shape[0] - 1)
            if table[place, 1] == 0:
                if 2 * n_slots >= table.shape[0]:
                    table = _rebuilt(table)
                    bits += 1
                    place = np.int64((key * _GOLDEN) >> (_WIDTH - np.uint64(bits)))
                    while table[place, 1] != 0:
                        place = (place + 1) & (table.shape[0] - 1)
                starts[n_slots], lengths[n_slots] = start, length
                n_slots += 1
                table[place, 0], table[place, 2] = key, np.uint64(0)
                table[place, 1] = (np.uint64(length) << _HALF) | np.uint64(n_slots)
            latest = np.int64(table[place, 2]) - 1
            if latest >= first:
                counts[latest] += 1
            else:
                slots[n_entries], counts[n_entries] = _number(table[place, 1]), 1
                n_entries += 1
                table[place, 2] = np.uint64(n_entries)
        at = end + 1
        rows[document + 1] = n_entries
    return n_slots


Entries = tuple[Counts, Slots, Ints]
"""Counts of terms, the slots of the terms, and where the entries of each row start."""

_STEPS = np.float64(8.0)  # quantised logarithms are multiples of 1/8


@kernel
def tally(entries: Entries, rows: Ints, sign: int, df: Ints, tf: Ints) -> None:
    """Add documents to (sign 1), or take them out of (sign -1), the totals of every slot.

    `df` counts documents that have the term, `tf` how often they have it.
    """
    counts, slots, indptr = entries
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            df[slots[e]] += sign
            tf[slots[e]] += sign * counts[e]


@kernel
def wipe(entries: Entries, rows: Ints, df: Ints, gone: Ints) -> int:
    """Overwrite documents, and list the slots that no document has any more; say how many.

    The documents are out of `df` already. `gone` has room for all their entries.
    """
    counts, slots, indptr = entries
    n_gone = 0
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            slot = slots[e]
            if df[slot] == 0:
                df[slot] = -1  # listed
                gone[n_gone] = slot
                n_gone += 1
            counts[e] = 0
            slots[e] = 0
    for k in range(n_gone):
        df[gone[k]] = 0
    return n_gone


@kernel
def pick(
    entries: Entries, rows: Ints, column: Slots, picked: Counts, columns: Slots, starts: Ints
) -> None:
    """Copy the entries of some rows whose term has a column, and say where each row starts."""
    counts, slots, indptr = entries
    k = 0
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if column[slots[e]] >= 0:
                picked[k] = counts[e]
                columns[k] = column[slots[e]]
                k += 1
        starts[i + 1] = k


@kernel
def holders(slots: Slots, indptr: Ints, rows: Ints, wanted: Flags, out: Ints) -> int:
    """List the documents that have a term of the wanted slots; say how many."""
    found = 0
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if wanted[slots[e]]:
                out[found] = rows[i]
                found += 1
                break
    return found


@kernel
def rarity(df: Ints, n_documents: int, smooth: int, quantize: bool, out: Floats) -> None:
    """Compute ``log((n + smooth) / (df + smooth)) + 1`` as a difference of two logarithms.

    A term that no document has counts as if one had. Quantised, both logarithms are rounded to
    multiples of 1/8.
    """
    most = 0
    for j in range(df.size):
        most = max(most, df[j])
    known = np.zeros(most + 1)  # terms share few counts; log(1) is 0 and need not be known
    whole = log(np.float64(n_documents + smooth))
    if quantize:
        whole = np.rint(whole * _STEPS) / _STEPS
    for j in range(df.size):
        part = known[df[j]]
        if part == 0.0:
            part = log(np.float64(max(df[j] + smooth, 1)))
            if quantize:
                part = np.rint(part * _STEPS) / _STEPS
            known[df[j]] = part
        out[j] = (whole - part) + 1.0


@kernel
def weigh(entries: Entries, idf: Floats, sublinear: bool, norm: int, out: Floats) -> None:
    """Weigh counts by the rarity of their terms, and scale every row to norm 1.

    `norm` is 1 or 2, or 0 for none. Sums go from left to right.
    """
    counts, columns, indptr = entries
    for i in range(indptr.size - 1):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            value = np.float64(counts[e])
            if sublinear:
                value = log(value) + 1.0
            value *= idf[columns[e]]
            out[e] = value
            total += abs(value) if norm == 1 else value * value
        if norm == 0 or total == 0.0:
            continue
        if norm == 2:
            total = np.sqrt(total)
        for e in range(indptr[i], indptr[i + 1]):
            out[e] /= total
