"""`erasable init`, `status`, `report` and `key`: the workspace as a whole."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from erasable.cli import show
from erasable.cli.files import replacing
from erasable.cli.frame import Json, Where, command, opened

__all__ = ["register"]

PANEL = "The workspace"


def register(app: typer.Typer) -> None:
    """Add the commands to the app.

    Examples
    --------
    >>> app = typer.Typer()
    >>> register(app)
    >>> [each.name for each in app.registered_commands]
    ['init', 'status', 'report', 'key']
    """

    @command(app, "init", example="erasable init --export /mnt/elsewhere/erasable", panel=PANEL)
    def init(
        export: Annotated[
            str | None,
            typer.Option(
                metavar="DIR",
                help="A folder outside of the workspace, into which the list of the erased and "
                "the signed head of the log are written after each change.",
            ),
        ] = None,
        where: Where = ".",
        as_json: Json = False,
    ) -> None:
        """Make a workspace in a folder."""
        from erasable.workspace import Workspace

        made = Workspace.create(where, export=export)
        place = str(made.site.root)
        if as_json:
            show.print_json({"workspace": place, "key_id": made.site.keys.key_id, "export": export})
            return
        show.line(f"made a workspace in {show.one_line(place)}")
        show.line("its keys are in keys.json: keep a copy elsewhere, readable by you alone")

    @command(app, "status", example="erasable status", panel=PANEL)
    def status(where: Where = ".", as_json: Json = False) -> None:
        """Count what there is, and what is due."""
        found = opened(where).status()
        if as_json:
            show.print_json(found)
            return
        show.facts(_status_lines(found))

    @command(app, "report", example="erasable report report.html", panel=PANEL)
    def report(
        path: Annotated[
            str, typer.Argument(metavar="PATH", help="Where the page is written.")
        ] = "report.html",
        where: Where = ".",
        as_json: Json = False,
    ) -> None:
        """Write one page that shows all of it, complete in itself."""
        with replacing(path, where) as place:
            opened(where).report(place)
        if as_json:
            show.print_json({"path": path})
            return
        show.line(f"wrote {show.one_line(path)}")

    @command(app, "key", example="erasable key > workspace.pub", panel=PANEL)
    def key(where: Where = ".", as_json: Json = False) -> None:
        """Print the public key, with which anybody checks receipts and heads of the log."""
        found = opened(where)
        text = found.public_key.decode()
        if as_json:
            show.print_json({"key_id": found.site.keys.key_id, "public_key": text})
            return
        show.line(text.rstrip("\n"))


def _status_lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    now = datetime.now(UTC)
    requests, models = dict(found["requests"]), dict(found["models"])
    late = f", {found['late']} LATE" if found["late"] else ""
    held = f", {found['held']} on hold" if found["held"] else ""
    stale = f"; stale: {', '.join(found['stale'])}" if found["stale"] else ""
    sets, records = found["datasets"], found["n_records"]
    return [
        ("requests", (_counted(requests) or "none") + held + late),
        ("next due", show.due(found["next_due"], now) if found["next_due"] else "nothing"),
        ("data", f"{show.words(sets, 'data set')}, {show.words(records, 'record')}"),
        ("models", (_counted(models) or "none") + stale),
        ("kept out", show.words(found["suppressed"], "identity", "identities")),
        ("log", show.words(found["log_size"], "entry", "entries")),
        ("out of reach", "; ".join(found["unreached"])),
    ]


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {state.replace('_', ' ')}" for state, n in counts.items() if n)
