"""Marks: what a person has left in a place, as the bytes that a file would hold of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

SHORTEST = 6
"""Bytes of a mark, at least: shorter ones are in a file by chance."""
_PIECE = 48  # bytes of a long text that are looked for, at three places of it
_FEWEST = 4  # numbers of a vector, at least: fewer are in a file by chance


@dataclass(slots=True)
class Marks:
    """Values to look for in files; each is found by any of its forms.

    Texts are looked for as they are and in other cases of the letters a to z, long ones by pieces;
    vectors as numbers of four, two and one byte. Numbers and dates are looked for as text. Values
    too short to be told from chance are counted in `n_short`.

    >>> marks = Marks()
    >>> marks.add("ann@example.org"), marks.add(7)
    (True, False)
    >>> marks.count({b"ann@example.org"}), marks.n_short
    (1, 1)
    """

    forms: dict[str, frozenset[bytes]] = field(default_factory=dict)  # of a value, by its name
    n_short: int = 0

    def __len__(self) -> int:
        """Return how many values there are."""
        return len(self.forms)

    def add(self, value: Any, *spellings: str) -> bool:
        """Add a value of a record, with other spellings; tell whether it can be looked for."""
        forms = {form for each in (value, *spellings) for form in forms_of(each)}
        if not forms:
            self.n_short += value is not None and not isinstance(value, bool)
            return False
        self.forms[_name(value)] = frozenset(forms)
        return True

    def add_all(self, other: Marks) -> None:
        """Add the values of others."""
        self.forms.update(other.forms)
        self.n_short += other.n_short

    def drop(self, values: Iterable[Any]) -> None:
        """Leave out values that records have which stay."""
        for value in values:
            self.forms.pop(_name(value), None)

    def every(self) -> set[bytes]:
        """Return all bytes to look for."""
        return {form for forms in self.forms.values() for form in forms}

    def count(self, found: Collection[bytes]) -> int:
        """Return of how many values any of some bytes are."""
        return sum(any(form in found for form in forms) for forms in self.forms.values())

    def to_json(self) -> dict[str, Any]:
        """Return them as JSON."""
        return {
            "forms": [
                [name, sorted(base64.b64encode(form).decode() for form in forms)]
                for name, forms in self.forms.items()
            ],
            "n_short": self.n_short,
        }

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Marks:
        """Return those that `to_json` returned."""
        forms = {name: frozenset(map(base64.b64decode, each)) for name, each in kept["forms"]}
        return cls(forms, kept["n_short"])


def forms_of(value: Any) -> Iterator[bytes]:
    """Return the bytes by which a value is found, none where it is too short."""
    if isinstance(value, str):
        data = value.strip().encode()
        if len(data) <= 3 * _PIECE:
            pieces = [data]
        else:
            middle = (len(data) - _PIECE) // 2
            pieces = [data[:_PIECE], data[middle : middle + _PIECE], data[-_PIECE:]]
        yield from (piece for piece in pieces if len(piece) >= SHORTEST)
    elif isinstance(value, bytes):
        if len(value) >= SHORTEST:
            yield value[:_PIECE]
    elif is_vector(value):
        yield from _forms_of_vector(np.asarray(value, dtype=np.float64))
    elif isinstance(value, int | float | Decimal | date) and not isinstance(value, bool):
        yield from forms_of(str(value))


def is_vector(value: Any) -> bool:
    """Tell whether a value is a list or array of numbers."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "fiu"
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(isinstance(each, int | float) and not isinstance(each, bool) for each in value)
    )


def _forms_of_vector(vector: np.ndarray) -> Iterator[bytes]:
    if vector.size < _FEWEST or not np.any(vector):
        return
    at = slice(0, _PIECE // 4)
    for kind in ("<f4", "<f2"):
        yield vector[at].astype(kind).tobytes()


def _name(value: Any) -> str:
    if is_vector(value):
        return np.asarray(value, dtype="<f4").tobytes().hex()
    if isinstance(value, bytes):
        return value.hex()
    return json.dumps(str(value).strip())
