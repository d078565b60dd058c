"""Whoever can write to the ledger alone has nothing executed, and nothing signed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from backends import copy_of
from contexts import make_context, visits, write_csv
from sqlalchemy import delete, func, insert, select, update

from cli.running import erasable
from erasable.core.errors import ErasableError, TamperedError
from erasable.workspace import Workspace
from erasable.workspace.context import Context
from erasable.workspace.evidence import consistency, issuing, ledger_checks, log, seals
from erasable.workspace.identity.keys import Keys
from erasable.workspace.ledger.kinds import Bytes, Json, Moment, Words
from erasable.workspace.ledger.schema import (
    SEALED,
    dataset,
    dataset_version,
    fragment,
    garbage,
    holding,
    identity,
    log_entry,
    meta,
    metadata,
    model,
    model_version,
    receipt,
    request,
    suppression,
    task,
)
from erasable.workspace.requests import batches, process

TRAIN = "import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])"
PERSON = "marker-patient-3"


def touch(path: Path) -> str:
    """Return a command that leaves a trace, and does all that is asked of a command."""
    code = f"import pathlib, sys; pathlib.Path({str(path)!r}).touch(); {TRAIN}"
    return f'{sys.executable} -c "{code}"'


def make(folder: Path) -> Context:
    """A workspace in which one request is completed, and one waits."""
    context, _ = make_context(folder / "ws")
    workspace = Workspace(context)
    write_csv(folder / "visits.csv", visits(60))
    workspace.add_dataset(
        "visits", folder / "visits.csv", id_column="visit", subjects=["patient", "doctor"]
    )
    on: dict[str, Any] = {"datasets": ["visits"], "features": ["age", "weight"]}
    hook = f"{sys.executable} -c pass"
    workspace.fit("risk", "naive_bayes.GaussianNB", target="sick", hook=hook, **on)
    train = f'{sys.executable} -c "{TRAIN}" {{data}} {{out}}'
    workspace.register("own", datasets=["visits"], retrain=train)
    workspace.request(["marker-patient-7"])
    workspace.process()
    workspace.head()
    workspace.verify()
    workspace.request([PERSON])
    with context.ledger.transaction() as connection:
        context.ledger.set(connection, "published_before", ["mlflow:elsewhere"])
        context.ledger.set(connection, "export", str(folder / "outside"))
    context.ledger.checkpoint()
    return context


@pytest.fixture(scope="session")
def _made(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("relied")).root


@pytest.fixture
def context(_made: Path, tmp_path: Path) -> Iterator[Context]:
    copy_of(_made, tmp_path / "ws")
    found = Context.open(tmp_path / "ws")
    yield found
    found.ledger.close()


def signed(context: Context) -> Any:
    """Return all that is signed in a workspace, and beside it."""
    with context.ledger.reading() as connection:
        outside = context.root.parent / "outside"
        return (
            connection.execute(select(func.count()).select_from(receipt)).scalar(),
            context.ledger.get(connection, "signed_head"),
            sorted(path.name for path in outside.glob("*")),
        )


# -- what is altered -------------------------------------------------------------------------------

NOT_RELIED_ON = {
    # what is told to people alone, or for estimates
    (dataset, "created_at"), (dataset_version, "created_at"), (dataset_version, "cause"),
    (model, "created_at"), (model_version, "created_at"), (model_version, "cause"),
    (model_version, "seconds"), (model_version, "superseded_at"), (request, "changed_at"),
    # replaced before it is used: the salt of what a later receipt says
    (dataset, "salt"),
}  # fmt: skip
"""Columns of the tables below that decide nothing of what is executed, opened or signed."""

RELIED_ON = [
    (table, column.name)
    for table in (dataset, dataset_version, fragment, model, model_version, request)
    for column in table.columns
    if (table, column.name) not in NOT_RELIED_ON
]

LEFT_OUT = {
    "step": "of a batch under way; see test_team",
    "lease": "who is at work: it decides who waits",
    "measurement": "estimates",
    "failure": "when something is tried again",
    "garbage": "keys of files that are removed; see below",
    "vacated": "where to look for people who left, whom the data itself then shows to be gone",
    "target": "see test_requests_reach_targets",
    "task": "see below, and test_requests_reach_targets",
    "receipt": "signed itself", "meta": "see below",
    "log_entry": "see below", "identity": "see below", "holding": "see below",
    "suppression": "see below", "suppression_salt": "see below",
}  # fmt: skip


def test_every_table_is_thought_of() -> None:
    tried = {table.name for table, _ in RELIED_ON}
    assert tried | LEFT_OUT.keys() == set(metadata.tables)
    assert not tried & LEFT_OUT.keys()
    assert len(RELIED_ON) > 50


def other(column: Any, value: Any) -> Any:
    """Return another value for a column, that it may hold."""
    kind = column.type
    if column is request.c.condition:
        return {"dataset": 1, "where": "age > 0"}
    if column is request.c.corrects:
        return {"dataset": "visits", "columns": ["age"]}
    if column is request.c.searched:
        return [{"dataset": "visits", "column": "doctor", "type": "id"}]
    if column is request.c.followed:
        return [{"from_type": "id", "to_type": "email", "identities": 1}]
    if isinstance(kind, Json):
        if isinstance(value, dict):
            return {**value, "place": "http://stranger.example"}
        return [] if value else (None if value == [] else ["x"])
    if isinstance(kind, Moment):
        return datetime(2031, 1, 1, tzinfo=UTC)
    if isinstance(kind, Bytes):
        return b"{}" if value is None else bytes([value[0] ^ 1]) + value[1:]
    if isinstance(kind, Words):
        return "x" if value is None else f"{value}x"[-(kind.impl.length or 1000) :]
    return 1 if value is None else value + 1


def alter(context: Context, table: Any, column: str, which: Any = None) -> None:
    """Alter one row, as a stranger would by hand; the newest where nothing else is said."""
    key = list(table.primary_key.columns)
    with context.ledger.transaction() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        query = select(table) if which is None else select(table).where(which)
        row = connection.execute(query.order_by(*(each.desc() for each in key)).limit(1)).one()
        at = [each == getattr(row, each.name) for each in key]
        value = other(table.c[column], getattr(row, column))
        done = connection.execute(update(table).where(*at).values({column: value}))
        assert done.rowcount == 1


def refuses(context: Context) -> str:
    """Carry requests out, which has to be refused with nothing signed; return what is told."""
    before = signed(context)
    with pytest.raises(TamperedError) as caught:
        Workspace(context).process()
    assert signed(context) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


WAITING = request.c.state == "pending"
HIDDEN = {(request, "state"), (request, "hold")}
"""Whoever alters them has a request not be carried out; nothing is executed or signed for it."""

NOT_BY_ITSELF = {
    (dataset, "id"), (dataset_version, "dataset_id"), (fragment, "dataset_id"), (model, "id"),
    (model_version, "model_id"), (request, "id"),
}  # fmt: skip
"""Other rows refer to them, so that the database refuses."""


@pytest.mark.parametrize(
    ("table", "column"), RELIED_ON, ids=[f"{table.name}-{column}" for table, column in RELIED_ON]
)
def test_an_altered_column_stops_all(context: Context, table: Any, column: str) -> None:
    try:
        alter(context, table, column, WAITING if table is request else None)
    except ErasableError:
        assert (table, column) in NOT_BY_ITSELF
        return
    if (table, column) in HIDDEN:
        before = signed(context)
        assert Workspace(context).process().requests == []
        assert signed(context)[0] == before[0]
        return
    refuses(context)


@pytest.mark.parametrize("table", [dataset_version, fragment, model_version], ids=str)
def test_a_removed_row_stops_all(context: Context, table: Any) -> None:
    with context.ledger.transaction() as connection:
        connection.execute(delete(table))
    refuses(context)


def test_a_removed_model_stops_all(context: Context) -> None:
    with context.ledger.transaction() as connection:
        of = select(model.c.id).where(model.c.name == "own")
        for table in (model_version, metadata.tables["measurement"]):
            connection.execute(delete(table).where(table.c.model_id.in_(of)))
        connection.execute(delete(model).where(model.c.name == "own"))
    assert "model 'own': it is in the log, and not in the ledger" in refuses(context)


WRITTEN = sorted(SEALED - {"restored", "published"})
"""Settings that this workspace has; nothing was published or restored."""


KEYS = {"key_id", "key_fingerprint"}
"""Without them the keys of the workspace are told not to be its own."""


@pytest.mark.parametrize("name", sorted({*WRITTEN, "signed_head"} - KEYS))
def test_an_altered_setting_stops_all(context: Context, name: str) -> None:
    with context.ledger.transaction() as connection:
        at = meta.c.name == name
        value = connection.execute(select(meta.c.value).where(at)).scalar_one()
        if isinstance(value, list):
            value = [*value, "x"]
        elif isinstance(value, dict):
            value = {**value, "size": 1, "payload": "AAAA"}
        else:
            value = f"{value}x"
        connection.execute(update(meta).where(at).values(value=value))
    refuses(context)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_removed_setting_stops_all(context: Context, name: str) -> None:
    with context.ledger.transaction() as connection:
        connection.execute(delete(meta).where(meta.c.name == name))
    before = signed(context)
    with pytest.raises(ErasableError):  # without its key the workspace cannot be opened at all
        Workspace(context).process()
    assert signed(context)[0] == before[0]


def test_a_setting_that_was_added_stops_all(context: Context) -> None:
    published = {
        "model": "risk", "to": "mlflow:risk", "tracking_uri": "http://stranger.example",
        "delete_superseded": False, "version": None, "registered": None, "superseded": [],
        "error": None, "log_size": 0,
    }  # fmt: skip
    with context.ledger.transaction() as connection:
        connection.execute(insert(meta).values(name="published", value=[published]))
    assert "the setting 'published'" in refuses(context)


def newest(context: Context, name: str) -> Any:
    """Return where the log last speaks of something."""
    with context.ledger.reading() as connection:
        of = select(func.max(log_entry.c.position)).where(log_entry.c.subject == name)
        return log_entry.c.position == connection.execute(of).scalar_one()


@pytest.mark.parametrize("column", ["kind", "subject", "body", "leaf", "seal"])
@pytest.mark.parametrize("name", ["visits", "risk"])
def test_an_altered_entry_stops_all(context: Context, name: str, column: str) -> None:
    alter(context, log_entry, column, newest(context, name))
    refuses(context)


# -- what a stranger would do ----------------------------------------------------------------------


def has_hook(context: Context, trace: Path) -> None:
    values = {"hook": f"{touch(trace)} {{model}} {trace}.copy"}
    change(context, model, values, model.c.name == "risk")


def has_command(context: Context, trace: Path) -> None:
    recipe = {"kind": "command", "command": f"{touch(trace)} {{data}} {{out}}"}
    change(context, model, {"recipe": recipe}, model.c.name == "own")


def has_function(context: Context, trace: Path) -> None:
    entry = {"kind": "entry", "entry": f"{trace.stem}:run"}
    (trace.parent / f"{trace.stem}.py").write_text(f"open({str(trace)!r}, 'w').close()")
    change(context, model, {"recipe": entry, "kind": "entry"}, model.c.name == "own")


def change(context: Context, table: Any, values: dict[str, Any], where: Any) -> None:
    with context.ledger.transaction() as connection:
        assert connection.execute(update(table).where(where).values(values)).rowcount


COMMANDS: list[list[str]] = [
    ["process"], ["verify", "--retrain"], ["model", "fit", "own"], ["model", "fit", "risk"],
    ["model", "publish", "risk", "--to", "mlflow:risk"], ["work", "--drain"],
    ["audit", "own", "--fresh", "visits.csv"],
]  # fmt: skip


@pytest.mark.parametrize("how", [has_hook, has_command, has_function])
@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_no_command_of_a_strangers_runs(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Any, args: list[str]
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    trace = tmp_path / "trace"
    how(context, trace)
    before = signed(context)
    context.ledger.close()
    result = erasable(*args, folder=context.root)
    assert not trace.exists()
    assert (result.exit_code, result.fault) == (1, None), result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: the ledger was tampered with: model ")
    assert signed(context) == before


def trust_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the ledger be believed, as it was before rows were held against the log."""
    monkeypatch.setattr(ledger_checks, "_refuse", lambda messages: None)
    monkeypatch.setattr(log, "_refuse_forged", lambda context, connection, _: log.tree(connection))


@pytest.mark.parametrize("how", [has_hook, has_command, has_function])
def test_without_the_check_it_would(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Any
) -> None:
    """The negative control."""
    monkeypatch.syspath_prepend(str(tmp_path))
    trace = tmp_path / "trace"
    how(context, trace)
    trust_all(monkeypatch)
    with suppress(ErasableError):  # the function returns nothing
        Workspace(context).process()
    assert trace.exists()


def nobody(context: Context) -> None:
    """Have a data set say that it is of other people's records."""
    change(context, dataset, {"subjects": []}, dataset.c.name == "visits")


def elsewhere(context: Context) -> None:
    with context.ledger.transaction() as connection:
        connection.execute(delete(holding).where(holding.c.token == token(context)))


def unknown(context: Context) -> None:
    with context.ledger.transaction() as connection:
        for table in (holding, identity):
            connection.execute(delete(table).where(table.c.token == token(context)))


def token(context: Context) -> str:
    return context.keys.token("id", PERSON)


@pytest.mark.parametrize("how", [nobody, elsewhere, unknown])
def test_nobody_who_is_there_gets_no_match(context: Context, how: Any) -> None:
    how(context)
    refuses(context)


@pytest.mark.parametrize("how", [nobody, elsewhere, unknown])
def test_without_the_check_they_would(
    context: Context, monkeypatch: pytest.MonkeyPatch, how: Any
) -> None:
    """The negative control."""
    how(context)
    trust_all(monkeypatch)
    monkeypatch.setattr(batches, "check_missed", lambda *_: None)
    assert Workspace(context).process().n_unmatched == 1


def test_requests_are_checked_before_the_erasure_and_before_the_receipt(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, right = [], ledger_checks._check_requests

    def counting(context: Context, connection: Any, ids: Any, checked: Any) -> None:
        asked.append(list(ids))
        right(context, connection, ids, checked)

    monkeypatch.setattr(ledger_checks, "_check_requests", counting)
    done = Workspace(context).process().requests
    assert [ids for ids in asked if ids] == [done, done]


def test_what_is_altered_after_the_first_check_stops_all(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = process.resources_needed

    def then_altered(context: Context, *args: Any, **options: Any) -> Any:
        found = right(context, *args, **options)
        alter(context, request, "tokens", WAITING)
        return found

    monkeypatch.setattr(process, "resources_needed", then_altered)
    assert "identities or condition" in refuses(context)


@pytest.mark.parametrize("hidden", ["visits", "calls"])
def test_nobody_is_erased_in_one_data_set_and_kept_in_another(
    context: Context, tmp_path: Path, hidden: str
) -> None:
    """The index is to say of each data set by itself who is in it."""
    write_csv(tmp_path / "calls.csv", visits(60))
    Workspace(context).add_dataset(
        "calls", tmp_path / "calls.csv", id_column="visit", subjects=["patient", "doctor"]
    )
    with context.ledger.transaction() as connection:
        owner = select(dataset.c.id).where(dataset.c.name == hidden).scalar_subquery()
        at = (holding.c.token == token(context)) & (holding.c.dataset_id == owner)
        assert connection.execute(delete(holding).where(at)).rowcount
    assert "its index lacks a person" in refuses(context)


def test_an_identity_is_looked_for_under_every_type_in_use(context: Context) -> None:
    """Whoever takes a type off the list has requests look elsewhere, and find nobody."""
    with context.ledger.transaction() as connection:
        at = meta.c.name == "identity_types"
        connection.execute(update(meta).where(at).values(value=["email"]))
    for look in (Workspace(context).request, Workspace(context).preview):
        with pytest.raises(TamperedError, match="identity_types"):
            look(["marker-patient-5"])


@pytest.mark.parametrize("how", ["append", "sync"])
def test_nobody_comes_back_who_was_taken_off_the_list(
    context: Context, tmp_path: Path, how: str
) -> None:
    later = visits(30, start=60) if how == "append" else visits(90)
    write_csv(tmp_path / "later.csv", later)
    with context.ledger.transaction() as connection:
        assert connection.execute(delete(suppression)).rowcount
    with pytest.raises(TamperedError, match="suppression list"):
        getattr(Workspace(context), how)("visits", tmp_path / "later.csv")


def test_the_report_tells_of_nothing_that_was_altered(context: Context, tmp_path: Path) -> None:
    """Verdicts of the last verification are on its page."""
    page = tmp_path / "report.html"
    Workspace(context).report(page)
    page.unlink()
    with context.ledger.transaction() as connection:
        at = meta.c.name == "verification"
        value = connection.execute(select(meta.c.value).where(at)).scalar_one()
        for each in value["verdicts"]:
            each["verdict"] = "different"
        connection.execute(update(meta).where(at).values(value=value))
    with pytest.raises(TamperedError, match="verification"):
        Workspace(context).report(page)
    assert not page.exists()


def test_the_report_leaves_no_request_out(context: Context, tmp_path: Path) -> None:
    with context.ledger.transaction() as connection:
        assert connection.execute(delete(request).where(WAITING)).rowcount == 1
    with pytest.raises(TamperedError, match="is not in the ledger"):
        Workspace(context).report(tmp_path / "report.html")


def test_a_receipt_is_shown_of_its_own_request_alone(context: Context) -> None:
    workspace = Workspace(context)
    first = workspace.process().requests[0]
    workspace.request(["marker-patient-9"])
    second = workspace.process().requests[0]
    bodies = {first: workspace.receipt(first), second: workspace.receipt(second)}
    for asked, other_one in ((first, second), (second, first)):
        with context.ledger.transaction() as connection:
            at = receipt.c.request_id == asked
            connection.execute(update(receipt).where(at).values(body=bodies[other_one]))
        with pytest.raises(TamperedError, match="of another request"):
            workspace.receipt(asked)


def test_a_broken_log_has_nothing_carried_out(context: Context) -> None:
    """The entry is of nothing that is asked for; but no receipt could be signed."""
    with context.ledger.transaction() as connection:
        connection.execute(delete(log_entry).where(log_entry.c.position == 2))
    refuses(context)
    with context.ledger.reading() as connection:
        states = connection.execute(select(request.c.state).where(WAITING)).scalars().all()
    assert states == ["pending"]


def test_whoever_is_not_there_gets_it(context: Context) -> None:
    Workspace(context).request(["marker-patient-99"])
    assert Workspace(context).process().n_unmatched == 1


def test_what_was_done_is_signed_as_it_was_done(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process dies after the erasure; then somebody alters what is to be attested."""
    with monkeypatch.context() as patch:
        patch.setattr(issuing, "issue", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            Workspace(context).process()
    change(context, task, {"treatment": "not covered"}, task.c.target == "model")
    assert "in its tasks" in refuses(context)


def test_a_request_is_not_completed_by_hand(context: Context) -> None:
    change(context, request, {"state": "swapped", "matched": 3}, WAITING)
    refuses(context)


def test_a_list_is_not_signed_that_was_altered(context: Context) -> None:
    with context.ledger.transaction() as connection:
        assert connection.execute(delete(suppression)).rowcount
    with pytest.raises(TamperedError, match="suppression list"):
        Workspace(context).suppression_list()


def test_a_key_outside_of_the_folder_is_not_removed(context: Context) -> None:
    with context.ledger.transaction() as connection:
        connection.execute(insert(garbage).values(key="../keys.json"))
    before = signed(context)
    with pytest.raises(TamperedError, match="outside of the folder"):
        Workspace(context).process()
    assert (context.root / "keys.json").exists()
    assert signed(context) == before


def test_an_entry_is_not_forged(context: Context) -> None:
    """Whoever lacks the keys can make a whole log of his own, but no seal."""
    with context.ledger.reading() as connection:
        ((row, version),) = seals.newest(connection, "dataset")
        said = consistency.facts_of_dataset(context, row, version) | {"subjects": []}
    nobody(context)
    stranger = Context(context.root)
    stranger._keys = Keys.new()
    with stranger.ledger.transaction() as connection:
        log.append(stranger, connection, "dataset-synced", "visits", said, context.now())
        connection.execute(delete(meta).where(meta.c.name == "signed_head"))
    stranger.ledger.close()
    refuses(context)
    assert any("not written with the workspace's keys" in line for line in log.verify_log(context))


def test_an_entry_about_another_model_is_not_taken_for_its_own(context: Context) -> None:
    """Under which subject an entry is filed is in no hash: what it says itself counts."""
    with context.ledger.reading() as connection:
        query = select(log_entry.c.subject, func.max(log_entry.c.position))
        models = query.where(log_entry.c.kind.startswith("model-")).group_by(log_entry.c.subject)
        last = {subject: position for subject, position in connection.execute(models)}
    mine, other = sorted(last, key=lambda name: last[name])  # its last entry is the older one
    change(context, log_entry, {"subject": mine}, log_entry.c.position == last[other])
    assert "is about something else" in refuses(context)


# -- ledgers without seals -------------------------------------------------------------------------


def test_a_ledger_without_seals_is_refused(context: Context) -> None:
    """Nobody but the workspace can make them; it makes none for what is there already."""
    with context.ledger.transaction() as connection:
        connection.execute(update(log_entry).values(seal=None))
        connection.execute(delete(meta).where(meta.c.name.startswith("seal:")))
    opened = Workspace.open(context.root)
    refuses(opened.context)
    assert any("not written with the workspace's keys" in line for line in opened.verify_log())
    opened.context.ledger.close()
