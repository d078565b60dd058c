"""The terms of documents that stay where they are, counted where their blocks are.

The law kept here: terms with their counts are those of `_counts.TermCounts`. Here is how many
documents have each term, and nothing for each document: one that leaves is read and cut again.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from erasable.core.arrays import Ints, of_objects
from erasable.core.passes import Block, Pass, Stored, run
from erasable.feature_extraction._analysis import Cutting


class Tally(NamedTuple):
    """How many documents have each term, and how often they have it."""

    df: Counter[str]
    tf: Counter[str]


class _Tallying(Pass[Tally]):
    """Tally the terms of documents."""

    takes_gaps = True
    finds_records = True

    def __init__(self, cutting: Cutting) -> None:
        self._cutting = cutting

    def of_block(self, block: Block) -> Tally:
        return tallied(self._cutting, block.matrix[block.positions, 0])

    def merge(self, one: Tally, other: Tally) -> Tally:
        one.df.update(other.df)
        one.tf.update(other.tf)
        return one


def tallied(cutting: Cutting, documents: Any) -> Tally:
    """Tally the terms of documents.

    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> texts = np.array(["to be or not to be"], dtype=object)
    >>> tallied(Cutting(CountVectorizer(), None, binary=False), texts).tf["be"]
    2
    """
    counts = cutting.count(documents, np.arange(len(documents)))
    there = np.flatnonzero(counts.df)
    terms = counts.terms[there].tolist()
    df, tf = (
        dict(zip(terms, each[there].tolist(), strict=True)) for each in (counts.df, counts.tf)
    )
    return Tally(Counter(df), Counter(tf))


class StoredTerms:
    """The terms of live rows of a stored table of one column; an accelerator.

    Parameters
    ----------
    matrix : Stored
    live_rows : ndarray of int64
    cutting : Cutting

    Attributes
    ----------
    terms, df, tf, fixed
        See `TermCounts`.
    """

    def __init__(self, matrix: Stored, live_rows: Ints, cutting: Cutting) -> None:
        self._matrix, self._cutting = matrix, cutting
        self.fixed = cutting.vocabulary is not None
        found = run(_Tallying(cutting), matrix, live_rows)
        if cutting.vocabulary is None:
            self._slots = {term: slot for slot, term in enumerate(sorted(found.df))}
        else:
            self._slots = dict(cutting.vocabulary)
        self.terms = of_objects(sorted(self._slots, key=self._slots.__getitem__))
        self.df, self.tf = np.zeros((2, self.terms.size), dtype=np.int64)
        self._add(found, 1, self.df, self.tf)

    def without(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return what `df` and `tf` would be without some documents."""
        df, tf = self.df.copy(), self.tf.copy()
        self._add(self._tally_of(rows), -1, df, tf)
        return df, tf

    def remove(self, rows: Ints) -> None:
        """Forget documents, which are read."""
        gone = self._tally_of(rows)
        slots = self._add(gone, -1, self.df, self.tf)
        if not self.fixed:
            for slot in slots[self.df[slots] == 0].tolist():
                del self._slots[self.terms[slot]]
                self.terms[slot] = ""

    def holders(self, rows: Ints, slots: Ints) -> Ints | None:
        """Return that nobody knows which documents have a term of some slots, if there are any."""
        return None if slots.size else rows[:0]

    def _tally_of(self, rows: Ints) -> Tally:
        return tallied(self._cutting, self._matrix[rows][:, 0])

    def _add(self, tally: Tally, sign: int, df: Ints, tf: Ints) -> Ints:
        """Add a tally to counts, or take it out; return the slots of its terms."""
        slots = np.fromiter(map(self._slots.__getitem__, tally.df), np.int64, len(tally.df))
        df[slots] += sign * np.fromiter(tally.df.values(), np.int64, slots.size)
        tf[slots] += sign * np.fromiter((tally.tf[term] for term in tally.df), np.int64, slots.size)
        return slots
