"""Tables of a place: a file, the files of a folder, or the tables of a database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from erasable.core.errors import SourceError
from erasable.workspace.data import databases, files
from erasable.workspace.data.sources import Source


def tables_of(
    text: str, query: str | None = None, *, besides: Path
) -> Iterator[tuple[str, Source]]:
    """Return the tables that a path or URL names, each with a name for people.

    A folder has a table for each file below it that `Source` reads, without those of the folder
    `besides`; the URL of a database without
    ``#table``, one for each of its tables. Raise SourceError where there are none.
    """
    if query is None and Source.takes_query(text):
        for name in databases.table_names(text):
            found = Source.parse(f"{text}#{name}")
            yield found.place, found
        return
    path = Path(text)
    if "://" in text or not files.is_folder(path):
        found = Source.parse(text, query)
        yield (f"{found.place} ({query})" if query is not None else found.place), found
        return
    n_files = 0
    for each in sorted(path.rglob("*")):
        own = each.absolute().is_relative_to(besides)
        if Source.reads(each) and each.is_file() and not own:
            n_files += 1
            yield str(each), Source.parse(str(each))
    if not n_files:
        raise SourceError(
            f"{text!r} has no file that can be read; expected .csv, .tsv, .jsonl, .ndjson or "
            ".parquet; name a folder with one"
        )
