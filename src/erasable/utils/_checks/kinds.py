"""Data sets made into what an estimator takes: classes, counts, gaps, categories, documents.

What a record becomes depends on that record alone, so that a data set without some records is
still what these make of the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.values import Accepts
from erasable.utils._checks.data_sets import DataSet

__all__ = ["suited"]

_IN_WORDS = ("skewed", "duplicated rows", "tiny", "marked, string ids")
_WITH_GAPS = ("skewed", "integers", "large")


def suited(data_sets: Sequence[DataSet], estimator: Any) -> list[DataSet]:
    """Adapt data sets to what an estimator's scikit-learn tags ask for.

    Parameters
    ----------
    data_sets : sequence of DataSet
        As they are.
    estimator : estimator
        Its tags decide: three classes for a classifier, no negative values where it wants none,
        documents where it reads texts; in some data sets, gaps where it takes NaN and words where
        it takes categories.

    Returns
    -------
    list of DataSet
        In the same order.
    """
    tags, accepts = estimator.__sklearn_tags__(), Accepts.of(estimator)
    positive, coded = tags.input_tags.positive_only, tags.input_tags.categorical
    # A column transformer reads a table with words in it, but its parts may take none.
    takes_words = getattr(estimator, "_takes_words", accepts.objects and not positive)
    result = []
    for data in data_sets:
        if tags.classifier_tags is not None:
            ranks = np.argsort(np.argsort(data.y, kind="stable"), kind="stable")
            data = replace(data, y=ranks * 3 // len(data))
        if positive:
            sizes = np.abs(data.X)
            data = replace(data, X=np.floor(8.0 * sizes) % 5 if coded else sizes)
        if accepts.documents:
            texts = [" ".join(_words(row, few=False)) for row in data.X]
            data = replace(data, X=np.array([*texts, None], dtype=object)[:-1])
        elif takes_words and data.name in _IN_WORDS:
            few = not data.name.startswith("marked")
            table = np.empty(data.X.shape, dtype=object)
            table[:] = [_words(row, few) for row in data.X]
            data = replace(data, X=table)
        elif tags.input_tags.allow_nan and data.name in _WITH_GAPS:
            gaps = np.floor(np.abs(data.X) * 8.0) % 5 == 3
            data = replace(data, X=np.where(gaps, np.nan, data.X))
        result.append(data)
    return result


def _words(row: NDArray[Any], few: bool) -> list[str]:
    numbers = [int(abs(float(value))) for value in row]
    return [f"{'abcdefgh'[j]}{n % 4 if few else n}" for j, n in enumerate(numbers)]
