"""Schemas: what the state of a model must be, checked before anything of a file is used.

Anybody can write a file with other numbers in it and the digest that belongs to them. An estimator
declares in `Stateful._schema` what its state holds: types, shapes, ranges, and relations between
fields. What does not fit is refused, so kernels may rely on it. Arrays are in
`erasable.core._schema_arrays`.

Dimensions have names, such as ``"n_classes"``: the first array that has one says how large it is,
and all others must agree. ``"n_features"`` and ``"n_records"`` are known from the start.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import numpy as np

from erasable.core._fit_info import BASE_STATE
from erasable.core.errors import ArtifactError
from erasable.core.ids import shorten

Size: TypeAlias = int | str | None
"""Of one dimension: a number, a name, or None where any number will do."""

Sizes: TypeAlias = dict[str, int]
"""What is known of named dimensions."""

Relation: TypeAlias = Callable[[dict[str, Any], str, Sizes], None]
"""Checks fields against each other: is given their values, the path of their names, and the
sizes, and calls `refuse` where they do not fit."""

LARGEST = float(np.finfo(np.float64).max)


def refuse(at: str, held: Any, expected: str) -> NoReturn:
    """Raise ArtifactError: a field does not hold what was expected.

    Parameters
    ----------
    at : str
        Name of the field, with those of the fields that it is in: ``"grid.top"``.
    held : object
        What it holds; text is taken as a description.
    expected : str

    Examples
    --------
    >>> refuse("grid.top", 1000, "at most 480")
    Traceback (most recent call last):
    erasable.core.errors.ArtifactError: the field 'grid.top' of the model holds 1000; expected ...
    """
    told = held if isinstance(held, str) else describe(held)
    raise ArtifactError(
        f"the field {at!r} of the model holds {told}; expected {expected}; "
        "take the file from a backup, or fit and save again"
    )


def describe(value: Any) -> str:
    """Tell what a value is, in a few words.

    Examples
    --------
    >>> describe(np.zeros((2, 3))), describe({"b": 1}), describe(True)
    ('a float64 array of shape (2, 3)', "a dict of 'b'", 'True')
    """
    if isinstance(value, np.ndarray):
        return f"a {value.dtype} array of shape {value.shape}"
    if isinstance(value, Mapping):
        return f"a dict of {', '.join(map(shorten, sorted(value)[:5]))}" if value else "no fields"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return shorten(value)


class Part(ABC):
    """What a field may hold."""

    @abstractmethod
    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """Raise ArtifactError if the value of the field `at` does not fit."""


@dataclass(frozen=True)
class Anything(Part):
    """Something that is checked elsewhere."""

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""


@dataclass(frozen=True)
class Integer(Part):
    """A whole number between two limits, both allowed."""

    least: int
    most: int = 2**63 - 1

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
            refuse(at, value, "a whole number")
        if not self.least <= value <= self.most:
            refuse(at, value, f"a whole number from {self.least} to {self.most}")


@dataclass(frozen=True)
class Decimal(Part):
    """A finite float between two limits, both allowed."""

    least: float = -LARGEST
    most: float = LARGEST

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
        if not isinstance(value, float | np.floating):
            refuse(at, value, "a number with a point")
        if not self.least <= value <= self.most:
            refuse(at, value, f"a finite number from {self.least:g} to {self.most:g}")


@dataclass(frozen=True)
class Flag(Part):
    """True or False, or one of the two alone."""

    among: tuple[bool, ...] = (False, True)

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
        if not isinstance(value, bool | np.bool_) or value not in self.among:
            refuse(at, value, " or ".join(map(str, self.among)))


@dataclass(frozen=True)
class Text(Part):
    """A string, or one of some strings."""

    among: tuple[str, ...] | None = None

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
        if not isinstance(value, str):
            refuse(at, value, "a string")
        if self.among is not None and value not in self.among:
            refuse(at, value, f"one of {', '.join(map(repr, self.among))}")


@dataclass(frozen=True)
class Maybe(Part):
    """None, or something."""

    part: Part

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
        if value is not None:
            self.part.check(value, at, sizes)


@dataclass(frozen=True)
class OneOf(Part):
    """Whatever fits one of several parts; the last of them says what is wrong."""

    parts: tuple[Part, ...]

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
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
class Names(Part):
    """A list of strings."""

    size: Size

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
        if not isinstance(value, list) or set(map(type, value)) - {str}:
            refuse(at, value, "a list of strings")
        take_size(len(value), self.size, at, "strings", sizes)


@dataclass(frozen=True)
class ListOf(Part):
    """A list of things of one kind."""

    part: Part
    size: Size = None

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
        if not isinstance(value, list):
            refuse(at, value, "a list")
        take_size(len(value), self.size, at, "things", sizes)
        for place, item in enumerate(value):
            self.part.check(item, f"{at}.{place}", sizes)


@dataclass(frozen=True)
class DictOf(Part):
    """Things of one kind by name.

    Attributes
    ----------
    part : Part
    names : iterable of str, or None
        All names that there must be; None for any.
    """

    part: Part
    names: Iterable[str] | None = None

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
        if not isinstance(value, dict):
            refuse(at, value, "fields")
        if self.names is not None:
            _check_names(value, set(self.names), set(), at)
        for name, item in value.items():
            self.part.check(item, f"{at}.{name}", sizes)


@dataclass(frozen=True)
class Fields(Part):
    """Fields by name, and how they must relate to each other.

    Attributes
    ----------
    parts : dict of str to Part
        Fields that there must be.
    others : dict of str to Part
        Fields that there may be.
    relations : tuple of callable
        Called once every field fits.

    Examples
    --------
    >>> sums = Fields({"name": Text(), "n_rows": Integer(0)})
    >>> sums.check({"name": "a", "n_rows": -1}, "sums", {})
    Traceback (most recent call last):
    erasable.core.errors.ArtifactError: the field 'sums.n_rows' of the model holds -1; ...
    """

    parts: Mapping[str, Part]
    others: Mapping[str, Part] = field(default_factory=dict)
    relations: tuple[Relation, ...] = ()

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
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
class Depending(Part):
    """Fields of one kind or another, depending on whether there is a field of some name.

    Attributes
    ----------
    name : str
    without, having : Part
    """

    name: str
    without: Part
    having: Part

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
        there = isinstance(value, dict) and self.name in value
        (self.having if there else self.without).check(value, at, sizes)


@dataclass(frozen=True)
class Within(Part):
    """The state of a model that is part of another, which checks itself when it is restored.

    Attributes
    ----------
    own : set of str
        What it holds of `erasable.core._fit_info.BASE_STATE`; all else of that is the whole's.
    """

    own: Set[str]

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `Part.check`."""
        if not isinstance(value, dict):
            refuse(at, value, "fields")
        for name in self.own - value.keys():
            refuse(join(at, name), "nothing", "a value")
        for name in (BASE_STATE - self.own) & value.keys():
            refuse(join(at, name), value[name], "no such field")


def join(at: str, name: str) -> str:
    """Return the path of a field within another, or of one that is in none.

    Examples
    --------
    >>> join("grid", "top"), join("", "grid")
    ('grid.top', 'grid')
    """
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
