"""Estimators whose records have weights, for the checks of the law, which give none."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from erasable import Records

_SIZES = (0.0, 1.0, 0.25, 3.0, 1.7, 1e-9, 40.0)


def weights_of(ids: Any) -> Any:
    """Weights that are functions of the ids: none, whole, broken, tiny, and one that is large."""
    return np.array([_SIZES[zlib.crc32(str(each).encode()) % len(_SIZES)] for each in ids.tolist()])


class Weighing:
    """Gives every record that comes without a weight the weight of its id."""

    def _read_records(self, *given: Any) -> Records:
        return _weighed(super()._read_records(*given))  # type: ignore[misc]

    def _attach_to(self, records: Any, vouched: bool = False) -> None:
        if isinstance(records, tuple):
            X, ids, *rest = records
            records = Records(X, ids=ids, groups=rest[0] if rest else None)
        super()._attach_to(_weighed(records), vouched)  # type: ignore[misc]

    def add(self, X: Any, y: Any = None, *, ids: Any, **told: Any) -> Any:
        told = {"sample_weight": weights_of(np.asarray(ids)), **told}
        return super().add(X, y, ids=ids, **told)  # type: ignore[misc]

    def replace(self, delete: Any, X: Any, y: Any = None, *, ids: Any, **told: Any) -> Any:
        told = {"sample_weight": weights_of(np.asarray(ids)), **told}
        return super().replace(delete, X, y, ids=ids, **told)  # type: ignore[misc]


class Weighed(Records):
    """Records that give others that come to them the weights of their ids."""

    def add(self, X: Any, y: Any = None, *, ids: Any, **told: Any) -> Any:
        return super().add(X, y, ids=ids, sample_weight=weights_of(np.asarray(ids)), **told)


def _weighed(records: Records) -> Records:
    if records.weights is None:
        records.weights = weights_of(records.ids)
        if type(records) is Records:
            records.__class__ = Weighed
    return records
