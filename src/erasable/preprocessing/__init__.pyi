from ._imputer import SimpleImputer
from ._maxabs import MaxAbsScaler
from ._minmax import MinMaxScaler
from ._onehot import OneHotEncoder
from ._ordinal import OrdinalEncoder
from ._robust import RobustScaler
from ._standard import StandardScaler

__all__ = [
    "MaxAbsScaler",
    "MinMaxScaler",
    "OneHotEncoder",
    "OrdinalEncoder",
    "RobustScaler",
    "SimpleImputer",
    "StandardScaler",
]
