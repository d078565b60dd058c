"""Commands `erasable target`: places outside of the workspace with records of people."""

from __future__ import annotations

from dataclasses import asdict

import typer

import erasable.cli.show as show
from erasable.cli.frame import CommandGroup, command, opened
from erasable.cli.options import FOLDER, IDENTITY_TYPES, JSON, argument, option, switch
from erasable.cli.options import columns as listed
from erasable.workspace.targets.catalogue import without_credentials

app = typer.Typer()

SUBJECT = option(
    "FIELD:TYPE,...",
    "Fields that say whose records there are, of a database TABLE.COL, with the type of their "
    f"values: {IDENTITY_TYPES}. By default id.",
    "--subject", default=...,
)  # fmt: skip
ACTION = option(
    "ACTION",
    "What becomes of their records: delete; null, which empties all fields but keys; or mask, "
    "which replaces texts, too.",
    "--action", default="delete",
)  # fmt: skip
KEEP = option("FIELD,...", "Fields that null and mask leave as they are.", "--keep")
CASCADE = option(
    "TABLE,...", "Tables whose rows go with what they refer to, where the schema does not say.",
    "--cascade",
)  # fmt: skip

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
        f"{n} of people who were erased: `erasable target erase` takes them out; nothing was "
        "changed"
    )


@command(group, "add", example="erasable target add index chroma:index#docs --subject author:email")
def add(
    name: str = argument("NAME", "The name of the target."),
    place: str = argument(
        "PLACE",
        "A folder or file, the URL of a database, or one of chroma:FOLDER#COLLECTION, "
        "lancedb:FOLDER#TABLE, delta:FOLDER, iceberg:CATALOG#NAMESPACE.TABLE, faiss:FILE, "
        "qdrant:FOLDER#COLLECTION, milvus:FILE#COLLECTION, redis://HOST:PORT/DATABASE#PATTERN and "
        "command:PROGRAM.",
    ),
    subject: list[str] = SUBJECT,
    action: str = ACTION,
    keep: list[str] | None = KEEP,
    cascade: list[str] | None = CASCADE,
    may_empty: bool = switch("--all", "All records may be of one person."),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Have every later request erase people from a place outside of the workspace, too."""
    added = opened(folder).add_target(
        name, place, _names(subject), action=action, keep=_names(keep), cascade=_names(cascade),
        may_empty=may_empty,
    )  # fmt: skip
    if show.printed(as_json, asdict(added)):
        return
    show.line(f"added {added.name}: every request erases people from {added.place}, too")
    if without_credentials(place) != place:
        show.line(
            "its password is not kept: where requests are carried out, set "
            f"{added.variable} to the whole URL"
        )


@command(group, "list", example="erasable target list")
def list_(folder: str = FOLDER, as_json: bool = JSON) -> None:
    """List the targets, and the requests that are still to be carried out there."""
    found = opened(folder).targets()
    if show.printed(as_json, {"targets": found}):
        return
    if not found:
        show.line("no target yet; `erasable target add` adds one")
        return
    rows = [
        (each["name"], each["place"], ", ".join(each["subjects"]), each["action"],
         show.count(each["waiting"]))
        for each in found
    ]  # fmt: skip
    show.table(["name", "place", "subjects", "action", "waiting"], rows, right="waiting")
    for each in found:
        if each["error"]:
            show.line(f"{each['name']}: {show.one_line(each['error'])}")


@command(group, "check", example="erasable target check")
def check(
    name: str | None = argument("NAME", "A target; by default all.", default=None),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Find people who were erased and are in a target again; end with 1 if there are some."""
    found = opened(folder).check_target(name)
    if not show.printed(as_json, {"targets": [asdict(each) for each in found]}):
        rows = [(each.target, show.count(each.n_people), show.count(each.n_records))
                for each in found if each.error is None]  # fmt: skip
        show.table(["target", "people", "records"], rows, right="people,records")
        for each in found:
            if each.error is not None:
                show.line(f"{each.target}: {show.one_line(each.error)}")
        if any(each.n_people for each in found):
            show.line("`erasable target erase NAME --yes` takes them out")
    if any(each.n_people or each.error for each in found):
        raise typer.Exit(1)


@command(group, "remove", example="erasable target remove index")
def remove(
    name: str = argument("NAME", "The name of the target."),
    give_up: bool = switch(
        "--give-up", "Also if requests are to be carried out there: receipts say so."
    ),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Have later requests not erase from a target; nothing is changed there."""
    given_up = opened(folder).remove_target(name, give_up=give_up)
    if show.printed(as_json, {"removed": name, "given_up": given_up}):
        return
    show.line(f"removed {name}; nothing was changed there")
    if given_up:
        n = show.words(len(given_up), "request")
        show.line(f"{n} waited for it: `erasable process` completes them, as not covered there")


@command(
    group, "erase", example="erasable target erase sqlite:///shop.db --subject customers.mail:email"
)
def erase(
    place: str = argument(
        "PLACE", "The name of a target; or a place as `target add` takes it, with --subject."
    ),
    subject: list[str] | None = option("FIELD:TYPE,...", "Its fields, if it is no target."),
    action: str = ACTION,
    cascade: list[str] | None = CASCADE,
    keep: list[str] | None = KEEP,
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
