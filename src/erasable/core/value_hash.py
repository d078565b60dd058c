"""A hash of the values that a model has learned from, which its file has, to check its records.

Each record adds a hash of its id and of its values to a sum modulo ``2**64``, so that a deletion
subtracts it, and the order of the rows does not count. A file holds a SHA-256 of the sums, and not
the sums: their difference in two files would be the hash of the records deleted in between, by
which anybody could test a guess of one of them. The SHA-256 tells no more than the digest of a
model that holds all of its records: to test a guess of one, all others have to be known.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from erasable.core import _value_kernels as kernels
from erasable.core._mixed import Mixed
from erasable.core.arrays import Words, of_objects
from erasable.core.attachment import Attachment, HeldRecords
from erasable.core.errors import ArtifactError
from erasable.core.passes import Block, Pass, Stored, run
from erasable.core.row_arrays import PerLiveRow
from erasable.core.sparse import canonical, parts
from erasable.core.tape import Tape

PARTS = ("X", "values", "y", "numbers", "sample_weight", "groups")
"""Parts of records that a model may learn from.

`X` and how it is stored, or its values, dense or sparse, float32 or float64; `y` and its type, or
the numbers that it is, integers or floats; `groups`, which are the ids, where there are none.
"""

_UNREAD = "unread"

# Fixed, public seeds: the fractional parts of the square roots of 5 and 7.
_IDS, _CELLS = Tape(0x3C6EF372FE94F82B), Tape(0xA54FF53A5F1D36F1)
_KINDS: Mapping[type, Tape] = {
    kind: _CELLS.child(kind.__name__) for kind in (bool, float, int, str)
}
_PURPOSES = {part: np.uint64(_CELLS.child("part", part).seed) for part in PARTS}
_SMALL = range(-(2**63), 2**64)


@dataclass(frozen=True, eq=False)
class ValueHash:
    """Hash of the values of the records that a model holds."""

    parts: tuple[str, ...]  # those of `PARTS` that the model learns from
    sums: Words | None = None  # of all records that the model holds, (n_parts, 2)
    told: dict[str, Any] | None = None  # the entry of a file, until a record is deleted
    unread: tuple[int, ...] = ()  # positions of columns of X that do not count

    @classmethod
    def of(cls, parts: Iterable[str], unread: Iterable[int] = ()) -> Self:
        """Start with the parts that a model learns from."""
        chosen = set(parts)
        if "X" in chosen:
            chosen.discard("values")
        return cls(tuple(part for part in PARTS if part in chosen), unread=tuple(unread))

    @classmethod
    def from_file(cls, told: Any) -> Self:
        """Read what `written` returned; ValueError for anything else."""
        if not isinstance(told, dict) or set(map(type, told.values())) != {str}:
            raise ValueError("expected a dict of strings")
        if "hash" not in told or not told.keys() - {"hash", _UNREAD} <= set(PARTS):
            raise ValueError("expected the parts of records and a hash")
        unread = tuple(map(int, told[_UNREAD].split(","))) if _UNREAD in told else ()
        return cls(tuple(part for part in PARTS if part in told), told=told, unread=unread)

    @property
    def tells_objects(self) -> bool:
        """Whether a file says that the model was fitted on a table of objects."""
        told = self.told or {}
        return bool(told.get("X", told.get("values")) == "objects")

    def known(self, held: Attachment) -> ValueHash:
        """Return the hash with the sums of the records."""
        if self.sums is not None:
            return self
        return replace(self, sums=self._sums(held, held.live_rows()))

    def without(self, held: Attachment, rows: NDArray[np.int64]) -> ValueHash:
        """Return the hash without some records, in time that depends on these alone."""
        return self._changed(held, rows, np.subtract)

    def having(self, held: Attachment, rows: NDArray[np.int64]) -> ValueHash:
        """Return the hash with some more records, in time that depends on these alone."""
        return self._changed(held, rows, np.add)

    def _changed(self, held: Attachment, rows: NDArray[np.int64], by: np.ufunc) -> ValueHash:
        if self.sums is None:
            return self if self.told is None else self.unknown()
        return replace(self, sums=by(self.sums, self._sums(held, rows)), told=None)

    def unknown(self) -> ValueHash:
        """Return the hash for records that are not known yet."""
        return replace(self, sums=None, told=None)

    def _sums(self, held: Attachment, rows: NDArray[np.int64]) -> Words:
        return _sums(held.records, rows, self.parts, self.unread)

    def written(self, held: Attachment | None) -> dict[str, Any] | None:
        """Return the entry of a file; None where neither a file nor records tell."""
        if self.told is not None or held is None:
            return self.told
        kinds, sums = _kinds(held.records, self.parts), self.known(held).sums
        if self.unread:
            kinds[_UNREAD] = ",".join(map(str, self.unread))
        assert sums is not None
        text = json.dumps([kinds, sums.tolist()], sort_keys=True)
        return {**kinds, "hash": sha256(text.encode()).hexdigest()}

    def check(self, held: Attachment) -> ValueHash:
        """Return the hash of records; ArtifactError if they have other values than told."""
        assert self.told is not None
        for part, kind in _kinds(held.records, self.parts).items():
            if kind != self.told[part]:
                raise ArtifactError(
                    f"the records have {kind} as {part}; expected {self.told[part]}, as the model "
                    "was fitted on; pass the records it was fitted on, unchanged"
                )
        found = self.unknown().known(held)
        if found.written(held) != self.told:
            names = " or ".join(
                part.replace("values", "X").replace("numbers", "y") for part in self.parts
            )
            raise ArtifactError(
                f"the records have the ids of those that the model holds, and another {names}; "
                "expected the records it was fitted on, unchanged, without those it has deleted; "
                "pass these, or fit again"
            )
        return replace(found, told=self.told)


def _kinds(records: HeldRecords, names: Iterable[str]) -> dict[str, str]:
    """Return for each part how its values are stored, where a model may depend on that."""
    return {name: _kind(records, name) for name in names}


def _kind(records: HeldRecords, name: str) -> str:
    if name in ("X", "values"):
        if records.matrix.dtype == object:
            return "objects"
        if name == "values":
            return "numbers"
        kind = "sparse" if issparse(records.matrix) else "dense"
        return f"{kind} {records.matrix.dtype.name}"
    if name in ("y", "numbers"):
        if records.y is None:
            return "no targets"
        kind = {"f": "floats", "b": "booleans", "O": "text"}.get(records.y.dtype.kind, "integers")
        kind = "numbers" if name == "numbers" and kind in ("floats", "integers") else kind
        return kind if records.y.ndim == 1 else f"{kind} in {records.y.shape[1]} columns"
    return "one for each"


def _sums(
    records: HeldRecords, rows: NDArray[np.int64], names: tuple[str, ...], unread: tuple[int, ...]
) -> Words:
    sums = np.zeros((len(names), 2), dtype=np.uint64)
    keys = _IDS.record_keys(records.ids[rows])
    for name, own in zip(names, sums, strict=True):
        purpose = _PURPOSES[name]
        if name in ("X", "values"):
            _add_values(records.matrix, rows, keys, purpose, own, unread)
        elif name in ("y", "numbers") and records.y is not None:
            y = records.y.reshape(records.n_rows, -1)
            places = rows
            if name == "numbers" and y.dtype.kind in "iuf":
                y, places = y[rows].astype(np.float64), np.arange(rows.size)
            _add_values(y, places, keys, purpose, own)
        elif name == "sample_weight":
            given = records.weights
            weights = np.ones(rows.size) if given is None else given[rows]
            kernels.sum_dense(weights[:, np.newaxis], np.arange(rows.size), keys, purpose, own)
        elif name == "groups":
            owners = records.ids if records.groups is None else records.groups
            words = _IDS.record_keys(owners[rows])[:, np.newaxis]
            kernels.sum_words(words, keys, purpose, own)
    return sums


class _Hash(Pass[Words]):
    """Hash the values of records, which have these keys."""

    takes_gaps = True

    def __init__(self, keys: Words, purpose: np.uint64, unread: tuple[int, ...]) -> None:
        self._keys, self._purpose, self._unread = PerLiveRow(keys), purpose, unread

    def of_block(self, block: Block) -> Words:
        sums = np.zeros(2, dtype=np.uint64)
        own = self._keys.of(block)
        if block.matrix.dtype == object:
            rows = block.matrix[block.positions]
            chosen = _without(rows.objects() if isinstance(rows, Mixed) else rows, self._unread)
            words = _words(chosen.reshape(-1)).reshape(chosen.shape)
            kernels.sum_words(words, own, self._purpose, sums)
        else:
            matrix, positions = _read(block.matrix, block.positions, self._unread)
            kernels.sum_dense(matrix, positions, own, self._purpose, sums)
        return sums

    def merge(self, one: Words, other: Words) -> Words:
        return one + other


def _read(
    values: Any, rows: NDArray[np.int64], unread: tuple[int, ...]
) -> tuple[Any, NDArray[np.int64]]:
    """Return values, blank in columns that do not count, and the positions of rows in them."""
    return (_without(values[rows], unread), np.arange(rows.size)) if unread else (values, rows)


def _without(chosen: Any, unread: tuple[int, ...]) -> Any:
    """Blank columns of rows, which are copied."""
    if not unread:
        return chosen
    if issparse(chosen):
        kept = np.ones(chosen.shape[1])
        kept[list(unread)] = 0.0
        return canonical(chosen.multiply(kept).tocsr())
    chosen = np.array(chosen)
    chosen[:, list(unread)] = 0.0
    return chosen


def _add_values(
    values: Any,
    rows: NDArray[np.int64],
    keys: Words,
    purpose: np.uint64,
    sums: Words,
    unread: tuple[int, ...] = (),
) -> None:
    if isinstance(values, Stored):
        sums += run(_Hash(keys, purpose, unread), values, rows)
        return
    values, rows = _read(values, rows, unread)
    if issparse(values):
        kernels.sum_sparse(*parts(values), values.shape[1], rows, keys, purpose, sums)
    elif values.dtype.kind == "f":
        kernels.sum_dense(values, rows, keys, purpose, sums)
    else:
        chosen = values[rows]
        words = _words(chosen.reshape(-1)).reshape(chosen.shape)
        kernels.sum_words(words, keys, purpose, sums)


def _words(cells: NDArray[Any]) -> Words:
    """Hash integers, booleans, or objects of several types: 1, 1.0, True and "1" differ."""
    if cells.dtype.kind != "O":
        return _words_of(bool if cells.dtype.kind == "b" else int, cells)
    words = np.empty(cells.size, dtype=np.uint64)
    kinds = list(map(type, cells.tolist()))
    marks = np.fromiter(map(id, kinds), np.uint64, cells.size)  # comparing types is slow
    for kind in set(kinds):
        own = marks == id(kind)
        words[own] = _words_of(_base_of(kind), cells[own])
    return words


def _base_of(kind: type) -> type:
    return next(base for base in _KINDS if issubclass(kind, base))  # bool before int


def _words_of(kind: type, cells: NDArray[Any]) -> Words:
    tape = _KINDS[kind]
    if kind is float:
        numbers = cells.astype(np.float64) + 0.0
        numbers[np.isnan(numbers)] = np.nan
        return tape.record_keys(numbers.view(np.int64))
    if kind is bool:
        return tape.record_keys(cells.astype(np.int64))
    if kind is int and cells.dtype != object:
        return tape.record_keys(cells)
    if kind is int:
        large = [value if value in _SMALL else str(value) for value in cells.tolist()]
        return tape.record_keys(of_objects(large))
    return tape.record_keys(of_objects(cells.tolist()))
