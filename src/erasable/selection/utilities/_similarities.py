"""Similarities between records of a class, dense or of the nearest alone; memory is checked first.

Rows are records and columns are targets, so that the gain of a record reads contiguous memory. A
matrix given in this order, of one class, is not copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.metrics import pairwise

from erasable.core.arrays import Ints, Ints32
from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.selection._memory import check_memory
from erasable.selection.utilities._neighbors import Neighbors

_NO_ROWS: Any = {
    np.dtype(kind): (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, kind))
    for kind in (np.float32, np.float64)
}


@dataclass(frozen=True)
class ClassBlock:
    """Similarities of the records of one class to its targets."""

    records: Ints  # the numbers of these records
    n_targets: int
    dense: NDArray[Any]  # (n_records, n_targets); (0, n_targets) where it is sparse
    starts: Ints  # of compressed rows; empty where it is dense
    targets: Ints32
    values: NDArray[Any]

    @classmethod
    def of_dense(cls, records: Ints, dense: NDArray[Any]) -> ClassBlock:
        return cls(records, dense.shape[1], dense, *_NO_ROWS[dense.dtype])

    @classmethod
    def of_sparse(cls, records: Ints, rows: Any) -> ClassBlock:
        values = rows.data
        return cls(
            records, rows.shape[1], np.zeros((0, rows.shape[1]), dtype=values.dtype),
            rows.indptr.astype(np.int64), rows.indices.astype(np.int32, copy=False), values,
        )  # fmt: skip


def places_of(blocks: list[ClassBlock]) -> tuple[Ints, Ints]:
    """Return the number of each record's block, and its place there."""
    n = sum(len(block.records) for block in blocks)
    numbers, places = np.empty((2, n), dtype=np.int64)
    for number, block in enumerate(blocks):
        numbers[block.records] = number
        places[block.records] = np.arange(len(block.records))
    return numbers, places


def given_blocks(similarity: Any, classes: Ints | None, targets: Ints | None) -> list[ClassBlock]:
    """Split a matrix of shape (n_records, n_targets) into blocks by class.

    `classes` is None for one class; `targets` has the classes of the targets, by default the
    records'. Negative similarities and NaN are refused.
    """
    n_records, n_targets = similarity.shape
    values = similarity.data if scipy.sparse.issparse(similarity) else similarity
    _check_values(values)
    if classes is None:
        records = np.arange(n_records, dtype=np.int64)
        return [_block(records, similarity)]
    if targets is None:
        if n_targets != n_records:
            raise InvalidInputError(
                f"the similarities have shape {similarity.shape} and there are classes; expected "
                "one column for each record, because targets have classes, too; pass a square one"
            )
        targets = classes
    blocks = []
    for label in range(int(classes.max()) + 1):
        records = np.flatnonzero(classes == label)
        of_class = np.flatnonzero(targets == label)
        blocks.append(_block(records, similarity[records][:, of_class]))
    return blocks


def _block(records: Ints, rows: Any) -> ClassBlock:
    if scipy.sparse.issparse(rows):
        ordered = rows.tocsr()
        if not ordered.has_canonical_format:
            ordered = ordered.copy()  # what was given stays as it is
            ordered.sum_duplicates()
        return ClassBlock.of_sparse(records, ordered)
    return ClassBlock.of_dense(records, np.ascontiguousarray(rows))


def _check_values(values: Any) -> None:
    lowest = values.min() if values.size else 0.0
    if np.isnan(lowest) or np.isinf(values.max() if values.size else 0.0):
        raise InvalidDataError(
            "the similarities hold NaN or infinity; expected numbers of 0 or more; leave those "
            "records out, or make the similarities anew"
        )
    if lowest < 0:
        raise InvalidDataError(
            f"the similarities hold {int((values < 0).sum())} numbers below 0; expected 0 or more, "
            "because a record must not harm a target; add a constant, or cut them off at 0"
        )


def made_blocks(
    X: NDArray[Any], classes: Ints | None, metric: str, neighbors: Neighbors | None
) -> list[ClassBlock]:
    """Compute similarities from features, class by class, of all pairs or of the nearest alone."""
    n = len(X)
    codes = np.zeros(n, dtype=np.int64) if classes is None else classes
    counts = np.bincount(codes).astype(float)
    kind = np.float32 if X.dtype == np.float32 else np.float64
    if neighbors is None:
        check_memory(
            float((counts**2).sum()) * np.dtype(kind).itemsize,
            "the similarities of all pairs of a class",
            "pass n_neighbors=64 to NearestNeighbor, which keeps the nearest alone, or float32",
        )
    else:
        neighbors.check_memory(n)
    made = []
    for label in range(len(counts)):
        records = np.flatnonzero(codes == label)
        if neighbors is None or neighbors.has_all(len(records)):
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
                made.append((records, _DENSE[metric](X[records])))
        else:
            distances = neighbors.distances(X[records])
            if metric == "cosine":
                distances.data = np.clip(1 - distances.data / 2, 0, 1)
            made.append((records, distances.T.tocsr().astype(kind, copy=False)))
    if metric in _DISTANCES:
        # The largest distance of all is similarity 0; one for all classes, which are compared.
        found = [_values(rows).max() for _, rows in made if _values(rows).size]
        largest = np.max(found, initial=0)
        if not np.isfinite(largest):
            raise InvalidDataError(
                "the distances of records are beyond what float64 holds; expected smaller "
                "magnitudes; divide X by a constant"
            )
        for _, rows in made:
            np.subtract(largest, _values(rows), out=_values(rows))
    return [_block(records, rows) for records, rows in made]


def _values(rows: Any) -> Any:
    return rows.data if scipy.sparse.issparse(rows) else rows


def _cosine(X: NDArray[Any]) -> NDArray[Any]:
    similarity: NDArray[Any] = pairwise.cosine_similarity(X)
    similarity += 1
    similarity /= 2
    return np.clip(similarity, 0, 1, out=similarity)


def _squared(X: NDArray[Any]) -> NDArray[Any]:
    distances: NDArray[Any] = pairwise.euclidean_distances(X, squared=True)
    return distances


_DISTANCES = ("euclidean", "sqeuclidean")
_DENSE = {"euclidean": pairwise.euclidean_distances, "sqeuclidean": _squared, "cosine": _cosine}


def check_metric(metric: Any) -> None:
    """Refuse an unknown metric."""
    known = [*_DENSE, "precomputed"]
    if not isinstance(metric, str) or metric not in known:
        raise InvalidParameterError(
            f"metric={shorten(metric)}; expected one of {', '.join(known)}; compute other "
            "similarities yourself, and pass them as X with metric='precomputed'"
        )
