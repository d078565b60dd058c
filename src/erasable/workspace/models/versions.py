"""Versions of models: written down and logged in the caller's transaction."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from erasable.workspace.context import Context
from erasable.workspace.data.gone_subjects import drop_unused
from erasable.workspace.evidence import entries, log, seals
from erasable.workspace.ledger import schema
from erasable.workspace.models.catalogue import current, find
from erasable.workspace.models.training import software
from erasable.workspace.store.artifacts import StoredArtifact


def next_number(connection: Connection, model_id: int) -> int:
    """Return the number of the next version; one that was retired has kept its own."""
    newest = select(func.max(schema.model_version.c.number))
    found = connection.execute(newest.where(schema.model_version.c.model_id == model_id)).scalar()
    return 1 + (found or 0)


def new_version(
    context: Context,
    connection: Connection,
    model_id: int,
    number: int,
    cause: str,
    artifact: StoredArtifact,
    **values: Any,
) -> None:
    """Record a version of a model, and supersede the one before."""
    supersede(context, connection, model_id)
    connection.execute(
        insert(schema.model_version).values(
            model_id=model_id, number=number, cause=cause, key=artifact.key,
            sha256=artifact.sha256, software=software(), created_at=context.now(), **values,
        )
    )  # fmt: skip
    at = schema.model.c.id == model_id
    connection.execute(update(schema.model).where(at).values(version=number))


def supersede(context: Context, connection: Connection, model_id: int) -> None:
    """Drop the file and the salt of the current version: its digest can no longer be checked.

    Its failures do not count for the next version.
    """
    versions = schema.model_version
    live = (versions.c.model_id == model_id) & versions.c.key.is_not(None)
    for key in connection.execute(versions.select().with_only_columns(versions.c.key).where(live)):
        connection.execute(insert(schema.garbage).values(key=key[0]))
    connection.execute(
        update(versions).where(live).values(
            key=None, sha256=None, salt=None, superseded_at=context.now()
        )
    )  # fmt: skip
    failed = (schema.failure.c.target == "model") & (schema.failure.c.target_id == model_id)
    connection.execute(delete(schema.failure).where(failed))


def retire_model(
    context: Context, connection: Connection, model_id: int, name: str, now: datetime
) -> None:
    """Retire a model, and drop data that only this model needed.

    Call `gone_subjects.tidy` for its data sets afterwards.
    """
    supersede(context, connection, model_id)
    at = schema.model.c.id == model_id
    connection.execute(update(schema.model).where(at).values(state="retired"))
    log_model(context, connection, "model-retired", name, now)
    for each in find(connection, name).datasets:
        drop_unused(context, connection, each)


def log_model(
    context: Context, connection: Connection, kind: str, name: str, now: datetime
) -> None:
    """Log the current state of a model, and seal its file, in the caller's transaction."""
    model = find(connection, name)
    version = current(connection, model)
    body = entries.model(context.keys, asdict(model), None if version is None else asdict(version))
    log.append(context, connection, kind, name, body, now)
    seals.put(context, connection, "model", model.id)
