"""Base of the vectorizers: a vocabulary that is learned and forgotten, and its interface.

The state is the vocabulary with the number of documents of each term. The counts of every document
in memory, and of terms that are not in the vocabulary now, are kept beside it: a deletion takes a
document's counts out, and cuts no other text.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, issparse, vstack
from sklearn.base import TransformerMixin
from sklearn.utils import Tags

from erasable.core._changing import not_its_records
from erasable.core._schema import Array, Fields, Sizes, Texts, refuse
from erasable.core.arrays import Ints
from erasable.core.attachment import HeldRecords
from erasable.core.changes import Delta, TableChange
from erasable.core.deletion import Outcome
from erasable.core.digest import LeafHash, leaf_hash
from erasable.core.errors import InvalidDataError
from erasable.core.estimator import NEVER, Erasable
from erasable.core.passes import storage
from erasable.core.rows import Rows
from erasable.core.tables import Table
from erasable.feature_extraction._analysis import (
    check_analysis,
    choose,
    make_tool,
    read_vocabulary,
)
from erasable.feature_extraction._counts import CountRows, Cutting, TermCounts, count_terms

_counted: WeakKeyDictionary[HeldRecords, dict[tuple[bool, bool], TermCounts]] = WeakKeyDictionary()
"""Counts of documents that several models learn from, for as long as the documents are kept.

To cut them takes most of the time that it takes to lay a model out over them again.
"""


class Vectorizer(TransformerMixin, Erasable, auto_wrap_output_keys=None):
    """Base of the vectorizers; a subclass says what values the counts of a document become."""

    _refit_from: ClassVar[tuple[int, float]] = NEVER
    _reads_blocks: ClassVar[bool] = True

    vocabulary: Any
    binary: bool
    dtype: Any

    _kept: Ints  # the slot of each column in the accelerator
    _counts: Ints
    _found_terms: NDArray[Any] | None
    _terms_leaf: LeafHash | None
    _columns: dict[str, int] | None
    _tool: Any

    # -- what is learned -----------------------------------------------------------------------

    def _validate_params(self) -> None:
        super()._validate_params()
        check_analysis(self)

    def _fit_rows(self) -> None:
        self._tool = make_tool(self._at_fit)
        counts = self._count_documents()
        self._accelerator = counts
        self._publish(self._choose(counts.df, counts.tf))

    def _check_deletion(self, rows: Ints) -> None:
        counts: TermCounts = self._accelerator
        if not counts.fixed:
            table = Table.of(self._attached())
            self._choose(*counts.without(table, rows), n_gone=rows.size)

    def _update(self, delta: Delta) -> Outcome | None:
        kept, held_in, table = self._kept, self._counts, Table.of(self._attached())
        leaving, arriving = delta.leaving, delta.arriving
        if leaving.size:
            self._accelerator.subtract(table.without(arriving), leaving)
        moved = self._accelerator.add(table, arriving) if arriving.size else None
        if moved is not None:
            kept = moved[kept].astype(np.int64)
            self._kept = np.empty(0, dtype=np.int64)  # all terms have other slots
        n_new = self._choose_again(kept, held_in, leaving.size - arriving.size)
        counts = {"terms_dropped": kept.size - self._kept.size + n_new} if leaving.size else {}
        return Outcome("updated", 0, {**counts, "terms_added": n_new} if arriving.size else counts)

    def _choose_again(self, kept: Ints, counts: Ints, n_gone: int) -> int:
        """Choose the vocabulary again, and record what has changed; return how many terms are new.

        `kept` and `counts` are the slots and document counts of before; `n_gone` documents went.
        """
        after, origin, n_new = self._choose(self._accelerator.df, self._accelerator.tf), None, 0
        if not np.array_equal(kept, after):
            place = np.minimum(np.searchsorted(kept, after), kept.size - 1)
            origin = np.where(kept[place] == after, place, -1)
            n_new = int(np.sum(origin == -1))
        self._publish(after)
        self._change = self._find_change(kept, counts, n_gone, origin)
        return n_new

    @abstractmethod
    def _find_change(
        self, kept: Ints, counts: Ints, n_gone: int, origin: Ints | None
    ) -> TableChange:
        """Return the change of the output, of which `origin` is known.

        `kept` and `counts` are the slots and document counts of before; `n_gone` documents went.
        """

    def _state(self) -> dict[str, Any]:
        return {"document_counts": self._counts, "terms": self._terms()}

    def _schema(self) -> Fields:
        given = read_vocabulary(self._at_fit("vocabulary"))
        counts = Array("int64", ("n_terms",), int(given is None), most=1, per_record=True)
        terms = Texts(("n_terms",), ascending=given is None)

        def fit_together(value: dict[str, Any], at: str, sizes: Sizes) -> None:
            if sizes["n_features"] != 1:
                refuse("n_features", sizes["n_features"], "1, the documents")
            if given is not None and dict(zip(value["terms"], count(), strict=False)) != given:
                refuse("terms", "other terms", "those of the parameter vocabulary")
            if sizes["n_terms"] == 0:
                refuse("terms", "no terms", "one or more")
            # Functions that a file may name compute with numbers.
            for name in ("analyzer", "preprocessor", "strip_accents", "tokenizer"):
                if callable(self._at_fit(name)):
                    refuse(f"params.{name}", "a function", "none of its own")

        parts = {"document_counts": counts, "terms": terms}
        return Fields(parts, relations=(fit_together,))

    def _digest_state(self) -> dict[str, Any]:
        if self._terms_leaf is None:
            terms = self._terms().tolist()
            lengths = np.fromiter(map(len, terms), np.int64, len(terms))
            text = np.frombuffer("".join(terms).encode(), dtype=np.uint8)
            whole = leaf_hash("lengths", lengths) + leaf_hash("text", text)
            self._terms_leaf = leaf_hash("terms", whole.hex())
        return {"document_counts": self._counts, "terms": self._terms_leaf}

    def _restore(self, state: dict[str, Any]) -> None:
        self._found_terms, self._counts = state["terms"], state["document_counts"]
        self._terms_leaf = self._columns = None
        self._tool = make_tool(self._at_fit)

    def _reattach(self) -> None:
        counts = self._count_documents()
        kept = self._choose(counts.df, counts.tf)
        same = np.array_equal(counts.terms[kept], self._terms())
        if not (same and np.array_equal(counts.df[kept], self._counts)):
            raise not_its_records(self)
        self._accelerator, self._kept = counts, kept

    def _count_documents(self) -> TermCounts:
        held, of_others = self._attached(), None
        vocabulary = read_vocabulary(self._at_fit("vocabulary"))
        cutting = Cutting(self._tool, vocabulary, bool(self._at_fit("binary")))
        if cutting.is_plain and held.n_live == held.records.n_rows:
            source = None if held.records.source is None else held.records.source()
            of_others = None if source is None else _counted.setdefault(source, {})
        how = (cutting.binary, bool(self._tool.lowercase))
        if of_others is not None and how in of_others:
            return of_others[how].copy()
        made = TermCounts.fit(Table.of(held), cutting)
        if of_others is not None:
            of_others[how] = made.copy()
        return made

    def _choose(self, df: Ints, tf: Ints, *, n_gone: int = 0) -> Ints:
        if self.fixed_vocabulary_:
            return np.arange(df.size)
        return choose(df, tf, self._attached().n_live - n_gone, self._info.params)

    def _publish(self, kept: Ints) -> None:
        counts: TermCounts = self._accelerator
        before = self.__dict__.get("_kept")
        self._kept, self._counts = kept, counts.df[kept]
        if before is None or not np.array_equal(before, kept):
            self._found_terms = self._terms_leaf = self._columns = None

    def _terms(self) -> NDArray[Any]:
        """Return the term of each column; collecting them takes longer than a deletion."""
        if self._found_terms is None:
            found: NDArray[Any] = self._accelerator.terms[self._kept]
            self._found_terms = found
        return self._found_terms

    # -- what follows --------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """Make a row of numbers of each document.

        Parameters
        ----------
        X : iterable of str
            Documents. Terms that are not in the vocabulary are ignored.

        Returns
        -------
        sparse array or matrix of shape (n_documents, n_terms), CSR
            An array or a matrix, as scikit-learn would return (its setting ``sparse_interface``).
        """
        made = self._made_of(self._read_matrix(X)[:, 0].tolist())
        return made if isinstance(X, Rows) else _as_configured(made)

    def _made_of(self, documents: list[str]) -> csr_array:
        analyze, binary = self._tool.build_analyzer(), self._at_fit("binary")
        return self._values(count_terms(documents, analyze, self._places(), binary=binary))

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        *,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
    ) -> Any:
        """Fit, and transform the documents, which are cut once; see `fit` and `transform`.

        Those that stay in files or on a cluster are cut twice, and come here block by block.

        Parameters
        ----------
        X : iterable of str, or HeldRecords
            Documents.
        y : ignored
        ids : array-like of int or str, default=None
            Which record each document is.
        groups : array-like of int or str, default=None
            Which documents leave together.

        Returns
        -------
        sparse array or matrix of shape (n_documents, n_terms), CSR
        """
        held = self.fit(X, y, ids=ids, groups=groups)._attached()
        matrix, rows = held.records.matrix, held.live_rows()
        made = self._transform_held(rows)
        if made is None:
            blocks = storage(matrix).blocks(rows, gaps=True)
            made = vstack(
                [self._made_of(each.matrix[each.positions, 0].tolist()) for each in blocks],
                format="csr",
            )
        return _as_configured(made)

    def _transform_held(self, rows: Ints) -> csr_array | None:
        """Transform live records, at these positions, from what is known of them."""
        if self._accelerator is None:
            self._reattach()
        counted = self._accelerator.select(rows, self._kept)
        return None if counted is None else self._values(counted)

    @abstractmethod
    def _values(self, counted: CountRows) -> csr_array:
        """Return the output of counted documents."""

    def inverse_transform(self, X: Any) -> list[NDArray[Any]]:
        """Return the terms of each row that are not 0.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_terms)

        Returns
        -------
        list of ndarray of str
            One for each row.

        Raises
        ------
        InvalidDataError
            Another width than that of the vocabulary.
        """
        self._check_fitted()
        rows = csr_array(X, copy=True) if issparse(X) else csr_array(np.atleast_2d(np.asarray(X)))
        if rows.shape[1] != self._counts.size:
            raise InvalidDataError(
                f"X has {rows.shape[1]} columns; expected {self._counts.size}, one for each term; "
                "pass what transform returned"
            )
        rows.eliminate_zeros()
        rows.sort_indices()
        terms = self._terms().astype(str)
        return [terms[part] for part in np.split(rows.indices, rows.indptr[1:-1])]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the term of each column.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of shape (n_terms,), object (str)
        """
        self._check_fitted()
        return self._terms().copy()

    @property
    def vocabulary_(self) -> dict[str, int]:
        """The column of each term; a copy."""
        self._check_fitted()
        return dict(self._places())

    @property
    def fixed_vocabulary_(self) -> bool:
        """Whether the vocabulary was given and not learned."""
        self._check_fitted()
        return self._at_fit("vocabulary") is not None

    def _places(self) -> dict[str, int]:
        if self._columns is None:
            self._columns = {term: place for place, term in enumerate(self._terms().tolist())}
        return self._columns

    def build_preprocessor(self) -> Callable[[str], str]:
        """Return the function that treats a text before it is cut."""
        function: Callable[[str], str] = make_tool(self._at_fit).build_preprocessor()
        return function

    def build_tokenizer(self) -> Callable[[str], list[str]]:
        """Return the function that cuts a text into words."""
        function: Callable[[str], list[str]] = make_tool(self._at_fit).build_tokenizer()
        return function

    def build_analyzer(self) -> Callable[[str], list[str]]:
        """Return the function that makes terms of a document."""
        function: Callable[[str], list[str]] = make_tool(self._at_fit).build_analyzer()
        return function

    def get_stop_words(self) -> frozenset[str] | None:
        """Return the words that are left out, or None."""
        words: frozenset[str] | None = make_tool(self._at_fit).get_stop_words()
        return words

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


def _as_configured(made: csr_array) -> Any:
    wanted = sklearn.get_config().get("sparse_interface", "spmatrix")
    return csr_matrix(made) if wanted == "spmatrix" else made
