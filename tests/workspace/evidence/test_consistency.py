"""The ledger against the log: every column that matters is watched, and the right one is named."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, update

from erasable.workspace.context import Context
from erasable.workspace.evidence import entries, log
from erasable.workspace.evidence.consistency import compare_ledger_with_log
from erasable.workspace.evidence.formats import pack, unpack
from erasable.workspace.ledger.schema import (
    dataset,
    dataset_version,
    log_entry,
    model,
    model_version,
    receipt,
    request,
    task,
)
from naming import named

LATER = datetime.fromisoformat("2027-06-01T00:00:00+00:00")


def test_a_ledger_that_nobody_touched_is_what_the_log_says(scene: Context) -> None:
    assert log.verify_log(scene) == []
    assert compare_ledger_with_log(scene) == []


ALL = {"dataset": 1, "where": ""}
AGE = {"dataset": "visits", "columns": ["age"]}

TAMPERED: list[tuple[Any, dict[str, Any], str, Any, str, str]] = [
    # table, which row, column, new value, whom the finding names, what it names
    (request, {"id": "R-LATER"}, "state", "denied", "request 'R-LATER'", "in its state"),
    (request, {"id": "R-DENIED"}, "state", "pending", "request 'R-DENIED'", "in its state"),
    (request, {"id": "R-STARTED"}, "state", "completed", "request 'R-STARTED'", "in its state"),
    (request, {"id": "R-DONE"}, "state", "pending", "request 'R-DONE'", "in its state"),
    (request, {"id": "R-LATER"}, "regulation", "none", "request 'R-LATER'", "in its regulation"),
    (request, {"id": "R-LATER"}, "received_at", LATER, "request 'R-LATER'", "time of receipt"),
    (request, {"id": "R-LATER"}, "due_at", LATER, "request 'R-LATER'", "due date"),
    (request, {"id": "R-LATER"}, "due_at", None, "request 'R-LATER'", "due date"),
    (request, {"id": "R-LONG"}, "due_at", LATER, "request 'R-LONG'", "due date"),
    (request, {"id": "R-LONG"}, "extended_at", None, "request 'R-LONG'", "time of extension"),
    (request, {"id": "R-LONG"}, "extension", "x", "request 'R-LONG'", "in its extension"),
    (request, {"id": "R-LATER"}, "hold", "x", "request 'R-LATER'", "in its hold"),
    (request, {"id": "R-HELD"}, "hold", None, "request 'R-HELD'", "in its hold"),
    (request, {"id": "R-RESUMED"}, "hold", "x", "request 'R-RESUMED'", "in its hold"),
    (request, {"id": "R-DENIED"}, "reason", "x", "request 'R-DENIED'", "in its reason"),
    (request, {"id": "R-LATER"}, "tokens", [["id", "0"]], "request 'R-LATER'", "or condition"),
    (request, {"id": "R-LATER"}, "tokens", None, "request 'R-LATER'", "or condition"),
    (request, {"id": "R-LATER"}, "type", "id", "request 'R-LATER'", "or condition"),
    (request, {"id": "R-LATER"}, "types", ["id"], "request 'R-LATER'", "in its types"),
    (request, {"id": "R-DONE"}, "types", None, "request 'R-DONE'", "in its types"),
    (request, {"id": "R-LATER"}, "salt", "00" * 32, "request 'R-LATER'", "or condition"),
    (request, {"id": "R-LATER"}, "salt", None, "request 'R-LATER'", "or condition"),
    (request, {"id": "R-WHERE"}, "condition", ALL, "request 'R-WHERE'", "or condition"),
    (request, {"id": "R-LATER"}, "corrects", AGE, "request 'R-LATER'", "columns to correct"),
    (request, {"id": "R-LATER"}, "values_key", "x", "request 'R-LATER'", "or condition"),
    (request, {"id": "R-LATER"}, "values_sha256", "0", "request 'R-LATER'", "or condition"),
    (request, {"id": "R-DONE"}, "tokens", [["id", "0"]], "request 'R-DONE'", "still holds"),
    (request, {"id": "R-DENIED"}, "salt", "00" * 32, "request 'R-DENIED'", "still holds"),
    (request, {"id": "R-DONE"}, "batch", "B-2", "request 'R-DONE'", "in its batch"),
    (request, {"id": "R-DONE"}, "matched", 0, "request 'R-DONE'", "records found"),
    (request, {"id": "R-DONE"}, "searched", [], "request 'R-DONE'", "columns searched"),
    (request, {"id": "R-DONE"}, "followed", [], "request 'R-DONE'", "identities followed"),
    (request, {"id": "R-LATER"}, "reference", "x", "request 'R-LATER'", "in its reference"),
    (request, {"id": "R-LATER"}, "reach", 9, "request 'R-LATER'", "or condition"),
    (request, {"id": "R-DONE"}, "completed_at", LATER, "request 'R-DONE'", "time of completion"),
    (receipt, {"request_id": "R-DONE"}, "body", b"{}", "request 'R-DONE'", "in its receipt"),
    (task, {"target_id": 2}, "treatment", "deleted", "request 'R-DONE'", "in its tasks"),
    (task, {"target_id": 2}, "exactness", "bitwise", "request 'R-DONE'", "in its tasks"),
    (task, {"target_id": 2}, "n_records", 2, "request 'R-DONE'", "in its tasks"),
    (task, {"target_id": 2}, "before", "0" * 64, "request 'R-DONE'", "in its tasks"),
    (task, {"target_id": 2}, "after", "0" * 64, "request 'R-DONE'", "in its tasks"),
    (dataset, {}, "version", 1, "data set 'visits'", "in its version"),
    (dataset, {}, "version", 3, "data set 'visits'", "number of records"),
    (dataset, {}, "source", {"kind": "csv", "place": "x"}, "data set 'visits'", "in its source"),
    (dataset, {}, "id_column", "x", "data set 'visits'", "in its id column"),
    (dataset, {}, "subjects", [], "data set 'visits'", "in its subjects"),
    (dataset, {}, "columns", [], "data set 'visits'", "in its columns"),
    (dataset, {}, "n_buckets", 8, "data set 'visits'", "number of buckets"),
    (dataset_version, {"number": 2}, "n_records", 9, "data set 'visits'", "number of records"),
    (dataset_version, {"number": 2}, "n_suppressed", 0, "data set 'visits'", "suppressed records"),
    (dataset_version, {"number": 2}, "n_added", 9, "data set 'visits'", "of added records"),
    (dataset_version, {"number": 2}, "n_changed", 9, "data set 'visits'", "of changed records"),
    (dataset_version, {"number": 2}, "n_removed", 9, "data set 'visits'", "of removed records"),
    (model, {"id": 1}, "policy", "never", "model 'risk'", "in its policy"),
    (model, {"id": 1}, "version", 1, "model 'risk'", "in its version"),
    (model, {"id": 1}, "state", "retired", "model 'risk'", "in its state"),
    (model, {"id": 2}, "state", "ready", "model 'small'", "in its state"),
    (model, {"id": 3}, "state", "ready", "model 'elsewhere'", "in its state"),
    (model, {"id": 1}, "kind", "command", "model 'risk'", "in its kind"),
    (model, {"id": 1}, "recipe", {"kind": "x"}, "model 'risk'", "in its recipe"),
    (model, {"id": 1}, "features", None, "model 'risk'", "in its features"),
    (model, {"id": 1}, "target", "age", "model 'risk'", "in its target"),
    (model, {"id": 1}, "datasets", [], "model 'risk'", "in its data sets"),
    (model, {"id": 1}, "hook", "rm", "model 'risk'", "in its hook"),
    (model_version, {"model_id": 1, "number": 2}, "commitment", "0", "model 'risk'", "commitment"),
    (model_version, {"model_id": 1, "number": 2}, "algorithm", "x", "model 'risk'", "algorithm"),
    (model_version, {"model_id": 1, "number": 2}, "software", {}, "model 'risk'", "software"),
    (model_version, {"model_id": 1, "number": 2}, "n_records", 1, "model 'risk'", "of records"),
    (model_version, {"model_id": 1, "number": 2}, "dataset_versions", [1], "model 'risk'",
     "versions of data sets"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "which", "column", "value", "whom", "what"),
    TAMPERED,
    ids=[named((one[0].name, one[1], one[2], one[3])) for one in TAMPERED],
)
def test_a_tampered_column_is_named(
    scene: Context, table: Any, which: dict[str, Any], column: str, value: Any, whom: str, what: str
) -> None:
    query = update(table).values({column: value})
    for name, wanted in which.items():
        query = query.where(table.c[name] == wanted)
    with scene.ledger.transaction() as connection:
        assert connection.execute(query).rowcount == 1
    found = compare_ledger_with_log(scene)
    assert found
    assert all(line.startswith(whom) for line in found), found
    assert any(what in line for line in found), found
    assert all("\n" not in line for line in found)


def test_every_column_that_the_log_speaks_of_is_tampered_with_above(scene: Context) -> None:
    tried = {(one[0].name, one[2]) for one in TAMPERED}
    with scene.ledger.reading() as connection:
        rows = {
            table.name: [row._asdict() for row in connection.execute(table.select())]
            for table in (request, dataset, model, task)
        }
        versions = [row._asdict() for row in connection.execute(model_version.select())]
    said = {("request", name) for name in entries.request(scene.keys, rows["request"][0])}
    said |= {("task", name) for name in entries.task(rows["task"][0])}
    counts = ("n_added", "n_changed", "n_removed")
    version = {"n_records": 1, "n_suppressed": 0, "number": 1, **dict.fromkeys(counts, 0)}
    said |= {("dataset", name) for name in entries.dataset(scene.keys, rows["dataset"][0], version)}
    said |= {("model", name) for name in entries.model(scene.keys, rows["model"][0], versions[0])}
    elsewhere = {
        ("request", "scope"): ("request", "tokens"),
        ("task", "target"): None,  # with the id it says which row it is
        ("task", "target_id"): None,
        ("model", "made_by"): ("model", "kind"),
        **{
            ("dataset", name): ("dataset_version", name)
            for name in ("n_records", "n_suppressed", *counts)
        },
        **{
            ("model", name): ("model_version", name)
            for name in ("dataset_versions", "commitment", "algorithm", "software", "n_records")
        },
    }
    assert {elsewhere.get(one, one) for one in said} - {None} <= tried


REMOVED: list[tuple[Any, dict[str, Any], str]] = [
    (request, {"id": "R-LATER"}, "request 'R-LATER' is not in the ledger"),
    (request, {"id": "R-CANCELLED"}, "request 'R-CANCELLED' is not in the ledger"),
    (receipt, {"request_id": "R-NONE"}, "in its receipt"),
    (task, {"target_id": 3}, "in its tasks"),
    (dataset_version, {"number": 2}, "number of records"),
    (model_version, {"number": 2}, "model 'risk'"),
]


@pytest.mark.parametrize(
    ("table", "which", "told"), REMOVED, ids=[named((one[0].name, one[1])) for one in REMOVED]
)
def test_a_removed_row_is_named(
    scene: Context, table: Any, which: dict[str, Any], told: str
) -> None:
    query = delete(table)
    for name, wanted in which.items():
        query = query.where(table.c[name] == wanted)
    with scene.ledger.transaction() as connection:
        assert connection.execute(query).rowcount == 1
    found = compare_ledger_with_log(scene)
    assert any(told in line for line in found), found


def test_a_row_that_the_log_does_not_know_is_named(scene: Context) -> None:
    with scene.ledger.transaction() as connection:
        row = connection.execute(request.select().where(request.c.id == "R-LATER")).one()
        connection.execute(request.insert().values({**row._asdict(), "id": "R-SMUGGLED"}))
    assert compare_ledger_with_log(scene) == [
        "request 'R-SMUGGLED' is in the ledger, but the log does not know of it"
    ]


def test_a_garbled_entry_does_not_hide_the_rest(scene: Context) -> None:
    with scene.ledger.transaction() as connection:
        connection.execute(update(log_entry).where(log_entry.c.position == 1).values(body=b"\xff"))
        connection.execute(
            update(request)
            .where(request.c.id == "R-LATER")
            .values(due_at=LATER + timedelta(days=1))
        )
    assert any("R-LATER" in line for line in compare_ledger_with_log(scene))
    assert log.verify_log(scene)


@pytest.mark.parametrize("part", ["envelope", "head"])
def test_a_receipt_that_a_stranger_would_refuse_is_named(scene: Context, part: str) -> None:
    at = receipt.c.request_id == "R-DONE"
    with scene.ledger.transaction() as connection:
        body = unpack(connection.execute(receipt.select().where(at)).one().body, "it")
        body[part]["signatures"][0]["sig"] = "AAAA"
        connection.execute(update(receipt).where(at).values(body=pack(body)))
    (line,) = compare_ledger_with_log(scene)
    assert line.startswith("request 'R-DONE'")
    assert line.endswith("in its receipt")


@pytest.mark.parametrize("name", ["note", "seal:model:99", "seal:nothing"])
def test_a_setting_that_nobody_writes_is_told(scene: Context, name: str) -> None:
    with scene.ledger.transaction() as connection:
        scene.ledger.set(connection, name, "x")
    (line,) = compare_ledger_with_log(scene)
    assert line == f"the ledger has a setting {name!r}, which erasable does not write"
