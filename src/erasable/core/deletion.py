"""What a deletion did: `Outcome` is what an estimator reports, `Deletion` what the user gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from numpy.typing import NDArray

__all__ = ["Action", "Deletion", "Outcome"]

Action = Literal["none", "updated", "resumed", "refit"]
_NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(slots=True)
class Outcome:
    """What `_delete_rows` of an estimator did.

    Attributes
    ----------
    action : {"none", "updated", "resumed", "refit"}
    rows_touched : int
        Rows of records that were read, beside those deleted.
    counts : dict of str to int
        Whatever else is worth counting: records examined, iterations run again.

    Examples
    --------
    >>> Outcome("resumed", rows_touched=40, counts={"iterations": 3}).action
    'resumed'
    """

    action: Action = "updated"
    rows_touched: int = 0
    counts: Mapping[str, int] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True, eq=False)
class Deletion:
    """What a deletion did.

    Attributes
    ----------
    ids : ndarray of shape (n_deleted,), int64, uint64 or object
        Ids of the deleted records, in row order.
    exactness : {"bitwise", "converged", "approximate"}
        How the model now compares with one that never saw them.
    action : {"none", "updated", "resumed", "refit"}
        Whether nothing was to be done, the model was updated in place, learning was resumed from
        some point, or everything was learned again.
    counts : dict of str to int
        What the estimator counted.
    rows_touched : int
        Rows of other records that were read.
    digest_before, digest_after : str or None
        Digests of the model, None when they were not asked for.
    seconds : float
        Wall time of the call.

    Examples
    --------
    >>> import numpy as np
    >>> print(Deletion(np.array([17]), "bitwise", "updated", {}, 0, None, None, 0.00012))
    deleted 1 record (bitwise): updated, 0 rows touched, 0.12 ms
    """

    ids: NDArray[Any]
    exactness: str
    action: Action
    counts: Mapping[str, int]
    rows_touched: int
    digest_before: str | None
    digest_after: str | None
    seconds: float

    def __str__(self) -> str:
        """Say it in one line; counts of 0 are left out."""
        records = "record" if self.ids.size == 1 else "records"
        rows = "row" if self.rows_touched == 1 else "rows"
        parts = [
            f"deleted {self.ids.size} {records} ({self.exactness}): {self.action}",
            f"{self.rows_touched} {rows} touched",
            *(f"{name} {count}" for name, count in self.counts.items() if count),
            _duration(self.seconds),
        ]
        if self.digest_before is not None and self.digest_after is not None:
            parts.append(f"{_short(self.digest_before)} -> {_short(self.digest_after)}")
        return ", ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds:.2f} s"


def _short(digest: str) -> str:
    return digest.rpartition(":")[2][:12]
