"""`erasable init`, `status`, `report`, `key` and `workspace`: the workspace as a whole."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import typer

from erasable.cli import show
from erasable.cli.files import replacing
from erasable.cli.frame import Group, command, fail, opened
from erasable.cli.options import DATABASE, FOLDER, JSON, SCHEMA, STORE, argument, option

app = typer.Typer()

PANEL = "The workspace"


@command(app, "init", example="erasable init --export /mnt/elsewhere/erasable", panel=PANEL)
def init(
    export: str | None = option(
        "DIR",
        "A folder outside of the workspace, into which the list of the erased and the signed head "
        "of the log are written after each change.",
    ),
    database: str | None = DATABASE,
    schema: str | None = SCHEMA,
    store: str | None = STORE,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Make a workspace in a folder."""
    from erasable.workspace import Workspace

    made = Workspace.create(folder, export=export, database=database, schema=schema, store=store)
    place = str(made.context.root)
    if as_json:
        show.print_json({"workspace": place, "key_id": made.context.keys.key_id, "export": export})
        return
    show.line(f"made a workspace in {show.one_line(place)}")
    if database is not None:
        from erasable.workspace.ledger import address

        schema = schema or address.SCHEMA
        rest = "; data and models here" if store is None else ""
        show.line(f"its ledger is in the schema {schema} of the database{rest}")
    if store is not None:
        show.line(f"its data and models are in {show.one_line(store)}")
    show.line("its keys are in keys.json: keep a copy elsewhere, readable by you alone")


@command(app, "status", example="erasable status", panel=PANEL)
def status(folder: str = FOLDER, as_json: bool = JSON) -> None:
    """Count what there is, and what is due."""
    found = opened(folder).status()
    if show.printed(as_json, found):
        return
    show.facts(_status_lines(found))


@command(app, "report", example="erasable report report.html", panel=PANEL)
def report(
    path: str = argument("PATH", "Where the page is written.", default="report.html"),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Write one page that shows all of it, complete in itself."""
    with replacing(path, folder) as place:
        opened(folder).report(place)
    show.answer(as_json, {"path": path}, f"wrote {show.one_line(path)}")


@command(app, "key", example="erasable key > workspace.pub", panel=PANEL)
def key(folder: str = FOLDER, as_json: bool = JSON) -> None:
    """Print the public key, with which anybody checks receipts and heads of the log."""
    found = opened(folder)
    text = found.public_key.decode()
    show.answer(
        as_json, {"key_id": found.context.keys.key_id, "public_key": text}, text.rstrip("\n")
    )


group = typer.Typer(cls=Group, help="Bring the workspace up to date, or copy it.")

app.add_typer(group, name="workspace", rich_help_panel=PANEL)


@command(group, "migrate", example="erasable workspace migrate")
def migrate(folder: str = FOLDER, as_json: bool = JSON) -> None:
    """Bring the tables of the ledger up to date with this version of erasable."""
    from erasable.workspace import Workspace

    before, after = Workspace.migrate(folder)
    if show.printed(as_json, {"before": before, "after": after, "changed": before != after}):
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
    path: str = argument("DIR", "A folder that is empty or not there."),
    database: str | None = DATABASE,
    schema: str | None = SCHEMA,
    store: str | None = STORE,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Copy the workspace to another folder, with its ledger in PostgreSQL, and verify it."""
    if database is None:
        fail("--database is missing; expected the URL of a database")
    found = opened(folder).copy(path, database=database, schema=schema, store=store)
    if as_json:
        names = ("rows", "n_files", "n_receipts", "log_size", "log_root", "hooks_due")
        show.print_json({"workspace": found.path, **show.picked(found, *names)})
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


def _status_lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    from erasable.workspace.models.staleness import Staleness

    now = datetime.now(UTC)
    requests, models = dict(found["requests"]), dict(found["models"])
    late = f", {found['late']} LATE" if found["late"] else ""
    requests["pending"] = requests.get("pending", 0) - found["held"]
    if found["held"]:
        requests["on hold"] = found["held"]
    behind = [Staleness(**each) for each in found["staleness"]]
    named = ", ".join(f"{each.model} ({each.words})" for each in behind)
    stale = f"; stale: {named}" if behind else ""
    sets, records = found["datasets"], found["n_records"]
    published = [("published", "; ".join(map(_published, found["published"])))]
    hooks = [("hooks", f"to be run by the next process: {', '.join(found['hooks_due'])}")]
    restored = [("restored", _restored(found["restored"]))] if found["restored"] else []
    return [
        ("requests", (_counted(requests) or "none") + late),
        ("next due", show.due(found["next_due"], now) if found["next_due"] else "nothing"),
        *_failed(found["failed"]),
        ("data", f"{show.words(sets, 'data set')}, {show.words(records, 'record')}"),
        ("models", (_counted(models) or "none") + stale),
        ("kept out", show.words(found["suppressed"], "identity", "identities")),
        ("log", show.words(found["log_size"], "entry", "entries")),
        *(published if found["published"] else []),
        *(hooks if found["hooks_due"] else []),
        *restored,
        ("out of reach", "; ".join(found["unreached"])),
    ]


def _failed(counts: dict[str, int]) -> list[tuple[str, str]]:
    """Say what workers could not do, if anything."""
    parts = [
        f"{n} {'tried again' if state == 'waiting' else state}" for state, n in counts.items() if n
    ]
    return [("failed", f"{', '.join(parts)}: see `erasable tasks`")] if parts else []


def _published(found: dict[str, Any]) -> str:
    behind = ", BEHIND: the next process tries again" if found["behind"] else ""
    n = len(found["superseded"])
    older = f", {show.words(n, 'older version')} there still" if n else ""
    return f"{found['model']} as {found['to']}{older}{behind}"


def _restored(found: dict[str, Any]) -> str:
    size, covered = found["log_size"], found["head_size"]
    head = "no head was taken in" if covered is None else f"a head of {covered:,} was taken in"
    return f"{found['at'][:10]}, from a backup with {size:,} entries of the log; {head}"


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {state.replace('_', ' ')}" for state, n in counts.items() if n)
