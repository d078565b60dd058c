"""Sources of data: a file, a folder of Parquet files, or a table or query of a database.

The law kept here: a source is read whole and unchanged, or refused with an error of one line, which
contains no identity of a person. The stored description of a source names its place, never a user,
a password or a parameter. A source is read in batches; one batch at a time is in memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from erasable.core.errors import DialectWarning, SourceError
from erasable.workspace.data import files
from erasable.workspace.data.arrays import holds_arrays
from erasable.workspace.data.column_types import ColumnTypes, Widening
from erasable.workspace.data.delimited import csv_batches, settle_dialect
from erasable.workspace.data.dialects import UNSAID, Dialect
from erasable.workspace.data.files import is_folder
from erasable.workspace.data.json_lines import json_batches
from erasable.workspace.data.parquet import parquet_batches
from erasable.workspace.identity.canonical import BLANK
from erasable.workspace.ledger.kinds import is_unicode

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
_PARQUET = (".parquet", ".pq")
_JSON = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
_EXPECTED = (
    "expected a .csv, .tsv, .jsonl, .ndjson (each with .gz, too) or .parquet file, a folder of "
    "Parquet files, there or by URL, as in s3://bucket/visits, or a table by URL, as in "
    "sqlite:///shop.db#visits"
)


class EmptySourceError(SourceError):
    """A source has no records."""


class Source:
    r"""A source of kind "csv", "json", "parquet" or "sql"; `Source.parse` finds the kind.

    `place` is an absolute path, or the URL of a database or object store without credentials and
    parameters. `query` is the SQL that chooses the records, None for a whole table. `dialect` may
    be incomplete; see `settled`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "visits.csv")
    ...     _ = path.write_text("visit,patient,age\n1,007,41\n2,,28\n")
    ...     table = Source.parse(str(path)).read(["patient"])
    >>> table.to_pydict()
    {'visit': [1, 2], 'patient': ['007', None], 'age': [41, 28]}
    """

    def __init__(
        self, kind: str, place: str, query: str | None, given: str, dialect: Dialect = UNSAID
    ) -> None:
        self.kind = kind
        self.place = place
        self.query = query
        self.dialect = dialect
        self._given = given  # with credentials, for reading

    def __repr__(self) -> str:
        return f"Source(kind={self.kind!r}, place={self.place!r}, query={self.query!r})"

    @classmethod
    def parse(cls, text: str, query: str | None = None, dialect: Dialect = UNSAID) -> Source:
        """Find the kind of a path or URL; open nothing but folders.

        `text` is a path, the URL of Parquet in an object store (as fsspec has it), or the URL of a
        database (as SQLAlchemy has it), with ``#table`` or ``#schema.table`` at its end unless
        `query` is given. Refuse a dialect for other files than text.
        """
        found = cls._parsed(text, query, dialect)
        if found.kind != "csv" and dialect != UNSAID:
            raise SourceError(
                "--delimiter, --decimal or --encoding came with a source that is no text file with "
                "separators; expected them for .csv and .tsv; leave them out"
            )
        return found

    @classmethod
    def _parsed(cls, text: str, query: str | None, dialect: Dialect) -> Source:
        if not text.strip() or "\0" in text or not is_unicode(text):
            raise SourceError(f"the source is no name of anything; {_EXPECTED}")
        if files.is_store(text):
            _refuse_query(text, query)
            place = files.store_place(text)
            return cls("parquet", place, None, place)
        if "://" in text:
            from erasable.workspace.data.databases import place_of

            return cls("sql", place_of(text, query), query, text)
        _refuse_query(text, query)
        path = Path(text).absolute()
        if is_folder(path) or path.suffix.lower() in _PARQUET:
            return cls("parquet", str(path), None, str(path))
        if path.name.lower().endswith(_JSON):
            return cls("json", str(path), None, str(path))
        if _separator(path) is not None:
            return cls("csv", str(path), None, str(path), dialect)
        raise SourceError(f"{text!r} is of no known kind; {_EXPECTED}; convert it, or rename it")

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Source:
        """Return the source that `to_json` described, without credentials."""
        return cls(kept["kind"], kept["place"], kept.get("query"), kept["place"])

    @staticmethod
    def reads(path: Path) -> bool:
        """Tell whether a file is of a known kind, by its name."""
        name = path.name.lower()
        return name.endswith((*_PARQUET, *_JSON)) or _separator(path) is not None

    @staticmethod
    def takes_query(text: str) -> bool:
        """Tell whether a place needs a query: it is a database without ``#table``."""
        at_end = text.rpartition("/")[2]
        return "://" in text and "#" not in at_end and not files.is_store(text)

    def to_json(self) -> dict[str, Any]:
        """Describe the source for the ledger: kind, place, query, and the dialect if it is unusual.

        The encoding that the mark of a file shows is not kept.
        """
        kept: dict[str, Any] = {"kind": self.kind, "place": self.place}
        unusual = {
            name: value
            for name, value in self.dialect.to_json().items()
            if value != getattr(self._usual, name) and value != "utf-16"
        }
        if unusual:
            kept["dialect"] = unusual
        return kept if self.query is None else {**kept, "query": self.query}

    @property
    def _usual(self) -> Dialect:
        return Dialect(_separator(Path(self.place)), ".", "utf-8")

    def settled(self, text_columns: Sequence[str] = (), types: ColumnTypes | None = None) -> Source:
        """Find the dialect of a text file; see `batches` for the parameters.

        An option of the user comes first, then a mark of the file that leaves no doubt, then the
        dialect of the data set. A `DialectWarning` names what was found in the file. Return the
        source with a complete dialect, where it is a text file.
        """
        if self.kind != "csv" or None not in astuple(self.dialect):
            return self
        if types is not None and types.is_partial:
            # A declared number may show the decimal mark, as one that is found may.
            declared = types.types.items()
            kept = [name for name, kind in declared if not pa.types.is_floating(kind)]
            text_columns, types = [*text_columns, *kept], None
        known = (types.dialect if types is not None else UNSAID).over(self._usual)
        dialect, remarks = settle_dialect(
            Path(self.place), self.dialect, known, text_columns,
            types.types if types is not None else None,
        )  # fmt: skip
        for each in remarks:
            warnings.warn(each, DialectWarning, stacklevel=2)
        return Source(self.kind, self.place, self.query, self._given, dialect)

    @property
    def folder(self) -> Path | None:
        """The folder of the source; None if it is not on this machine."""
        local = self.kind != "sql" and not files.is_store(self.place)
        return Path(self.place).parent if local else None

    def batches(
        self, text_columns: Sequence[str] = (), types: ColumnTypes | None = None
    ) -> Generator[pa.Table, None, None]:
        """Read all records, some at a time.

        Parameters
        ----------
        text_columns : sequence of str
            Columns that have to be there, of ids and subjects. From CSV and from the names of
            folders they are read as text, so that "007" stays; elsewhere they keep their type.
            Blank text and NaN become null; "NA" and the like stay.
        types : ColumnTypes, default=None
            Of a data set, which decide what columns hold; other columns of a text file are text,
            unless the types are partial.

        Yields
        ------
        pyarrow.Table
            All with the same columns. From a database each has the types of its own values; see
            `erasable.workspace.data.column_types`.

        Raises
        ------
        SourceError
            The source is not there, cannot be read to its end, has no records, lacks one of the
            columns, repeats a column, or has columns of structures, or of lists of other than
            numbers; or a value does not fit its type.
        """
        if (whole := self.settled(text_columns, types)) is not self:
            yield from whole.batches(text_columns, types)
            return
        n_records = 0
        as_text = [*text_columns, *(types.types if types is not None else ())]
        typed = types is None or types.is_partial
        with closing(self._parts(as_text, typed)) as parts:
            for at, part in enumerate(parts):
                table = part if isinstance(part, pa.Table) else pa.Table.from_batches([part])
                if at == 0:
                    _check(table.schema, as_text if typed else text_columns, self.place)
                elif self.kind == "sql":
                    _check_nested(table.schema, self.place)
                for column in dict.fromkeys(text_columns):
                    where = table.column_names.index(column)
                    table = table.set_column(where, column, _without_blanks(table[column]))
                if types is not None:
                    decimal = self.dialect.decimal or "."
                    table = types.read(table, n_records + self.first_row, decimal)
                n_records += table.num_rows
                yield table
        if n_records == 0:
            raise EmptySourceError(
                f"{self.place!r} has no records; expected one or more; check that it is whole"
            )

    @property
    def first_row(self) -> int:
        """The row number of the first record; the header of a text file is row 1."""
        return 2 if self.kind == "csv" else 1

    def _parts(
        self, text_columns: Sequence[str], typed: bool
    ) -> Generator[pa.Table | pa.RecordBatch, None, None]:
        if self.kind == "sql":
            from erasable.workspace.data.databases import sql_batches

            yield from sql_batches(self._given, self.place, self.query)
        elif self.kind == "parquet":
            store, path = (
                files.open_store(self.place) if "://" in self.place else (None, self.place)
            )
            yield from parquet_batches(self.place, text_columns, store, path)
        elif self.kind == "json":
            yield from json_batches(Path(self.place), text_columns)
        else:
            yield from csv_batches(Path(self.place), self.dialect, text_columns, typed=typed)

    def read(self, text_columns: Sequence[str] = (), types: ColumnTypes | None = None) -> pa.Table:
        """Read all records at once, one or more; see `batches` for types and errors."""
        wide, parts = Widening(self.place), []
        for part in self.batches(text_columns, types):
            wide.add(part.schema)
            parts.append(part)
        return pa.concat_tables([wide.cast(part) for part in parts])


def _refuse_query(text: str, query: str | None) -> None:
    if query is not None:
        raise SourceError(
            f"a query came with {text!r}, which is a file; expected the URL of a database; "
            "leave --query out, or name a database"
        )


def _separator(path: Path) -> str | None:
    name = path.name.lower()
    return next((sep for end, sep in _SEPARATORS.items() if name.endswith(end)), None)


def _check(schema: pa.Schema, wanted: Sequence[str], place: str) -> None:
    names = schema.names
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise SourceError(
            f"{place!r} has the columns {', '.join(map(repr, repeated[:5]))} more than once; "
            "expected each once; rename them"
        )
    missing = [name for name in wanted if name not in names]
    if missing:
        raise SourceError(
            f"{place!r} has no column {', '.join(map(repr, missing))}; expected one of its own: "
            f"{', '.join(map(repr, names[:20]))}{', ...' if len(names) > 20 else ''}; "
            f"{_remedy(names)}"
        )
    _check_nested(schema, place)


def _check_nested(schema: pa.Schema, place: str) -> None:
    nested = [
        field.name
        for field in schema
        if pa.types.is_nested(field.type) and not holds_arrays(field.type)
    ]
    if nested:
        raise SourceError(
            f"{place!r} has structures, or lists of other than numbers, in "
            f"{', '.join(map(repr, nested[:5]))}; expected plain columns, or arrays of numbers in "
            "one row; flatten them, or leave them out"
        )


def _remedy(names: Sequence[str]) -> str:
    """Return the remedy for a column that is not there."""
    if len(names) == 1 and any(separator in names[0] for separator in ";\t|"):
        return "the one name looks like several: say what separates them with --delimiter"
    return "correct the name"


def _without_blanks(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Make blank text and NaN null: neither is an identity."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        blank = pc.match_substring_regex(column, BLANK)
    elif pa.types.is_floating(column.type):
        blank = pc.is_nan(column)
    else:
        return column
    return pc.if_else(blank, pa.scalar(None, column.type), column)
