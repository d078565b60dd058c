"""`erasable backup` and `erasable restore`: a workspace in one file, and one made of it again."""

from __future__ import annotations

import sys
from dataclasses import asdict

import typer

from erasable.cli import show
from erasable.cli.files import load_json
from erasable.cli.frame import command, fail, opened
from erasable.cli.options import DATABASE, FOLDER, JSON, SCHEMA, STORE, argument, option, switch

app = typer.Typer()

PANEL = "The workspace"


@command(app, "backup", example="erasable backup /mnt/backups", panel=PANEL)
def backup(
    path: str = argument("PATH", "A new file, or a folder in which it gets a name of its own."),
    with_keys: bool = switch(
        "--with-keys", "Put the keys into it, too: who finds it can tell who is in it, and sign."
    ),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Write the whole workspace, as of one moment, into a file; records are in it."""
    found = opened(folder).back_up(path, with_keys=with_keys)
    if show.printed(as_json, asdict(found)):
        return
    rows = show.words(sum(found.rows.values()), "row")
    show.line(f"wrote {show.one_line(found.path)}: {rows}, {show.words(found.n_files, 'file')}")
    if with_keys:
        show.line("the keys are in it: who finds it can tell who is in it, and sign")
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
        "The folder of the workspace: empty, or not there.",
        "--to",
        "--workspace",
        default=...,
    ),
    suppressions: str | None = option(
        "F",
        "The newest list of the erased, from the folder of `init --export` or from `suppress "
        "export`. Whoever is on it is erased again.",
    ),
    head: str | None = option("F", "The newest signed head of the log, from the same places."),
    no_suppressions: bool = switch(
        "--no-suppressions",
        "There is no list: whoever was erased since the backup was made comes back.",
    ),
    keys: str | None = option(
        "F", "The key file; by default what ERASABLE_KEYS names, or the one in the backup."
    ),
    database: str | None = DATABASE,
    schema: str | None = SCHEMA,
    store: str | None = STORE,
    retire: list[str] | None = option(
        "NAME", "A model to give up, as it cannot be trained here; repeat it."
    ),
    as_json: bool = JSON,
) -> None:
    """Make a workspace of a backup, and erase again who was erased since it was made."""
    from erasable.cli.progress import Meter
    from erasable.workspace import Workspace

    if (suppressions is None) != no_suppressions:
        fail(
            "--suppressions and --no-suppressions were both given, or neither; expected one: "
            "name the newest list of the erased, or say that there is none, and who was erased "
            "since the backup was made is back"
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
        show.line("no hook was run, and nothing was written outside: the next batch does")
    if not found.holds:
        raise typer.Exit(1)


_A_LIST = "a list of who is kept out"
