"""Where data comes from: a file, a folder of Parquet files, or a table of a database.

The law kept here: a source is read whole and as it is, or refused in one line that repeats none of
its values. What is kept of it names the place, never a user, a password or a parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from erasable.core.errors import SourceError
from erasable.workspace.data.files import is_folder, read_csv, read_parquet

__all__ = ["Source"]

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
_PARQUET = (".parquet", ".pq")
_EXPECTED = (
    "expected a .csv, .tsv, .csv.gz, .tsv.gz or .parquet file, a folder of Parquet files, or a "
    "table by URL, as in sqlite:///shop.db#visits"
)


class Source:
    r"""A place that data is read from; `Source.parse` finds out of what kind.

    Attributes
    ----------
    kind : {"csv", "parquet", "sql"}
    place : str
        An absolute path, or a URL without credentials and parameters.
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
            A path, or the URL of a database in the form of SQLAlchemy, with ``#table`` or
            ``#schema.table`` at its end unless `query` is given.
        query : str, default=None
            SQL whose rows are the records.

        Raises
        ------
        SourceError
            It is of no known kind.
        """
        if not text.strip() or "\0" in text or not _is_unicode(text):
            raise SourceError(f"the source is no name of anything; {_EXPECTED}; name one")
        if "://" in text:
            from erasable.workspace.data.databases import place_of

            return cls("sql", place_of(text, query), query, text)
        if query is not None:
            raise SourceError(
                f"a query came with {text!r}, which is a file; expected the URL of a database; "
                "leave --query out, or name a database"
            )
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

    def to_json(self) -> dict[str, Any]:
        """Describe the source for the ledger: its kind, its place and its query."""
        kept = {"kind": self.kind, "place": self.place}
        return kept if self.query is None else {**kept, "query": self.query}

    def read(self, text_columns: Sequence[str] = ()) -> pa.Table:
        """Read all records.

        Parameters
        ----------
        text_columns : sequence of str
            Columns that have to be there, of ids and subjects. From CSV they are read as text, so
            that "007" stays; elsewhere they keep their type. Blank text and NaN become null;
            "NA" and the like stay.

        Returns
        -------
        pyarrow.Table
            With one record or more.

        Raises
        ------
        SourceError
            The source is not there, cannot be read, has no records, lacks one of the columns,
            repeats a column, or has columns of lists or structures.
        """
        if self.kind == "sql":
            from erasable.workspace.data.databases import read_sql

            table = read_sql(self._given, self.place, self.query)
        elif self.kind == "parquet":
            table = read_parquet(Path(self.place))
        else:
            path = Path(self.place)
            table = read_csv(path, _separator(path) or ",", text_columns)
        _check(table, text_columns, self.place)
        for column in dict.fromkeys(text_columns):
            at = table.column_names.index(column)
            table = table.set_column(at, column, _without_blanks(table[column]))
        return table


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _separator(path: Path) -> str | None:
    name = path.name.lower()
    return next((sep for end, sep in _SEPARATORS.items() if name.endswith(end)), None)


def _check(table: pa.Table, wanted: Sequence[str], place: str) -> None:
    names = table.column_names
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
    nested = [field.name for field in table.schema if pa.types.is_nested(field.type)]
    if nested:
        raise SourceError(
            f"{place!r} has lists or structures in {', '.join(map(repr, nested[:5]))}; expected "
            "plain columns; flatten them, or leave them out"
        )
    if table.num_rows == 0:
        raise SourceError(f"{place!r} has no records; expected one or more; check that it is whole")


def _remedy(names: Sequence[str]) -> str:
    """Say what to do about a column that is not there."""
    if len(names) == 1 and any(separator in names[0] for separator in ";\t|"):
        return "the one name looks like several: separate them with commas (tabs in a .tsv file)"
    return "correct the name"


def _without_blanks(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Make blank text and NaN null: nobody is called that."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        blank = pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(column)), 0)
    elif pa.types.is_floating(column.type):
        blank = pc.is_nan(column)
    else:
        return column
    return pc.if_else(blank, pa.scalar(None, column.type), column)
