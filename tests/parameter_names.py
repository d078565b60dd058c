"""Read the names of an estimator's parameters once per constructor. A plugin of pytest.

scikit-learn inspects the constructor at every clone and look at tags, a tenth of the time of
many tests.
"""

from __future__ import annotations

from functools import cache
from typing import Any


def pytest_sessionstart() -> None:
    """Remember what scikit-learn finds, by class and constructor."""
    from sklearn.base import BaseEstimator

    read = BaseEstimator._get_param_names.__func__

    @cache
    def names(cls: type[Any], constructor: Any) -> tuple[str, ...]:
        return tuple(read(cls))

    def remembered(cls: type[Any]) -> list[str]:
        return list(names(cls, cls.__init__))

    BaseEstimator._get_param_names = classmethod(remembered)
