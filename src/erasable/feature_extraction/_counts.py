"""Counts of the terms of documents, and of each document in memory, which is never read again.

The law kept here: the terms with their counts are a function of the live documents alone. Terms
that no live document has are gone, and so is their text. The places of terms (slots) and the holes
that deleted documents leave are history, and enter no state.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

import erasable.feature_extraction._text_kernels as kernels
from erasable.core.arrays import Flags, Ints, of_objects
from erasable.core.errors import InvalidDataError
from erasable.core.messages import refuse_no_texts
from erasable.core.passes import Block, Pass
from erasable.core.tables import Table
from erasable.feature_extraction._text_kernels import Counts, Slots
from erasable.feature_extraction._words import cuts_plainly, words_of

Analyzer = Callable[[str], Iterable[str]]


@dataclass(frozen=True, eq=False, slots=True)
class CountRows:
    """Counts of documents in the columns of a vocabulary, as CSR: columns ascend in every row."""

    counts: Counts
    columns: Slots
    indptr: Ints

    @property
    def parts(self) -> kernels.Entries:
        """The arrays, for kernels."""
        return self.counts, self.columns, self.indptr

    def csr(self, data: NDArray[Any], n_columns: int) -> csr_array:
        """Make a matrix of values for the entries."""
        shape = (self.indptr.size - 1, n_columns)
        small = self.columns.size < 2**31
        indptr = self.indptr.astype(np.int32) if small else self.indptr
        matrix = csr_array((data, self.columns, indptr), shape=shape)
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        return matrix


def count_terms(
    documents: Iterable[Any],
    analyze: Analyzer,
    places: Mapping[str, int],
    *,
    binary: bool,
) -> CountRows:
    """Count the terms of documents, each in its place.

    If `places` is a defaultdict, new terms get the next place; otherwise they are ignored.
    """
    counts, slots, ends = array("i"), array("i"), array("q", [0])
    learns = isinstance(places, defaultdict)
    for document in documents:
        terms = analyze(document)
        found = Counter(terms if learns else filter(places.__contains__, terms))
        slots.extend(map(places.__getitem__, found))
        counts.extend(found.values())
        ends.append(len(slots))
    rows = CountRows(
        np.array(counts, dtype=np.int32), np.array(slots, dtype=np.int32), np.array(ends)
    )
    if binary:
        rows.counts[:] = 1
    return rows if learns else _sorted(rows, len(places))


def _sorted(rows: CountRows, n_columns: int) -> CountRows:
    matrix = csr_array(
        (rows.counts, rows.columns, rows.indptr), shape=(rows.indptr.size - 1, n_columns)
    )
    matrix.sort_indices()
    return CountRows(matrix.data, matrix.indices.astype(np.int32, copy=False), rows.indptr)


@dataclass(frozen=True, eq=False)
class Cutting:
    """Analyzer that cuts documents into terms, and can be pickled."""

    tool: Any  # CountVectorizer of scikit-learn
    vocabulary: Mapping[str, int] | None  # the terms if they are given, with their columns
    binary: bool  # is every count 1?

    @property
    def is_plain(self) -> bool:
        """Whether terms are learned, and are words as by default: there is faster code for it."""
        return self.vocabulary is None and cuts_plainly(self.tool)

    def count(self, texts: list[str]) -> tuple[list[str], CountRows]:
        """Count the terms of texts; return the terms, sorted or as given, and the counts.

        Raise InvalidDataError for terms that are no strings, or that UTF-8 cannot encode.
        """
        analyze, given, binary = self.tool.build_analyzer(), self.vocabulary, self.binary
        refuse_no_texts(texts)
        if given is not None:
            terms = sorted(given, key=given.__getitem__)
            return terms, count_terms(texts, analyze, given, binary=binary)
        places = defaultdict[str, int]()
        places.default_factory = places.__len__
        if self.is_plain:
            lowercase = self.tool.lowercase
            read = _count_words(texts, analyze, places, binary=binary, lowercase=lowercase)
        else:
            read = count_terms(texts, analyze, places, binary=binary)
        _refuse_strange(places)
        terms = sorted(places)
        rank = np.zeros(len(terms), dtype=np.int32)
        rank[[places[term] for term in terms]] = np.arange(len(terms), dtype=np.int32)
        return terms, _sorted(CountRows(read.counts, rank[read.columns], read.indptr), len(terms))


Tally = tuple[Counter[str], Counter[str]]
"""Numbers of documents with each term, and of its occurrences."""


class _Tallying(Pass[Tally]):
    """Tally the terms of documents."""

    takes_gaps = True
    finds_records = True

    def __init__(self, cutting: Cutting) -> None:
        self._cutting = cutting

    def of_block(self, block: Block) -> Tally:
        terms, read = self._cutting.count(block.matrix[block.positions, 0].tolist())
        totals = _totals(read, terms).tolist()
        df, tf = (Counter(dict(zip(terms, each, strict=True))) for each in totals)
        return df, tf

    def merge(self, one: Tally, other: Tally) -> Tally:
        for mine, theirs in zip(one, other, strict=True):
            mine.update(theirs)
        return one


def _totals(read: CountRows, terms: list[str]) -> Any:
    """Return how many documents have each term, and how often."""
    totals = np.zeros((2, len(terms)), dtype=np.int64)
    kernels.tally(read.parts, np.arange(read.indptr.size - 1), 1, *totals)
    return totals


@dataclass(eq=False, slots=True)
class TermCounts:
    """Counts of the terms of all live documents, in the vocabulary or not.

    It is no `Summary`, as `add` returns where the terms are.
    """

    cutting: Cutting
    terms: NDArray[Any]  # of each slot, ascending; "" where no live document has it any more
    df: Ints  # live documents with the term
    tf: Ints  # how often they have it
    # A row for each record, slots as columns; rows not live are empty or 0. None where documents
    # are stored: those that leave are cut again.
    rows: CountRows | None
    slots: dict[str, int] | None = None  # by term of a live document; made when it is needed

    @classmethod
    def fit(cls, table: Table, cutting: Cutting) -> Self:
        """Count the terms of the live documents, see `Cutting.count`."""
        live = table.live_rows()
        if table.is_stored:
            found, given = table.run(_Tallying(cutting), live), cutting.vocabulary
            terms = sorted(found[0]) if given is None else sorted(given, key=given.__getitem__)
            df, tf = np.array([[each[term] for term in terms] for each in found], dtype=np.int64)
            return cls(cutting, of_objects(terms), df, tf, None)
        terms, read = cutting.count(table.matrix[live, 0].tolist())
        df, tf = _totals(read, terms)
        indptr = np.zeros(table.matrix.shape[0] + 1, dtype=np.int64)
        indptr[live + 1] = np.diff(read.indptr)
        rows = CountRows(read.counts, read.columns, np.cumsum(indptr))
        return cls(cutting, of_objects(terms), df, tf, rows)

    @property
    def fixed(self) -> bool:
        """Whether the terms were given."""
        return self.cutting.vocabulary is not None

    def copy(self) -> Self:
        """Copy all of it, so that a deletion in one does not change the other."""
        rows = self.rows
        if rows is not None:
            rows = CountRows(rows.counts.copy(), rows.columns.copy(), rows.indptr)
        terms, df, tf = (each.copy() for each in (self.terms, self.df, self.tf))
        return type(self)(self.cutting, terms, df, tf, rows)

    def state(self) -> dict[str, Any]:
        """Return the terms with their counts."""
        there = np.arange(self.df.size) if self.fixed else np.flatnonzero(self.df)
        return {"terms": self.terms[there], "df": self.df[there], "tf": self.tf[there]}

    def add(self, table: Table, rows: Ints) -> Slots | None:
        """Count the terms of new live documents, ascending.

        Return the new slot of each former slot, or None where the terms stay as they were.
        """
        terms, read = self._cut(table, rows)
        moved = None if self.fixed else self._insert(terms)
        read = self._in_slots(terms, read)
        if (before := self.rows) is not None:
            n_rows = table.matrix.shape[0]
            mine = np.zeros(n_rows, dtype=np.bool_)
            mine[rows] = True
            lengths = np.zeros(n_rows, dtype=np.int64)
            lengths[: before.indptr.size - 1] = np.diff(before.indptr)
            self.rows = _interleave(read, _without(before, mine, lengths), mine)
            before.counts[:] = before.columns[:] = 0
        kernels.tally(read.parts, np.arange(rows.size), 1, self.df, self.tf)
        return moved

    def without(self, table: Table, rows: Ints) -> tuple[Ints, Ints]:
        """Return what `df` and `tf` would be without some documents."""
        df, tf = self.df.copy(), self.tf.copy()
        read, places = self._counts_of(table, rows)
        kernels.tally(read.parts, places, -1, df, tf)
        return df, tf

    def subtract(self, table: Table, rows: Ints) -> None:
        """Subtract documents, in time in their terms; counts that are kept are overwritten."""
        read, places = self._counts_of(table, rows)
        kernels.tally(read.parts, places, -1, self.df, self.tf)
        gone = np.zeros(int((read.indptr[places + 1] - read.indptr[places]).sum()), np.int64)
        n_gone = kernels.wipe(read.parts, places, self.df, gone)
        if not self.fixed:
            slots = gone[:n_gone]
            if self.slots is not None:
                for term in self.terms[slots].tolist():
                    del self.slots[term]
            self.terms[slots] = ""

    def select(self, rows: Ints, kept: Ints) -> CountRows | None:
        """Return the counts of live documents in the columns whose slots are `kept`, ascending.

        None where documents are stored.
        """
        if self.rows is None:
            return None
        column = np.full(self.terms.size, -1, dtype=np.int32)
        column[kept] = np.arange(kept.size, dtype=np.int32)
        starts, indptr = np.zeros(rows.size + 1, dtype=np.int64), self.rows.indptr
        most = int((indptr[rows + 1] - indptr[rows]).sum())
        counts, columns = np.zeros((2, most), dtype=np.int32)
        kernels.pick(self.rows.parts, rows, column, counts, columns, starts)
        n = int(starts[-1])
        return CountRows(counts[:n].copy(), columns[:n].copy(), starts)

    def holders(self, rows: Ints, slots: Ints) -> Ints | None:
        """Find those of the live documents `rows` that have a term of some slots; None: unknown."""
        if self.rows is None:
            return None if slots.size else rows[:0]
        wanted = np.zeros(self.terms.size, dtype=np.bool_)
        wanted[slots] = True
        out = np.zeros(rows.size, dtype=np.int64)
        found = kernels.holders(self.rows.columns, self.rows.indptr, rows, wanted, out)
        return out[:found].copy()

    def _cut(self, table: Table, rows: Ints) -> tuple[list[str], CountRows]:
        near, places = table.in_memory(rows)
        return self.cutting.count(near[places, 0].tolist())

    def _counts_of(self, table: Table, rows: Ints) -> tuple[CountRows, Ints]:
        """Return counts of live documents, by slot, and the places in them of some rows."""
        if self.rows is not None:
            return self.rows, rows
        return self._in_slots(*self._cut(table, rows)), np.arange(rows.size)

    def _in_slots(self, terms: list[str], read: CountRows) -> CountRows:
        """Renumber the columns of counts, from places among `terms` to the slots of these terms."""
        if self.fixed:
            return read
        slots = np.fromiter(map(self._places().__getitem__, terms), np.int32, len(terms))
        return CountRows(read.counts, slots[read.columns], read.indptr)

    def _places(self) -> dict[str, int]:
        if self.slots is None:
            there = np.flatnonzero(self.df)
            self.slots = dict(zip(self.terms[there].tolist(), there.tolist(), strict=True))
        return self.slots

    def _insert(self, terms: list[str]) -> Slots | None:
        """Give new terms slots, and take away those of terms that nobody has; see `add`."""
        new = [term for term in terms if term not in self._places()]
        if not new:
            return None
        there = np.flatnonzero(self.df)
        known = self.terms[there].tolist()
        places = np.array([bisect_left(known, term) for term in new])
        every = known.copy()
        for place, term in zip(places.tolist()[::-1], new[::-1], strict=True):
            every.insert(place, term)
        self.slots = dict(zip(every, range(len(every)), strict=True))
        slots = np.arange(len(known), dtype=np.int32)
        slots += np.searchsorted(places, slots, side="right").astype(np.int32)
        moved = np.zeros(self.terms.size, dtype=np.int32)  # documents that are gone have slot 0
        moved[there] = slots
        df, tf = np.zeros((2, len(every)), dtype=np.int64)
        df[slots], tf[slots] = self.df[there], self.tf[there]
        self.df, self.tf = df, tf
        self.terms[:] = ""
        self.terms = of_objects(every)
        if self.rows is not None:
            self.rows = CountRows(self.rows.counts, moved[self.rows.columns], self.rows.indptr)
        return moved


def _without(rows: CountRows, left_out: Flags, lengths: Ints) -> CountRows:
    """Return rows without some; deleted ones keep their length."""
    kept = np.repeat(~left_out[: rows.indptr.size - 1], lengths[: rows.indptr.size - 1])
    ends = np.concatenate([[0], np.cumsum(lengths[~left_out])])
    return CountRows(rows.counts[kept], rows.columns[kept], ends)


def _count_words(
    documents: list[str],
    analyze: Analyzer,
    places: dict[str, int],
    *,
    binary: bool,
    lowercase: bool,
) -> CountRows:
    """Count words as `count_terms` does, but those of ASCII texts without Python."""
    is_ascii = np.fromiter(map(str.isascii, documents), np.bool_, len(documents))
    if is_ascii.all():
        plain, others = documents, []
    else:
        plain = [text for text in documents if text.isascii()]
        others = [text for text in documents if not text.isascii()]
    words, counts, slots, indptr = words_of(plain, lowercase=lowercase)
    if binary:
        counts[:] = 1
    places.update(zip(words, range(len(words)), strict=True))
    read = CountRows(counts, slots, indptr)
    if not others:
        return read
    rest = count_terms(others, analyze, places, binary=binary)
    return _interleave(read, rest, is_ascii)


def _interleave(one: CountRows, other: CountRows, is_one: Flags) -> CountRows:
    """Put the rows of two, each in its order, where `is_one` says that they belong."""
    indptr = np.zeros(is_one.size + 1, dtype=np.int64)
    indptr[1:][is_one] = np.diff(one.indptr)
    indptr[1:][~is_one] = np.diff(other.indptr)
    indptr = np.cumsum(indptr)
    counts = np.empty(int(indptr[-1]), dtype=np.int32)
    columns = np.empty_like(counts)
    for part, mine in ((one, is_one), (other, ~is_one)):
        moves = np.repeat(indptr[:-1][mine] - part.indptr[:-1], np.diff(part.indptr))
        to = np.arange(part.columns.size) + moves
        counts[to], columns[to] = part.counts, part.columns
    return CountRows(counts, columns, indptr)


def _refuse_strange(terms: Mapping[Any, int]) -> None:
    kinds = sorted({type(term).__name__ for term in terms} - {"str"})
    if kinds:
        raise InvalidDataError(
            f"the analyzer made terms of type {', '.join(kinds)}; expected strings; "
            "let it return a list of str"
        )
    try:
        "".join(terms).encode()
    except UnicodeEncodeError:
        raise InvalidDataError(
            "the documents hold lone surrogates; expected text that UTF-8 can encode; "
            "repair the decoding that produced them"
        ) from None
