"""Exports of encoders, imputers and vectorizers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from erasable.core.arrays import of_objects
from erasable.export._source import Source


def _covering(categories: list[NDArray[Any]]) -> NDArray[Any]:
    """Return rows that hold all categories of all columns."""
    size = max(labels.size for labels in categories)
    columns = [np.resize(labels, size) for labels in categories]
    if any(column.dtype == object for column in columns):
        columns = [of_objects(column.tolist()) for column in columns]
    return np.column_stack(columns)


def _with_whole_numbers(labels: NDArray[Any]) -> NDArray[Any]:
    """Return categories whose names are written as the model writes them: 1 and not 1.0."""
    if labels.dtype == object or not (np.abs(labels) < 2.0**53).all():
        return labels
    whole = labels.astype(np.int64)
    return whole if (whole == labels).all() else labels


def one_hot(source: Source) -> OneHotEncoder:
    """Export the categories, and which of them are dropped."""
    model, params = source.model, source.shared(OneHotEncoder)
    categories, drop = model.categories_, params["drop"]
    fixed = not isinstance(params["categories"], str)
    if fixed:
        params["categories"] = categories
    named = drop is not None and not isinstance(drop, str)
    made = OneHotEncoder(**{**params, "drop": None if named else drop})
    made.fit(_covering(categories))
    made.categories_ = [_with_whole_numbers(labels) for labels in categories]
    if named:
        # A category that no record has is not dropped, which `fit` refuses.
        made.drop, made.drop_idx_ = drop, model.drop_idx_
        made._drop_idx_after_grouping = model.drop_idx_
        made._n_features_outs = [
            labels.size - (at is not None)
            for labels, at in zip(categories, model.drop_idx_, strict=True)
        ]
    return made


def ordinal(source: Source) -> OrdinalEncoder:
    """Export the categories."""
    params, categories = source.shared(OrdinalEncoder), source.model.categories_
    if not isinstance(params["categories"], str):
        params["categories"] = categories
    made = OrdinalEncoder(**params)
    made.fit(_covering(categories))
    made.categories_ = [_with_whole_numbers(labels) for labels in categories]
    return made


def imputer(source: Source) -> SimpleImputer:
    """Export what gaps are filled with, and which columns have any."""
    model, params = source.model, source.shared(SimpleImputer)
    fills, state = model.statistics_, source.state
    n_values, gap = state["n_values"], params["missing_values"]
    gap = params["missing_values"] = np.nan if gap is None else gap
    empty = n_values == 0
    if params["strategy"] == "constant" and not params["keep_empty_features"] and empty.any():
        # Before version 1.8 of scikit-learn a constant fills columns without values, too.
        params["strategy"] = "most_frequent"
    rows = np.stack([_values_beside(gap, fills)] * 2)
    rows[1, n_values < state["n_records"]] = rows[0, empty] = gap
    made = SimpleImputer(**params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns without values
        made.fit(rows)
    made.statistics_ = fills
    return made


def _values_beside(gap: Any, fills: NDArray[Any]) -> NDArray[Any]:
    """Return a value for each column, of the type of what it is filled with, which is no gap."""
    number, text = 2.0 if gap == 1 else 1.0, "b" if gap == "a" else "a"
    if fills.dtype != object:
        return np.full(fills.size, number)
    return of_objects([text if isinstance(fill, str) else number for fill in fills.tolist()])


def count_vectorizer(source: Source) -> CountVectorizer:
    """Export the vocabulary."""
    made = CountVectorizer(**source.shared(CountVectorizer))
    made.vocabulary_ = source.model.vocabulary_
    made.fixed_vocabulary_ = source.model.fixed_vocabulary_
    return made


def tfidf_vectorizer(source: Source) -> TfidfVectorizer:
    """Export the vocabulary and the rarity of its words."""
    model, params = source.model, source.shared(TfidfVectorizer)
    weighing = {name: params[name] for name in ("norm", "use_idf", "sublinear_tf")}
    # It learns how to weigh from one empty text; all else is set afterwards.
    made = TfidfVectorizer(vocabulary=model.vocabulary_, **weighing).fit([""])
    made.set_params(**params)
    if params["use_idf"]:
        made.idf_ = model.idf_
    made.vocabulary_, made.fixed_vocabulary_ = model.vocabulary_, model.fixed_vocabulary_
    return made
