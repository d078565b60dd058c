"""A model without some of its records, for as long as it is asked, and whole again."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

from erasable.core.arrays import Ints
from erasable.core.errors import TooFewRecordsError
from erasable.core.estimator import Erasable
from erasable.core.snapshot import OpaqueError, Snapshot

__all__ = ["each_without"]


def each_without(model: Erasable, parts: Iterable[Ints]) -> Iterator[Erasable]:
    """Yield a model without some records, for each part of them; it is whole again in between.

    Parameters
    ----------
    model : Erasable
        Fitted. No other code may use it meanwhile; what is yielded is valid until the next.
    parts : iterable of ndarray of int64
        Positions of live records.

    Yields
    ------
    Erasable
        Mostly `model` itself, and a copy of it where it cannot be put back.

    Raises
    ------
    TooFewRecordsError
        What would be left cannot be learned from.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.preprocessing import MinMaxScaler
    >>> model = MinMaxScaler().fit([[1.0], [2.0], [5.0], [7.0]])
    >>> parts = [np.array([3]), np.array([0, 1])]
    >>> [without.data_max_.tolist() for without in each_without(model, parts)]
    [[5.0], [7.0]]
    >>> model.data_max_, len(model.ids_)
    (array([7.]), 4)
    """
    held = model._attached()
    model._make_ready()
    try:
        snapshot = Snapshot(model, held.records)
    except OpaqueError:
        snapshot = None
    for rows in parts:
        _refuse(model, rows)
        if snapshot is None:
            copied = copy.deepcopy(model)
            copied.delete(held.records.ids[rows].tolist(), digest=False)
            yield copied
            continue
        # As `Erasable.delete` does it, but that no record is released: all of them come back.
        held.exclude(rows)
        model._delete_rows(rows)
        model._info.settle(rows, None)
        yield model
        snapshot.restore()


def _refuse(model: Erasable, rows: Ints) -> None:
    left = model._attached().n_live - rows.size
    minimum = model._minimum_records()
    if left < minimum:
        raise TooFewRecordsError(
            f"leaving out {rows.size} records would leave {left}; {type(model).__name__} needs at "
            f"least {minimum}; fit on more records, or in smaller groups"
        )
    model._check_deletion(rows)
    model._prepare_deletion(rows)
