"""Records of audits: any table that an estimator takes, with targets and ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack

from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.core.frames import as_frame
from erasable.core.ids import shorten

__all__ = ["Sample", "apart", "is_text"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Records, the targets of each, and their ids."""

    X: Any  # as an estimator takes them
    y: NDArray[Any]
    ids: NDArray[Any]
    name: str  # for error messages

    @classmethod
    def read(cls, given: Any, name: str) -> Sample:
        """Read ``(X, y)`` or ``(X, y, ids)``; anything else is refused."""
        if isinstance(given, Sample):
            return given
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) not in (2, 3):
            raise InvalidInputError(f"{name} is {shorten(given)}; expected (X, y), or (X, y, ids)")
        X, y = given[0], np.asarray(given[1])
        frame = as_frame(X)
        if frame is None and not issparse(X) and not is_text(X):
            X = np.asarray(X)
            if X.ndim == 0:
                raise InvalidDataError(
                    f"{name} has the records {shorten(X.item())}; expected a table"
                )
        n = _length(X)
        ids = np.arange(n) if len(given) == 2 else _as_ids(given[2])
        if n == 0:
            raise InvalidDataError(f"{name} has no records; expected one at least")
        for what, values in (("targets", y), ("ids", ids)):
            if values.shape != (n,):
                raise InvalidDataError(
                    f"{name} has {n} records and {what} of shape {values.shape}; expected one each"
                )
        return cls(X, y, ids, name)

    def __len__(self) -> int:
        """Return how many records."""
        return len(self.y)

    def take(self, rows: Any) -> Sample:
        """Return some of the records."""
        rows = np.asarray(rows, dtype=np.int64)
        frame = None if isinstance(self.X, np.ndarray) else as_frame(self.X)
        if frame is not None:
            X = frame[rows.tolist()].to_native()
        elif is_text(self.X):
            X = [self.X[row] for row in rows.tolist()]
        else:
            X = (self.X.tocsr() if issparse(self.X) else self.X)[rows]
        return Sample(X, self.y[rows], self.ids[rows], self.name)

    def join(self, other: Sample) -> Sample:
        """Return these records and those of another sample after them."""
        mine, theirs = as_frame(self.X), as_frame(other.X)
        kinds = {_kind(self.X), _kind(other.X)}
        if len(kinds) > 1:
            raise InvalidDataError(
                f"{self.name} is a {_kind(self.X)} and {other.name} a {_kind(other.X)}; expected "
                "the same"
            )
        if mine is not None:
            X = nw.maybe_reset_index(nw.concat([mine, theirs])).to_native()
        elif is_text(self.X):
            X = [*self.X, *other.X]
        elif issparse(self.X):
            X = vstack([self.X, other.X]).tocsr()
        elif self.X.shape[1:] != other.X.shape[1:]:
            raise InvalidDataError(
                f"{self.name} has records of shape {self.X.shape[1:]} and {other.name} of "
                f"{other.X.shape[1:]}; expected the same features"
            )
        else:
            X = np.concatenate([self.X, other.X])
        ids = np.concatenate([self.ids.astype(object), other.ids.astype(object)])
        return Sample(X, np.concatenate([self.y, other.y]), ids, self.name)

    def contents(self) -> list[Any]:
        """Return a key for each record, equal for records of the same values and target."""
        frame = as_frame(self.X)
        if frame is not None:
            rows: Any = [_without_nan(row) for row in frame.rows()]
        elif is_text(self.X):
            rows = self.X
        elif issparse(self.X):
            rows = [(row.indices.tobytes(), row.data.tobytes()) for row in self.X.tocsr()]
        elif self.X.dtype == object:  # whose bytes are addresses
            rows = [_without_nan(row.ravel().tolist()) for row in self.X]
        else:
            rows = [row.tobytes() for row in np.ascontiguousarray(self.X)]
        return list(zip(rows, self.y.tolist(), strict=True))


def apart(sample: Sample, others: Sample) -> tuple[Sample, int]:
    """Leave out records that are equal to one of `others`; also return how many.

    A few equal records are natural in a table of few columns; more than a tenth are refused.
    """
    known = set(others.contents())
    same = np.array([each in known for each in sample.contents()])
    n_equal = int(same.sum())
    if n_equal > 0.1 * len(sample):
        raise InvalidInputError(
            f"{n_equal} of the {len(sample)} records of {sample.name} are records of "
            f"{others.name}, too; expected records that are not among those"
        )
    return (sample.take(np.flatnonzero(~same)) if n_equal else sample), n_equal


def is_text(X: Any) -> bool:
    """Tell whether records are a list of texts."""
    return isinstance(X, list) and bool(X) and isinstance(X[0], str)


def _as_ids(given: Any) -> NDArray[Any]:
    ids = np.asarray(given)
    if ids.dtype.kind == "U" and not all(isinstance(each, str) for each in given):
        return np.array(list(given), dtype=object)  # numbers stay numbers
    return ids


def _without_nan(row: Any) -> tuple[Any, ...]:
    """Return values with None for NaN, which equals nothing."""
    return tuple(None if isinstance(each, float) and each != each else each for each in row)


def _length(X: Any) -> int:
    return len(X) if isinstance(X, list) else int(X.shape[0])


def _kind(X: Any) -> str:
    if as_frame(X) is not None:
        return "frame"
    if is_text(X):
        return "list of texts"
    return "sparse matrix" if issparse(X) else "array"
