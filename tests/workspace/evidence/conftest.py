"""A workspace in which everything has happened once, written straight into its ledger."""

from __future__ import annotations

import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from backends import copy_of
from sqlalchemy import Connection, insert, select, update

from erasable.workspace.context import Context
from erasable.workspace.evidence import entries, issuing, log, receipts, seals
from erasable.workspace.evidence.commitments import commit
from erasable.workspace.ledger.schema import (
    dataset,
    dataset_version,
    fragment,
    model,
    model_version,
    request,
    task,
)
from workspace_scene import DIGEST, DONE, DUE, HOLD, PERSON, REASON, RECEIVED


@pytest.fixture(scope="session")
def _made(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    context = Context.create(tmp_path_factory.mktemp("scene") / "ws")
    with context.ledger.transaction() as connection:
        _add_dataset(context, connection)
        _fit_models(context, connection)
        _seal(context, connection)
        _ask(context, connection)
    with context.ledger.transaction() as connection:
        _erase(context, connection)
        _seal(context, connection)
    with context.ledger.transaction() as connection:
        issuing.issue(context, connection, ["R-DONE", "R-NONE"], DONE)
    with context.ledger.transaction() as connection:
        acknowledge(context, connection, "R-LATER")
    context.ledger.checkpoint()
    return context.root


@pytest.fixture
def scene(_made: Path, tmp_path: Path) -> Context:
    """R-DONE and R-NONE are completed, others in every other state; three models."""
    copy_of(_made, tmp_path / "ws")
    return Context.open(tmp_path / "ws")


@pytest.fixture
def body(scene: Context) -> bytes:
    """The receipt of R-DONE."""
    with scene.ledger.reading() as connection:
        found = receipts.fetch(connection, "R-DONE")
    assert found is not None
    return found


FOLLOWED = [
    {"dataset": "visits", "from": "patient", "from_type": "email", "to": "card", "to_type": "id",
     "identities": 1}
]  # fmt: skip
SEARCHED = [{"dataset": "visits", "column": "patient", "type": "email"}]


def row_of(connection: Connection, table: Any, **where: Any) -> dict[str, Any]:
    query = select(table)
    for name, value in where.items():
        query = query.where(table.c[name] == value)
    return connection.execute(query).one()._asdict()


def acknowledge(context: Context, connection: Connection, id: str, **values: Any) -> None:
    token = context.keys.token("email", PERSON)
    row = {
        "id": id, "state": "pending", "regulation": "gdpr", "received_at": RECEIVED,
        "due_at": DUE, "hold": None, "type": "email", "types": ["email"],
        "tokens": [("email", token)], "condition": None, "salt": secrets.token_hex(32),
        "changed_at": RECEIVED, **values,
    }  # fmt: skip
    connection.execute(insert(request).values(row))
    body = entries.of_request(context.keys, "request-acknowledged", row)
    log.append(context, connection, "request-acknowledged", id, body, RECEIVED)


def change(context: Context, connection: Connection, id: str, kind: str, **values: Any) -> None:
    connection.execute(update(request).where(request.c.id == id).values(values))
    body = entries.of_request(context.keys, kind, row_of(connection, request, id=id))
    log.append(context, connection, kind, id, body, DONE)


def _add_dataset(context: Context, connection: Connection) -> None:
    row = {
        "id": 1, "name": "visits", "source": {"kind": "csv", "place": "visits.csv"},
        "id_column": "visit", "subjects": [{"column": "patient", "type": "email"}],
        "columns": [{"name": "age", "type": "int64"}], "n_buckets": 4, "version": 1,
        "created_at": RECEIVED,
    }  # fmt: skip
    connection.execute(insert(dataset).values(row))
    for number, cause, kind in ((1, "add", "dataset-added"), (2, "append", "dataset-appended")):
        version = {
            "dataset_id": 1, "number": number, "cause": cause, "n_records": 10 * number,
            "n_suppressed": number - 1, "created_at": RECEIVED,
            "n_added": 10, "n_changed": 0, "n_removed": 0,
        }  # fmt: skip
        connection.execute(insert(dataset_version).values(version))
        connection.execute(update(dataset).values(version=number))
        connection.execute(
            insert(fragment).values(
                dataset_id=1, bucket=number, since=number, key=f"data/1/{number}",
                sha256=f"{number}" * 64, n_records=10,
            )
        )  # fmt: skip
        row = row_of(connection, dataset)
        log.append(
            context,
            connection,
            kind,
            "visits",
            entries.dataset(context.keys, row, version),
            RECEIVED,
        )


def _fit_models(context: Context, connection: Connection) -> None:
    for id, name, kind, state in (
        (1, "risk", "estimator", "ready"),
        (2, "small", "estimator", "ready"),
        (3, "elsewhere", "uncovered", "uncovered"),
    ):
        row = {
            "id": id, "name": name, "kind": kind, "recipe": {"kind": kind},
            "features": ["age"], "target": "disease", "datasets": [1], "state": state,
            "version": int(kind != "uncovered"), "hook": None, "policy": None,
            "created_at": RECEIVED,
        }  # fmt: skip
        connection.execute(insert(model).values(row))
        version = _version(connection, id, 1, "fit") if kind != "uncovered" else None
        verb = "model-fitted" if version else "model-registered"
        log.append(
            context, connection, verb, name, entries.model(context.keys, row, version), RECEIVED
        )


def _version(connection: Connection, id: int, number: int, cause: str) -> dict[str, Any]:
    salt, commitment = commit(f"{DIGEST}{id}{number}")
    row = {
        "model_id": id, "number": number, "cause": cause, "dataset_versions": [2],
        "key": f"models/{id}/{number}", "sha256": f"{number}" * 64, "salt": salt,
        "commitment": commitment, "algorithm": "naive_bayes.GaussianNB:1",
        "software": {"erasable": "0.1.0"}, "n_records": 20 - number, "seconds": 0.25,
        "created_at": RECEIVED,
    }  # fmt: skip
    connection.execute(insert(model_version).values(row))
    return row


def _seal(context: Context, connection: Connection) -> None:
    seals.put(context, connection, "dataset", 1)
    for id in (1, 2, 3):
        seals.put(context, connection, "model", id)


def _ask(context: Context, connection: Connection) -> None:
    for id in ("R-DONE", "R-NONE", "R-DENIED", "R-CANCELLED", "R-LONG", "R-STARTED", "R-RESUMED"):
        acknowledge(context, connection, id)
    acknowledge(context, connection, "R-HELD", hold=HOLD)
    condition = {"dataset": 1, "where": f"patient = '{PERSON}'"}
    acknowledge(
        context, connection, "R-WHERE", tokens=None, type=None, types=None, condition=condition
    )
    gone = {"tokens": None, "condition": None, "salt": None}
    change(context, connection, "R-DENIED", "request-denied", state="denied", reason=REASON, **gone)
    change(context, connection, "R-CANCELLED", "request-cancelled", state="cancelled", **gone)
    later = DUE + timedelta(days=62)
    change(
        context, connection, "R-LONG", "request-extended", due_at=later, extended_at=DONE,
        extension=REASON,
    )  # fmt: skip
    change(context, connection, "R-RESUMED", "request-held", hold=HOLD)
    change(context, connection, "R-RESUMED", "request-held", hold=None)
    for id in ("R-STARTED", "R-DONE", "R-NONE"):
        connection.execute(
            update(request).where(request.c.id == id).values(state="in_progress", batch="B-1")
        )
        log.append(context, connection, "request-started", id, {"batch": "B-1"}, DONE)


def _erase(context: Context, connection: Connection) -> None:
    before = {id: row_of(connection, model_version, model_id=id) for id in (1, 2)}
    after = _version(connection, 1, 2, "erase")
    connection.execute(update(model).where(model.c.id == 1).values(version=2))
    connection.execute(update(model).where(model.c.id == 2).values(state="retired"))
    for id, kind in ((1, "model-updated"), (2, "model-retired")):
        row = row_of(connection, model, id=id)
        version = after if id == 1 else before[2]
        log.append(
            context, connection, kind, row["name"], entries.model(context.keys, row, version), DONE
        )
    common = {"request_id": "R-DONE", "state": "done", "n_records": 3, "seconds": 0.5}
    tasks = [
        {**common, "target": target, "target_id": id, "treatment": treatment,
         "exactness": exactness, "before": before_, "after": after_}
        for target, id, treatment, exactness, before_, after_ in (
            ("dataset", 1, "rewritten", "bitwise", None, None),
            ("model", 1, "deleted", "bitwise", before[1]["commitment"], after["commitment"]),
            ("model", 2, "retired", "gone", before[2]["commitment"], None),
            ("model", 3, "not covered", None, None, None),
        )
    ]  # fmt: skip
    connection.execute(insert(task), tasks)
    gone = {"tokens": None, "condition": None, "salt": None}
    for id, matched, mine in (("R-DONE", 3, tasks), ("R-NONE", 0, [])):
        connection.execute(
            update(request)
            .where(request.c.id == id)
            .values(state="purged", matched=matched, searched=SEARCHED, followed=FOLLOWED, **gone)
        )
        body = entries.erased(matched, mine, searched=SEARCHED, followed=FOLLOWED)
        log.append(context, connection, "request-erased", id, body, DONE)
