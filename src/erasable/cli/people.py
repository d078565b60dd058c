"""`erasable subject` and `suppress`: what is kept of a person, and who is kept out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

import typer

from erasable.cli import show
from erasable.cli.files import load_json, perhaps
from erasable.cli.frame import Folder, Group, Json, command, opened

PANEL = "People"

Identity = Annotated[
    str | None, typer.Argument(metavar="IDENTITY", help="As it stands in the data.")
]
File = Annotated[
    str | None,
    typer.Option(metavar="F", help="A file with the identity, - for standard input."),
]
Type = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="Its type; by default each is tried that a data set or a link has used so far.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the groups to the app.

    Examples
    --------
    >>> app = typer.Typer()
    >>> register(app)
    >>> [group.name for group in app.registered_groups]
    ['subject', 'suppress']
    """
    subject = typer.Typer(cls=Group, help="What is kept of a person.")
    suppress = typer.Typer(cls=Group, help="Who is kept out, because they were erased.")
    app.add_typer(subject, name="subject", rich_help_panel=PANEL)
    app.add_typer(suppress, name="suppress", rich_help_panel=PANEL)
    _register_subject(subject)
    _register_suppress(suppress)


def _register_subject(group: typer.Typer) -> None:
    @command(group, "show", example="erasable subject show --file patient.txt")
    def show_(
        identity: Identity = None,
        file: File = None,
        type_: Type = None,
        folder: Folder = ".",
        as_json: Json = False,
    ) -> None:
        """Say what is kept of a person: records, models, open requests."""
        from erasable.cli.identities import one

        found = opened(folder).subject(one(identity, file), type=type_)
        if as_json:
            show.print_json(found)
            return
        kept_out = found["suppressed"]
        if not found["known"] and not found["requests"]:
            kept = "nothing but a pseudonym, to keep them out," if kept_out else "nothing"
            show.line(
                f"{kept} is kept under this identity, as {show.types(found['types'])}, in "
                f"{show.columns(found['searched'])}"
            )
            for each in kept_out:
                show.line(_kept_out(each))
            return
        counts = {
            kind: ", ".join(f"{name} ({n:,})" for name, n in found[kind].items()) or "none"
            for kind in ("datasets", "models")
        }
        show.facts(
            [
                ("identities", show.count(found["n_identities"])),
                ("data sets", counts["datasets"]),
                ("models", counts["models"]),
                ("open requests", ", ".join(found["requests"]) or "none"),
                *(("kept out", _kept_out(each)) for each in kept_out),
            ]
        )

    @command(group, "link", example="erasable subject link --file two.txt --other-type email")
    def link(
        identity: Identity = None,
        other: Annotated[
            str | None,
            typer.Argument(metavar="OTHER", help="Another identity of the same person."),
        ] = None,
        file: Annotated[
            str | None,
            typer.Option(metavar="F", help="A file with both, a line each; - for standard input."),
        ] = None,
        type_: Annotated[
            str | None,
            typer.Option(
                "--type",
                metavar="TYPE",
                help="The type of the first; by default id, but an address needs one.",
            ),
        ] = None,
        other_type: Annotated[
            str | None,
            typer.Option("--other-type", metavar="TYPE", help="The type of the other, likewise."),
        ] = None,
        folder: Folder = ".",
        as_json: Json = False,
    ) -> None:
        """Say that two identities are one person."""
        from erasable.cli.identities import pair

        first, second = pair([each for each in (identity, other) if each is not None], file)
        opened(folder).link(first, second, type=type_, other_type=other_type)
        if as_json:
            show.print_json({"linked": True})
            return
        show.line("linked: a request for one of them is a request for both")


def _kept_out(entry: Mapping[str, Any]) -> str:
    since = show.day(entry["since"])
    return (
        f"on the list of whom to keep out as {entry['type']}, since {since}: {entry['request_id']}"
    )


def _register_suppress(group: typer.Typer) -> None:
    @command(group, "list", example="erasable suppress list")
    def list_(folder: Folder = ".", as_json: Json = False) -> None:
        """List who is kept out, by pseudonym."""
        found = opened(folder).suppressed()
        if as_json:
            show.print_json({"suppressed": found})
            return
        rows = [
            (each["token"], each["type"], each["request_id"], show.day(each["since"]))
            for each in found
        ]
        show.table(["pseudonym", "type", "request", "since"], rows)

    @command(group, "release", example="erasable suppress release --file patient.txt")
    def release(
        identity: Identity = None,
        file: File = None,
        type_: Type = None,
        folder: Folder = ".",
        as_json: Json = False,
    ) -> None:
        """Let a person's records in again: they have given consent anew."""
        from erasable.cli.identities import one

        warnings = opened(folder).release(one(identity, file), type=type_)
        show.warn(warnings)
        if as_json:
            show.print_json({"released": True, "warnings": warnings})
            return
        show.line("released: records of this person may come in again")

    @command(group, "export", example="erasable suppress export --output erased.json")
    def export(
        output: Annotated[str | None, typer.Option(metavar="F", help="Write it to a file.")] = None,
        folder: Folder = ".",
        as_json: Json = False,
    ) -> None:
        """Print the signed list of who is kept out; it holds tokens, and no identity."""
        with perhaps(output, folder) as place:
            found = opened(folder).suppression_list()
            if place is not None:
                place.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        if as_json or output is None:
            show.print_json(found)
        else:
            show.line(f"wrote {show.one_line(output)}: tokens, which say nothing without the keys")

    @command(group, "import", example="erasable suppress import erased.json")
    def import_(
        file: Annotated[
            str, typer.Argument(metavar="FILE", help="A list, as `suppress export` wrote it.")
        ],
        folder: Folder = ".",
        as_json: Json = False,
    ) -> None:
        """Bring a restored backup up to date: ask for the erasure of who was erased since."""
        listed = load_json(file, "a list of who is kept out")
        found = opened(folder).import_suppression_list(listed)
        if as_json:
            show.print_json(asdict(found))
            return
        many = partial(show.words, noun="identity", several="identities")
        show.line(f"{many(found.n_listed)} in the list: {found.n_new:,} not kept out before")
        if found.n_mended:
            n = show.words(found.n_mended, "request")
            show.line(f"mended the list of {n}, which had been changed behind the log's back")
        if found.n_released:
            show.line(f"{many(found.n_released)} let in again since: left out")
        if found.n_waiting:
            show.line(f"{many(found.n_waiting)} with records here: asked for already")
        if not found.requests:
            show.line("no request was opened: nobody else who is kept out has records here")
            return
        n = show.words(len(found.requests), "request")
        show.line(f"opened {n} to erase records that came back; run `erasable process`:")
        for each in found.requests:
            show.line(each.id)
