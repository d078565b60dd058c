"""Counts of words, weighed by how rare the words are."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils._param_validation import StrOptions

from erasable.core.arrays import Floats, Ints
from erasable.core.changes import TableChange
from erasable.feature_extraction._analysis import COUNT_CONSTRAINTS
from erasable.feature_extraction._count import CountVectorizer
from erasable.feature_extraction._counts import CountRows
from erasable.feature_extraction._text_kernels import rarity, weigh

_NORMS = {None: 0, "l1": 1, "l2": 2}


class TfidfVectorizer(CountVectorizer, auto_wrap_output_keys=None):
    r"""Weigh the words of texts by their rarity, and forget texts exactly.

    Vocabulary, document counts and weights are what they would be had the deleted documents never
    been there. A deletion costs time in the terms of the deleted documents and in the number of
    terms; no other document is read again.

    The weight of every word depends on the number of documents, so that every deletion changes the
    row of every document by a little. What learns from the rows has to learn again, or to follow.
    `quantize` makes such changes rare.

    Parameters that are not listed here are those of `CountVectorizer`.

    Parameters
    ----------
    binary : bool, default=False
        Count every term of a document once?
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the weights.
    norm : {"l1", "l2"} or None, default="l2"
        Which norm of every row is made 1.
    use_idf : bool, default=True
        Weigh by rarity?
    smooth_idf : bool, default=True
        Count as if one more document had every term?
    sublinear_tf : bool, default=False
        Take ``1 + log(count)`` for the count?
    quantize : bool, default=False
        Round both logarithms of `idf_` to multiples of 1/8. A weight then changes only when the
        count of its word, or that of all documents, crosses a step (one deletion in hundreds),
        and only rows with such a word, or with one that enters or leaves the vocabulary, change.

    Attributes
    ----------
    idf_ : ndarray of shape (n_terms,), float64
        Rarity of each term, ``log((n + 1) / (df + 1)) + 1``, or ``log(n / df) + 1`` unless
        `smooth_idf`; only with `use_idf`. With `quantize`, of a multiple of 1/8.
    vocabulary_ : dict of str to int
        Column of each term; columns are in the order of the alphabet.
    fixed_vocabulary_ : bool
        Whether the vocabulary was given.

    Raises
    ------
    TooFewRecordsError
        If no terms remain, in `fit` as in `delete`, which then changes nothing.

    See Also
    --------
    CountVectorizer : The counts alone.

    Notes
    -----
    Without `quantize`, equal to scikit-learn's `TfidfVectorizer` to about 1e-15, but for ties at
    the limit of `max_features`. Logarithms and sums are computed in one fixed way, so that bits
    agree between machines. Where the vocabulary is given and `smooth_idf` is off, a term that no
    document has counts as if one had (scikit-learn: infinity).

    Examples
    --------
    >>> from erasable.feature_extraction import TfidfVectorizer
    >>> texts = ["the cat sat", "the dog", "a cat and the dog"]
    >>> weights = TfidfVectorizer().fit(texts, ids=["a", "b", "c"])
    >>> weights.delete(["a"], digest=False).action
    'updated'
    >>> dict(zip(weights.get_feature_names_out(), weights.idf_.round(3).tolist()))
    {'and': 1.405, 'cat': 1.405, 'dog': 1.0, 'the': 1.0}
    >>> weights.digest() == TfidfVectorizer().fit(texts[1:], ids=["b", "c"]).digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **COUNT_CONSTRAINTS,
        "norm": [StrOptions({"l1", "l2"}), None],
        "use_idf": ["boolean"],
        "smooth_idf": ["boolean"],
        "sublinear_tf": ["boolean"],
        "quantize": ["boolean"],
    }
    _dtypes: ClassVar[str] = "f"

    def __init__(
        self,
        *,
        strip_accents: Any = None,
        lowercase: bool = True,
        preprocessor: Any = None,
        tokenizer: Any = None,
        analyzer: Any = "word",
        stop_words: Any = None,
        token_pattern: str | None = r"(?u)\b\w\w+\b",
        ngram_range: tuple[int, int] = (1, 1),
        max_df: float = 1.0,
        min_df: float = 1,
        max_features: int | None = None,
        vocabulary: Any = None,
        binary: bool = False,
        dtype: Any = np.float64,
        norm: str | None = "l2",
        use_idf: bool = True,
        smooth_idf: bool = True,
        sublinear_tf: bool = False,
        quantize: bool = False,
    ) -> None:
        super().__init__(
            strip_accents=strip_accents,
            lowercase=lowercase,
            preprocessor=preprocessor,
            tokenizer=tokenizer,
            stop_words=stop_words,
            token_pattern=token_pattern,
            ngram_range=ngram_range,
            analyzer=analyzer,
            max_df=max_df,
            min_df=min_df,
            max_features=max_features,
            vocabulary=vocabulary,
            binary=binary,
            dtype=dtype,
        )
        self.norm = norm
        self.use_idf = use_idf
        self.smooth_idf = smooth_idf
        self.sublinear_tf = sublinear_tf
        self.quantize = quantize

    @property
    def idf_(self) -> Floats:
        """Rarity of each term."""
        self._check_fitted()
        if not self._at_fit("use_idf"):
            raise AttributeError(
                "idf_ is not there with use_idf=False; expected use_idf=True; fit with it"
            )
        return self._rarity(self._counts, self._n_records)

    @property
    def _changes_all(self) -> bool:
        """Whether every deletion changes the rows of all documents; see `erasable.pipeline`."""
        return bool(self._at_fit("use_idf") and not self._at_fit("quantize"))

    def _rarity(self, counts: Ints, n_documents: int) -> Floats:
        out = np.ones(counts.size)
        if self._at_fit("use_idf"):
            smooth, quantize = int(self._at_fit("smooth_idf")), bool(self._at_fit("quantize"))
            rarity(counts, n_documents, smooth, quantize, out)
        return out

    def _values(self, counted: CountRows) -> csr_array:
        idf = self._rarity(self._counts, self._n_records)
        norm, sublinear = _NORMS[self._at_fit("norm")], bool(self._at_fit("sublinear_tf"))
        out = np.zeros(counted.counts.size)
        entries = counted.counts, counted.columns, counted.indptr
        weigh(entries, idf, sublinear, norm, out)
        return counted.csr(out.astype(self._at_fit("dtype"), copy=False), self._counts.size)

    def _find_change(
        self, kept: Ints, counts: Ints, n_gone: int, origin: Ints | None
    ) -> TableChange:
        """Where weights change with `n`, all rows do; else those of words whose weight changed."""
        if self._changes_all:
            return TableChange(origin=origin)
        before, after = (np.zeros(self._accelerator.terms.size) for _ in range(2))
        held = self._attached()
        before[kept] = self._rarity(counts, held.n_live + n_gone)
        after[self._kept] = self._rarity(self._counts, held.n_live)
        live = held.live_rows()
        rows = self._accelerator.holders(live, np.flatnonzero(before != after))
        return TableChange(rows, origin=origin)
