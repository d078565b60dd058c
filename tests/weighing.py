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


def _weighed(records: Records) -> Records:
    if records.weights is None:
        records.weights = weights_of(records.ids)
    return records
