"""Results of a search of files: values found by their bytes, and by comparison in tables."""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from erasable.core._byte_search import ByteSearch, overlapping
from erasable.core._token_search import BETWEEN_TOKENS, TokenSearch
from erasable.core._vector_search import VectorSearch
from erasable.workspace.targets.inner_texts import InnerSearch
from erasable.workspace.targets.marks import KINDS, Marks

Name = tuple[bool, str]
"""Of a value: whether its record stays, and its name among the marks."""

Parts: TypeAlias = "tuple[list[set[str]], set[str]]"
"""Of a manifest of Iceberg: the names of each part of its partitions, and of all its columns."""

Summary: TypeAlias = "tuple[str, int, bytes]"
"""Of a list of manifests: the name of one, the number of a part, and its least or greatest."""

_NUMBER = re.compile(r"[+-]?((0*\d{1,5}|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_OTHERWISE = r"^\s|\s$|^[+0]|^-?[\d.]+[.eE]"  # spelled as numbers and words of tables can be
_WITHIN = bytes(range(0x80, 0xC0))  # bytes of a character in UTF-8 after its first
_NOT_TEXT = bytes(set(range(32)) - {9, 10, 12, 13})


class Undecodable(Exception):  # noqa: N818
    """Some of a file could not be decoded; the message says why."""


class Inspection:
    """A search for the values of records that left, and of some that stay."""

    def __init__(self, gone: Marks, stay: Marks) -> None:
        """Prepare the search of any number of files."""
        self._names: dict[bytes, list[Name]] = {}
        self._exact: dict[str, list[Name]] = {}
        self._near: dict[Name, frozenset[str]] = {}
        self.kinds: dict[Name, str] = {}
        self.searched: set[Name] = set()  # those that are long enough
        for stays, marks in ((False, gone), (True, stay)):
            for name, form in marks.forms():
                self._names.setdefault(form.lower(), []).append((stays, name))
            self.searched.update((stays, name) for name in marks.values)
            for of in (marks.values, marks.short):
                for name, value in of.items():
                    self.kinds[stays, name] = value.kind
                    if value.exact is not None:
                        self._exact.setdefault(value.exact, []).append((stays, name))
                    if value.near:
                        self._near[stays, name] = value.near
        inner = gone.inner_forms()
        self._inner = InnerSearch({form: inner[form] for form in inner.keys() & self._names.keys()})
        self._bytes = ByteSearch(self._names.keys() - inner.keys())
        pieces = [
            ((stays, name), piece)
            for stays, marks in ((False, gone), (True, stay))
            for name, piece in marks.pieces()
        ]
        self._of_pieces = [name for name, _ in pieces]
        self._vectors = VectorSearch([piece for _, piece in pieces])
        self._cuts = {cut.lower() for cut in gone.cuts}
        self._in_metadata = ByteSearch(self._cuts)
        self._wanted = _by_type(self._exact)
        texts = [each for each in self._wanted if isinstance(each, str)]
        numbers = [each for each in self._wanted if isinstance(each, int | float)]
        self._tokens = TokenSearch([each.encode(errors="replace") for each in texts], numbers)
        self._texts = texts, pa.array([each.encode() for each in texts], pa.large_binary())
        self._by_dtype: dict[np.dtype, tuple[list[object], np.ndarray]] = {}
        self._with_signs = {
            spelled.encode(): text
            for text in self._exact
            for spelled in {text, json.dumps(text)[1:-1]}
            if spelled != text or BETWEEN_TOKENS.search(text.encode())
        }
        self.found: set[Name] = set()  # in the file that is looked at
        self.reasons: list[str] = []
        self.is_compared = True  # whether all values of all files were compared
        self.parts: dict[str, Parts] = {}  # by manifest
        self.summaries: list[Summary] = []  # in the file that is looked at
        self.root: Path | None = None  # below which its path is its name, if that is known
        self.n_cut = 0  # beginnings of values, in metadata

    @property
    def has_exact(self) -> bool:
        """Whether any value is to be compared in tables."""
        return bool(self._exact)

    @cached_property
    def near(self) -> set[str]:
        """The names of fields that values are next to."""
        return {name for names in self._near.values() for name in names}

    @property
    def has_named(self) -> bool:
        """Whether any of them is next to the name of its field."""
        return bool(self._near)

    def begin(self, root: Path | None = None) -> None:
        """Begin with another file, whose path is its name below a folder."""
        self.found, self.summaries, self.root = set(), [], root
        self._bytes.forget()
        self._vectors.forget()
        self._in_metadata.forget()

    def end(self) -> None:
        """Add what was found in the file by its bytes."""
        for string in self._bytes.found():
            self.found.update(self._names[string])
        self.found.update(self._of_pieces[at] for at in np.flatnonzero(self._vectors.found()))
        self.n_cut += self._in_metadata.n_found

    @property
    def overlap(self) -> int:
        """Bytes at the end of a part of a stream that are looked at again with the next."""
        return max(self._bytes.overlap, self._inner.overlap)

    def look_at(self, data: bytes | np.ndarray) -> None:
        """Look at bytes by themselves."""
        self.look_at_text(data)
        self._vectors.look_at(data)

    def look_through(self, parts: Iterable[bytes]) -> None:
        """Look at the parts of a stream, also across their borders."""
        for block in overlapping(parts, self.overlap):
            self.look_at(block)

    def look_at_metadata(self, data: bytes) -> None:
        """Look at what may hold values cut short, besides whole ones."""
        self._in_metadata.look_at(data)
        self.look_at(data)

    def look_at_text(self, data: bytes | np.ndarray) -> None:
        """Look at a text by itself, which holds no vectors but those that are written out."""
        self._bytes.look_at(data)
        for form in self._inner.among(data):
            self.found.update(self._names[form])

    def look_at_tokens(
        self,
        data: bytes,
        names: Collection[str] | None = None,
        every: Collection[str] | None = None,
        elsewhere: set[Name] | None = None,
    ) -> None:
        """Compare the words and numbers of a text, perhaps the value of a name; see `compare`."""
        for spelled in self.spellings_in(data):
            text = self._with_signs.get(spelled, spelled.decode(errors="replace"))
            self.compare([text, _number(text)], names, every, elsewhere)

    def places_in(self, data: bytes) -> list[tuple[int, int]]:
        """Return where words and numbers begin and end that are values which are not found yet."""
        if not self._exact:
            return []
        found = [
            match.span()
            for spelled, text in self._with_signs.items()
            if spelled in data and not self.found.issuperset(self._exact[text])
            for match in re.finditer(re.escape(spelled), data)
        ]
        known: dict[bytes, bool] = {}
        for begin, end in self._tokens.among(data):
            token = data[begin:end]
            if token not in known:
                text = token.decode(errors="replace")
                names = (*self._wanted.get(text, ()), *self._wanted.get(_number(text), ()))
                known[token] = not self.found.issuperset(names)
            if known[token]:
                found.append((begin, end))
        return sorted(found)

    def spellings_in(self, data: bytes) -> set[bytes]:
        """Return which words and numbers of a text are values that are not found yet."""
        return {data[begin:end] for begin, end in self.places_in(data)}

    def with_signs(self, spelled: Collection[bytes]) -> list[bytes]:
        """Return those that are not whole tokens of a text."""
        return [each for each in spelled if each in self._with_signs]

    @staticmethod
    def tokens_of(data: bytes) -> list[bytes]:
        """Return the words and numbers of a text."""
        return BETWEEN_TOKENS.split(data)

    def compare(
        self,
        values: Collection[object],
        names: Collection[str] | None = None,
        every: Collection[str] | None = None,
        elsewhere: set[Name] | None = None,
    ) -> None:
        """Compare values of a table.

        `names` are next to the values, if that is known, and `every` are the names of all columns:
        a field without a column of its name may be in any. Values of a column are also compared
        where there are no names; what only other names are next to is put into `elsewhere`.
        """
        for value in values:
            for each in self._wanted.get(value, ()):
                near, is_of_column = self._near.get(each), each not in self.searched
                if (
                    near is None or names is None or not near.isdisjoint(names)
                    or (is_of_column and not names)
                    or (every is not None and near.isdisjoint(every))
                ):  # fmt: skip
                    self.found.add(each)
                elif elsewhere is not None and is_of_column:
                    elsewhere.add(each)

    def compare_rows(
        self, rows: Iterable[Sequence[object]], columns: Sequence[str], keys: Collection[str]
    ) -> None:
        """Compare values of rows, where names of fields may be values of the same row.

        Columns of `keys`, which number the rows, have values of their own names alone.
        """
        for row in rows:
            if not self._wanted.keys().isdisjoint(row):
                names = {each for each in row if isinstance(each, str)}
                for column, value in zip(columns, row, strict=True):
                    self.compare([value], {column} if column in keys else {column, *names})

    def look_at_array(
        self,
        array: pa.Array,
        names: Collection[str] | None = None,
        every: Collection[str] | None = None,
    ) -> None:
        """Look at a column: at its bytes, and at its values one by one; see `compare`."""
        for leaf in leaves(array):
            type_ = leaf.type
            if pa.types.is_boolean(type_) or pa.types.is_null(type_):
                continue
            spelled = leaf
            if pa.types.is_integer(type_) or pa.types.is_floating(type_):
                self.look_at(_numbers_of(leaf).view(np.uint8))
            elif pa.types.is_string(type_) or pa.types.is_large_string(type_):
                self.look_at_text(_bytes_of(leaf))
            elif is_bytes(type_):
                self.look_at(_bytes_of(leaf))
            else:
                spelled = leaf.cast(pa.string())
                self.look_at_text(_bytes_of(spelled))
            if self._exact:
                there = self._in_leaf(leaf if pa.types.is_decimal(type_) else spelled)
                self.compare(there, names, every)

    def _in_leaf(self, leaf: pa.Array) -> list[object]:
        """Return which values that are compared a column has."""
        type_ = leaf.type
        if pa.types.is_decimal(type_):
            leaf = leaf.cast(pa.float64())
        if not is_bytes(type_):
            there = _numbers_of(leaf)
            numbers, given = self._numbers(there.dtype)
            return [numbers[at] for at in np.flatnonzero(np.isin(given, there))]
        texts, given = self._texts
        there = pc.unique(leaf.cast(pa.large_binary()))
        found = pc.is_in(given, there).to_numpy(zero_copy_only=False)
        others = there.filter(pc.match_substring_regex(there, _OTHERWISE))  # 017, 17.0, " 17"
        words = [each.decode(errors="replace").strip() for each in others.to_pylist()]
        return [*(texts[at] for at in np.flatnonzero(found)), *words, *map(_number, words)]

    def _numbers(self, dtype: np.dtype) -> tuple[list[object], np.ndarray]:
        """Return the numbers that a column of a type can have, and these as its values."""
        if dtype not in self._by_dtype:
            numbers = [each for each in self._wanted if _fits(each, dtype)]
            with np.errstate(over="ignore"):
                self._by_dtype[dtype] = numbers, np.array(numbers).astype(dtype)
        return self._by_dtype[dtype]


def is_bytes(type_: pa.DataType) -> bool:
    """Tell whether a column holds texts or bytes."""
    return bool(
        pa.types.is_string(type_) or pa.types.is_large_string(type_)
        or pa.types.is_binary(type_) or pa.types.is_large_binary(type_)
        or pa.types.is_fixed_size_binary(type_)
    )  # fmt: skip


def leaves(array: pa.Array) -> Iterator[pa.Array]:
    """Return the columns that a nested one is made of; of a dictionary all entries."""
    type_ = array.type
    if isinstance(array, pa.ExtensionArray):
        yield from leaves(array.storage)
    elif isinstance(array, pa.DictionaryArray):
        yield from leaves(array.dictionary)
    elif isinstance(array, pa.StructArray):
        for each in array.flatten():
            yield from leaves(each)
    elif isinstance(array, pa.MapArray):
        yield from leaves(array.keys)
        yield from leaves(array.items)
    elif isinstance(array, pa.RunEndEncodedArray):
        yield from leaves(array.values)
    elif pa.types.is_nested(type_) and hasattr(array, "flatten"):
        yield from leaves(array.flatten())
    elif pa.types.is_string_view(type_) or pa.types.is_binary_view(type_):
        yield array.cast(pa.large_binary())
    else:
        yield array


def is_text(data: bytes) -> bool:
    """Tell whether bytes are of a text in UTF-8, which may begin and end within a character."""
    if len(data.translate(None, _NOT_TEXT)) < len(data):
        return False
    begun = len(data[:3]) - len(data[:3].lstrip(_WITHIN))
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data[begun:])
    except UnicodeDecodeError:
        return False
    return True


def unsnappied(data: bytes) -> bytes:
    """Decode a Snappy block, which begins with its size."""
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    found: bytes = pa.Codec("snappy").decompress(data, size, asbytes=True)
    return found


def n_of_kinds(names: Iterable[Name], kinds: dict[Name, str]) -> Counter[str]:
    """Return how many values there are of each kind."""
    return Counter({kind: 0 for kind in KINDS}) + Counter(kinds[name] for name in names)


def _number(text: str) -> float | None:
    """Parse a text as a number; return None for other texts."""
    return float(text) if _NUMBER.fullmatch(text) else None


def _by_type(exact: dict[str, list[Name]]) -> dict[object, list[Name]]:
    """Return values as numbers as well, where they are."""
    found: dict[object, list[Name]] = {}
    for text, names in exact.items():
        found.setdefault(text, []).extend(names)
        for number in (int, float):
            try:
                value = number(text)
            except ValueError:
                continue
            found.setdefault(value, []).extend(names)
            if value == value // 1 and str(int(value)) != text:
                found.setdefault(str(int(value)), []).extend(names)
            break
    return found


def _fits(value: object, dtype: np.dtype) -> bool:
    """Tell whether a number can be in a column."""
    if dtype.kind == "f":
        return isinstance(value, int | float)
    limits = np.iinfo(dtype)
    return (
        isinstance(value, int | float)
        and limits.min <= value <= limits.max
        and value == int(value)
    )  # fmt: skip


def _numbers_of(leaf: pa.Array) -> np.ndarray:
    type_ = leaf.type
    dtype = np.dtype(f"{'f' if pa.types.is_floating(type_) else 'i'}{type_.bit_width // 8}")
    if pa.types.is_unsigned_integer(type_):
        dtype = np.dtype(f"u{type_.bit_width // 8}")
    data = leaf.buffers()[1]
    if data is None:
        return np.empty(0, dtype=dtype)
    return np.frombuffer(data, dtype=dtype)[leaf.offset : leaf.offset + len(leaf)]


def _bytes_of(leaf: pa.Array) -> np.ndarray:
    """Return the bytes of a column, those of its slice alone."""
    buffers = leaf.buffers()
    if pa.types.is_fixed_size_binary(leaf.type):
        width = leaf.type.byte_width
        if buffers[1] is None:
            return np.empty(0, dtype=np.uint8)
        data = np.frombuffer(buffers[1], dtype=np.uint8)
        return data[leaf.offset * width : (leaf.offset + len(leaf)) * width]
    if len(leaf) == 0 or buffers[2] is None:
        return np.empty(0, dtype=np.uint8)
    is_large = pa.types.is_large_string(leaf.type) or pa.types.is_large_binary(leaf.type)
    offsets = np.frombuffer(buffers[1], dtype="<i8" if is_large else "<i4")
    first, last = offsets[leaf.offset], offsets[leaf.offset + len(leaf)]
    return np.frombuffer(buffers[2], dtype=np.uint8)[first:last]
