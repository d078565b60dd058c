"""`erasable workspace`: the tables of its ledger, and copies of it in a database of a team."""

from __future__ import annotations

from typing import Annotated

import typer

from erasable.cli import show
from erasable.cli.frame import Folder, Group, Json, command, fail, opened

__all__ = ["Database", "Schema", "Store", "register"]

PANEL = "The workspace"

Database = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Keep the ledger in PostgreSQL 15 or newer: postgresql://USER@HOST:PORT/DATABASE. The "
        "password is taken from PGPASSWORD or .pgpass, and is never kept.",
    ),
]
Schema = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The schema of the database that is the workspace's own; by default erasable.",
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Keep data and models in an object store: s3://BUCKET/PREFIX, gs://... or abfs://... "
        "Credentials and endpoint are taken from where its own tools look for them "
        "(AWS_PROFILE, AWS_ENDPOINT_URL), and are never kept.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the group to the app.

    Examples
    --------
    >>> app = typer.Typer()
    >>> register(app)
    >>> [group.name for group in app.registered_groups]
    ['workspace']
    """
    group = typer.Typer(cls=Group, help="Bring the workspace up to date, or copy it.")
    app.add_typer(group, name="workspace", rich_help_panel=PANEL)

    @command(group, "migrate", example="erasable workspace migrate")
    def migrate(folder: Folder = ".", as_json: Json = False) -> None:
        """Bring the tables of the ledger up to date with this version of erasable."""
        from erasable.workspace import Workspace

        before, after = Workspace.migrate(folder)
        if as_json:
            show.print_json({"before": before, "after": after, "changed": before != after})
            return
        if before == after:
            show.line(f"the ledger has revision {after}, the newest; nothing was changed")
        else:
            show.line(f"brought the ledger from revision {before} to {after}")

    @command(
        group,
        "copy",
        example="erasable workspace copy ../team --database postgresql://ann@db.example/models",
    )
    def copy(
        path: Annotated[
            str, typer.Argument(metavar="DIR", help="A folder that is empty or not there.")
        ],
        database: Database = None,
        schema: Schema = None,
        store: Store = None,
        folder: Folder = ".",
        as_json: Json = False,
    ) -> None:
        """Copy the workspace to another folder, with its ledger in PostgreSQL, and verify it."""
        if database is None:
            fail("--database is missing; expected the URL of a database")
        found = opened(folder).copy(path, database=database, schema=schema, store=store)
        if as_json:
            show.print_json(
                {
                    "workspace": found.path, "rows": found.rows, "n_files": found.n_files,
                    "n_receipts": found.n_receipts, "log_size": found.log_size,
                    "log_root": found.log_root, "hooks_due": found.hooks_due,
                }
            )  # fmt: skip
            return
        tables, rows = len(found.rows), sum(found.rows.values())
        show.line(
            f"copied {show.words(rows, 'row')} of {show.words(tables, 'table')} and "
            f"{show.words(found.n_files, 'file')} to {show.one_line(found.path)}"
        )
        show.line(
            f"all are equal; the log of {show.words(found.log_size, 'entry', 'entries')} and "
            f"{show.words(found.n_receipts, 'receipt')} hold"
        )
        if found.hooks_due:
            named = show.one_line(", ".join(found.hooks_due))
            show.warn([f"hooks are due in both, and would run twice: {named}"])
        show.line("work on one of the two from here on: an erasure in one does not reach the other")
