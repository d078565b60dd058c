"""Commands `erasable receipt` and `erasable log`: show and check the evidence."""

from __future__ import annotations

import json
from typing import Any

import typer

import erasable.cli.show as show
from erasable.cli.files import load, load_json, perhaps, public_key
from erasable.cli.frame import CommandGroup, command, fail, opened, request_id
from erasable.cli.options import FOLDER, JSON, argument, option
from erasable.core.errors import EvidenceError
from erasable.workspace.evidence import wording

app = typer.Typer()

PANEL = "Evidence"

OUTPUT = option("F", "Write it to a file.")

HTML = option("F", "Also write it as a page to read and print, complete in itself.")


receipt = typer.Typer(cls=CommandGroup, help="Show and check receipts.")

log = typer.Typer(cls=CommandGroup, help="Show the log, check it, and sign its head.")

app.add_typer(receipt, name="receipt", rich_help_panel=PANEL)

app.add_typer(log, name="log", rich_help_panel=PANEL)


@command(receipt, "show", example="erasable receipt show R-4VYK2J0QFT --output receipt.json")
def show_receipt(
    id_: str = argument("REQUEST", "A completed request."),
    output: str | None = OUTPUT,
    html: str | None = HTML,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Show the receipt of a request, or write it to a file."""
    from erasable.workspace.evidence import receipts

    with perhaps(output, folder) as place, perhaps(html, folder) as page:
        workspace = opened(folder)
        body = workspace.receipt(request_id(id_))
        says = receipts.show(body)
        if place is not None:
            place.write_bytes(body)
        if page is not None:
            page.write_text(workspace.receipt_page(request_id(id_)), encoding="utf-8")
    if as_json:
        show.print_json(
            {
                "request": id_, "path": output, "html": html, "says": says,
                "receipt": json.loads(body),
            }
        )  # fmt: skip
        return
    for path in (output, html):
        if path is not None:
            show.line(f"wrote {show.one_line(path)}")
    if output is None and html is None:
        _print_receipt(says)


@command(receipt, "check", example="erasable receipt check receipt.json --key workspace.pub")
def check_receipt(
    file: str = argument("FILE", "A receipt."),
    key: str = option("PUB", "The public key, as `erasable key` prints it.", default=...),
    html: str | None = HTML,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Check a receipt with only the public key; exit code 1 if it does not hold."""
    from erasable.workspace.evidence import receipts
    from erasable.workspace.report import receipt_page

    body, pem = load(file, "a receipt"), public_key(key)
    try:
        found = receipts.check(body, pem)
        with perhaps(html, folder) as page:
            if page is not None:
                page.write_text(receipt_page.render(body, pem), encoding="utf-8")
    except EvidenceError as error:
        problem = str(error)
        if as_json:
            show.print_json({"holds": False, "request": None, "says": None, "problem": problem})
        else:
            show.line(f"DOES NOT HOLD: {show.one_line(problem)}")
        raise typer.Exit(1) from None
    says = receipts.show(body)
    if as_json:
        show.print_json({"holds": True, "request": found.request, "says": says, "problem": None})
        return
    _print_receipt(says)
    show.line()
    show.line("holds: signed by this key, and in the log that this key signed")
    if html is not None:
        show.line(f"wrote {show.one_line(html)}")


@command(log, "show", example="erasable log show --since 40")
def show_log(
    since: str = option("N", "The first entry to show.", default="0"),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Show the entries of the log, in order."""
    if not (since.isascii() and since.isdigit() and len(since) < 16):
        fail(f"--since is {show.one_line(since)[:40]!r}; expected the number of an entry, from 0")
    found = opened(folder).log_entries(int(since))
    if show.printed(as_json, {"entries": found}):
        return
    show.table(
        ["entry", "time", "what", "about"],
        [
            (each["position"], each["at"][:19].replace("T", " "), each["kind"], each["subject"])
            for each in found
        ],
        right="entry",
    )


@command(log, "verify", example="erasable log verify --since head.json")
def verify_log(
    since: str | None = option("FILE", "A head that `erasable log head` signed earlier."),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Check the log, and the ledger against it; exit code 1 if they do not agree."""
    found = opened(folder)
    head = None if since is None else load_json(since, "a head of the log")
    problems, remarks = found.verify_log(head), found.remarks()
    show.warn(remarks)
    if as_json:
        show.print_json({"holds": not problems, "problems": problems, "remarks": remarks})
    else:
        for problem in problems:
            show.line(show.one_line(problem))
        if not problems:
            kept = "" if since is None else ", and begins with what was signed"
            show.line(f"the log holds, and the ledger agrees with it{kept}")
    if problems:
        raise typer.Exit(1)


@command(log, "head", example="erasable log head --output head.json")
def sign_head(output: str | None = OUTPUT, folder: str = FOLDER, as_json: bool = JSON) -> None:
    """Sign the current log: keep the head elsewhere, to check the log against it later."""
    with perhaps(output, folder) as place:
        found = opened(folder).head()
        if place is not None:
            place.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if as_json:
        show.print_json(found)
    elif output is not None:
        show.line(f"wrote {show.one_line(output)}")
    else:
        show.facts((name, found[name]) for name in ("workspace", "size", "root", "time"))


def _print_receipt(says: dict[str, Any]) -> None:
    show.facts(wording.facts(says))
    touched = wording.touched(says)
    if touched:
        show.line()
        show.table(["", "name", "treatment", "exactness", "records"], touched, right="records")
    for line in wording.doubts(says):
        show.line(line)
    if says["not_covered"]:
        show.line()
        show.line(f"not covered: {', '.join(says['not_covered'])}")
    if says.get("out_of_reach"):
        show.line()
        show.line(f"out of reach: {'; '.join(map(show.one_line, says['out_of_reach']))}")
