"""Detection of records inside models: their files contain these records.

An estimator of erasable is written without its records, unless it is made of them: nearest
neighbours and kernel regression. One of scikit-learn may hold them in its learned attributes:
nearest neighbours and Gaussian processes hold all, support vector machines some. A model is judged
by its contents, not by its name: a value for each record, or a table whose rows are records, as
they came or as the steps of a pipeline before it have made them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.core.exported import Exported

_NOT_LEARNED = frozenset({
    "algorithm_version", "class", "feature_names", "is", "kind", "name", "names", "of", "params",
    "record_set", "seed", "scikit_learn", "text_columns",
})  # fmt: skip
_INSIDE = frozenset({
    "args", "array", "attributes", "fields", "fitted", "items", "keys", "members", "parts", "state",
    "values",
})  # fmt: skip
_WORD = re.compile(r"\w+")


def single_values(state: dict[str, Any], seen: Callable[[], Iterator[Any]]) -> list[str]:
    """Return the fields of a state that hold a value of a single record, sorted.

    `state` is that of `Erasable.state`. `seen` returns the tables or documents that the model and
    its steps have seen.

    >>> import pyarrow as pa
    >>> from erasable.preprocessing import MinMaxScaler
    >>> X = pa.table({"age": [31.0, 31.0, 62.0], "dose": [1.0, 1.0, 1.0]})
    >>> single_values(MinMaxScaler().fit(X).state(), lambda: iter([X]))
    ['data_max']
    """
    fields = list(_fields(state, ""))
    found = {name for name, value in fields if _has_lone_leaf(name, value)}
    for X in seen():
        if isinstance(X, list):
            words = _Words(X)
            found |= {name for name, value in fields if any(map(words.single, _texts(value)))}
            continue
        columns, texts = _single_of_columns(X)
        every = np.unique(np.concatenate([*columns, np.empty(0)]))
        every = every[every != np.floor(every)]  # a whole number may be a count of anything
        found |= {
            name
            for name, value in fields
            if _has_number(name, value, columns, every) or not texts.isdisjoint(_texts(value))
        }
    return sorted(found)


def _fields(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield what was learned, with the names that lead to it."""
    if not isinstance(tree, dict):
        yield path, tree
        return
    for name, part in tree.items():
        if name in _NOT_LEARNED and not (path == "" and name == "name"):
            continue
        inner = path if name in _INSIDE or name.isdigit() else f"{path}.{name}".lstrip(".")
        yield from _fields(part, inner)


def _has_lone_leaf(name: str, value: Any) -> bool:
    """Tell whether a field counts the records in the nodes of a tree, and some node has one."""
    last = name.rpartition(".")[2]
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu":
        return False
    if last in ("n_node_samples", "count"):
        return bool((value == 1).any())
    if last == "leaves" and value.ndim == 2:  # counts of classes, or a count and sums
        return bool(((value[:, 0] == 1) | (value.sum(axis=1) == 1)).any())
    return False


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        yield from (each for each in value.ravel().tolist() if isinstance(each, str))
    elif isinstance(value, list):
        yield from (each for each in value if isinstance(each, str))


def _has_number(name: str, value: Any, columns: list[NDArray[Any]], every: NDArray[Any]) -> bool:
    """Tell whether there is a number of a single record: in its column, or a fraction anywhere."""
    if name.endswith("class_count_"):
        return False
    if not (isinstance(value, np.ndarray) and value.dtype.kind == "f") or not columns:
        return False
    if np.isin(value, every).any():
        return True
    if value.ndim == 0 or value.shape[-1] != len(columns):
        return False
    return any(
        bool(np.isin(value[..., place], single[single != 0]).any())
        for place, single in enumerate(columns)
    )


def _single_of_columns(X: Any) -> tuple[list[NDArray[Any]], set[str]]:
    """Return, of each column, the numbers that one row alone has; and such texts of all."""
    if hasattr(X, "tocsc"):
        X = X.toarray()
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f":
        found = [np.unique(column, return_counts=True) for column in X.T]
        once = [values[counts == 1] for values, counts in found]
        return [values[~np.isnan(values)] for values in once], set()
    if hasattr(X, "columns") and hasattr(X, "num_rows"):
        listed = [column.to_pylist() for column in X.columns]
    else:
        listed = list(np.asarray(X, dtype=object).T) if np.ndim(X) == 2 else []
    numbers: list[NDArray[Any]] = []
    texts: set[str] = set()
    for column in listed:
        once = [value for value, times in Counter(column).items() if times == 1]
        texts |= {value for value in once if isinstance(value, str)}
        own = [float(each) for each in once if isinstance(each, int | float | np.number)]
        numbers.append(np.array([each for each in own if each == each]))
    return numbers, texts


class _Words:
    """How many documents have a word, or words in a row."""

    def __init__(self, documents: list[str]) -> None:
        self._words = [_WORD.findall(str(document).lower()) for document in documents]
        self._whole = Counter(documents)
        self._counts: dict[int, Counter[tuple[str, ...]]] = {}

    def single(self, term: str) -> bool:
        """Tell whether one document alone has a term of a vocabulary."""
        if self._whole[term] == 1:
            return True
        words = tuple(_WORD.findall(term.lower()))
        if not words:
            return False
        if len(words) not in self._counts:
            self._counts[len(words)] = Counter(
                row for document in self._words for row in set(_ngrams(document, len(words)))
            )
        return self._counts[len(words)][words] == 1


def _ngrams(words: list[str], length: int) -> Iterator[tuple[str, ...]]:
    if length == 2:
        return pairwise(words)
    return (tuple(words[at : at + length]) for at in range(len(words) - length + 1))


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
    """Return the fields of a model with a value that only one record has, sorted."""
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
    if _kept(model, "estimator_") is not None and _kept(model, "estimators_") is None:
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


def _kept(model: Any, name: str) -> Any:
    """Return an attribute that a model keeps; None instead of one that it makes of its state."""
    is_made = isinstance(getattr(type(model), name, None), Exported)
    return None if is_made else getattr(model, name, None)


def _members(model: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the members of an ensemble, and the columns that each looks at; None for all."""
    parts = _kept(model, "estimators_")
    parts = [] if parts is None else parts
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
