"""Classes of a classifier: the labels of the live records, and how many records have each.

The classes are a function of the live records alone, unless the user has fixed them. When the last
record of a class goes, so does the class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import of_objects
from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.core.row_arrays import padded
from erasable.core.targets import read_target

__all__ = ["GONE", "Classes", "check_classes", "narrowed"]

GONE = -1
"""Code of a record that is not live."""

_NEAR = 1000
"""Integers that differ by less are counted, which takes a fifth of the time of sorting them."""


@dataclass(eq=False, slots=True)
class Classes:
    """Labels, how many live records have each, and the code of each record.

    Attributes
    ----------
    labels : ndarray of shape (n_classes,), int64, uint64, float64, bool or object (str)
        Sorted.
    counts : ndarray of shape (n_classes,), int64
        How many live records have each label; 0 is possible only where the labels are fixed.
    codes : ndarray of shape (n_rows,), int32
        Position of each record's label in `labels`; `GONE` for records that are not live.
    fixed : bool
        Whether the user has said which labels there are.

    Examples
    --------
    >>> import numpy as np
    >>> classes = Classes.fit(np.array([7, 3, 7, 5]), np.arange(4))
    >>> classes.labels, classes.counts, classes.codes
    (array([3, 5, 7]), array([1, 1, 2]), array([2, 0, 2, 1], dtype=int32))
    >>> classes.remove(np.array([3]))
    array([ True, False,  True])
    >>> classes.labels, classes.codes
    (array([3, 7]), array([ 1,  0,  1, -1], dtype=int32))
    """

    labels: NDArray[Any]
    counts: NDArray[np.int64]
    codes: NDArray[np.int32]
    fixed: bool

    @classmethod
    def fit(cls, y: NDArray[Any], live_rows: NDArray[np.int64], fixed: Any | None = None) -> Self:
        """Find the labels of the live rows.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            As `erasable.core.targets` reads targets.
        live_rows : ndarray of int64
            Distinct positions of the rows that count.
        fixed : array-like of shape (n_classes,), default=None
            The labels there are, whether records have them or not.

        Returns
        -------
        Classes

        Raises
        ------
        InvalidInputError
            `fixed` repeats labels, or they are of another type than those of the records.
        InvalidDataError
            Records have labels that are not in `fixed`.
        """
        every = live_rows.size == y.shape[0]
        live = y if every else y[live_rows]
        if fixed is None:
            labels, found = _unique(live)
        else:
            labels = _fixed_labels(fixed, y)
            found = _find(labels, live)
        if every:
            codes = found.astype(np.int32)
        else:
            codes = np.full(y.shape[0], GONE, dtype=np.int32)
            codes[live_rows] = found
        counts = np.bincount(found, minlength=labels.size).astype(np.int64)
        return cls(labels, counts, codes, fixed is not None)

    def left(self, rows: NDArray[np.int64]) -> int:
        """Count the labels of live records that would be left without some rows.

        Examples
        --------
        >>> Classes.fit(np.array([7, 3]), np.arange(2)).left(np.array([1]))
        1
        """
        if rows.size == 1:
            return int(np.count_nonzero(self.counts)) - int(self.counts[self.codes[rows[0]]] == 1)
        gone = np.bincount(self.codes[rows], minlength=self.labels.size)
        return int(np.count_nonzero(self.counts - gone))

    def add(self, y: NDArray[Any], rows: NDArray[np.int64]) -> bool:
        """Add rows, unless one of them has a new label.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            Labels of all rows, of which there may be more than before.
        rows : ndarray of int64
            Distinct positions of the new rows.

        Returns
        -------
        bool
            Whether the rows were added.

        Examples
        --------
        >>> classes = Classes.fit(np.array([7, 3]), np.arange(2))
        >>> classes.add(np.array([7, 3, 7]), np.array([2])), classes.counts
        (True, array([1, 2]))
        >>> classes.add(np.array([7, 3, 7, 5]), np.array([3]))
        False
        """
        places = {label: code for code, label in enumerate(self.labels.tolist())}
        found = np.array([places.get(label, GONE) for label in y[rows].tolist()], dtype=np.int32)
        if (found == GONE).any():
            return False
        self.codes = padded(self.codes, y.shape[0], GONE, keep=True)
        self.codes[rows] = found
        if rows.size == 1:
            self.counts[found[0]] += 1
        else:
            self.counts += np.bincount(found, minlength=self.labels.size)
        return True

    def remove(self, rows: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Remove rows.

        Parameters
        ----------
        rows : ndarray of int64
            Distinct positions of rows that were live until now.

        Returns
        -------
        ndarray of shape (n_classes_before,), bool, or None
            Which classes are left; None where all are.
        """
        codes = self.codes[rows]
        if rows.size == 1:
            self.counts[codes[0]] -= 1
        else:
            self.counts -= np.bincount(codes, minlength=self.labels.size)
        self.codes[rows] = GONE
        if self.fixed or self.counts.all():
            return None
        kept: NDArray[np.bool_] = self.counts > 0
        place = np.full(kept.size + 1, GONE, dtype=np.int32)  # the last one is the code GONE
        place[:-1][kept] = np.arange(int(kept.sum()))
        self.codes = place[self.codes]
        self.labels, self.counts = narrowed(self.labels[kept]), self.counts[kept]
        return kept


def check_classes(y: Any, fixed: Any | None) -> None:
    """Raise InvalidDataError if targets are not among the classes that are fixed, if any are.

    Examples
    --------
    >>> check_classes(["a", "b"], None)
    >>> check_classes(["a", "b"], ["a", "c"])
    Traceback (most recent call last):
    erasable.core.errors.InvalidDataError: 1 records have labels that are not among the 2 ...
    """
    if fixed is not None:
        target = read_target(y, len(y))
        Classes.fit(target, np.arange(target.shape[0]), fixed)


def narrowed(values: NDArray[Any]) -> NDArray[Any]:
    """Return integers as int64 where all of them fit, as `read_target` reads them.

    Records that are deleted, or another model's, may have some that do not.

    Examples
    --------
    >>> narrowed(np.array([3], dtype=np.uint64)), narrowed(np.array([2**63], dtype=np.uint64))
    (array([3]), array([9223372036854775808], dtype=uint64))
    """
    if values.dtype != np.uint64 or (values.size and values.max() >= 2**63):
        return values
    return values.astype(np.int64)


def _unique(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    if values.dtype in (np.int64, np.uint64) and values.size:
        low, high = values.min(), values.max()
        if int(high) - int(low) < _NEAR:
            places = (values - low).astype(np.int64)
            there = np.bincount(places) > 0
            near: NDArray[Any] = np.flatnonzero(there).astype(values.dtype) + low
            return narrowed(near), places if there.all() else (np.cumsum(there) - 1)[places]
    if values.dtype != object:
        labels, found = np.unique(values, return_inverse=True)
        return narrowed(labels), found.astype(np.int64)
    names = sorted(set(values.tolist()))
    labels = of_objects(names)
    return labels, _find(labels, values)


def _find(labels: NDArray[Any], values: NDArray[Any]) -> NDArray[np.int64]:
    place = {label: code for code, label in enumerate(labels.tolist())}
    found = np.array([place.get(value, GONE) for value in values.tolist()], dtype=np.int64)
    strange = int(np.count_nonzero(found == GONE))
    if strange:
        raise InvalidDataError(
            f"{strange} records have labels that are not among the {labels.size} of classes=; "
            "expected no others; add them to classes=, or leave it out"
        )
    return found


def _fixed_labels(fixed: Any, y: NDArray[Any]) -> NDArray[Any]:
    text = y.dtype == object
    try:
        given = np.asarray(fixed)
        # As they were given: of integers beyond int64 among others, and of numbers among strings,
        # NumPy makes floats, and strings.
        cells = np.array(fixed, dtype=object).reshape(-1).tolist()
    except ValueError:  # lists among labels
        given, cells = np.empty((0, 0)), []
    fits = (given.dtype.kind in "OUT") == text == all(isinstance(cell, str) for cell in cells)
    if given.ndim != 1 or given.size == 0 or not fits:
        raise InvalidInputError(
            f"classes= is {type(fixed).__name__} of shape {given.shape} and type {given.dtype}; "
            f"expected a list of {'strings' if text else 'numbers'}, as the targets are; "
            "name every class once"
        )
    names = sorted(set(cells))
    if len(names) != given.size:
        raise InvalidInputError(
            f"classes= names {given.size - len(names)} classes more than once; expected each "
            "once; leave out the repeats"
        )
    labels = _labels_of(names, y.dtype)
    if labels is None or labels.tolist() != names:
        raise InvalidInputError(
            f"classes= names numbers that {y.dtype}, the type of the targets, does not have; "
            "expected the classes of the targets; name every class once"
        )
    return labels


def _labels_of(names: list[Any], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Return names as labels of the type of targets; None where integers have no common type.

    Names decide whether integers are uint64: targets are, only while a record has a large one.
    """
    if dtype.kind == "O":
        return of_objects([str(name) for name in names])
    if dtype.kind not in "iu":
        return np.array(names).astype(dtype)
    if names[-1] < 2**63:
        with np.errstate(invalid="ignore"):
            return np.array(names).astype(np.int64)
    return np.array(names, dtype=np.uint64) if names[0] >= 0 and names[-1] < 2**64 else None
