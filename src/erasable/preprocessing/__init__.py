"""Scalers, encoders and imputers from which a record can be deleted.

A fitted scaler remembers its records: a minimum is the value of one of them, and a mean and a
standard deviation depend on all. So does an encoder, whose rarest category may be that of one
record. A deletion equals a refit without the records. Its cost does not grow with the records that
stay, but for columns that have to be read again.
"""

from erasable.preprocessing._imputer import SimpleImputer
from erasable.preprocessing._maxabs import MaxAbsScaler
from erasable.preprocessing._minmax import MinMaxScaler
from erasable.preprocessing._onehot import OneHotEncoder
from erasable.preprocessing._ordinal import OrdinalEncoder
from erasable.preprocessing._robust import RobustScaler
from erasable.preprocessing._standard import StandardScaler

__all__ = [
    "MaxAbsScaler",
    "MinMaxScaler",
    "OneHotEncoder",
    "OrdinalEncoder",
    "RobustScaler",
    "SimpleImputer",
    "StandardScaler",
]
