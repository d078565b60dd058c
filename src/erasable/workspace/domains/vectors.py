"""From columns to what scores compare: numbers scaled, text as TF-IDF, whole or in components."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from erasable.core.errors import InvalidDataError, WorkspaceError
from erasable.workspace.data.features import (
    TEXT,
    check_columns,
    default_columns,
    matrix,
    refuse_gaps,
)


def choose_features(
    types: dict[str, str],
    named: Sequence[str] | None,
    column: str | None,
    learned: Collection[str] = (),
    others: Collection[str | None] = (),
) -> tuple[str, ...]:
    """Choose the columns that records are compared by.

    `types` has neither ids nor subjects. They are those named; or `column`, the one of keywords; or
    those `learned` by models; or, without models, every numeric column; or the one of text.
    `others`, such as columns of costs, are features only where they are named.

    >>> choose_features({"text": "string", "label": "string"}, None, None, others={"label"})
    ('text',)
    >>> types = {"age": "int64", "dose": "double", "note": "string"}
    >>> choose_features(types, None, None), choose_features(types, None, None, {"note", "age"})
    (('age', 'dose'), ('age', 'note'))
    """
    if named is not None:
        if not named:
            raise WorkspaceError("features name no column; expected one or more")
        check_columns(types, named)
        return tuple(named)
    if column is not None:
        check_columns(types, [column])
        return (column,)
    numbers, texts = default_columns(types, others), default_columns(types, others, [TEXT])
    seen = [name for name in types if name in learned and name in (*numbers, *texts)]
    if seen:
        return tuple(seen)
    if numbers:
        return tuple(numbers)
    if len(texts) == 1:
        return tuple(texts)
    raise WorkspaceError(
        f"no column of numbers is left to compare records by, and {len(texts)} of text, beside "
        "ids, subjects and those of the condition; expected numbers, or one of text; name some "
        "with --features"
    )


def vectors(table: pa.Table, features: Sequence[str], components: int | None = None) -> Any:
    """Make vectors of records.

    `table` has the records of both domains: numbers are scaled, and words weighted, by all of it.
    The vectors are float64 of shape (n_records, n_columns); with text, sparse (csr_array), unless
    `components` reduces words to so many numbers. The same records in the same order have the same
    vectors.

    >>> import pyarrow as pa
    >>> vectors(pa.table({"age": [1, 3]}), ["age"]).tolist()
    [[-1.0], [1.0]]
    >>> texts = pa.table({"text": ["two words", "one two", "three words"]})
    >>> vectors(texts, ["text"]).shape, vectors(texts, ["text"], components=2).shape
    ((3, 4), (3, 2))
    """
    parts = []
    numbers = [name for name in features if str(table[name].type) != TEXT]
    if components is not None and len(numbers) == len(features):
        raise WorkspaceError(
            "components are asked for, and there is no text among what records are compared by; "
            "expected a column of text; name one with --features, or leave components out"
        )
    if numbers:
        refuse_gaps(table, numbers)
        parts.append(matrix(table, numbers))
    for name in features:
        if name not in numbers:
            words = _weighted(table[name].to_pylist(), name)
            parts.append(words if components is None else _reduced(words, components, name))
    if components is not None:
        return np.column_stack(parts)
    if len(parts) == 1:
        return parts[0]
    from scipy.sparse import csr_array, hstack

    return csr_array(hstack(parts, format="csr"))


def _weighted(texts: Sequence[str | None], name: str) -> Any:
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        made = TfidfVectorizer().fit_transform([text or "" for text in texts])
    except ValueError:  # an empty vocabulary
        raise InvalidDataError(
            f"the column {name!r} has no word of two letters or more; expected text; name another "
            "with --features"
        ) from None
    return csr_array(made)


def _reduced(words: Any, components: int, name: str) -> Any:
    from sklearn.decomposition import TruncatedSVD

    most = min(words.shape) - 1
    if isinstance(components, bool) or not isinstance(components, int) or components < 1:
        raise WorkspaceError(
            f"components={str(components)[:40]}; expected a whole number, 1 or more; pass 100"
        )
    if components > most:
        raise WorkspaceError(
            f"components={components}, and the {words.shape[1]} words of {name!r} in "
            f"{words.shape[0]} records have {most} at most; expected no more; pass {most}"
        )
    return TruncatedSVD(components, random_state=0).fit_transform(words)
