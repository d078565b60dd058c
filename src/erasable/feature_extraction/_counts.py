"""Counts of each term in each document, kept so that a document is never read again.

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

from erasable.core.arrays import Flags, Ints, of_objects
from erasable.core.errors import InvalidDataError
from erasable.feature_extraction import _text_kernels as kernels
from erasable.feature_extraction._text_kernels import Counts, Slots
from erasable.feature_extraction._words import words_of

Analyzer = Callable[[str], Iterable[str]]


@dataclass(frozen=True, eq=False, slots=True)
class CountRows:
    """Counts of documents in the columns of a vocabulary, as CSR: columns ascend in every row."""

    counts: Counts
    columns: Slots
    indptr: Ints

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
    n_slots: int = 0,
) -> CountRows:
    """Count the terms of documents, each in its place.

    If `places` is a defaultdict, new terms get the next place; otherwise they are ignored.
    `n_slots` is the number of places, if it is not that of the terms.
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
    return rows if learns else _sorted(rows, max(n_slots, len(places)))


def _sorted(rows: CountRows, n_columns: int) -> CountRows:
    matrix = csr_array(
        (rows.counts, rows.columns, rows.indptr), shape=(rows.indptr.size - 1, n_columns)
    )
    matrix.sort_indices()
    return CountRows(matrix.data, matrix.indices.astype(np.int32, copy=False), rows.indptr)


@dataclass(eq=False, slots=True)
class TermCounts:
    """Counts of the terms of all live documents, in the vocabulary or not."""

    terms: NDArray[Any]  # of each slot, ascending; "" where no live document has it any more
    df: Ints  # live documents with the term
    tf: Ints  # how often they have it
    rows: CountRows  # a row for each record, slots as columns; rows not live are empty or 0
    fixed: bool  # were the terms given?
    slots: dict[str, int] | None = None  # by term of a live document; made when documents come

    @classmethod
    def fit(
        cls,
        documents: NDArray[Any],
        live_rows: Ints,
        analyze: Analyzer,
        vocabulary: Mapping[str, int] | None,
        *,
        binary: bool,
        plain: bool = False,
        lowercase: bool = True,
    ) -> Self:
        """Count the terms of the live documents; `live_rows` ascend.

        `vocabulary` has the terms if they are given; `plain`: `analyze` is scikit-learn's default,
        for which there is faster code. Raise InvalidDataError for terms that are no strings, or
        that UTF-8 cannot encode.
        """
        places: Any = vocabulary
        if vocabulary is None:
            places = defaultdict[str, int]()
            places.default_factory = places.__len__
        texts = documents[live_rows].tolist()
        if plain and vocabulary is None:
            read = _count_words(texts, analyze, places, binary=binary, lowercase=lowercase)
        else:
            read = count_terms(texts, analyze, places, binary=binary)
        _refuse_strange(places)
        terms = np.empty(len(places), dtype=object)
        if vocabulary is None:
            terms[:] = sorted(places)
            rank = np.zeros(terms.size, dtype=np.int32)
            rank[[places[term] for term in terms]] = np.arange(terms.size, dtype=np.int32)
            read = _sorted(CountRows(read.counts, rank[read.columns], read.indptr), terms.size)
        else:
            terms[list(places.values())] = list(places)
        indptr = np.zeros(documents.shape[0] + 1, dtype=np.int64)
        indptr[live_rows + 1] = np.diff(read.indptr)
        rows = CountRows(read.counts, read.columns, np.cumsum(indptr))
        made = cls(
            terms,
            np.zeros(terms.size, dtype=np.int64),
            np.zeros(terms.size, dtype=np.int64),
            rows,
            vocabulary is not None,
        )
        made._tally(live_rows, 1, made.df, made.tf)
        return made

    def copy(self) -> Self:
        """Copy all of it, so that a deletion in one does not change the other."""
        rows = CountRows(self.rows.counts.copy(), self.rows.columns.copy(), self.rows.indptr)
        return type(self)(self.terms.copy(), self.df.copy(), self.tf.copy(), rows, self.fixed)

    def add(
        self,
        documents: list[str],
        rows: Ints,
        n_rows: int,
        analyze: Analyzer,
        *,
        binary: bool,
    ) -> Slots | None:
        """Count the terms of new live documents at `rows`, ascending; there are `n_rows` rows now.

        Return the new slot of each former slot, or None where the terms stay as they were.
        """
        if self.slots is None:
            there = np.arange(self.terms.size) if self.fixed else np.flatnonzero(self.df)
            self.slots = dict(zip(self.terms[there].tolist(), there.tolist(), strict=True))
        places, moved = self.slots, None
        if not self.fixed:
            documents_terms = [list(analyze(document)) for document in documents]
            new = {t: 0 for terms in documents_terms for t in terms if t not in places}
            _refuse_strange(new)
            if new:
                moved = self._insert(new)
                places = self.slots
            documents, analyze = documents_terms, list  # type: ignore[assignment]
        read = count_terms(documents, analyze, places, binary=binary, n_slots=self.terms.size)
        mine = np.zeros(n_rows, dtype=np.bool_)
        mine[rows] = True
        lengths = np.zeros(n_rows, dtype=np.int64)
        lengths[: self.rows.indptr.size - 1] = np.diff(self.rows.indptr)
        before = self.rows
        self.rows = _interleave(read, self._without(mine, lengths), mine)
        before.counts[:] = before.columns[:] = 0
        self._tally(rows, 1, self.df, self.tf)
        return moved

    def _without(self, left_out: Flags, lengths: Ints) -> CountRows:
        """Return the rows without some; deleted ones keep their length."""
        n = self.rows.indptr.size - 1
        kept = np.repeat(~left_out[:n], lengths[:n])
        ends = np.concatenate([[0], np.cumsum(lengths[~left_out])])
        return CountRows(self.rows.counts[kept], self.rows.columns[kept], ends)

    def _insert(self, new: Mapping[str, int]) -> Slots:
        """Give new terms slots, and take away those of terms that nobody has."""
        there = np.flatnonzero(self.df)
        known, ordered = self.terms[there].tolist(), sorted(new)
        places = np.array([bisect_left(known, term) for term in ordered])
        terms = known.copy()
        for place, term in zip(places.tolist()[::-1], ordered[::-1], strict=True):
            terms.insert(place, term)
        self.slots = dict(zip(terms, range(len(terms)), strict=True))
        slots = np.arange(len(known), dtype=np.int32)
        slots += np.searchsorted(places, slots, side="right").astype(np.int32)
        moved = np.zeros(self.terms.size, dtype=np.int32)  # documents that are gone have slot 0
        moved[there] = slots
        df, tf = np.zeros((2, len(terms)), dtype=np.int64)
        df[slots], tf[slots] = self.df[there], self.tf[there]
        self.df, self.tf = df, tf
        self.terms[:] = ""
        self.terms = of_objects(terms)
        self.rows = CountRows(self.rows.counts, moved[self.rows.columns], self.rows.indptr)
        return moved

    def without(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return what `df` and `tf` would be without some documents."""
        df, tf = self.df.copy(), self.tf.copy()
        self._tally(rows, -1, df, tf)
        return df, tf

    def remove(self, rows: Ints) -> None:
        """Forget documents, in time in their terms."""
        self._tally(rows, -1, self.df, self.tf)
        gone = np.zeros(int((self.rows.indptr[rows + 1] - self.rows.indptr[rows]).sum()), np.int64)
        n_gone = kernels.wipe(self._parts(), rows, self.df, gone)
        if not self.fixed:
            slots = gone[:n_gone]
            if self.slots is not None:
                for term in self.terms[slots].tolist():
                    del self.slots[term]
            self.terms[slots] = ""

    def select(self, rows: Ints, kept: Ints) -> CountRows:
        """Return the counts of live documents in the columns whose slots are `kept`, ascending."""
        column = np.full(self.terms.size, -1, dtype=np.int32)
        column[kept] = np.arange(kept.size, dtype=np.int32)
        starts, indptr = np.zeros(rows.size + 1, dtype=np.int64), self.rows.indptr
        most = int((indptr[rows + 1] - indptr[rows]).sum())
        counts, columns = np.zeros((2, most), dtype=np.int32)
        kernels.pick(self._parts(), rows, column, counts, columns, starts)
        n = int(starts[-1])
        return CountRows(counts[:n].copy(), columns[:n].copy(), starts)

    def holders(self, rows: Ints, slots: Ints) -> Ints:
        """Find those of the live documents `rows` that have a term of some slots."""
        wanted = np.zeros(self.terms.size, dtype=np.bool_)
        wanted[slots] = True
        out = np.zeros(rows.size, dtype=np.int64)
        found = kernels.holders(self.rows.columns, self.rows.indptr, rows, wanted, out)
        return out[:found].copy()

    def _parts(self) -> kernels.Entries:
        return self.rows.counts, self.rows.columns, self.rows.indptr

    def _tally(self, rows: Ints, sign: int, df: Ints, tf: Ints) -> None:
        kernels.tally(self._parts(), rows, sign, df, tf)


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
