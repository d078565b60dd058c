"""Fitted attributes that are those of the estimator of scikit-learn that a model is exported to."""

from __future__ import annotations

from typing import Any

from erasable.core.errors import ExportError

__all__ = ["Exported"]


class Exported:
    """An attribute that is read from ``to_sklearn()``, made anew at each access.

    So it is never out of date, and nothing of it is kept. A model without such an estimator, as one
    of a class of the user's, has no such attribute.

    Examples
    --------
    >>> from erasable.tree import DecisionTreeRegressor
    >>> model = DecisionTreeRegressor().fit([[1.0], [2.0], [9.0]], [1.0, 1.0, 3.0])
    >>> model.tree_.node_count
    3
    >>> model.delete([2]).action, model.tree_.node_count
    ('refit', 1)
    """

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type[Any] | None = None) -> Any:
        if model is None:
            return self
        try:
            return getattr(model.to_sklearn(), self._name)
        except ExportError as error:
            raise AttributeError(str(error)) from None
