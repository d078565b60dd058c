"""Data for the checks of the law: small, fixed, and of the kinds that break sums and ties.

Every data set has ids of its own kind, sometimes groups, and names of the records to delete: an
extreme of each column, a copy of another row, and a few in the middle. `suited` adapts them to an
estimator: classes, counts, gaps, categories, documents. The adapted record depends on the record
alone, so that removing records and adapting commute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import of_objects
from erasable.core.values import Accepts

Array = NDArray[Any]


@dataclass(frozen=True, repr=False)
class DataSet:
    """Records, and the positions of those that will be deleted.

    Attributes
    ----------
    name : str
        What is special about it.
    X : ndarray of shape (n, d), or (n,) of documents
        Values; this and the other arrays are kept as views that cannot be written.
    y : ndarray of shape (n,), float64
        A target; `suited` turns it into classes for a classifier.
    ids : ndarray of shape (n,)
        Record ids, all different.
    groups : ndarray of shape (n,) or None
        Which records leave together.
    doomed : ndarray of shape (m,), int64
        Row positions of the records that checks delete, in that order.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.preprocessing import MinMaxScaler
    >>> from erasable.utils.estimator_checks import LAW_CHECKS, DataSet
    >>> rows = np.arange(20)
    >>> data = DataSet("squares", np.c_[rows**2, rows], rows / 2, 100 + rows, None, rows[-3:])
    >>> data
    DataSet('squares', 20 records)
    >>> LAW_CHECKS["check_batch_split"](MinMaxScaler(), [data])
    """

    name: str
    X: Array
    y: Array
    ids: Array
    groups: Array | None
    doomed: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Make the arrays read-only: a check must not change the data of the next."""
        for name in ("X", "y", "ids", "groups", "doomed"):
            array = getattr(self, name)
            if array is not None:
                view = np.asarray(array).view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    def __repr__(self) -> str:
        """Name it."""
        return f"DataSet({self.name!r}, {len(self)} records)"

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.ids)

    def take(self, rows: Array) -> DataSet:
        """Keep the rows at these positions, in this order; nothing is doomed in the result."""
        groups = None if self.groups is None else self.groups[rows]
        none = np.empty(0, dtype=np.int64)
        return DataSet(self.name, self.X[rows], self.y[rows], self.ids[rows], groups, none)

    def without(self, ids: Iterable[Any]) -> DataSet:
        """Leave out the records with these ids."""
        gone = set(_plain(ids))
        rows = [row for row, record in enumerate(self.ids.tolist()) if record not in gone]
        return self.take(np.array(rows, dtype=np.int64))

    @property
    def doomed_ids(self) -> Array:
        """Ids of the doomed records."""
        return self.ids[self.doomed]


def _plain(ids: Iterable[Any]) -> list[Any]:
    return np.asarray(ids).tolist() if not isinstance(ids, list) else ids


def _doomed(X: Array, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    extremes = [row for column in X.T for row in (np.argmax(column), np.argmin(column))]
    order = [int(row) for row in [*extremes, *rng.permutation(len(X))]]
    return np.array(list(dict.fromkeys(order))[:count], dtype=np.int64)


def _build(
    name: str, X: Array, rng: np.random.Generator, *, ids: str, groups: bool, count: int
) -> DataSet:
    n = len(X)
    numbers = rng.permutation(7 * n)[:n] - 3 * n
    named_ids = np.array([f"visit {number}é" for number in numbers], dtype=object)
    y = rng.integers(-40, 41, size=n) / 8.0
    for j in range(X.shape[1]):  # no product of matrices: its last bits depend on the machine
        y += (j + 1.0) * X[:, j].astype(np.float64)
    return DataSet(
        name=name,
        X=X,
        y=y,
        ids=numbers.astype(np.int64) if ids == "integers" else named_ids,
        groups=rng.integers(0, max(n // 3, 1), size=n) if groups else None,
        doomed=_doomed(X, rng, count),
    )


def _standard() -> tuple[DataSet, ...]:
    rng = np.random.default_rng(20190711)
    n = 41
    crowd = rng.normal(size=(n, 3))
    separated = crowd * 0.1 + rng.integers(-3, 4, size=(n, 1)) * np.array([8.0, -5.0, 3.0])
    skewed = np.exp(3.0 * rng.normal(size=(n, 3))) * np.array([1.0, -1.0, 1e-3])
    constant = np.column_stack([np.full(n, 3.7), rng.normal(size=n), np.zeros(n)])
    few = rng.normal(size=(17, 3))
    few[:6, 0], few[:2, 1:] = 0.0, 0.0
    duplicated = few[rng.permutation(np.arange(n) % 17)]
    duplicated = np.where(duplicated == 0, rng.choice([-0.0, 0.0], size=(n, 1)), duplicated)
    offset = 1.7e9 + rng.integers(0, 10**7, size=(n, 2)) / 8.0
    integers = rng.integers(-9, 10, size=(n, 4))
    large = rng.normal(size=(307, 5)) + 4.0 * rng.integers(0, 3, size=(307, 1))
    return (
        _build("separated", separated, rng, ids="integers", groups=False, count=7),
        _build("skewed", skewed, rng, ids="strings", groups=True, count=7),
        _build("constant columns", constant, rng, ids="integers", groups=True, count=7),
        _build("duplicated rows", duplicated, rng, ids="strings", groups=False, count=7),
        _build("timestamps", offset, rng, ids="integers", groups=False, count=7),
        _build("integers", integers, rng, ids="integers", groups=False, count=7),
        _build("tiny", crowd[:9], rng, ids="integers", groups=False, count=1),
        _build("large", large, rng, ids="integers", groups=True, count=12),
    )


STANDARD = _standard()
"""Every kind: the data sets of a whole run."""

FAST = tuple(data for data in STANDARD if data.name in ("separated", "duplicated rows"))
"""Two kinds: the data sets of a quick run."""


def _marked() -> tuple[DataSet, DataSet]:
    """Return two equal data sets of unmistakable values and ids, integer ids and string ids.

    Every value is an odd whole number of 25 bits, which a grid of 26 bits holds unchanged, and
    every id is 63 bits (or 32 letters) long, so that a trace of a record is no coincidence. The
    records to delete are the largest of the first column, one in the middle, and the smallest of
    the last.
    """
    rng = np.random.default_rng(1234567)
    n = 41
    X = (2.0 * rng.integers(2**22, 2**23, size=(n, 3)) + 1.0) * rng.choice([-1.0, 1.0], (n, 3))
    X[5, 0], X[23, 2] = 2.0**25 - 39.0, -(2.0**25) + 4_173.0
    y = 2.0 * rng.integers(2**22, 2**23, size=n) + 1.0
    numbers = rng.integers(2**61, 2**62, size=n, dtype=np.int64)
    letters = np.array([f"{number:016x}{number * 5 % 2**61:016x}" for number in numbers.tolist()])
    doomed = np.array([5, 17, 23], dtype=np.int64)
    integers = DataSet("marked", X, y, numbers, None, doomed)
    return integers, replace(integers, name="marked, string ids", ids=letters)


MARKED = _marked()
"""Records that can be recognised anywhere."""


_IN_WORDS = ("skewed", "duplicated rows", "tiny", "marked, string ids")
_WITH_GAPS = ("skewed", "integers", "large")


def suited(data_sets: Sequence[DataSet], estimator: Any) -> list[DataSet]:
    """Adapt data sets to the scikit-learn tags of an estimator, in the same order.

    These are three classes for a classifier, values that are not negative where it wants these,
    documents where it reads texts; in some data sets gaps where it takes NaN, and words where it
    takes categories.
    """
    tags, accepts = estimator.__sklearn_tags__(), Accepts.of(estimator)
    positive, coded = tags.input_tags.positive_only, tags.input_tags.categorical
    # A column transformer reads a table with words in it, but its parts may take none.
    takes_words = getattr(estimator, "_takes_words", accepts.objects and not positive)
    result = []
    for data in data_sets:
        if tags.classifier_tags is not None:
            ranks = np.argsort(np.argsort(data.y, kind="stable"), kind="stable")
            data = replace(data, y=ranks * 3 // len(data))
        if positive:
            sizes = np.abs(data.X)
            data = replace(data, X=np.floor(8.0 * sizes) % 5 if coded else sizes)
        if accepts.documents:
            texts = [" ".join(_words(row, few=False)) for row in data.X]
            data = replace(data, X=of_objects(texts))
        elif takes_words and data.name in _IN_WORDS:
            few = not data.name.startswith("marked")
            table = np.empty(data.X.shape, dtype=object)
            table[:] = [_words(row, few) for row in data.X]
            data = replace(data, X=table)
        elif tags.input_tags.allow_nan and data.name in _WITH_GAPS:
            gaps = np.floor(np.abs(data.X) * 8.0) % 5 == 3
            data = replace(data, X=np.where(gaps, np.nan, data.X))
        result.append(data)
    return result


def _words(row: NDArray[Any], few: bool) -> list[str]:
    numbers = [int(abs(float(value))) for value in row]
    return [f"{'abcdefgh'[j]}{n % 4 if few else n}" for j, n in enumerate(numbers)]
