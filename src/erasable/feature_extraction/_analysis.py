"""Parameters of a vectorizer: how texts are cut into terms, and which terms stay.

Texts are cut by scikit-learn's own analyzer, so that both libraries see the same terms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
import sklearn.feature_extraction.text
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from erasable.core.arrays import Ints
from erasable.core.errors import InvalidParameterError, TooFewRecordsError
from erasable.core.ids import shorten
from erasable.core.params import function_path

_DOCUMENTS = [
    Interval(RealNotInt, 0, 1, closed="both"),
    Interval(Integral, 1, None, closed="left"),
]
"""A share of the documents, or a number of them."""

COUNT_CONSTRAINTS: Mapping[str, Any] = {
    "strip_accents": [StrOptions({"ascii", "unicode"}), None, callable],
    "lowercase": ["boolean"],
    "preprocessor": [callable, None],
    "tokenizer": [callable, None],
    "stop_words": [StrOptions({"english"}), list, None],
    "token_pattern": [str, None],
    "ngram_range": [tuple],
    "analyzer": [StrOptions({"word", "char", "char_wb"}), callable],
    "max_df": _DOCUMENTS,
    "min_df": _DOCUMENTS,
    "max_features": [Interval(Integral, 1, None, closed="left"), None],
    "vocabulary": [Mapping, "array-like", None],
    "binary": ["boolean"],
}
_ANALYSIS = (
    "strip_accents",
    "lowercase",
    "preprocessor",
    "tokenizer",
    "stop_words",
    "token_pattern",
    "ngram_range",
    "analyzer",
)


def make_tool(
    param: Callable[[str], Any],
) -> sklearn.feature_extraction.text.CountVectorizer:
    """Make scikit-learn's vectorizer that cuts texts as parameters say, which `param` returns."""
    params = {name: param(name) for name in _ANALYSIS}
    return sklearn.feature_extraction.text.CountVectorizer(**params)


def check_analysis(vectorizer: Any) -> None:
    """Refuse parameters that cannot be used together, or whose function has no name."""
    for name in ("strip_accents", "preprocessor", "tokenizer", "analyzer"):
        value = getattr(vectorizer, name)
        if callable(value) and (not hasattr(value, "__qualname__") or "<" in function_path(value)):
            raise InvalidParameterError(
                f"{name} is a function without a name of its own; expected one that can be told "
                "from others by its name; define it with def at the top of a module"
            )
    stops = vectorizer.stop_words
    strange = [word for word in stops or () if not isinstance(word, str)]
    if strange:
        raise InvalidParameterError(
            f"stop_words holds {shorten(strange[0])}; expected a list of str"
        )
    span = vectorizer.ngram_range
    whole = all(isinstance(n, Integral) and not isinstance(n, bool) for n in span)
    if len(span) != 2 or not whole or not 1 <= span[0] <= span[1]:
        raise InvalidParameterError(
            f"Invalid value for ngram_range={span!r}; expected two integers, 1 <= min_n <= max_n; "
            "pass (1, 2) for words and pairs of words"
        )
    uses_pattern = vectorizer.analyzer == "word" and vectorizer.tokenizer is None
    if uses_pattern:
        _check_pattern(vectorizer.token_pattern)
    low, high = vectorizer.min_df, vectorizer.max_df
    if isinstance(low, Integral) == isinstance(high, Integral) and high < low:
        raise InvalidParameterError(
            f"max_df={high} corresponds to < documents than min_df={low}; expected max_df >= "
            "min_df; raise max_df or lower min_df"
        )


def _check_pattern(pattern: str | None) -> None:
    try:
        groups = re.compile(pattern or "").groups
    except re.error as error:
        raise InvalidParameterError(
            f"token_pattern is no regular expression ({' '.join(str(error).split())}); expected "
            "one that matches a term; correct it"
        ) from None
    if pattern is None or groups > 1:
        fault = "token_pattern is None" if pattern is None else "More than 1 capturing group"
        raise InvalidParameterError(
            f"{fault} in token pattern; expected an expression with a single group or none; "
            "write (?:...) for groups that are not captured"
        )


def read_vocabulary(given: Any) -> dict[str, int] | None:
    """Read the parameter `vocabulary` into a dict from terms to columns."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        terms, places = list(given), [int(place) for place in given.values()]
    else:
        terms = np.asarray(given, dtype=object).reshape(-1).tolist()
        places = list(range(len(terms)))
    if not terms or not all(isinstance(term, str) for term in terms):
        raise InvalidParameterError(
            "empty vocabulary passed to fit, or one of other things than strings; expected terms; "
            "pass a list of str, or vocabulary=None to learn them"
        )
    if len(set(terms)) < len(terms) or sorted(places) != list(range(len(terms))):
        raise InvalidParameterError(
            f"the vocabulary of {len(terms)} terms has {len(set(terms))} different ones in "
            f"{len(set(places))} different columns; expected each term once, in columns "
            "0, 1, 2, ...; pass a list of different terms"
        )
    return dict(zip(map(str, terms), places, strict=True))


def choose(df: Ints, tf: Ints, n_documents: int, params: Mapping[str, Any]) -> Ints:
    """Choose the terms of a vocabulary by document frequencies `df` and counts `tf`; return slots.

    Both are in the order of the terms. Of terms used equally often, the first in the alphabet stay.
    Raise TooFewRecordsError if no terms remain.
    """
    low, high = (_documents(params[name], n_documents) for name in ("min_df", "max_df"))
    if high < low:
        raise TooFewRecordsError(
            f"max_df corresponds to < documents than min_df: of {n_documents} documents, at most "
            f"{high:g} and at least {low:g} may have a term; expected more documents; "
            "lower min_df or raise max_df"
        )
    mask = df >= max(low, 1)
    if high < n_documents:
        mask &= df <= high
    kept: Ints = np.flatnonzero(mask)
    if kept.size == 0:
        if not df.any():
            raise TooFewRecordsError(
                f"empty vocabulary: {n_documents} documents have no term; perhaps the documents "
                "only contain stop words; expected one term or more; change how terms are found"
            )
        raise TooFewRecordsError(
            f"After pruning, no terms remain of {np.count_nonzero(df)} terms of {n_documents} "
            "documents; expected one or more; Try a lower min_df or a higher max_df"
        )
    limit = params["max_features"]
    if limit is not None and kept.size > limit:
        kept = np.sort(kept[np.argsort(-tf[kept], kind="stable")[:limit]])
    return kept


def _documents(limit: float, n_documents: int) -> float:
    return limit if isinstance(limit, Integral) else limit * n_documents
