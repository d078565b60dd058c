"""Commands `erasable dataset`: add data sets, keep them up to date, look at them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import typer

import erasable.cli.show as show
from erasable.cli.frame import CommandGroup, command, fail, opened
from erasable.cli.options import (
    DECIMAL,
    DELIMITER,
    ENCODING,
    FOLDER,
    IDENTITY_TYPES,
    JSON,
    argument,
    option,
    switch,
)  # fmt: skip
from erasable.cli.options import columns as listed

app = typer.Typer()

NAME = argument("NAME", "The name of the data set.")
SOURCE = argument(
    "SOURCE",
    "A CSV or TSV file, JSON lines, a Parquet file, a folder of Parquet files or its URL in an "
    "object store, or the URL of a database, such as sqlite:///shop.db#visits.",
)
UPDATE = switch(
    "--update-models",
    "Update all models that learn from it, in the same transaction, except those with the "
    "policy never. Those with the policy at-once are always updated.",
)
QUERY = option("SQL", "What to select, if the source is a database.")


group = typer.Typer(cls=CommandGroup, help="Add data sets, keep them up to date, look at them.")

app.add_typer(group, name="dataset", rich_help_panel="Data and models")


@command(
    group, "add", example="erasable dataset add visits visits.csv --id visit --subject patient"
)
def add(
    name: str = NAME,
    source: str = SOURCE,
    id_column: str = option("COL", "The column that names each record.", "--id", default=...),
    subject: list[str] | None = option(
        "COL:TYPE,...",
        "Columns that say whose records they are, with the type of their values: "
        f"{IDENTITY_TYPES}. By default id; addresses and telephone numbers need a type. phone:DE "
        "says where numbers without a country code are. Only pseudonyms of the values are kept. A "
        "colon in a column's name needs the type: J:R:id.",
    ),
    files: list[str] | None = option(
        "COL,...",
        "Columns that name PNG, JPEG or .npy files, relative to the folder of SOURCE. Their "
        "contents are added to the data set.",
    ),
    types: list[str] | None = option(
        "COL=TYPE,...",
        "Types of columns: text, integer, number, boolean, date, timestamp or time. Those of "
        "other columns follow from their values.",
    ),
    query: str | None = QUERY,
    delimiter: str | None = DELIMITER,
    decimal: str | None = DECIMAL,
    encoding: str | None = ENCODING,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Add a data set."""
    columns, arrays = [
        [column for each in given or () for column in listed(each) or () if column]
        for given in (subject, files)
    ]
    _print_change(
        opened(folder).add_dataset(
            name,
            source,
            id_column=id_column,
            subjects=columns,
            files=arrays,
            types=_types(types),
            query=query,
            delimiter=delimiter,
            decimal=decimal,
            encoding=encoding,
        ),
        as_json,
    )


@command(group, "append", example="erasable dataset append visits march.csv")
def append(
    name: str = NAME,
    source: str = SOURCE,
    query: str | None = QUERY,
    delimiter: str | None = DELIMITER,
    decimal: str | None = DECIMAL,
    encoding: str | None = ENCODING,
    update_models: bool = UPDATE,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Add new records to a data set: its next version."""
    found = opened(folder)
    change = found.append(
        name, source, query=query, update_models=update_models,
        delimiter=delimiter, decimal=decimal, encoding=encoding,
    )  # fmt: skip
    _print_change(change, as_json)


@command(group, "sync", example="erasable dataset sync visits")
def sync(
    name: str = NAME,
    source: str | None = argument("SOURCE", "By default where the data came from.", default=None),
    query: str | None = option("SQL", "By default the query before."),
    delimiter: str | None = DELIMITER,
    decimal: str | None = DECIMAL,
    encoding: str | None = ENCODING,
    update_models: bool = UPDATE,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Bring a data set up to date with its source: new, changed and removed records."""
    found = opened(folder)
    change = found.sync(
        name, source, query=query, update_models=update_models,
        delimiter=delimiter, decimal=decimal, encoding=encoding,
    )  # fmt: skip
    _print_change(change, as_json)


@command(group, "list", example="erasable dataset list")
def list_datasets(folder: str = FOLDER, as_json: bool = JSON) -> None:
    """List the data sets."""
    found = opened(folder).datasets()
    if show.printed(as_json, {"datasets": found}):
        return
    show.table(
        ["name", "version", "records", "id", "subjects", "since"],
        [
            (
                each["name"], each["version"], show.count(each["n_records"]),
                each["id_column"], _subjects(each), show.day(each["created_at"]),
            )
            for each in found
        ],
        right="version,records",
    )  # fmt: skip


@command(group, "show", example="erasable dataset show visits")
def show_dataset(name: str = NAME, folder: str = FOLDER, as_json: bool = JSON) -> None:
    """Show a data set: its columns, its versions, and the models trained on it."""
    found = opened(folder).dataset(name)
    show.warn(found["warnings"])
    if show.printed(as_json, found):
        return
    columns = ", ".join(f"{each['name']} ({each['type']})" for each in found["columns"])
    show.facts(
        [
            ("name", found["name"]),
            ("records", show.count(found["n_records"])),
            ("id", found["id_column"]),
            ("subjects", _subjects(found)),
            ("source", _place(found["source"])),
            ("columns", columns),
            ("models", ", ".join(found["models"]) or "none"),
        ]
    )
    show.line()
    show.table(
        ["version", "by", "records", "kept out", "date"],
        [
            (
                each["number"], each["cause"], show.count(each["n_records"]),
                show.count(each["n_suppressed"]), show.day(each["created_at"]),
            )
            for each in found["versions"]
        ],
        right="version,records,kept out",
    )  # fmt: skip


def _types(given: list[str] | None) -> dict[str, str]:
    """Return the types of columns.

    >>> _types(["zip=text, n=integer", '"dose, mg=number"'])
    {'zip': 'text', 'n': 'integer', 'dose, mg': 'number'}
    """
    found: dict[str, str] = {}
    for each in [part for some in given or () for part in listed(some) or () if part]:
        column, _, kind = each.rpartition("=")
        if not column or column in found:
            fail(
                f"--types has {show.one_line(each)[:60]!r}, with no '=', no column, or one that "
                "came before; expected COL=TYPE, each column once"
            )
        found[column] = kind
    return found


def _subjects(found: dict[str, Any]) -> str:
    named = [
        ":".join(each[part] for part in ("column", "type", "region") if part in each)
        for each in found["subjects"]
    ]
    return ", ".join(named) or show.NONE


def _place(source: dict[str, Any]) -> str:
    said = ", ".join(f"{name} {value!r}" for name, value in source.get("dialect", {}).items())
    place = str(source.get("place", show.NONE))
    return f"{place} ({said})" if said else place


def _print_change(change: Any, as_json: bool) -> None:
    show.warn(change.warnings)
    if show.printed(as_json, asdict(change)):
        return
    parts = [
        f"{n:,} {verb}"
        for n, verb in (
            (change.n_added, "added"),
            (change.n_changed, "changed"),
            (change.n_removed, "removed"),
            (change.n_suppressed, "kept out because their subjects have been erased"),
            (change.n_without_subject, "without a subject"),
        )
        if n
    ]
    changes = ", ".join(parts) or "nothing has changed"
    records = show.words(change.n_records, "record")
    show.line(f"{change.name} version {change.version}: {records} ({changes})")
    if change.models:
        show.line()
        show.treatments(change.models)
    if change.stale:
        show.line(
            f"learned from an earlier version: {', '.join(change.stale)}; `erasable model refresh` "
            "brings them up to date"
        )
