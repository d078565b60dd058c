"""Different columns for different estimators, from all of which a record is deleted at once."""

from erasable.compose._column_transformer import ColumnTransformer
from erasable.compose._making import make_column_transformer

__all__ = ["ColumnTransformer", "make_column_transformer"]
