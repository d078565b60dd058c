"""Where data comes from: a file, a folder of Parquet files, or a table or query of a database.

The law kept here: a source is read whole and as it is, or refused in one line that repeats none of
its values. What is kept of it names the place, never a user, a password or a parameter. It is read
in batches, and no more than one of them is held.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from erasable.core.errors import SourceError
from erasable.workspace.data import stores
from erasable.workspace.data.arrays import holds_arrays
from erasable.workspace.data.delimited import csv_batches
from erasable.workspace.data.files import is_folder
from erasable.workspace.data.parquet import parquet_batches
from erasable.workspace.data.widening import Widening
from erasable.workspace.ledger.kinds import is_unicode

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
_PARQUET = (".parquet", ".pq")
_EXPECTED = (
    "expected a .csv, .tsv, .csv.gz, .tsv.gz or .parquet file, a folder of Parquet files, "
    "there or by URL, as in s3://bucket/visits, or a table by URL, as in sqlite:///shop.db#visits"
)


class Source:
    r"""A place that data is read from; `Source.parse` finds out of what kind.

    Attributes
    ----------
    kind : {"csv", "parquet", "sql"}
    place : str
        An absolute path, or a URL without credentials and parameters: of a database, or of an
        object store.
    query : str or None
        The SQL that chooses the records, where it is not a whole table.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "visits.csv")
    ...     _ = path.write_text("visit,patient,age\n1,007,41\n2,,28\n")
    ...     table = Source.parse(str(path)).read(["patient"])
    >>> table.to_pydict()
    {'visit': [1, 2], 'patient': ['007', None], 'age': [41, 28]}
    """

    def __init__(self, kind: str, place: str, query: str | None, given: str) -> None:
        self.kind = kind
        self.place = place
        self.query = query
        self._given = given  # with credentials, for reading

    def __repr__(self) -> str:
        return f"Source(kind={self.kind!r}, place={self.place!r}, query={self.query!r})"

    @classmethod
    def parse(cls, text: str, query: str | None = None) -> Source:
        """Find out what a path or URL names; nothing is opened but folders.

        Parameters
        ----------
        text : str
            A path; the URL of a file or folder of Parquet in an object store, in the form of
            fsspec; or the URL of a database in the form of SQLAlchemy, with ``#table`` or
            ``#schema.table`` at its end unless `query` is given.
        query : str, default=None
            SQL whose rows are the records.

        Raises
        ------
        SourceError
            It is of no known kind.
        """
        if not text.strip() or "\0" in text or not is_unicode(text):
            raise SourceError(f"the source is no name of anything; {_EXPECTED}")
        if stores.is_store(text):
            _refuse_query(text, query)
            place = stores.store_place(text)
            return cls("parquet", place, None, place)
        if "://" in text:
            from erasable.workspace.data.databases import place_of

            return cls("sql", place_of(text, query), query, text)
        _refuse_query(text, query)
        path = Path(text).absolute()
        if is_folder(path) or path.suffix.lower() in _PARQUET:
            return cls("parquet", str(path), None, str(path))
        if _separator(path) is not None:
            return cls("csv", str(path), None, str(path))
        raise SourceError(f"{text!r} is of no known kind; {_EXPECTED}; convert it, or rename it")

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Source:
        """Return the source that `to_json` described, without credentials."""
        return cls(kept["kind"], kept["place"], kept.get("query"), kept["place"])

    @staticmethod
    def takes_query(text: str) -> bool:
        """Tell whether it takes a query to say which records of a place are meant.

        Examples
        --------
        >>> [Source.takes_query(text) for text in ("a.csv", "sqlite:///a.db", "sqlite:///a.db#b")]
        [False, True, False]
        """
        at_end = text.rpartition("/")[2]
        return "://" in text and "#" not in at_end and not stores.is_store(text)

    def to_json(self) -> dict[str, Any]:
        """Describe the source for the ledger: its kind, its place and its query."""
        kept = {"kind": self.kind, "place": self.place}
        return kept if self.query is None else {**kept, "query": self.query}

    @property
    def folder(self) -> Path | None:
        """In which it lies; None where that is no folder of this machine."""
        local = self.kind != "sql" and not stores.is_store(self.place)
        return Path(self.place).parent if local else None

    def batches(self, text_columns: Sequence[str] = ()) -> Generator[pa.Table, None, None]:
        """Read all records, some at a time.

        Parameters
        ----------
        text_columns : sequence of str
            Columns that have to be there, of ids and subjects. From CSV and from the names of
            folders they are read as text, so that "007" stays; elsewhere they keep their type.
            Blank text and NaN become null; "NA" and the like stay.

        Yields
        ------
        pyarrow.Table
            All with the same columns. From a database each has the types of its own values; see
            `erasable.workspace.data.widening`.

        Raises
        ------
        SourceError
            The source is not there, cannot be read to its end, has no records, lacks one of the
            columns, repeats a column, or has columns of structures, or of lists of other than
            numbers.
        """
        n_records = 0
        with closing(self._parts(text_columns)) as parts:
            for at, part in enumerate(parts):
                table = part if isinstance(part, pa.Table) else pa.Table.from_batches([part])
                if at == 0:
                    _check(table.schema, text_columns, self.place)
                elif self.kind == "sql":
                    _check_nested(table.schema, self.place)
                for column in dict.fromkeys(text_columns):
                    where = table.column_names.index(column)
                    table = table.set_column(where, column, _without_blanks(table[column]))
                n_records += table.num_rows
                yield table
        if n_records == 0:
            raise SourceError(
                f"{self.place!r} has no records; expected one or more; check that it is whole"
            )

    def _parts(
        self, text_columns: Sequence[str]
    ) -> Generator[pa.Table | pa.RecordBatch, None, None]:
        if self.kind == "sql":
            from erasable.workspace.data.databases import sql_batches

            yield from sql_batches(self._given, self.place, self.query)
        elif self.kind == "parquet":
            store, path = stores.opened(self.place) if "://" in self.place else (None, self.place)
            yield from parquet_batches(self.place, text_columns, store, path)
        else:
            path = self.place
            yield from csv_batches(Path(path), _separator(Path(path)) or ",", text_columns)

    def read(self, text_columns: Sequence[str] = ()) -> pa.Table:
        """Read all records at once; see `batches` for what is read, and what is wrong.

        Returns
        -------
        pyarrow.Table
            With one record or more.
        """
        wide, parts = Widening(self.place), []
        for part in self.batches(text_columns):
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
    """Say what to do about a column that is not there."""
    if len(names) == 1 and any(separator in names[0] for separator in ";\t|"):
        return "the one name looks like several: separate them with commas (tabs in a .tsv file)"
    return "correct the name"


def _without_blanks(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Make blank text and NaN null: neither is an identity."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        blank = pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(column)), 0)
    elif pa.types.is_floating(column.type):
        blank = pc.is_nan(column)
    else:
        return column
    return pc.if_else(blank, pa.scalar(None, column.type), column)
