"""Commands on requests: `erasable request`, `process`, `requests`, and the answers to them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import typer

import erasable.cli.show as show
from erasable.cli.frame import command, fail, opened, request_id
from erasable.cli.identities import asked as asked_for
from erasable.cli.identities import moment
from erasable.cli.options import (
    DASK,
    DECIMAL,
    DELIMITER,
    ENCODING,
    FOLDER,
    IDENTITY_TYPES,
    JSON,
    MEMORY,
    argument,
    option,
    pairs,
    size,
    switch,
    whole,
)
from erasable.workspace.evidence import wording
from erasable.workspace.ledger.states import REFUSED, STATES, WITHIN_OPEN
from erasable.workspace.requests.regulations import REGULATIONS

app = typer.Typer()

PANEL = "Requests"
_STATES = [*(each.name for each in STATES), *WITHIN_OPEN]

STATE = option("S", f"Only requests in this state: {', '.join(_STATES)}; may be repeated.")
REQUEST = argument("ID", "The request, as R-4VYK2J0QFT.")
JOBS = option("N", "Prepare this many models at a time; the result is the same.", default="1")
PROFILE = switch("--profile", "Show the times of the phases, including the start of this command.")
REGULATION = option(
    "LAW", f"When it is due: {', '.join(map(str, REGULATIONS.values()))}.", default="gdpr"
)
REASON = option("R", "The reason, in one line that does not name the person.", default=...)


@command(app, "request", example="erasable request --file withdrawn.txt", panel=PANEL)
def request(
    identities: list[str] | None = argument(
        "IDENTITY", "Whose records are to be erased.", default=None
    ),
    file: str | None = option(
        "F",
        "A file with an identity a line, - for standard input: identities do not appear in "
        "the list of processes.",
    ),
    column: list[str] | None = option(
        "COL",
        "The column of the identity, if the file is CSV with a header; and as type=COL, "
        "reference=COL (your name for the request, such as a ticket) and received=COL the "
        "columns of these.",
    ),
    condition: str | None = option(
        "CONDITION",
        "Instead of identities, a condition of SQL on records: \"age < 18 and site in ('north', "
        "'east')\".",
        "--where",
    ),
    dataset: str | None = option("D", "The data set of the condition."),
    type_: str | None = option(
        "TYPE",
        f"The type of the identities: {IDENTITY_TYPES}; by default all types that data sets or "
        "links have used so far are tried.",
        "--type",
    ),
    only: bool = switch(
        "--only",
        "Erase only the records of the given identities; follow no other identity of the person.",
    ),
    reach: str | None = option(
        "N",
        "Follow identities that up to N people share, and erase all of these people; by "
        "default a request that meets a shared identity waits on hold.",
    ),
    regulation: str = REGULATION,
    hold: str | None = option("REASON", "Take it in, and put it on hold for this reason."),
    received: str | None = option("DATE", "When it was received, as 2026-03-31; by default now."),
    dry_run: bool = switch("--dry-run", "Show what would be done; nothing is changed."),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Take in requests for erasure, one per identity; print their ids and due dates."""
    _check_one_of("--regulation", regulation, REGULATIONS)
    received_at = _moment(received)
    named = [each if "=" in each else f"identity={each}" for each in column or ()]
    values = asked_for(identities or (), file, pairs(named, "--column"))
    found = opened(folder)
    asked: dict[str, Any] = {
        "type": type_, "reach": _reach(only, reach), "where": condition, "dataset": dataset,
    }  # fmt: skip
    if dry_run:
        _print_preview(found.preview(values, **asked), as_json)
        return
    taken = found.request(
        values, regulation=regulation, hold=hold, received_at=received_at, **asked
    )
    if show.printed(as_json, {"requests": taken}):
        return
    now = datetime.now(UTC)
    rows = [(each.id, show.due(each.due_at, now), each.reference or "") for each in taken]
    width = 3 if any(each.reference for each in taken) else 2
    show.table(["request", "due", "reference"][:width], [row[:width] for row in rows])
    tried = sorted({kind for each in taken for kind in each.types or ()})
    if tried:
        show.line()
        show.line(f"looked for under the {wording.types(tried)}; --type names another")


@command(
    app, "correct", example="erasable correct visits v17 --set age=42 --set site=north", panel=PANEL
)
def correct(
    dataset: str = argument("DATASET", "The data set with the wrong values."),
    ids: list[str] | None = argument("ID", "The records, by their ids.", default=None),
    values: list[str] | None = option(
        "COL=VALUE", "New values of these records; nothing after the = is a missing value.", "--set"
    ),
    file: str | None = option(
        "F",
        "Instead of ids and values: a CSV, JSON lines or Parquet file with the ids and the "
        "columns to correct.",
    ),
    delimiter: str | None = DELIMITER,
    decimal: str | None = DECIMAL,
    encoding: str | None = ENCODING,
    regulation: str = REGULATION,
    hold: str | None = option("REASON", "Take it in, and put it on hold for this reason."),
    received: str | None = option("DATE", "When it was received, as 2026-03-31; by default now."),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Take in a request to correct records; `process` carries it out in data sets and models."""
    _check_one_of("--regulation", regulation, REGULATIONS)
    received_at = _moment(received)
    if (file is None) == (not ids) or (file is not None and values):
        fail(
            "correct was given neither or both of ids and --file; expected ids with --set, or a "
            "file"
        )
    taken, warnings = opened(folder).correct(
        dataset, file, ids=list(ids or ()), values=pairs(values, "--set"),
        regulation=regulation, hold=hold, received_at=received_at,
        delimiter=delimiter, decimal=decimal, encoding=encoding,
    )  # fmt: skip
    show.warn(warnings)
    if show.printed(as_json, {"request": taken, "warnings": warnings}):
        return
    show.table(["request", "due"], [(taken.id, show.due(taken.due_at, datetime.now(UTC)))])


@command(app, "process", example="erasable process", panel=PANEL)
def process(
    only: list[str] | None = argument("REQUEST", "By default all that are pending.", default=None),
    jobs: str = JOBS,
    memory: str | None = MEMORY,
    dask: str | None = DASK,
    profile: bool = PROFILE,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Carry out requests that are pending, in every data set and model."""
    began = time.perf_counter()
    n_jobs = whole(jobs, "--jobs")
    chosen = None if not only else [request_id(each) for each in only]
    done = opened(folder, size(memory), dask).process(chosen, n_jobs=n_jobs)
    phases = {
        "starting, importing": time.perf_counter() - began - done.seconds + since_start(began),
        **done.phases,
    }
    show.warn(done.warnings)
    if as_json:
        show.print_json(
            {
                "completed": done.requests,
                **show.picked(
                    done, "n_unmatched", "n_kept_out", "n_records", "n_corrected", "n_needless"
                ),
                "models": done.treatments,
                "targets": done.targets,
                "waiting": done.waiting,
                "resumed": done.n_resumed,
                **show.picked(done, "hooks", "seconds", "warnings"),
                **({"phases": phases} if profile else {}),
            }
        )
        return
    if profile:
        rows = [(name, show.seconds(each)) for name, each in phases.items()]
        show.table(["phase", "time"], rows, right="time")
        show.line()
    if done.treatments:
        show.treatments(done.treatments)
        show.line()
    for line in besides(done):
        show.line(line)
    n_carried_out = len(done.requests) - done.n_resumed
    if n_carried_out:
        show.line(
            f"completed {show.words(n_carried_out, 'request')}: "
            f"{counted(done)} in {show.seconds(done.seconds)}"
        )
        if done.n_needless:
            show.line(
                f"nothing to correct for {done.n_needless:,} of them: the records have these "
                "values already, or are gone"
            )
        if done.n_unmatched:
            show.line(
                f"no match for {done.n_unmatched:,} of them: nothing is kept of these in the "
                "columns that they were looked for in (`erasable receipt show` names them), "
                f"and {_later(done)}"
            )
    elif not done.requests and not done.hooks and not done.waiting:
        show.line("nothing to do")
    if done.waiting:
        show.line(
            f"{show.words(len(done.waiting), 'request')} carried out here, and not in all targets: "
            "open until carried out there; the next `erasable process` or worker tries again, and "
            "`erasable target list` says what waits"
        )


def since_start(moment: float) -> float:
    """Return the seconds from the start of this process to a moment of `time.perf_counter`.

    0 if the system does not say when that was.
    """
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        with open("/proc/uptime", "rb") as file:
            up = float(file.read().split()[0])
        age = up - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
    return max(0.0, age - (time.perf_counter() - moment))


def counted(done: Any) -> str:
    """Say how many records were erased and corrected."""
    erased = f"{show.words(done.n_records, 'record')} erased"
    if any(each["n_records"] for each in done.targets):
        erased += f" here, {sum(each['n_records'] for each in done.targets):,} in targets"
    corrected = f"{show.words(done.n_corrected, 'record')} corrected"
    if not done.n_corrected and not done.n_needless:
        return erased
    return corrected if not done.n_records else f"{erased}, {corrected}"


def _later(done: Any) -> str:
    if done.n_kept_out == 0:
        return "later data is not kept out"
    if done.n_kept_out == done.n_unmatched:
        return "later data is kept out, because they were erased before"
    return (
        f"later data of {done.n_kept_out:,} who were erased before is kept out, but not of others"
    )


def besides(done: Any) -> list[str]:
    """Say what was done besides the requests of one batch; `done` is a `Processed`."""
    lines = [
        f"{each['model']!r} is retired: {each['reason']}"
        for each in done.treatments
        if each.get("reason")
    ]
    if done.n_resumed:
        lines.append(
            f"completed {show.words(done.n_resumed, 'request')} that an interrupted process had "
            "carried out; `erasable receipt show` tells what was erased"
        )
    for each in done.targets:
        n = show.words(each["n_records"], "record")
        reason = "" if each["reason"] is None else f": {each['reason']}"
        n += show.others(each["n_others"])
        lines.append(f"target {each['target']}: {n}, {each['verdict']}{reason}")
    if done.hooks:
        lines.append(f"ran the hooks of {', '.join(done.hooks)}")
    return lines


@command(app, "requests", example="erasable requests --state pending", panel=PANEL)
def requests(state: list[str] | None = STATE, folder: str = FOLDER, as_json: bool = JSON) -> None:
    """List requests, those due first at the top."""
    for each in state or ():
        _check_one_of("--state", each, _STATES)
    found = opened(folder).requests(state or None)
    if show.printed(as_json, {"requests": found}):
        return
    now = datetime.now(UTC)
    named = any(each.reference for each in found)
    show.table(
        ["request", "asks for", "state", "received", "due", "records",
         *(["reference"] if named else []), "note"],
        [
            (
                each.id, each.kind, each.label, show.day(each.received_at), _due(each, now),
                show.count(each.matched), *([each.reference or ""] if named else []),
                each.note or "",
            )
            for each in found
        ],
        right="records",
    )  # fmt: skip


@command(
    app, "deny", example='erasable deny R-4VYK2J0QFT --reason "a legal duty to keep them"',
    panel=PANEL,
)  # fmt: skip
def deny(
    id_: str = REQUEST,
    reason: str = REASON,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Refuse a request, for a reason that you tell the requester."""
    _print_request(opened(folder).deny(request_id(id_), reason), as_json)


@command(app, "cancel", example="erasable cancel R-4VYK2J0QFT", panel=PANEL)
def cancel(
    id_: str = REQUEST,
    reason: str | None = option("R", "The reason, in one line that does not name the person."),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Withdraw a request, because the requester wants that."""
    _print_request(opened(folder).cancel(request_id(id_), reason), as_json)


@command(
    app, "hold", example='erasable hold R-4VYK2J0QFT --reason "identity in doubt"', panel=PANEL
)
def hold(
    id_: str = REQUEST,
    reason: str | None = option("R", "The reason, in one line."),
    lift: bool = switch("--lift", "Take it off hold."),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Put a request on hold, or take it off hold."""
    if lift == (reason is not None):
        fail(
            "hold was given neither or both of --reason and --lift; expected one of them; "
            "say why it waits, or end the waiting"
        )
    found = opened(folder)
    id_ = request_id(id_)
    changed = found.resume(id_) if reason is None else found.hold(id_, reason)
    _print_request(changed, as_json)


@command(
    app, "extend", example='erasable extend R-4VYK2J0QFT --reason "many requests at once"',
    panel=PANEL,
)  # fmt: skip
def extend(
    id_: str = REQUEST,
    reason: str = REASON,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Move the due date of a request, once, and print the notice to send."""
    from erasable.workspace.requests.answering import extension_notice

    changed = opened(folder).extend(request_id(id_), reason)
    notice = extension_notice(changed, reason)
    if show.printed(as_json, {"request": changed, "notice": notice}):
        return
    _print_request(changed, as_json)
    show.line()
    show.line(notice)


def _print_request(request: Any, as_json: bool) -> None:
    due = f", due {_due(request, datetime.now(UTC))}" if request.is_open else ""
    show.answer(as_json, {"request": request}, f"{request.id}: {request.label}{due}")


def _print_preview(preview: Any, as_json: bool) -> None:
    if as_json:
        names = (
            "n_records", "seconds", "effects", "n_unmatched", "types", "searched", "followed",
            "unseen", "shared", "n_identities",
        )  # fmt: skip
        show.print_json(show.picked(preview, *names))
        return
    show.effects(preview.effects)
    show.line()
    if preview.followed:
        rows = [(show.count(e["identities"]), wording.steps(e["path"])) for e in preview.followed]
        show.table(["other identities", "found by"], rows, right="other identities")
        show.line()
    for line in preview.unseen:
        show.line(f"not looked at: {line}")
    for line in preview.shared:
        show.line(f"would wait on hold: {line}")
    records = show.words(preview.n_records, "record")
    if preview.shared:
        records = f"once that is answered, at least {records}"
    show.line(f"{records} would be erased, in about {show.seconds(preview.seconds)}; none was")
    if preview.n_unmatched:
        n = show.words(preview.n_unmatched, "request")
        show.line(f"no match for {n}: {_looked_for(preview)}")


def _looked_for(preview: Any) -> str:
    if not preview.types:
        return "no record meets the condition"
    searched = wording.columns(preview.searched)
    return (
        f"looked for under the {wording.types(preview.types)}, in {searched}; --type names another"
    )


def _reach(only: bool, reach: str | None) -> int | None:
    if only and reach is not None:
        fail("request was given --only and --reach; expected one of them")
    return 0 if only else None if reach is None else whole(reach, "--reach")


def _due(request: Any, now: datetime) -> str:
    if request.state in REFUSED:
        return show.day(request.due_at)
    return show.due(request.due_at, now, done=request.completed_at)


def _check_one_of(option: str, given: str, known: Iterable[str]) -> None:
    if given not in known:
        fail(f"{option} is {show.one_line(given)[:40]!r}; expected one of: {', '.join(known)}")


def _moment(given: str | None) -> datetime | None:
    return None if given is None else moment(given, "--received")
