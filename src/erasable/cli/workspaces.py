"""Commands on whole workspaces: `erasable init`, `status`, `backup`, `restore` and others."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import typer

import erasable.cli.show as show
from erasable.cli.files import load_json, replacing
from erasable.cli.frame import CommandGroup, command, fail, opened
from erasable.cli.options import DATABASE, FOLDER, JSON, SCHEMA, STORE, argument, option, switch
from erasable.cli.progress import Meter

app = typer.Typer()

PANEL = "The workspace"


@command(app, "backup", example="erasable backup /mnt/backups", panel=PANEL)
def backup(
    path: str = argument(
        "PATH",
        "A new file, or a folder, in which it gets a name of its own; a new folder ends with /.",
    ),
    with_keys: bool = switch(
        "--with-keys",
        "Include the keys: whoever finds the file can then tell who is in it, and sign.",
    ),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Write the whole workspace, as of one moment, into a file, including records."""
    found = opened(folder).back_up(path, with_keys=with_keys)
    if show.printed(as_json, asdict(found)):
        return
    rows = show.words(sum(found.rows.values()), "row")
    show.line(f"wrote {show.one_line(found.path)}: {rows}, {show.words(found.n_files, 'file')}")
    if with_keys:
        show.line("the keys are in it: whoever finds it can tell who is in it, and sign")
    else:
        show.line("the keys are not in it: keep a copy of keys.json, in another place")


@command(
    app,
    "restore",
    example="erasable restore monday.tar --to ws --keys keys.json "
    "--suppressions suppression.json --head head.json",
    panel=PANEL,
)
def restore(
    backup: str = argument("BACKUP", "A file that `erasable backup` wrote."),
    to: str = option(
        "DIR",
        "The folder of the workspace: empty, or new.",
        "--to",
        "--workspace",
        default=...,
    ),
    suppressions: str | None = option(
        "F",
        "The newest suppression list, from the folder of `init --export` or from `suppress "
        "export`. People on it are erased again.",
    ),
    head: str | None = option("F", "The newest signed head of the log, from the same places."),
    no_suppressions: bool = switch(
        "--no-suppressions",
        "There is no list: people who were erased since the backup was made come back.",
    ),
    keys: str | None = option(
        "F", "The key file; by default what ERASABLE_KEYS names, or the one in the backup."
    ),
    database: str | None = DATABASE,
    schema: str | None = SCHEMA,
    store: str | None = STORE,
    retire: list[str] | None = option(
        "NAME", "A model to retire, because it cannot be trained here; may be repeated."
    ),
    as_json: bool = JSON,
) -> None:
    """Make a workspace of a backup, and erase again who was erased since it was made."""
    from erasable.workspace import Workspace

    if (suppressions is None) != no_suppressions:
        fail(
            "--suppressions and --no-suppressions were both given, or neither; expected one: "
            "name the newest suppression list, or accept that people who were erased since "
            "the backup was made come back"
        )
    found = Workspace.restore(
        backup,
        to,
        suppressions=None if suppressions is None else load_json(suppressions, _A_LIST),
        head=None if head is None else load_json(head, "a head of the log"),
        keys=keys,
        database=database,
        schema=schema,
        store=store,
        retire=list(retire or ()),
        progress=Meter(sys.stderr),
    )
    show.warn(found.warnings)
    if as_json:
        values = {name: value for name, value in asdict(found).items() if name != "verdicts"}
        models = [each.to_json() for each in found.verdicts]
        show.print_json({**values, "equal": found.holds, "models": models})
    else:
        show.line(
            f"restored {show.one_line(found.path)}: a backup of {found.made_at}, "
            f"{show.words(found.log_size, 'entry', 'entries')} of the log"
        )
        if not no_suppressions:
            show.line(
                f"{show.words(found.n_listed, 'identity', 'identities')} in the list; erased "
                f"again: {show.words(found.n_records, 'record')}, by "
                f"{show.words(len(found.requests), 'request')}"
            )
        show.verdicts(found.verdicts)
        show.line("no hook was run, and nothing was exported: the next batch does this")
    if not found.holds:
        raise typer.Exit(1)


_A_LIST = "a suppression list"


@command(app, "compile", example="erasable compile", panel=PANEL)
def compile_(folder: str = FOLDER, as_json: bool = JSON) -> None:
    """Compile all kernels in advance; it needs no workspace."""
    from erasable.utils.compiling import ELSE, compile_kernels
    from erasable.utils.discovery import all_estimators

    names = [name for name, _, _ in all_estimators()] + [*ELSE]
    began = time.perf_counter()
    with Meter(sys.stderr)("compiling", len(names)) as advance:
        done = compile_kernels(names, tell=lambda _: advance())
    seconds, n_kernels = time.perf_counter() - began, sum(each.n_kernels for each in done)
    if as_json:
        show.print_json(
            {
                "uses": [show.picked(each, "name", "n_kernels", "seconds") for each in done],
                "n_kernels": n_kernels,
                "seconds": seconds,
            }
        )
        return
    if n_kernels:
        show.line(f"compiled {show.words(n_kernels, 'kernel')} in {show.seconds(seconds)}")
    else:
        show.line("all kernels are compiled already")


@command(app, "init", example="erasable init --export /mnt/elsewhere/erasable", panel=PANEL)
def init(
    path: str | None = argument("DIR", "The folder; by default --workspace.", default=None),
    export: str | None = option(
        "DIR",
        "A folder outside of the workspace, for the suppression list and the signed head of "
        "the log, which are written after each change.",
    ),
    database: str | None = DATABASE,
    schema: str | None = SCHEMA,
    store: str | None = STORE,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Make a workspace in a folder."""
    from erasable.workspace import Workspace

    folder = folder if path is None else path
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
def status(
    check: bool = switch(
        "--check", "End with 1 if a request is late, or what failed is not tried again."
    ),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Count data sets, models and requests, and what is due."""
    found = opened(folder).status()
    if not show.printed(as_json, found):
        show.facts(_status_lines(found))
    if check and (found["late"] or found["failed"]["dead"]):
        raise typer.Exit(1)


@command(app, "report", example="erasable report report.html", panel=PANEL)
def report(
    path: str = argument("PATH", "The file to write.", default="report.html"),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Write an HTML page, complete in itself, that shows the whole workspace."""
    with replacing(path, folder) as place:
        opened(folder).report(place)
    show.answer(as_json, {"path": path}, f"wrote {show.one_line(path)}")


@command(app, "key", example="erasable key > workspace.pub", panel=PANEL)
def key(folder: str = FOLDER, as_json: bool = JSON) -> None:
    """Print the public key, with which anybody can check receipts and heads of the log."""
    found = opened(folder)
    text = found.public_key.decode()
    show.answer(
        as_json, {"key_id": found.context.keys.key_id, "public_key": text}, text.rstrip("\n")
    )


group = typer.Typer(cls=CommandGroup, help="Bring the workspace up to date, or copy it.")

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
    path: str = argument("DIR", "A folder that is empty or new."),
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
    show.line("use only one of the two from now on: an erasure in one does not reach the other")


def _status_lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    from erasable.workspace.models.overview import Staleness

    now = datetime.now(UTC)
    requests, models = dict(found["requests"]), dict(found["models"])
    late = f", {found['late']} LATE" if found["late"] else ""
    requests["pending"] = requests.get("pending", 0) - found["held"]
    if found["held"]:
        requests["on hold"] = found["held"]
    for state, n in found["waits_for_targets"].items():
        requests[state] -= n
        requests["waits for targets"] = requests.get("waits for targets", 0) + n
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
        *([("targets", _targets(found["targets"]))] if found["targets"] else []),
        ("kept out", show.words(found["suppressed"], "identity", "identities")),
        ("log", show.words(found["log_size"], "entry", "entries")),
        *(published if found["published"] else []),
        *(hooks if found["hooks_due"] else []),
        *restored,
        ("out of reach", "; ".join(found["unreached"])),
    ]


def _targets(waiting: dict[str, int]) -> str:
    """Say how many targets there are, and what waits for which.

    >>> _targets({"index": 2, "shop": 0})
    '2; index has 2 requests waiting: see `erasable target list`'
    """
    waits = [f"{name} has {show.words(n, 'request')} waiting" for name, n in waiting.items() if n]
    see = f"; {', '.join(waits)}: see `erasable target list`" if waits else ""
    return f"{len(waiting)}{see}"


def _failed(counts: dict[str, int]) -> list[tuple[str, str]]:
    """Return lines about failed tasks, if there are any."""
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
    head = "no head was given" if covered is None else f"a head of {covered:,} was given"
    return f"{found['at'][:10]}, from a backup with {size:,} entries of the log; {head}"


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {state.replace('_', ' ')}" for state, n in counts.items() if n)
