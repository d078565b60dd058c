"""Kernels over the counts of terms in documents: one pass each, in the order of the rows.

Counts come as (counts, slots, indptr): row i holds the entries ``indptr[i]`` to
``indptr[i + 1]``, in ascending order of their slots. A count of 0 is that of an erased document.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel
from erasable.core._tape_kernels import log
from erasable.core.arrays import Flags, Floats, Ints

Counts = NDArray[np.int32]
Slots = NDArray[np.int32]

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
