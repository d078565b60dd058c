"""Commands `erasable subject` and `erasable suppress`: people, and the suppression list."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import typer

import erasable.cli.show as show
from erasable.cli.files import load_json, perhaps
from erasable.cli.frame import CommandGroup, command, opened
from erasable.cli.identities import one, pair
from erasable.cli.options import FOLDER, JSON, argument, option
from erasable.workspace.evidence import wording

app = typer.Typer()

PANEL = "People"

IDENTITY = argument("IDENTITY", "The identity, as in the data.", default=None)
FILE = option("F", "A file with the identity, - for standard input.")
TYPE = option(
    "TYPE",
    "Its type; by default all types that data sets or links have used are tried.",
    "--type",
)


subject = typer.Typer(cls=CommandGroup, help="Show what is kept of a person, and link identities.")

suppress = typer.Typer(
    cls=CommandGroup,
    help="The suppression list: people who were erased, and whose new records are left out.",
)

app.add_typer(subject, name="subject", rich_help_panel=PANEL)

app.add_typer(suppress, name="suppress", rich_help_panel=PANEL)


@command(subject, "show", example="erasable subject show --file patient.txt")
def show_subject(
    identity: str | None = IDENTITY,
    file: str | None = FILE,
    type_: str | None = TYPE,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Say what is kept of a person: records, models, open requests."""
    found = opened(folder).subject(one(identity, file), type=type_)
    if show.printed(as_json, found):
        return
    kept_out = found["suppressed"]
    if not found["known"] and not found["requests"]:
        kept = "nothing but a pseudonym on the suppression list" if kept_out else "nothing"
        show.line(
            f"{kept} is kept under this identity, as {wording.types(found['types'])}, in "
            f"{wording.columns(found['searched'])}{_and_targets(found['targets'])}"
        )
        for each in found["unseen"]:
            show.line(f"not looked at: {show.one_line(each)}")
        for each in kept_out:
            show.line(_kept_out(each))
        return
    counts = {
        kind: ", ".join(f"{name} ({n:,})" for name, n in found[kind].items()) or "none"
        for kind in ("datasets", "models", "targets")
    }
    show.facts(
        [
            ("identities", show.count(found["n_identities"])),
            *(
                ("followed", f"{show.count(each['identities'])} by {wording.steps(each['path'])}")
                for each in found["followed"]
            ),
            *(("shared", each) for each in found["shared"]),
            ("data sets", counts["datasets"]),
            ("models", counts["models"]),
            *([("targets", counts["targets"])] if found["targets"] else []),
            *(("not looked at", show.one_line(each)) for each in found["unseen"]),
            ("open requests", ", ".join(found["requests"]) or "none"),
            *(("kept out", _kept_out(each)) for each in kept_out),
        ]
    )


@command(subject, "link", example="erasable subject link --file two.txt --other-type email")
def link(
    identity: str | None = IDENTITY,
    other: str | None = argument("OTHER", "Another identity of the same person.", default=None),
    file: str | None = option("F", "A file with both, a line each; - for standard input."),
    type_: str | None = option(
        "TYPE", "The type of the first; by default id; an address needs a type.", "--type"
    ),
    other_type: str | None = option("TYPE", "The type of the other."),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """State that two identities are one person."""
    first, second = pair([each for each in (identity, other) if each is not None], file)
    opened(folder).link(first, second, type=type_, other_type=other_type)
    show.answer(
        as_json, {"linked": True}, "linked: a request for one of them is a request for both"
    )


def _and_targets(names: Collection[str]) -> str:
    return f", and the target{'s'[: len(names) > 1]} {', '.join(names)}" if names else ""


def _kept_out(entry: Mapping[str, Any]) -> str:
    since = show.day(entry["since"])
    return f"on the suppression list as {entry['type']}, since {since}: {entry['request_id']}"


@command(suppress, "list", example="erasable suppress list")
def list_suppressed(folder: str = FOLDER, as_json: bool = JSON) -> None:
    """List the entries of the suppression list, by pseudonym."""
    found = opened(folder).suppressed()
    if show.printed(as_json, {"suppressed": found}):
        return
    rows = [
        (each["token"], each["type"], each["request_id"], show.day(each["since"])) for each in found
    ]
    show.table(["pseudonym", "type", "request", "since"], rows)


@command(suppress, "release", example="erasable suppress release --file patient.txt")
def release(
    identity: str | None = IDENTITY,
    file: str | None = FILE,
    type_: str | None = TYPE,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Remove a person from the suppression list: they have consented again."""
    warnings = opened(folder).release(one(identity, file), type=type_)
    show.warn(warnings)
    show.answer(
        as_json,
        {"released": True, "warnings": warnings},
        "released: new records of this person are accepted again",
    )


@command(suppress, "export", example="erasable suppress export --output erased.json")
def export_list(
    output: str | None = option("F", "Write it to a file."),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Print the signed suppression list; it has tokens, and no identities."""
    with perhaps(output, folder) as place:
        found = opened(folder).suppression_list()
        if place is not None:
            place.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if as_json or output is None:
        show.print_json(found)
    else:
        show.line(f"wrote {show.one_line(output)}: tokens, which say nothing without the keys")


@command(suppress, "import", example="erasable suppress import erased.json")
def import_list(
    file: str = argument("FILE", "A list that `suppress export` wrote."),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Import a suppression list after a restore; open requests for people who were erased since."""
    listed = load_json(file, "a suppression list")
    found = opened(folder).import_suppression_list(listed)
    if show.printed(as_json, asdict(found)):
        return
    many = partial(show.words, noun="identity", several="identities")
    show.line(f"{many(found.n_listed)} in the list: {found.n_new:,} new")
    if found.n_mended:
        n = show.words(found.n_mended, "request")
        show.line(f"repaired the suppressions of {n}, which had been changed without a log entry")
    if found.n_released:
        show.line(f"{many(found.n_released)} released since: left out")
    if found.n_waiting:
        show.line(f"{many(found.n_waiting)} with records here and an open request")
    if not found.requests:
        show.line("no request was opened: nobody else on the suppression list has records here")
        return
    n = show.words(len(found.requests), "request")
    show.line(f"opened {n} to erase records that came back; run `erasable process`:")
    for each in found.requests:
        show.line(each.id)
