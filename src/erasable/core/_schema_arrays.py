"""The parts of a schema that are arrays: of numbers, of strings, of labels of classes."""

from __future__ import annotations

from dataclasses import dataclass
from operator import lt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._schema import LARGEST, Part, Size, Sizes, refuse, take_size


@dataclass(frozen=True)
class Array(Part):
    """An array of numbers, none of them NaN or infinite.

    Attributes
    ----------
    dtype : str
        As NumPy names it.
    shape : tuple of int, str or None
    least, most : float
        Limits, both allowed.
    whole : bool
        Whether floats must be whole numbers.
    ascending : bool
        Whether every number must be larger than the one before; of one dimension.
    gaps : bool
        Whether NaN is allowed.

    Examples
    --------
    >>> sizes = {"n_features": 2}
    >>> Array("int64", ("n_classes", "n_features"), least=0).check(np.ones((3, 2), int), "n", sizes)
    >>> sizes
    {'n_features': 2, 'n_classes': 3}
    """

    dtype: str
    shape: tuple[Size, ...]
    least: float = -LARGEST
    most: float = LARGEST
    whole: bool = False
    ascending: bool = False
    gaps: bool = False

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
        if not isinstance(value, np.ndarray) or value.dtype != self.dtype:
            refuse(at, value, f"an array of {self.dtype}")
        _check_shape(value, self.shape, at, sizes)
        if not value.flags.c_contiguous:
            refuse(at, "columns in the place of rows", "rows that lie together in memory")
        if value.dtype == np.bool_ or value.size == 0:
            return
        told = value[~np.isnan(value)] if self.gaps else value
        if told.size and not (told.min() >= self.least and told.max() <= self.most):
            held = told[~((told >= self.least) & (told <= self.most))].tolist()[0]
            refuse(at, held, f"{self._range()}")
        if self.whole and not (np.rint(told) == told).all():
            refuse(at, told[np.rint(told) != told].tolist()[0], "whole numbers")
        if self.ascending and not (value[1:] > value[:-1]).all():
            refuse(at, "numbers that do not ascend", "each larger than the one before")

    def _range(self) -> str:
        if self.least > -LARGEST:
            most = f" to {self.most:g}" if self.most < LARGEST else " or more, and finite"
            return f"numbers of {self.least:g}{most}"
        return f"numbers of at most {self.most:g}" if self.most < LARGEST else "finite numbers"


@dataclass(frozen=True)
class Texts(Part):
    """An array of strings.

    Attributes
    ----------
    shape : tuple of int, str or None
    ascending : bool
        Whether every string must be larger than the one before; of one dimension.
    distinct : bool
        Whether they must differ.
    """

    shape: tuple[Size, ...]
    ascending: bool = False
    distinct: bool = False

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
        if not isinstance(value, np.ndarray) or value.dtype != object:
            refuse(at, value, "an array of strings")
        _check_shape(value, self.shape, at, sizes)
        cells = value.ravel().tolist()
        try:
            "".join(cells)  # faster than a look at every type
        except TypeError:
            refuse(at, "other things", "strings")
        if self.ascending and not all(map(lt, cells, cells[1:])):
            refuse(at, "strings that do not ascend", "each larger than the one before")
        if self.distinct and len(set(cells)) < len(cells):
            refuse(at, "a string twice", "each once")


@dataclass(frozen=True)
class Objects(Part):
    """An array of strings and numbers, finite or NaN."""

    shape: tuple[Size, ...]

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
        if not isinstance(value, np.ndarray) or value.dtype != object:
            refuse(at, value, "an array of strings and numbers")
        _check_shape(value, self.shape, at, sizes)
        for kind in set(map(type, cells := value.ravel().tolist())):
            if kind not in (str, bool, int, float):
                refuse(at, f"a {kind.__name__}", "strings and numbers")
        if any(type(cell) is float and abs(cell) == np.inf for cell in cells):
            refuse(at, "infinity", "finite numbers")


@dataclass(frozen=True)
class Labels(Part):
    """Labels of classes: strings, integers, floats or booleans, ascending.

    Attributes
    ----------
    size : int, str or None
    """

    size: Size

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
        kind = value.dtype.name if isinstance(value, np.ndarray) else ""
        if kind == "object":
            Texts((self.size,), ascending=True).check(value, at, sizes)
        elif kind in ("bool", "float32", "float64", "int64", "uint64"):
            Array(kind, (self.size,), ascending=True).check(value, at, sizes)
            if kind == "bool" and value.tolist() not in ([False], [True], [False, True]):
                refuse(at, "booleans that do not ascend", "each once")
        else:
            refuse(at, value, "labels of classes: strings, integers, floats or booleans")


def _check_shape(value: NDArray[Any], shape: tuple[Size, ...], at: str, sizes: Sizes) -> None:
    """Raise ArtifactError if an array has another shape."""
    if value.ndim != len(shape):
        refuse(at, value, f"{len(shape)} dimensions")
    for found, size in zip(value.shape, shape, strict=True):
        take_size(found, size, at, "lines" if value.ndim > 1 else "numbers", sizes)
