"""Column transformers whose parts are named after their types."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import _name_estimators

from erasable.compose._column_transformer import ColumnTransformer

__all__ = ["make_column_transformer"]


def make_column_transformer(*transformers: Any, **options: Any) -> ColumnTransformer:
    """Make a `ColumnTransformer` of pairs (transformer, columns), named after their types.

    Parameters
    ----------
    *transformers : tuples (transformer, columns)
    **options : remainder, verbose_feature_names_out

    Returns
    -------
    ColumnTransformer

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> make_column_transformer((MinMaxScaler(), ["age"]))
    ColumnTransformer(transformers=[('minmaxscaler', MinMaxScaler(), ['age'])])
    """
    named = _name_estimators([part for part, _ in transformers])
    items = [(name, part, c) for (name, part), (_, c) in zip(named, transformers, strict=True)]
    return ColumnTransformer(items, **options)
