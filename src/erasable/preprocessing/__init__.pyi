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
