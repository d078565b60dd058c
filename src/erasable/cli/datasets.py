"""`erasable dataset`: bring data in, keep it up to date, look at it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from erasable.cli import show
from erasable.cli.frame import Folder, Group, Json, command, opened

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the data set.")]
Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A CSV or TSV file, a Parquet file, a folder of them or its URL in an object store, "
        "or the URL of a database, such as sqlite:///shop.db#visits.",
    ),
]
Query = Annotated[
    str | None,
    typer.Option(metavar="SQL", help="What to select, where the source is a database."),
]


def register(app: typer.Typer) -> None:
    """Add the group to the app.

    Examples
    --------
    >>> app = typer.Typer()
    >>> register(app)
    >>> [group.name for group in app.registered_groups]
    ['dataset']
    """
    group = typer.Typer(cls=Group, help="Bring data in, keep it up to date, look at it.")
    app.add_typer(group, name="dataset", rich_help_panel="Data and models")

    @command(
        group, "add", example="erasable dataset add visits visits.csv --id visit --subject patient"
    )
    def add(
        name: Name,
        source: Source,
        id_column: Annotated[
            str, typer.Option("--id", metavar="COL", help="The column that names each record.")
        ],
        subject: Annotated[
            list[str] | None,
            typer.Option(
                metavar="COL:TYPE,...",
                help="Columns that say whose records they are, with the type of their values: id "
                "(by default, but addresses and telephone numbers need one), email, integer or "
                "exact. Only pseudonyms of them are kept. A colon "
                "in a column's name needs the type: J:R:id.",
            ),
        ] = None,
        query: Query = None,
        folder: Folder = ".",
        as_json: Json = False,
    ) -> None:
        """Take a data set in."""
        columns = [column for each in subject or () for column in each.split(",") if column]
        _print_change(
            opened(folder).add_dataset(
                name, source, id_column=id_column, subjects=columns, query=query
            ),
            as_json,
        )

    @command(group, "append", example="erasable dataset append visits march.csv")
    def append(
        name: Name, source: Source, query: Query = None, folder: Folder = ".", as_json: Json = False
    ) -> None:
        """Add new records to a data set: its next version."""
        _print_change(opened(folder).append(name, source, query=query), as_json)

    @command(group, "sync", example="erasable dataset sync visits")
    def sync(
        name: Name,
        source: Annotated[
            str | None,
            typer.Argument(metavar="SOURCE", help="By default where the data came from."),
        ] = None,
        query: Annotated[
            str | None,
            typer.Option(metavar="SQL", help="By default what the data was selected by."),
        ] = None,
        folder: Folder = ".",
        as_json: Json = False,
    ) -> None:
        """Bring a data set up to date with its source: what is new, changed or gone there."""
        _print_change(opened(folder).sync(name, source, query=query), as_json)

    @command(group, "list", example="erasable dataset list")
    def list_(folder: Folder = ".", as_json: Json = False) -> None:
        """List the data sets."""
        found = opened(folder).datasets()
        if as_json:
            show.print_json({"datasets": found})
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
    def show_(name: Name, folder: Folder = ".", as_json: Json = False) -> None:
        """Show a data set: its columns, its versions, and the models trained on it."""
        found = opened(folder).dataset(name)
        if as_json:
            show.print_json(found)
            return
        columns = ", ".join(f"{each['name']} ({each['type']})" for each in found["columns"])
        show.facts(
            [
                ("name", found["name"]),
                ("records", show.count(found["n_records"])),
                ("id", found["id_column"]),
                ("subjects", _subjects(found)),
                ("source", found["source"].get("place", show.NONE)),
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


def _subjects(found: dict[str, Any]) -> str:
    return ", ".join(f"{each['column']}:{each['type']}" for each in found["subjects"]) or show.NONE


def _print_change(change: Any, as_json: bool) -> None:
    names = (
        "name", "version", "n_records", "n_added", "n_changed", "n_removed", "n_suppressed",
        "n_without_subject", "warnings",
    )  # fmt: skip
    show.warn(change.warnings)
    if as_json:
        show.print_json({name: getattr(change, name) for name in names})
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
