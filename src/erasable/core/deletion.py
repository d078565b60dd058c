"""Results of changes of records: the `Outcome` of an estimator, and the reports that users get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from numpy.typing import NDArray

from erasable.core.display import facts

__all__ = ["Action", "Addition", "Correction", "Deletion", "Outcome", "Replacement", "Report"]

Action = Literal["none", "updated", "resumed", "refit"]
_NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(slots=True)
class Outcome:
    """The result of an estimator's `_update`.

    Attributes
    ----------
    action : {"none", "updated", "resumed", "refit"}
    rows_touched : int
        Rows of records that were read, besides those deleted.
    counts : dict of str to int
        Other counts of the estimator: records examined, iterations run again.

    Examples
    --------
    >>> Outcome("resumed", rows_touched=40, counts={"iterations": 3}).action
    'resumed'
    """

    action: Action = "updated"
    rows_touched: int = 0
    counts: Mapping[str, int] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """Report of a change of the records of a model; base of `Deletion` and its like.

    Attributes
    ----------
    ids : ndarray of shape (n_concerned,), int64, uint64 or object
        Ids of the records concerned.
    exactness : {"bitwise", "converged", "approximate"}
        How the model now compares with one fitted on its records.
    action : {"none", "updated", "resumed", "refit"}
        Whether nothing was to be done, the model was updated in place, learning was resumed from
        some point, or everything was learned again.
    counts : dict of str to int
        Counts of the estimator.
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

    _done: ClassVar[str] = "changed"

    ids: NDArray[Any]
    exactness: str
    action: Action
    counts: Mapping[str, int]
    rows_touched: int
    digest_before: str | None
    digest_after: str | None
    seconds: float

    def __str__(self) -> str:
        """Return one line; counts of 0 are left out."""
        records = "record" if self.ids.size == 1 else "records"
        rows = "row" if self.rows_touched == 1 else "rows"
        parts = [
            f"{self._done} {self.ids.size} {records} ({self.exactness}): {self.action}",
            f"{self.rows_touched} {rows} touched",
            *(f"{name} {count}" for name, count in self.counts.items() if count),
            _duration(self.seconds),
        ]
        if self.digest_before is not None and self.digest_after is not None:
            parts.append(f"{_short(self.digest_before)} -> {_short(self.digest_after)}")
        return ", ".join(parts)

    def _repr_html_(self) -> str:
        counts = {name: count for name, count in self.counts.items() if count}
        return facts(
            f"{self._done} {self.ids.size:,} {'record' if self.ids.size == 1 else 'records'}",
            {
                "exactness": self.exactness,
                "action": self.action,
                "rows_touched": self.rows_touched,
                **counts,
                "time": _duration(self.seconds),
                "digest_before": self.digest_before,
                "digest_after": self.digest_after,
            },
        )


class Deletion(Report):
    """Report of a deletion; `ids` are those of the deleted records, in row order.

    See `erasable.core.deletion.Report` for its attributes.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> MinMaxScaler().fit([[1.0], [2.0], [3.0]]).delete([1]).action
    'updated'
    """

    __slots__ = ()
    _done: ClassVar[str] = "deleted"


class Addition(Report):
    """Report of an addition; `ids` are those of the new records, in the order given.

    See `erasable.core.deletion.Report` for its attributes.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> MinMaxScaler().fit([[1.0], [2.0]]).add([[3.0]], ids=[2]).ids
    array([2])
    """

    __slots__ = ()
    _done: ClassVar[str] = "added"


class Correction(Report):
    """Report of a correction; `ids` are those of the records whose values have changed.

    See `erasable.core.deletion.Report` for its attributes.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> MinMaxScaler().fit([[1.0], [2.0]]).correct([1], [[2.0]]).action
    'none'
    """

    __slots__ = ()
    _done: ClassVar[str] = "corrected"


class Replacement(Report):
    """Report of deleting and adding together; `ids` are those deleted, then those added.

    See `erasable.core.deletion.Report` for its attributes.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> MinMaxScaler().fit([[1.0], [2.0]]).replace([0], [[3.0]], ids=[2]).ids
    array([0, 2])
    """

    __slots__ = ()
    _done: ClassVar[str] = "replaced"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds:.2f} s"


def _short(digest: str) -> str:
    return digest.rpartition(":")[2][:12]
