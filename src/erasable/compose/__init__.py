"""Different columns for different estimators, from all of which a record is deleted at once."""

from erasable.compose._column_transformer import ColumnTransformer, make_column_transformer

__all__ = ["ColumnTransformer", "make_column_transformer"]
