"""Leave-one-out influence of records on what their own model says of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.audit._data import Sample
from erasable.audit._signals import signals_of
from erasable.core.arrays import Floats
from erasable.core.errors import InvalidInputError
from erasable.core.estimator import Erasable
from erasable.core.leave_out import each_without
from erasable.core.rows import Rows

__all__ = ["Influence", "leave_one_out_influence"]


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """Leave-one-out influence of records; returned by `leave_one_out_influence`.

    Attributes
    ----------
    ids : ndarray of shape (n_records,)
    changes : ndarray of shape (n_records,), float64
        By how much the log odds of a record's target fall when it is deleted; for a regressor, by
        how much the squared error rises.

    Examples
    --------
    >>> Influence(np.array(["ann", "ben"]), np.array([0.1, 2.0])).most(1)
    [('ben', 2.0)]
    """

    ids: NDArray[Any]
    changes: Floats

    def most(self, n: int = 10) -> list[tuple[Any, float]]:
        """Return the records that change most, with their changes."""
        order = np.argsort(-self.changes, kind="stable")[:n]
        return list(zip(self.ids[order].tolist(), self.changes[order].tolist(), strict=True))


def leave_one_out_influence(model: Erasable, ids: Iterable[Any] | None = None) -> Influence:
    """Delete each record, see how much less sure the model is of it, and put it back.

    It finds records that a model has memorised, and needs no other data. It is no membership
    attack: nobody outside has the model without the record and with all others, so it overstates
    what an attacker can learn.

    Parameters
    ----------
    model : fitted estimator of erasable
        With its records. It is the same afterwards, and may not be used meanwhile.
    ids : iterable of int or str, default=None
        Which records; by default all.

    Raises
    ------
    InvalidInputError
        The model does not delete exactly, learns without targets, or has its records in files.
    UnknownIdError
        The model has no such record.
    TooFewRecordsError
        What is left without a record cannot be learned from.

    Examples
    --------
    >>> from erasable.neighbors import KNeighborsClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [9.0], [10.0], [1.4]], [0, 0, 0, 1, 1, 1]
    >>> model = KNeighborsClassifier(n_neighbors=1).fit(X, y)
    >>> [id for id, change in leave_one_out_influence(model).most(3)]
    [1, 2, 5]
    """
    if not isinstance(model, Erasable) or model.exactness == "approximate":
        raise InvalidInputError(
            f"the model is a {type(model).__name__}; expected an estimator of erasable that "
            "deletes exactly"
        )
    held = model._attached()
    held.records.refuse_stored()
    rows = held.live_rows() if ids is None else held.rows(ids)
    y = held.records.y
    if y is None:
        raise InvalidInputError(
            f"a {type(model).__name__} learns without targets; expected a classifier or regressor"
        )
    samples = [
        Sample(Rows(held.records.matrix[[row]]), y[[row]], held.records.ids[[row]], "")
        for row in rows.tolist()
    ]
    before = [signals_of(model, each).logit[0] for each in samples]
    after = [
        signals_of(without, each, knows_all=False).logit[0]
        for each, without in zip(samples, each_without(model, rows[:, np.newaxis]), strict=True)
    ]
    return Influence(held.records.ids[rows], np.subtract(before, after))
