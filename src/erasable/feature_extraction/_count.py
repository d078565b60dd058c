"""Counts of each term in each document."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from erasable.core.arrays import Ints
from erasable.core.changes import TableChange
from erasable.core.errors import InvalidParameterError
from erasable.feature_extraction._analysis import COUNT_CONSTRAINTS
from erasable.feature_extraction._counts import CountRows
from erasable.feature_extraction._vectorizer import Vectorizer


class CountVectorizer(Vectorizer, auto_wrap_output_keys=None):
    r"""Count the words of texts, and forget texts exactly, with the words that only they had.

    A deletion costs time in the terms of the deleted documents and in the number of terms; no
    other document is read again. The vocabulary is what it would be had the documents never been
    there: terms may go, and come back where `max_df` had excluded them.

    Parameters
    ----------
    strip_accents : {"ascii", "unicode"}, function or None, default=None
        Remove accents first?
    lowercase : bool, default=True
        Make letters small first?
    preprocessor : function, default=None
        Takes a text and returns a text, in the place of the two steps above. Like all functions
        here it must have a name of its own (no lambda, no method of an object), by which the
        digest knows it, and give the same for the same text.
    tokenizer : function, default=None
        Takes a text and returns a list of words, in the place of `token_pattern`.
    stop_words : {"english"}, list of str or None, default=None
        Words to leave out.
    token_pattern : str, default=r"(?u)\b\w\w+\b"
        Regular expression of a word: two letters or digits, or more.
    ngram_range : tuple (min_n, max_n), default=(1, 1)
        How many words, or characters, make a term.
    analyzer : {"word", "char", "char_wb"} or function, default="word"
        What terms are made of. A function takes a document and returns a list of str.
    max_df : float from 0 to 1, or int, default=1.0
        Leave out terms of more documents than this share or number.
    min_df : float from 0 to 1, or int, default=1
        Leave out terms of fewer documents than this share or number.
    max_features : int, default=None
        Keep only so many terms, those used most; among equals the first of the alphabet.
    vocabulary : dict of str to int, or list of str, default=None
        The terms, which are then not learned, and stay; with their columns.
    binary : bool, default=False
        Tell only whether a term is there?
    dtype : type, default=numpy.int64
        Type of the numbers.

    Attributes
    ----------
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
    TfidfVectorizer : Counts weighed by the rarity of words.

    Notes
    -----
    Equal to scikit-learn's `CountVectorizer`, but for terms that are used equally often at the
    limit of `max_features`, whose choice is not specified there. Terms must be strings. Texts
    must be strings, too: there are no parameters `input`, `encoding` and `decode_error`.

    The counts of each document are kept beside the model, so that no document is cut twice. Of
    documents that stay in files or on a cluster they are not: those that leave are read, and cut
    again.

    Examples
    --------
    >>> from erasable.feature_extraction import CountVectorizer
    >>> texts = ["the cat sat", "the dog", "a cat and the dog"]
    >>> counts = CountVectorizer().fit(texts, ids=["a", "b", "c"])
    >>> counts.get_feature_names_out().tolist()
    ['and', 'cat', 'dog', 'sat', 'the']
    >>> print(counts.delete(["a"], digest=False).counts["terms_dropped"])
    1
    >>> counts.vocabulary_, counts.transform(["cat, cat, dog"]).toarray().tolist()
    ({'and': 0, 'cat': 1, 'dog': 2, 'the': 3}, [[0, 2, 1, 0]])
    >>> counts.digest() == CountVectorizer().fit(texts[1:], ids=["b", "c"]).digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**COUNT_CONSTRAINTS}
    _dtypes: ClassVar[str] = "biuf"

    def __init__(
        self,
        *,
        strip_accents: Any = None,
        lowercase: bool = True,
        preprocessor: Any = None,
        tokenizer: Any = None,
        stop_words: Any = None,
        token_pattern: str | None = r"(?u)\b\w\w+\b",
        ngram_range: tuple[int, int] = (1, 1),
        analyzer: Any = "word",
        max_df: float = 1.0,
        min_df: float = 1,
        max_features: int | None = None,
        vocabulary: Any = None,
        binary: bool = False,
        dtype: Any = np.int64,
    ) -> None:
        self.strip_accents = strip_accents
        self.lowercase = lowercase
        self.preprocessor = preprocessor
        self.tokenizer = tokenizer
        self.stop_words = stop_words
        self.token_pattern = token_pattern
        self.ngram_range = ngram_range
        self.analyzer = analyzer
        self.max_df = max_df
        self.min_df = min_df
        self.max_features = max_features
        self.vocabulary = vocabulary
        self.binary = binary
        self.dtype = dtype

    def _validate_params(self) -> None:
        super()._validate_params()
        try:
            kind = np.dtype(self.dtype)
        except TypeError:
            kind = np.dtype(object)
        if kind.kind not in self._dtypes or kind == np.float16:
            wanted = (
                "numpy.float64 or numpy.float32" if self._dtypes == "f" else "a type of numbers"
            )
            raise InvalidParameterError(
                f"dtype is {kind}; {type(self).__name__} expected {wanted}; leave it out"
            )

    def _values(self, counted: CountRows) -> csr_array:
        return counted.csr(counted.counts.astype(self._at_fit("dtype")), self._counts.size)

    def _find_change(
        self, kept: Ints, counts: Ints, n_gone: int, origin: Ints | None
    ) -> TableChange:
        """Only columns come and go: what is counted in those that stay, stays."""
        new = np.zeros(self._kept.size, dtype=np.bool_) if origin is None else origin < 0
        live = self._attached().live_rows()
        rows = self._accelerator.holders(live, self._kept[new])
        return TableChange(rows, new, origin)
