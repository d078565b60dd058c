"""Scalers that forget: what they learned of a column is brought up to date by a deletion.

A fitted scaler remembers its records: a minimum is somebody's value, and a mean and a standard
deviation hang on everybody. The law kept here is that of every room, that a deletion equals a
refit without the records, at a cost that does not grow with the records that stay.
"""

from erasable.preprocessing._minmax import MinMaxScaler
from erasable.preprocessing._standard import StandardScaler

__all__ = ["MinMaxScaler", "StandardScaler"]
