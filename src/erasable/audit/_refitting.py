"""Learn again, with the same tape, from the records that are left."""

from __future__ import annotations

from typing import TypeVar

from erasable.core.errors import InvalidInputError
from erasable.core.estimator import Erasable

E = TypeVar("E", bound=Erasable)


def refit(model: E) -> E:
    """Fit a new model on what another still holds.

    Parameters
    ----------
    model : fitted estimator of erasable
        Not changed.

    Returns
    -------
    estimator of the same class
        With the same parameters and seeds, fitted on a copy of the live records. The law says
        that it equals `model`.

    Raises
    ------
    InvalidInputError
        Not an estimator of erasable.
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    DetachedError
        The model was loaded without its records.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> model = MinMaxScaler().fit([[1.0], [2.0], [3.0]])
    >>> _ = model.delete([2])
    >>> refit(model).digest() == model.digest()
    True
    """
    refuse_other(model)
    records = model._attached().copy_records()
    return model._seeded_clone().fit(records)


def refuse_other(model: object) -> None:
    """Refuse what is no estimator of erasable.

    Raises
    ------
    InvalidInputError
        `model` is something else.
    """
    if not isinstance(model, Erasable):
        raise InvalidInputError(
            f"the model is a {type(model).__name__}; expected an estimator of erasable"
        )
