"""Marks: what a person has left in a place, as the bytes that a file would hold of it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, AnyStr, NamedTuple
from urllib.parse import quote, quote_plus
from uuid import UUID

import numpy as np

from erasable.workspace.targets.named_forms import forms_next_to, names_of
from erasable.workspace.targets.vector_forms import forms_of_vector, numbers_of, piece_of

SHORTEST = 6
"""Bytes of a mark, at least: shorter ones are in a file by chance."""
TEXT, NUMBER, VECTOR, NAMED = "text", "number", "vector", "short value"
KINDS = (TEXT, NUMBER, VECTOR, NAMED)
_PIECE = 48  # characters of a long text that are looked for, at three places of it
_FEWEST = 4  # numbers of a vector, at least: fewer are in a file by chance
_CUTS = (16, 32, 64)  # characters that Iceberg, Delta and Parquet keep of a column's extremes


class Value(NamedTuple):
    """A value to look for."""

    kind: str  # one of `KINDS`
    seeds: frozenset[bytes]  # of which the forms are made, each after a letter for how
    # a number, digits, or a text too short for bytes: compared in tables
    exact: str | None = None
    near: frozenset[str] = frozenset()  # names of fields, of a short value that is next to them


@dataclass(slots=True)
class Marks:
    """Values to look for in files; each is found by any of its forms.

    Texts are looked for as they are, in other cases of the letters a to z, in UTF-16, as JSON
    escapes them, short ones also as URLs and HTML do, and as their hashes (MD5, SHA-1 and SHA-256,
    of the bytes or in hexadecimal digits); long ones by pieces. Vectors are looked for as numbers
    of eight, four and two bytes, also with length 1, as CBOR, MessagePack and JSON write them;
    vectors of small integers as one byte each. Numbers and dates are looked for as text, by value
    in the columns of tables, and those of six bytes or more as such. Values too short to be told
    from chance are looked for next to the name of their field, if it is given, as JSON, CBOR,
    MessagePack and pickle write them; others are counted in `n_short`.

    Not found are: codes of quantised vectors, which depend on all vectors of a segment; vectors
    that a store rotates or projects; parts of a text, such as the words of a full-text index;
    keyed or salted hashes; values in base64, or encrypted.

    >>> marks = Marks()
    >>> marks.add("ann@example.org"), marks.add(7)
    (True, False)
    >>> marks.count({b"ann@example.org"}), marks.n_short
    (1, 1)
    """

    values: dict[str, Value] = field(default_factory=dict)  # by name
    short: dict[str, Value] = field(default_factory=dict)  # those without forms
    cuts: set[bytes] = field(default_factory=set)  # beginnings of texts, as `cuts_of` has them
    longer: dict[str, set[str]] = field(default_factory=dict)  # texts of others, by one in them

    def __len__(self) -> int:
        """Return how many values there are."""
        return len(self.values)

    @property
    def n_short(self) -> int:
        """How many values are too short to be looked for in bytes."""
        return len(self.short)

    def add(
        self, value: Any, *spellings: str, field: str | None = None, column: str | None = None
    ) -> bool:
        """Add a value of a record, with other spellings; tell whether it can be looked for.

        `field` is given where files have short values next to its name, and `column` where they are
        tables, in which a short value is compared with those of this column.
        """
        if value is None or isinstance(value, bool | np.bool_):
            return False
        if _is_nested(value):
            return any([self.add(each) for each in _within(value)])
        kind, exact = _kind_of(value), _exact(value)
        seeds = {seed for each in (value, *spellings) for seed in _seeds(each)}
        if not seeds and field is not None and _is_short(value):
            found = self.values.get(_name(value), Value(NAMED, frozenset(), exact))
            forms = {form for form in forms_next_to(field, value) if len(form) >= SHORTEST}
            seeds = {_after(_AS_IS, form) for form in forms} | found.seeds
            near = found.near | names_of(field)
            self.values[_name(value)] = Value(NAMED, frozenset(seeds), exact, near)
            return True
        if not seeds:
            near = names_of(column) if column is not None else frozenset[str]()
            self._add_short(_name(value), Value(kind, frozenset(), exact, near))
            return False
        self.cuts.update(cuts_of(value))
        is_digits = exact is not None and exact.isdigit()  # in a column, other digits are beside it
        kept = exact if kind == NUMBER or is_digits else None
        self.values[_name(value)] = Value(kind, frozenset(seeds), kept)
        return True

    def add_some(self, values: Iterable[Any], n: int, field: str | None = None) -> None:
        """Add values until there are n of each kind."""
        counts = Counter(value.kind for value in self.values.values())
        for value in values:
            kind = NAMED if field is not None and _is_short(value) else _kind_of(value)
            if counts[kind] < n:
                counts[kind] += self.add(value, field=field)

    def add_all(self, other: Marks) -> None:
        """Add the values of others."""
        self.values.update(other.values)
        for name, value in other.short.items():
            self._add_short(name, value)
        self.cuts |= other.cuts

    def _add_short(self, name: str, value: Value) -> None:
        """Add a short value, which may be in the columns where it was before as well."""
        if (before := self.short.get(name)) is not None:
            near = value.near | before.near if value.near and before.near else frozenset[str]()
            value = value._replace(near=near)
        self.short[name] = value

    def leave_out(self, other: Marks) -> None:
        """Leave out the values that others have."""
        for name in other.values.keys() | other.short.keys():
            self.values.pop(name, None)
            self.short.pop(name, None)

    def drop(self, values: Iterable[Any]) -> None:
        """Leave out values that records have which stay, and pieces that long texts share."""
        owners: dict[bytes, list[str]] = {}
        for name, own in self.values.items():
            for seed in own.seeds:
                if seed[0] == _OF_TEXT:
                    owners.setdefault(seed, []).append(name)
        for value in values:
            if _is_nested(value):
                self.drop(_within(value))
                continue
            if isinstance(value, str) and len(value) > 3 * _PIECE:
                for seed in _seeds(value):
                    for name in owners.pop(seed, ()):
                        self._without(name, seed)
            name = _name(value)
            self.values.pop(name, None)
            self.short.pop(name, None)
            self.cuts.difference_update(cuts_of(value))

    def _without(self, name: str, seed: bytes) -> None:
        """Leave out a piece of a text; one without any left cannot be looked for."""
        if (value := self.values.get(name)) is None:
            return
        seeds = value.seeds - {seed}
        self.values[name] = value._replace(seeds=seeds)
        if not any(each[0] == _OF_TEXT for each in seeds):
            self.short[name] = self.values.pop(name)._replace(seeds=frozenset())

    def drop_found(self, found: Collection[bytes]) -> None:
        """Leave out the values of which any form is among some bytes."""
        names = {name for name, form in self.forms() if form in found} if found else ()
        for name in names:
            del self.values[name]

    def forms(self) -> Iterator[tuple[str, bytes]]:
        """Return all bytes to look for, each with the name of its value."""
        for name, value in self.values.items():
            for form in _forms(value.seeds):
                yield name, form

    def texts(self) -> set[str]:
        """Return the texts to look for, of long ones pieces."""
        return {
            seed[1:].decode(errors="replace")
            for value in self.values.values()
            for seed in value.seeds
            if seed[0] == _OF_TEXT
        }

    def inner_forms(self) -> dict[bytes, set[bytes]]:
        """Return the forms of texts that are in forms of longer ones of others, with these."""
        found: dict[bytes, set[bytes]] = {}
        for text, words in self.longer.items():
            own = {form.lower() for form in forms_of(text)}
            for form in {form.lower() for word in words for form in forms_of(word)}:
                for inner in own:
                    if inner in form:
                        found.setdefault(inner, set()).add(form)
        return found

    def pieces(self) -> Iterator[tuple[str, np.ndarray]]:
        """Return numbers of the vectors, each with the name of its value."""
        for name, value in self.values.items():
            for seed in value.seeds:
                if seed[0] == _OF_VECTOR:
                    yield name, numbers_of(seed[1:])

    def every(self) -> set[bytes]:
        """Return all bytes to look for."""
        return {form for _, form in self.forms()}

    def count(self, found: Collection[bytes]) -> int:
        """Return of how many values any of some bytes are."""
        return len({name for name, form in self.forms() if form in found})

    def to_json(self) -> dict[str, Any]:
        """Return them as JSON."""
        tables = {
            name: [
                [
                    key,
                    kind,
                    sorted(base64.b64encode(seed).decode() for seed in seeds),
                    exact,
                    sorted(near),
                ]
                for key, (kind, seeds, exact, near) in of.items()
            ]
            for name, of in (("values", self.values), ("short", self.short))
        }
        return tables | {"cuts": sorted(base64.b64encode(cut).decode() for cut in self.cuts)}

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Marks:
        """Return those that `to_json` returned."""
        values, short = (
            {
                key: Value(kind, frozenset(map(base64.b64decode, seeds)), exact, frozenset(near))
                for key, kind, seeds, exact, near in kept[name]
            }
            for name in ("values", "short")
        )
        return cls(values, short, set(map(base64.b64decode, kept["cuts"])))


def is_vector(value: Any) -> bool:
    """Tell whether a value is a list or array of numbers."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "fiu"
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(isinstance(each, int | float) and not isinstance(each, bool) for each in value)
    )


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple) and not is_vector(value)


def _within(value: Any) -> Iterator[Any]:
    """Return the values of a list or object: its repr is in no file."""
    return iter(value.values() if isinstance(value, Mapping) else value)


def _kind_of(value: Any) -> str:
    if is_vector(value):
        return VECTOR
    is_number = isinstance(value, int | float | np.number | Decimal | date)
    return NUMBER if is_number else TEXT


def _is_short(value: Any) -> bool:
    """Tell whether a value is a text or whole number too short to be told from chance."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return False
    return len(str(value).strip().encode(errors="replace")) < SHORTEST


def _exact(value: Any) -> str | None:
    """Return a value as text, by which it is compared in the columns of tables."""
    return None if is_vector(value) or isinstance(value, bytes) else str(value).strip()


def _name(value: Any) -> str:
    """Return a name that equal values have in common."""
    if is_vector(value):
        data = np.asarray(value, dtype="<f4").tobytes()
        return "vector " + hashlib.blake2b(data, digest_size=16).hexdigest()
    data = value if isinstance(value, bytes) else str(value).strip().encode(errors="replace")
    return "text " + hashlib.blake2b(data, digest_size=16).hexdigest()


def forms_of(value: Any) -> Iterator[bytes]:
    """Return the bytes by which a value is found, none where it is too short."""
    return _forms(_seeds(value))


_AS_IS, _OF_TEXT, _OF_HASH, _OF_VECTOR = b"bthv"  # letters before seeds


def _forms(seeds: Iterable[bytes]) -> Iterator[bytes]:
    for letter, seed in ((seed[0], seed[1:]) for seed in seeds):
        if letter == _OF_VECTOR:
            yield from forms_of_vector(seed)
            continue
        yield seed
        if letter == _OF_HASH:
            yield seed.hex().encode()
        elif letter == _OF_TEXT:
            text = seed.decode(errors="surrogatepass")
            pairs = (text.encode(f"utf-16-{end}", errors="surrogatepass") for end in ("le", "be"))
            yield from (form for form in pairs if len(form) >= SHORTEST)


def _seeds(value: Any) -> Iterator[bytes]:
    """Return what the forms of a value are made of, nothing where it is too short."""
    if value is None or isinstance(value, bool | np.bool_):
        return
    if is_vector(value):
        vector = np.asarray(value, dtype=np.float64)
        if np.count_nonzero(vector) >= _FEWEST and np.all(np.isfinite(vector)):
            yield _after(_OF_VECTOR, piece_of(vector))
    elif isinstance(value, bytes):
        if len(value) >= SHORTEST:
            pieces = [value] if len(value) <= 3 * _PIECE else _pieces(value)
            yield from (_after(_AS_IS, piece) for piece in pieces)
            yield from _hashes(value)
    elif isinstance(value, int | float | np.number | Decimal | date):
        yield from (_after(_AS_IS, form) for form in _forms_of_number(value))
    else:
        yield from _seeds_of_text(str(value).strip())


def _seeds_of_text(text: str) -> Iterator[bytes]:
    data = text.encode(errors="surrogatepass")
    if len(data) < SHORTEST:
        return
    for spelled in {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}:
        for piece in [spelled] if len(spelled) <= 3 * _PIECE else _pieces(spelled):
            yield _after(_OF_TEXT, piece.encode(errors="surrogatepass"))
    if len(text) <= _PIECE:
        in_urls = {form(text, safe="", errors="replace") for form in (quote, quote_plus)}
        for spelled in {*in_urls, html.escape(text)} - {text}:
            yield _after(_AS_IS, spelled.encode(errors="surrogatepass"))
    yield from _hashes(data)
    if len(text) in (32, 36):
        try:
            own = UUID(text)
        except ValueError:
            return
        for form in (own.bytes, own.bytes_le, own.hex.encode(), str(own).encode()):
            yield _after(_AS_IS, form)


def _forms_of_number(value: Any) -> Iterator[bytes]:
    spelled = {str(value), value.isoformat() if isinstance(value, date) else str(value)}
    if isinstance(value, datetime) and value.microsecond == 0:
        spelled.add(value.strftime("%Y-%m-%d %H:%M:%S"))
    yield from (each.encode() for each in spelled if len(each) >= SHORTEST)
    if isinstance(value, int | np.integer) and 1 << 40 <= abs(int(value)) < 1 << 63:
        data = int(value).to_bytes(8, "little", signed=True)
    elif isinstance(value, float | np.floating):
        data = np.float64(value).astype("<f8").tobytes()
    else:
        return
    if sum(map(bool, data)) >= SHORTEST:
        yield from (data, data[::-1])


def _pieces(text: AnyStr) -> Iterator[AnyStr]:
    """Return the beginning, middle and end of a long text."""
    for at in (0, (len(text) - _PIECE) // 2, len(text) - _PIECE):
        yield text[at : at + _PIECE]


def _hashes(data: bytes) -> Iterator[bytes]:
    for name in ("md5", "sha1", "sha256"):
        yield _after(_OF_HASH, hashlib.new(name, data, usedforsecurity=False).digest())


def _after(letter: int, seed: bytes) -> bytes:
    return bytes([letter]) + seed


def cuts_of(value: Any) -> Iterator[bytes]:
    """Return the beginnings of a text that metadata keep as an extreme of a column.

    Without the last character, which the greatest of a column has changed.
    """
    if isinstance(value, str):
        text = value.strip()
        yield from (text[: n - 1].encode(errors="replace") for n in _CUTS if len(text) >= n)
