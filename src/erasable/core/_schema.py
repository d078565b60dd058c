"""Schemas: the types, shapes, ranges and relations that the state of a model must have.

Anybody can write a file with other numbers in it and the digest that belongs to them. An estimator
declares in `Erasable._schema` what its state holds, and what does not fit is refused before it is
used, so kernels may rely on it.

Dimensions have names, such as ``"n_classes"``: the first array that has one says how large it is,
and all others must agree. ``"n_features"`` and ``"n_records"`` are known from the start.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from operator import lt
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.core._grid_kernels import MAX_ROWS, MAX_TOP, MIN_TOP
from erasable.core.errors import ArtifactError
from erasable.core.ids import shorten

BASE_STATE = frozenset(
    {
        "algorithm_version",
        "feature_names",
        "n_features",
        "n_records",
        "params",
        "record_set",
        "seed",
    }
)

Size: TypeAlias = int | str | None
"""Size of a dimension: a number, a name, or None for any."""

Sizes: TypeAlias = dict[str, int]
"""Sizes of named dimensions, as far as they are known."""

Relation: TypeAlias = Callable[[dict[str, Any], str, Sizes], None]
"""Checks fields against each other: takes their values, their path, and the sizes, and calls
`refuse` where they do not fit."""

LARGEST = float(np.finfo(np.float64).max)


def refuse(at: str, held: Any, expected: str) -> NoReturn:
    """Raise ArtifactError: the field `at` ("grid.top") holds a value, or what a text describes."""
    told = held if isinstance(held, str) else describe(held)
    raise ArtifactError(
        f"the field {at!r} of the model holds {told}; expected {expected}; "
        "take the file from a backup, or fit and save again"
    )


def describe(value: Any) -> str:
    """Describe a value in a few words."""
    if isinstance(value, np.ndarray):
        return f"a {value.dtype} array of shape {value.shape}"
    if isinstance(value, Mapping):
        return f"a dict of {', '.join(map(shorten, sorted(value)[:5]))}" if value else "no fields"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return shorten(value)


class FieldType(ABC):
    """A type of fields."""

    @abstractmethod
    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """Raise ArtifactError if the value of the field `at` does not fit."""


@dataclass(frozen=True)
class Anything(FieldType):
    """Any value: it is checked elsewhere."""

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""


@dataclass(frozen=True)
class Integer(FieldType):
    """A whole number between two limits, both allowed."""

    least: int
    most: int = 2**63 - 1

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
            refuse(at, value, "a whole number")
        if not self.least <= value <= self.most:
            refuse(at, value, f"a whole number from {self.least} to {self.most}")


@dataclass(frozen=True)
class Decimal(FieldType):
    """A finite float between two limits, both allowed."""

    least: float = -LARGEST
    most: float = LARGEST

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        if not isinstance(value, float | np.floating):
            refuse(at, value, "a number with a point")
        if not self.least <= value <= self.most:
            refuse(at, value, f"a finite number from {self.least:g} to {self.most:g}")


@dataclass(frozen=True)
class Flag(FieldType):
    """True or False, or one of the two alone."""

    among: tuple[bool, ...] = (False, True)

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        if not isinstance(value, bool | np.bool_) or value not in self.among:
            refuse(at, value, " or ".join(map(str, self.among)))


@dataclass(frozen=True)
class Text(FieldType):
    """A string, or one of some strings."""

    among: tuple[str, ...] | None = None

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        if not isinstance(value, str):
            refuse(at, value, "a string")
        if self.among is not None and value not in self.among:
            refuse(at, value, f"one of {', '.join(map(repr, self.among))}")


@dataclass(frozen=True)
class Maybe(FieldType):
    """None, or something."""

    part: FieldType

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        if value is not None:
            self.part.check(value, at, sizes)


@dataclass(frozen=True)
class OneOf(FieldType):
    """A value that fits one of several types; the last of them says what is wrong."""

    parts: tuple[FieldType, ...]

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        for part in self.parts[:-1]:
            tried = dict(sizes)
            try:
                part.check(value, at, tried)
            except ArtifactError:
                continue
            sizes.update(tried)
            return
        self.parts[-1].check(value, at, sizes)


@dataclass(frozen=True)
class Names(FieldType):
    """A list of strings."""

    size: Size

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        if not isinstance(value, list) or set(map(type, value)) - {str}:
            refuse(at, value, "a list of strings")
        take_size(len(value), self.size, at, "strings", sizes)


@dataclass(frozen=True)
class ListOf(FieldType):
    """A list of values of one type."""

    part: FieldType
    size: Size = None

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        if not isinstance(value, list):
            refuse(at, value, "a list")
        take_size(len(value), self.size, at, "things", sizes)
        for place, item in enumerate(value):
            self.part.check(item, f"{at}.{place}", sizes)


@dataclass(frozen=True)
class DictOf(FieldType):
    """Values of one type by name."""

    part: FieldType
    names: Iterable[str] | None = None  # all that there must be; None for any

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        if not isinstance(value, dict):
            refuse(at, value, "fields")
        if self.names is not None:
            _check_names(value, set(self.names), set(), at)
        for name, item in value.items():
            self.part.check(item, f"{at}.{name}", sizes)


@dataclass(frozen=True)
class Fields(FieldType):
    """Fields by name, and their relations."""

    parts: Mapping[str, FieldType]
    others: Mapping[str, FieldType] = field(default_factory=dict)  # that there may be
    relations: tuple[Relation, ...] = ()  # called once every field fits

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        if not isinstance(value, dict):
            refuse(at, value, "fields")
        _check_names(value, set(self.parts), set(self.others), at)
        for name, part in {**self.parts, **self.others}.items():
            if name in value:
                part.check(value[name], join(at, name), sizes)
        for relation in self.relations:
            relation(value, at, sizes)

    def joined(self, other: Fields) -> Fields:
        """Return a schema of the fields of both."""
        return Fields(
            {**self.parts, **other.parts},
            {**self.others, **other.others},
            (*self.relations, *other.relations),
        )


@dataclass(frozen=True)
class Depending(FieldType):
    """Fields of one type or another, depending on whether there is a field of some name."""

    name: str
    without: FieldType
    having: FieldType

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        there = isinstance(value, dict) and self.name in value
        (self.having if there else self.without).check(value, at, sizes)


@dataclass(frozen=True)
class Within(FieldType):
    """The state of a model that is part of another, which checks itself when it is restored."""

    own: Set[str]  # of `BASE_STATE`: the rest of that is the whole's alone

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        if not isinstance(value, dict):
            refuse(at, value, "fields")
        for name in self.own - value.keys():
            refuse(join(at, name), "nothing", "a value")
        for name in (BASE_STATE - self.own) & value.keys():
            refuse(join(at, name), value[name], "no such field")


def join(at: str, name: str) -> str:
    """Return the path of a field within another, or of one at the top."""
    return f"{at}.{name}" if at else name


def take_size(found: int, size: Size, at: str, what: str, sizes: Sizes) -> None:
    """Compare a size with the one that is expected; note it where it is the first of its name."""
    if size is None:
        return
    wanted = sizes.setdefault(size, found) if isinstance(size, str) else size
    if found != wanted:
        named = f" ({size})" if isinstance(size, str) else ""
        refuse(at, f"{found} {what}", f"{wanted}{named}")


def _check_names(value: dict[Any, Any], needed: set[str], others: set[str], at: str) -> None:
    missing, strange = sorted(needed - value.keys()), value.keys() - needed - others
    if missing:
        refuse(join(at, missing[0]), "nothing", "a value")
    if strange:
        first = min(map(str, strange))
        refuse(join(at, first), "a value", "no such field")


@dataclass(frozen=True)
class Array(FieldType):
    """An array of finite numbers, or NaN where there may be gaps."""

    dtype: str
    shape: tuple[Size, ...]
    least: float = -LARGEST
    most: float = LARGEST
    per_record: bool = False  # `most` is for each record, and so is a negative `least`
    whole: bool = False  # floats are whole numbers
    ascending: bool = False  # each is larger than the one before
    gaps: bool = False  # NaN is allowed

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        if not isinstance(value, np.ndarray) or value.dtype != self.dtype:
            refuse(at, value, f"an array of {self.dtype}")
        _check_shape(value, self.shape, at, sizes)
        if not value.flags.c_contiguous:
            refuse(at, "columns in the place of rows", "rows that lie together in memory")
        if value.dtype == np.bool_ or value.size == 0:
            return
        told = value[~np.isnan(value)] if self.gaps else value
        n = sizes["n_records"] if self.per_record else 1
        least, most = min(self.least, n * self.least), n * self.most
        if told.size and not (told.min() >= least and told.max() <= most):
            held = told[~((told >= least) & (told <= most))].tolist()[0]
            refuse(at, held, _range(least, most))
        if self.whole and not (np.rint(told) == told).all():
            refuse(at, told[np.rint(told) != told].tolist()[0], "whole numbers")
        if self.ascending and not (value[1:] > value[:-1]).all():
            refuse(at, "numbers that do not ascend", "each larger than the one before")


def _range(least: float, most: float) -> str:
    if least > -LARGEST:
        upper = f" to {most:g}" if most < LARGEST else " or more, and finite"
        return f"numbers of {least:g}{upper}"
    return f"numbers of at most {most:g}" if most < LARGEST else "finite numbers"


@dataclass(frozen=True)
class Texts(FieldType):
    """An array of strings."""

    shape: tuple[Size, ...]
    ascending: bool = False
    distinct: bool = False

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
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
class Objects(FieldType):
    """An array of strings and numbers, finite or NaN."""

    shape: tuple[Size, ...]

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        if not isinstance(value, np.ndarray) or value.dtype != object:
            refuse(at, value, "an array of strings and numbers")
        _check_shape(value, self.shape, at, sizes)
        for kind in set(map(type, cells := value.ravel().tolist())):
            if kind not in (str, bool, int, float):
                refuse(at, f"a {kind.__name__}", "strings and numbers")
        if any(type(cell) is float and abs(cell) == np.inf for cell in cells):
            refuse(at, "infinity", "finite numbers")


@dataclass(frozen=True)
class Labels(FieldType):
    """Labels of classes: strings, integers, floats or booleans, ascending."""

    size: Size

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
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


MOST_QUANTA = 2**26
"""Largest value on a grid."""

MOST_FEATURES = 2**24
"""Most features of a model whose file says how many there are by nothing but a number."""

HALVES = {"hh": 2**26, "hl": 2**25, "ll": 2**24}
"""Largest products of the halves of a gridded value, see `erasable.core.moments`."""


_IN_SQUARES = {"hh": 2.0**26, "hl": 2.0**14, "ll": 1.0}


def tops(size: Size) -> Array:
    """Return the schema of exponents of a grid."""
    return Array("int64", (size,), least=MIN_TOP, most=MAX_TOP)


def grid(size: Size, *, sparse: bool = False) -> Fields:
    """Return the schema of a grid; one of sparse columns has no origin."""
    origin = Array("float64", (size,), least=-(2.0 ** (MAX_TOP + 1)), most=2.0 ** (MAX_TOP + 1))
    return Fields({"top": tops(size)} if sparse else {"top": tops(size), "origin": origin})


def moments(*shape: Size) -> Fields:
    """Return the schema of `Moments.state`, or of one a line."""
    sums = {"sum": Array("float64", shape, -MOST_QUANTA, MOST_QUANTA, per_record=True, whole=True)}
    for name, largest in HALVES.items():
        least = -largest if name == "hl" else 0
        sums[name] = Array("int64", shape, least, largest, per_record=True)
    return Fields(sums)


def weight_sums(size: Size, *, least: int = 0) -> Fields:
    """Return the schema of sums of weights, in quanta of their grid."""
    sums = Array("int64", (size,), least, MOST_QUANTA, per_record=True)
    return Fields({"top": tops(1), "sums": sums})


def weighted_moments(*shape: Size) -> Array:
    """Return the schema of the sums of `WeightedMoments`, in limbs."""
    return Array("int64", (5, *shape), -2 * MOST_QUANTA, 2 * MOST_QUANTA, per_record=True)


def refuse_negative_variance(sums: dict[str, Any], n_rows: Any, at: str) -> None:
    """Refuse sums of which the variance of a column is negative; `n_rows` may be one a line."""
    n = np.broadcast_to(n_rows, sums["sum"].shape)
    parts = [n * (sums[name] * factor) for name, factor in _IN_SQUARES.items()]
    error = 2.0**-48 * sum(np.abs(part) for part in parts)
    # Exactly only where floats do not tell.
    close = sums["sum"] * sums["sum"] > sum(parts) - error
    for at_cell in zip(*np.nonzero(close), strict=True):
        squares = sum(int(sums[name][at_cell]) * int(f) for name, f in _IN_SQUARES.items())
        if int(sums["sum"][at_cell]) ** 2 > int(n[at_cell]) * squares:
            refuse(at, "squares that are too small for their sum", "those of numbers")


def column_map(size: Size = "n_features") -> Fields:
    """Return the schema of the map (shift, scale) of the steps before a model in a pipeline."""
    least = float(np.finfo(np.float64).smallest_subnormal)
    return Fields(
        {"shift": Array("float64", (size,)), "scale": Array("float64", (size,), least=least)}
    )


def classes(*, fixed: bool = False, every: bool = True) -> Fields:
    """Return the schema of labels and counts.

    Where labels are `fixed`, a class may have no records. Unless `every`, counts may be fewer.
    """

    def add_up(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        n_records, total = sizes["n_records"], int(value["counts"].sum())
        if total > n_records or (every and total < n_records):
            refuse(join(at, "counts"), f"counts that add up to {total}", f"{n_records} (n_records)")

    counts = Array("int64", ("n_classes",), 0 if fixed else 1, most=1, per_record=True)
    return Fields({"labels": Labels("n_classes"), "counts": counts}, relations=(add_up,))


def refuse_unbounded(model: Any) -> None:
    """Refuse more features than are plausible, where neither names nor arrays tell their number."""
    d = model.n_features_in_
    if d > MOST_FEATURES and not hasattr(model, "feature_names_in_"):
        refuse("n_features", d, f"at most {MOST_FEATURES}, as they have no names")


def gram(n_rows: int, n_columns: int, n_origins: int) -> Fields:
    """Return the schema of `Gram.state` for so many columns, or of no more rows."""
    n_pairs = n_columns * (n_columns + 1) // 2
    n_totals = n_columns + 3 * n_pairs
    most = n_rows * MOST_QUANTA

    def check(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        refuse_wrong_totals(value["totals"], n_rows, n_columns, join(at, "totals"))

    origin = Array("float64", (n_origins,), -(2.0 ** (MAX_TOP + 1)), 2.0 ** (MAX_TOP + 1))
    totals = Array("float64", (n_totals,), least=-most, most=most, whole=True)
    parts = {"top": tops(n_columns), "origin": origin, "totals": totals}
    return Fields(parts, relations=(check,))


def refuse_wrong_totals(totals: Any, n_rows: int, n_columns: int, at: str) -> None:
    """Refuse sums of `Gram` of which the variance of a column would be negative."""
    hh, hl, ll = totals[n_columns:].reshape(3, -1)
    place = np.arange(n_columns)
    place = place * n_columns - place * (place - 1) // 2  # of a column with itself
    own = {"sum": totals[:n_columns], "hh": hh[place], "hl": hl[place] / 2.0, "ll": ll[place]}
    for name, largest in HALVES.items():
        least = -n_rows * largest if name == "hl" else 0
        if not ((own[name] >= least) & (own[name] <= n_rows * largest)).all():
            refuse(at, "sums of squares that are none", "those of numbers")
    refuse_negative_variance(own, n_rows, at)


def refuse_many(n_records: int) -> None:
    """Refuse more records than exact sums of gridded values have room for."""
    if n_records > MAX_ROWS:
        refuse("n_records", n_records, f"at most {MAX_ROWS}")
