"""Models that keep records by their nature: to hand one out is to hand these out, too.

An estimator of erasable is written without its records, unless it learns nothing else: nearest
neighbours and kernel regression. One of scikit-learn may hold them in what it has learned: nearest
neighbours and Gaussian processes hold all, support vector machines some.
Whether one does is seen by what it holds, not by its name: a value for each record, or a table
whose rows are records, as they came or as the steps of a pipeline before it have made them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.workspace.models.single_values import single_values

_FITTED = "fitted", "records"  # where a `Refit` tells what was learned, and who learns nothing


def keeps_records(fitted: Any, read: Callable[[], pa.Table | list[str]]) -> bool:
    """Tell whether a model holds records, or a value for each.

    `read` returns the features or documents of the training; it is called only where needed.

    >>> import pyarrow as pa
    >>> from sklearn.svm import SVC
    >>> from sklearn.linear_model import LogisticRegression
    >>> from erasable import Refit
    >>> X = pa.table({"age": [31, 35, 62, 67, 70, 20], "dose": [1.0, 1.5, 2.5, 3.0, 1.0, 1.0]})
    >>> y = [0, 0, 1, 1, 1, 0]
    >>> keeps_records(Refit(SVC()).fit(X, y), lambda: X)
    True
    >>> keeps_records(Refit(LogisticRegression()).fit(X, y), lambda: X)
    False
    """
    state = fitted.state()
    learned = list(_learned(state))
    if any(shape[:1] == (state["n_records"],) for shape, _ in learned):
        return True
    tables = [rows for _, rows in learned if rows]
    if not tables:
        return False
    own: set[bytes] = set().union(*map(_rows_of, _seen(fitted, read())))
    return any(own.issuperset(rows) for rows in tables)


def fields_of_one_record(fitted: Any, read: Callable[[], pa.Table | list[str]]) -> list[str]:
    """Name the fields of a model with a value that only one record has, sorted.

    See `single_values`.
    """
    return single_values(fitted.state(), lambda: _seen(fitted, read()))


def _learned(tree: Any, *, inside: bool = False) -> Iterator[tuple[tuple[int, ...], list[bytes]]]:
    """Yield the shape of each array that was learned, and the rows of those that are tables."""
    if isinstance(tree, np.ndarray) and inside:
        yield tree.shape, _rows(tree)
    elif isinstance(tree, dict) and tree.get("is") == "sparse" and inside:
        yield tuple(tree["shape"]), _sparse_rows(tree["data"], tree["indices"], tree["indptr"])
    elif isinstance(tree, dict):
        for name, part in tree.items():
            yield from _learned(part, inside=inside or name in _FITTED)


def _seen(model: Any, X: Any) -> Iterator[Any]:
    """Yield what the steps of a model have seen of the records, as far as it can be told."""
    yield X
    if hasattr(model, "estimator_"):
        X, model = _matrix(X), model.estimator_
    for part, columns in _members(model):
        if columns is None:
            yield from islice(_seen(part, X), 1, None)
        else:
            yield from _seen(part, _matrix(X)[:, columns])
    for _, part in getattr(model, "steps", ()):
        yield from islice(_seen(part, X), 1, None)
        if not hasattr(part, "transform"):
            continue
        try:
            X = part.transform(X)
        except (TypeError, ValueError):  # it was handed something else of them
            return
        yield X


def _members(model: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the members of an ensemble, and the columns that each looks at; None for all."""
    parts = getattr(model, "estimators_", [])
    parts = parts.ravel().tolist() if isinstance(parts, np.ndarray) else list(parts)
    columns = getattr(model, "estimators_features_", [None] * len(parts))
    yield from zip(parts, columns, strict=True)


def _matrix(X: Any) -> Any:
    """Return a table of numbers as one array, and anything else as it is."""
    if not hasattr(X, "num_rows"):
        return X
    try:
        return np.column_stack([np.asarray(column, np.float64) for column in X.columns])
    except (TypeError, ValueError):  # text
        return X


def _rows_of(X: Any) -> list[bytes]:
    """Return the rows of numbers, each as bytes; none where it is something else."""
    if hasattr(X, "tocsr"):
        X = X.tocsr()
        X.sort_indices()
        return _sparse_rows(X.data, X.indices, X.indptr)
    try:
        return _rows(np.asarray(_matrix(X), np.float64))
    except (TypeError, ValueError):  # text
        return []


def _rows(table: NDArray[Any]) -> list[bytes]:
    if table.ndim != 2 or not table.size or table.dtype.kind not in "fiub":
        return []
    return [row.tobytes() for row in np.ascontiguousarray(table, np.float64) + 0.0]  # no -0.0


def _sparse_rows(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any]) -> list[bytes]:
    values, places = np.asarray(data, np.float64), np.asarray(indices, np.int64)
    ends = zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)
    return [places[start:end].tobytes() + values[start:end].tobytes() for start, end in ends]
