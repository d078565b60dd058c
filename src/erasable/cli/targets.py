"""Commands `erasable target`: places outside of the workspace with records of people."""

from __future__ import annotations

from dataclasses import asdict

import typer

import erasable.cli.show as show
from erasable.cli.frame import CommandGroup, command, opened
from erasable.cli.options import FOLDER, IDENTITY_TYPES, JSON, argument, option, switch
from erasable.cli.options import columns as listed

app = typer.Typer()

group = typer.Typer(
    cls=CommandGroup, help="Look for people in databases and files outside of the workspace."
)

app.add_typer(group, name="target", rich_help_panel="People")


@command(group, "scan", example="erasable target scan sqlite:///shop.db")
def scan(
    place: str = argument(
        "PLACE",
        "A CSV, TSV, JSON lines or Parquet file, a folder of them, Parquet in an object store by "
        "its URL, or the URL of a database, with #table or for all of its tables.",
    ),
    subject: list[str] | None = option(
        "COL:TYPE,...",
        f"Columns to look at, with the type of their values: {IDENTITY_TYPES}. By default all, "
        "under all types of the workspace.",
    ),
    query: str | None = option("SQL", "What to select, if the place is a database."),
    check: bool = switch(
        "--check",
        "End with 1 if there are records of people who were erased, or not all can be read.",
    ),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Find columns with identities of people who are known here, or were erased; change nothing."""
    scanned = opened(folder).scan_target(place, query=query, subjects=_names(subject))
    show.warn(scanned.warnings)
    found = scanned.columns
    n_erased = sum(each.n_erased for each in found)
    if not show.printed(as_json, asdict(scanned)):
        show.table(
            ["place", "column", "type", "rows", "of", "known", "erased"],
            [
                (
                    each.place, each.column, each.type, show.count(each.n_attributed),
                    show.count(each.n_rows), show.count(each.n_known), show.count(each.n_erased),
                )
                for each in found
            ],
            right="rows,of,known,erased",
        )  # fmt: skip
        show.line()
        show.line(_told(len(found), n_erased))
    if check and (n_erased or scanned.warnings):
        raise typer.Exit(1)


def _told(n_columns: int, n_erased: int) -> str:
    if not n_columns:
        return "nobody who is known here, or was erased, was found; nothing was changed"
    if not n_erased:
        return "nobody who was erased was found; nothing was changed"
    n = show.words(n_erased, "identity", "identities")
    return (
        f"{n} of people who were erased: `erasable target erase` takes them out of a database; "
        "nothing was changed"
    )


@command(
    group, "erase", example="erasable target erase sqlite:///shop.db --subject customers.mail:email"
)
def erase(
    place: str = argument(
        "PLACE", "The URL of a database, such as sqlite:///shop.db, or another place."
    ),
    subject: list[str] = option(
        "TABLE.COL:TYPE,...",
        f"Columns that say whose rows there are, with the type of their values: {IDENTITY_TYPES}. "
        "By default id.",
        default=...,
    ),
    action: str = option(
        "ACTION",
        "What becomes of their rows: delete; null, which empties all columns but keys; or mask, "
        "which replaces texts, too.",
        default="delete",
    ),
    cascade: list[str] | None = option(
        "TABLE,...", "Tables whose rows go with what they refer to, where the schema does not say."
    ),
    keep: list[str] | None = option("COL,...", "Columns that null and mask leave as they are."),
    yes: bool = switch("--yes", "Change the rows; without it nothing is changed (a dry run)."),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Take everybody on the suppression list out of a place outside of the workspace."""
    found = opened(folder).erase_target(
        place, _names(subject), action=action,
        cascade=_names(cascade), keep=_names(keep), dry_run=not yes,
    )  # fmt: skip
    if show.printed(as_json, asdict(found)):
        return
    if not found.changed:
        show.line("nobody who was erased was found; nothing was changed")
        return
    changed = "deleted" if action == "delete" else "overwritten"
    rows = [(name, n, changed) for name, n in found.changed.items()]
    rows += [(name, n, "lose a reference") for name, n in found.detached.items()]
    show.table(
        ["of", "rows", ""], [(name, show.count(n), done) for name, n, done in rows], right="rows"
    )
    show.line()
    if found.triggers:
        names = ", ".join(found.triggers)
        show.line(f"triggers of these tables may change rows that are not counted: {names}")
    n = show.words(found.n_people, "identity", "identities")
    if not yes:
        show.line(f"dry run, for {n}: nothing was changed; --yes changes the rows")
        return
    show.line(f"{n}: {found.verdict}{'' if found.reason is None else f': {found.reason}'}")


def _names(given: list[str] | None) -> list[str]:
    return [name for each in given or () for name in listed(each) or () if name]
