"""Tables of LanceDB as targets: every file of a table is written anew, and old versions removed.

The law kept here: LanceDB commits each step by itself, and takes nothing from other writers. What
a killed erasure has not done yet, the next one does.
"""

from __future__ import annotations

import inspect
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa
from lancedb.index import FTS, Bitmap, BTree, LabelList

from erasable.core.errors import SourceError
from erasable.workspace.targets.addresses import refused_as
from erasable.workspace.targets.handles import open_elsewhere
from erasable.workspace.targets.marks import Marks
from erasable.workspace.targets.protocol import Records, RecordTarget, Settings
from erasable.workspace.targets.records import places_of
from erasable.workspace.targets.residue import Found

_AT_ONCE = 4_096  # rows of a batch
_OF_A_DELETE = 500  # people of one statement
_EXPECTED = "expected lancedb:FOLDER#TABLE"


class LanceTarget(RecordTarget):
    """Rows of a table of LanceDB in a folder; ``lancedb:FOLDER#TABLE``.

    The subject is a column of texts or integers, also one in a struct: ``metadata.email``.

    LanceDB hides deleted rows until a tenth of a file is deleted, and keeps old versions. So all
    rows are written anew, in their order, as an update that changes nothing; scalar and full-text
    indexes are built anew, vector indexes without the rows that are gone; and all versions but the
    last are removed. Centroids and codebooks that a vector index has learned stay; a table without
    rows loses its vector indexes.

    A reader of an older version gets an error when it reads on, and has to open the table again. A
    writer at the same time loses nothing; where the two collide, one of them gets an error. Tags
    and branches hold old versions: they are a reason why it is not proved that records are gone. So
    is a file with values of people that no version names, of a writer that was killed or is still
    at work: LanceDB removes it when it is seven days old.

    Raises SourceError if there is no such folder or table, if the table is of a version that this
    LanceDB does not read, or if it has no column of a subject.
    """

    def __init__(self, place: str, settings: Settings) -> None:
        """Open the table; nothing is changed."""
        self.settings = settings
        self.shown = place
        folder, _, self.name = place.partition(":")[2].partition("#")
        self._folder = Path(folder, f"{self.name}.lance")
        if not folder or not self.name or "://" in folder:
            raise SourceError(f"{place!r} does not name a table in a folder; {_EXPECTED}")
        if not self._folder.is_dir():  # connecting would make the folder
            raise SourceError(f"{place!r}: there is no such table; {_EXPECTED}")
        with self._told("opened"):
            self._table = lancedb.connect(folder).open_table(self.name)
            known = _flat(self._table.schema.empty_table())
        for subject in settings.subjects:
            if subject.field not in known.column_names:
                raise SourceError(
                    f"{place!r} has no column {subject.field!r}: a table without a subject field; "
                    f"expected one of {', '.join(known.column_names)}"
                )
            kind = known.schema.field(subject.field).type
            if not (pa.types.is_integer(kind) or pa.types.is_string(_plain(kind))):
                raise SourceError(
                    f"column {subject.field!r} of {place!r} is of type {kind}; expected texts or "
                    "integers, by which rows can be named"
                )

    def batches(self) -> Iterator[Records]:
        """Return all rows; keys are the values of subjects, and how many such rows came before."""
        seen: Counter[tuple[Any, ...]] = Counter()
        subjects = [subject.field for subject in self.settings.subjects]
        with self._told("read"):
            self._table.checkout_latest()
            for batch in self._table.search().to_batches(_AT_ONCE):
                rows = _flat(pa.Table.from_batches([batch]))
                fields = {
                    part: values
                    for name in rows.column_names
                    for part, values in places_of(name, _values(rows[name]))
                }
                keys = []
                for named in zip(*(fields[name] for name in subjects), strict=True):
                    keys.append((*named, seen[named]))
                    seen[named] += 1
                yield Records(keys, fields)

    def delete(self, keys: Sequence[Any]) -> None:
        """Delete the rows with the values of subjects that keys begin with."""
        subjects = [_quoted(subject.field) for subject in self.settings.subjects]
        named = list(dict.fromkeys(key[: len(subjects)] for key in map(tuple, keys)))
        with self._told("changed"):
            for at in range(0, len(named), _OF_A_DELETE):
                self._table.delete(_where(subjects, named[at : at + _OF_A_DELETE]))

    def compact(self) -> list[str]:
        """Write rows and indexes anew, and remove old versions."""
        if not open_elsewhere(self._folder):
            for begun in self._parts(".tmp*"):  # by a program that was killed
                begun.unlink()
        with self._told("written anew"):
            table = self._table
            table.checkout_latest()
            if table.count_rows():
                column = self._least_column()
                table.update(values_sql={column: _quoted(column)})
            table.optimize()
            kept = [name for index in table.list_indices() for name in self._rebuild(index)]
            holders = [*table.tags.list(), *table.branches.list()]
            if not holders:
                table.optimize(cleanup_older_than=timedelta(0))
                if len(table.list_versions()) > 1:  # that step has changed an index
                    table.optimize(cleanup_older_than=timedelta(0))
        reasons = [f"the index {name!r} could not be built anew" for name in kept]
        if holders:
            names = ", ".join(sorted(map(repr, holders))[:3])
            reasons.append(f"tags or branches ({names}) hold old versions")
        return reasons

    def files(self) -> Iterable[Path]:
        """Return all files of the table."""
        return sorted(path for path in self._folder.rglob("*") if path.is_file())

    def scan(self, marks: Marks, living: Marks) -> Found:
        """Look for values in all files; say of those with some which no version names."""
        found = super().scan(marks, living)
        manifests = [path.read_bytes() for path in self._folder.glob("_versions/*.manifest")]
        named = [name for name in found.where if any(name.encode() in each for each in manifests)]
        parts = {path.name for path in self._parts("*")}
        if loose := sorted(parts & {*found.where} - {*named}):
            found.reasons.append(
                f"no version names {', '.join(loose[:3])}, of a writer that was killed or is at "
                "work; where none is at work, optimize(cleanup_older_than=timedelta(0), "
                "delete_unverified=True) of LanceDB removes such files"
            )
        return found

    def _parts(self, pattern: str) -> Iterator[Path]:
        """Return files of rows and of changes, which a version may name."""
        for folder in ("data", "_transactions"):
            yield from self._folder.glob(f"{folder}/{pattern}")

    def _least_column(self) -> str:
        """Return the name of a column that costs little to evaluate."""
        schema = self._table.schema
        plain = [field.name for field in schema if not pa.types.is_nested(field.type)]
        return str((plain or schema.names)[0])

    def _rebuild(self, index: Any) -> Iterator[str]:
        """Build an index of values anew; return its name where that cannot be done."""
        if index.index_type.startswith("Ivf"):  # of vectors, which leaves out rows that are gone
            if not self._table.count_rows():
                self._table.drop_index(index.name)  # it would stay as it was
            return
        config = _config(index)
        if config is None:
            yield index.name
        else:
            self._table.create_index(index.columns[0], config=config, name=index.name)

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Tell errors of LanceDB in one line, and nothing of its warnings."""
        expected = (
            f"a table that LanceDB {lancedb.__version__} reads and writes, and that no other "
            "program changes at the same time"
        )
        with (
            refused_as(repr(self.shown), f"could not be {what}", expected),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", UserWarning)  # of readers of older versions
            yield


def _flat(rows: pa.Table) -> pa.Table:
    """Return a table whose structs are columns of their own: ``metadata.email``."""
    while any(pa.types.is_struct(kind) for kind in rows.schema.types):
        rows = rows.flatten()
    return rows


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.string() if pa.types.is_large_string(kind) else kind


def _values(column: pa.ChunkedArray) -> Sequence[Any]:
    """Return the values of a column, vectors as arrays."""
    kind = column.type
    if (
        pa.types.is_fixed_size_list(kind)
        and pa.types.is_primitive(kind.value_type)
        and not column.null_count
    ):
        flat = column.combine_chunks().flatten()
        if not flat.null_count:
            vectors = flat.to_numpy(zero_copy_only=False).reshape(-1, kind.list_size)
            return list(vectors)
    values: list[Any] = column.to_pylist()
    return values


def _quoted(field: str) -> str:
    return ".".join(f"`{part}`" for part in field.split("."))


def _where(subjects: Sequence[str], named: Sequence[tuple[Any, ...]]) -> str:
    """Return a condition that holds for rows with any of some values of subjects."""
    if len(subjects) == 1:
        return f"{subjects[0]} in ({', '.join(_literal(value) for (value,) in named)})"
    return " or ".join(
        "("
        + " and ".join(
            f"{subject} is null" if value is None else f"{subject} = {_literal(value)}"
            for subject, value in zip(subjects, values, strict=True)
        )
        + ")"
        for values in named
    )


def _literal(value: Any) -> str:
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


_PLAIN = {"BTree": BTree, "Bitmap": Bitmap, "LabelList": LabelList}
_RENAMED = {"min_ngram_length": "ngram_min_length", "max_ngram_length": "ngram_max_length"}
_ONLY = {  # options that a new index has, and no other values of them
    "lance_tokenizer": "text", "split_identifiers": False, "split_on_numerics": False,
    "preserve_original": False, "index_operators": False,
}  # fmt: skip


def _config(index: Any) -> Any:
    """Return how to build an index anew; None where that is not known."""
    if index.index_type in _PLAIN:
        return _PLAIN[index.index_type]()
    if index.index_type != "FTS":
        return None
    options = {_RENAMED.get(name, name): value for name, value in index.index_details.items()}
    taken = inspect.signature(FTS).parameters
    others = {name: value for name, value in options.items() if name not in taken}
    if any(name not in _ONLY or value != _ONLY[name] for name, value in others.items()):
        return None
    return FTS(**{name: value for name, value in options.items() if name in taken})
